//! Paths that need approval by default. They are matched by name, at any depth, whether or not the file exists.
//!
//! There are two lists: reading files that may hold secrets needs approval, and so does changing files that cause
//! code to run. An editor's backup or swap file counts as the original file, and a FAT or NTFS short name (`GIT~1`)
//! as the long one. [`may_be_protected`] is true for every path that [`matches`] matches.

mod lists;

use std::sync::LazyLock;

use self::lists::{BACKUP_SUFFIXES, RUN, SECRETS};
use super::fold::Names;
use super::rules::Rules;
use super::{Access, Reason};

static SECRET_RULES: LazyLock<Rules> = LazyLock::new(|| rules("Read", SECRETS, str::to_owned));
static RUN_RULES: LazyLock<Rules> = LazyLock::new(|| rules("*", RUN, str::to_owned));
/// The same rules with each name long or short. Compiled only when a path looks like a short name.
static SHORT_SECRET_RULES: LazyLock<Rules> =
    LazyLock::new(|| rules("Read", SECRETS, long_or_short));
static SHORT_RUN_RULES: LazyLock<Rules> = LazyLock::new(|| rules("*", RUN, long_or_short));

fn rules(operation: &str, patterns: &[&str], alternatives: fn(&str) -> String) -> Rules {
    let anywhere = |pattern: &&str| {
        let (not, pattern) = match pattern.strip_prefix('!') {
            Some(pattern) => ("!", pattern),
            None => ("", *pattern),
        };
        let names: Vec<_> = pattern.split('/').map(alternatives).collect();
        format!("{operation}({not}**/{})", names.join("/"))
    };
    let rules: Vec<_> = patterns.iter().map(anywhere).collect();
    Rules::broad("built-in", &rules, &[]).expect("these are good rules")
}

/// A glob for a name and for its 8.3 short name: the first six characters without dots, `~` and a number,
/// and three characters of the extension.
fn long_or_short(name: &str) -> String {
    let visible = name.trim_start_matches('.');
    let (stem, extension) = visible.rsplit_once('.').unwrap_or((visible, ""));
    let stem: String = stem.chars().filter(|letter| *letter != '.').take(6).collect();
    let extension: String = extension.chars().take(3).collect();
    let dot = if extension.is_empty() { "" } else { "." };
    format!("{{{name},{stem}~[0-9]*{dot}{extension}}}")
}

/// The reason why an access to a path needs approval by default, if it does.
pub(super) fn matches(access: Access, names: &Names<'_>) -> Option<Reason> {
    let (rules, short, reason) = match access {
        Access::Read => (&SECRET_RULES, &SHORT_SECRET_RULES, Reason::Secret),
        Access::Write | Access::Delete => (&RUN_RULES, &SHORT_RUN_RULES, Reason::MakesCodeRun),
    };
    let with_originals = names.with(originals);
    let listed = rules.matches(access, &with_originals).is_some()
        || names.folded.iter().any(|path| has_short_name(path.as_os_str().as_encoded_bytes()))
            && short.matches(access, &with_originals).is_some();
    listed.then_some(reason)
}

/// Whether a part of a path may be a short name: it has `~` before a digit.
fn has_short_name(path: &[u8]) -> bool {
    path.windows(2).any(|pair| pair[0] == b'~' && pair[1].is_ascii_digit())
}

/// The paths of which a folded path may be a backup or swap file.
fn originals(path: &str) -> Vec<String> {
    let mut found = Vec::new();
    // Vim adds a dot before the name of a swap file. The original may have one already.
    for keep_dot in [true, false] {
        let names: Vec<_> = path.split('/').map(|name| original(name, keep_dot)).collect();
        found.push(names.join("/"));
    }
    found.dedup();
    found.retain(|original| original != path);
    found
}

/// A name without its backup and swap suffixes. It may have several.
fn original(name: &str, keep_dot: bool) -> &str {
    // The name of an NTFS stream comes after the file's.
    let mut rest = name.split(':').next().filter(|file| !file.is_empty()).unwrap_or(name);
    let mut has_extra_dot = false;
    while let Some(stripped) = without_mark(rest).filter(|stripped| !stripped.is_empty()) {
        has_extra_dot |= is_swap_of(rest, stripped);
        rest = stripped;
    }
    if has_extra_dot && !keep_dot { rest.strip_prefix('.').unwrap_or(rest) } else { rest }
}

/// A name without one backup or swap suffix, if it has one.
fn without_mark(name: &str) -> Option<&str> {
    let enclosed = || name.strip_prefix('#')?.strip_suffix('#');
    let suffixed = || BACKUP_SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix));
    // Emacs numbers backups, `name.~1~`; the last `~` is a suffix.
    let numbered =
        || name.trim_end_matches(|letter: char| letter.is_ascii_digit()).strip_suffix(".~");
    let swap = || {
        let (stem, extension) = name.rsplit_once('.')?;
        (is_swap(extension.as_bytes()) || extension == "un").then_some(stem)
    };
    enclosed().or_else(|| name.strip_prefix(".#")).or_else(suffixed).or_else(numbered).or_else(swap)
}

/// Whether an extension is that of a Vim swap file: `swp`, or `swo` and so on if that exists.
fn is_swap(extension: &[u8]) -> bool {
    matches!(extension, [b's' | b'S', b'w' | b'W', last] if last.is_ascii_alphabetic())
}

/// Whether the removed suffix is that of a Vim swap file.
fn is_swap_of(name: &str, stripped: &str) -> bool {
    name.strip_prefix(stripped)
        .is_some_and(|mark| mark == ".un" || is_swap(mark.as_bytes().get(1..).unwrap_or_default()))
}

/// The beginnings and extensions of the visible names in a list.
struct Marks {
    /// The first letters, packed, grouped by their number.
    beginnings: [(usize, Vec<u64>); 2],
    /// The names that are shorter, packed.
    short_names: Vec<u64>,
    /// The extensions, packed.
    extensions: Vec<u64>,
}

/// Reading and writing have their own marks: a walk only reads, and the other list has names that many trees have, such as
/// `tools`.
static SECRET_MARKS: LazyLock<Marks> = LazyLock::new(|| marks(SECRETS));
static RUN_MARKS: LazyLock<Marks> = LazyLock::new(|| marks(RUN));

fn marks(patterns: &[&str]) -> Marks {
    let mut marks = Marks {
        beginnings: [(8, Vec::new()), (5, Vec::new())],
        short_names: Vec::new(),
        extensions: Vec::new(),
    };
    for pattern in patterns {
        let first = pattern.split('/').next().unwrap_or_default();
        if let Some(rest) = first.strip_prefix('*') {
            marks.extensions.extend(extension(rest.as_bytes()).map(packed));
        } else if !first.starts_with(['.', '!']) {
            let literal = first.split('*').next().unwrap_or_default().as_bytes();
            let fits = marks.beginnings.iter_mut().find(|(letters, _)| literal.len() >= *letters);
            match fits {
                Some((letters, beginnings)) => beginnings.push(packed(&literal[..*letters])),
                None => marks.short_names.push(packed(literal)),
            }
        }
    }
    let suffixes = BACKUP_SUFFIXES.iter().filter_map(|suffix| extension(suffix.as_bytes()));
    marks.extensions.extend(suffixes.map(packed));
    // Sorted for a binary search.
    marks.extensions.sort_unstable();
    marks.beginnings.iter_mut().for_each(|(_, beginnings)| beginnings.sort_unstable());
    marks
}

/// Up to eight letters as one number, ignoring case.
fn packed(letters: &[u8]) -> u64 {
    letters
        .iter()
        .take(8)
        .fold(0, |number, letter| number << 8 | u64::from(letter.to_ascii_lowercase()))
}

fn extension(name: &[u8]) -> Option<&[u8]> {
    name.iter().rposition(|byte| *byte == b'.').map(|dot| &name[dot + 1..])
}

/// Whether a path may be protected from an access. It is fast, since a walk calls it for every name. If it is false, the path
/// is not protected.
pub(super) fn may_be_protected(access: Access, path: &[u8]) -> bool {
    let marks = match access {
        Access::Read => &*SECRET_MARKS,
        Access::Write | Access::Delete => &*RUN_MARKS,
    };
    let mut start = 0;
    for (at, byte) in path.iter().copied().enumerate() {
        // This is the case for most bytes.
        if byte.is_ascii_alphanumeric() {
            continue;
        }
        let before = if at == 0 { b'/' } else { path[at - 1] };
        let hidden = before == b'/' && byte == b'.';
        let trails = byte == b'/' && matches!(before, b'.' | b' ');
        // Folding changes letters that are not ASCII. The other characters occur in backups, short names and streams.
        let odd = !byte.is_ascii() || byte.is_ascii_control() || matches!(byte, b'~' | b'#' | b':');
        if hidden || trails || odd {
            return true;
        }
        if byte == b'/' {
            if marks.suspect(&path[start..at]) {
                return true;
            }
            start = at + 1;
        }
    }
    marks.suspect(&path[start..])
}

impl Marks {
    /// Whether a visible name may be in the list.
    fn suspect(&self, name: &[u8]) -> bool {
        let begins = self.beginnings.iter().any(|(letters, beginnings)| {
            name.get(..*letters)
                .is_some_and(|begin| beginnings.binary_search(&packed(begin)).is_ok())
        });
        let ends = || {
            extension(name).is_some_and(|end| {
                is_swap(end) || self.extensions.binary_search(&packed(end)).is_ok()
            })
        };
        let short = || name.len() < 5 && self.short_names.contains(&packed(name));
        begins
            || short()
            || matches!(name.last(), Some(b'.' | b' '))
            || name.ends_with(b"___")
            || ends()
    }
}

#[cfg(test)]
mod tests;
