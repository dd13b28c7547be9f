//! Reads ignore files, and matches the entries of a tree against them.
//!
//! Only the matcher of the `ignore` crate is used. The crate's own walker opens ignore files by path: it would follow
//! a symlink out of the root, block on a pipe, or read a device without end. Here they are read through the fence.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use blake3::Hash;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::{File, Kind, RelPath, Workspace, sys};

/// The names of ignore files, by precedence. A match of the first kind, at any level, overrides the others.
const IGNORE_FILES: [&[u8]; KINDS] = [b".geminiignore", b".rgignore", b".ignore", b".gitignore"];
const KINDS: usize = 4;

/// Which ignore files a walk obeys.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct IgnoreFiles {
    /// `.geminiignore`.
    pub gemini: bool,
    /// `.ignore` and `.rgignore`.
    pub general: bool,
    /// `.gitignore`.
    pub git: bool,
}

impl IgnoreFiles {
    /// Those that ripgrep obeys.
    pub const STANDARD: Self = Self { gemini: false, general: true, git: true };
    /// Every kind.
    pub const ALL: Self = Self { gemini: true, ..Self::STANDARD };
    /// None. Of the names that are always skipped, only `.git` is skipped.
    pub const NONE: Self = Self { gemini: false, general: false, git: false };

    /// Whether each kind in [`IGNORE_FILES`] is obeyed.
    fn kinds(self) -> [bool; KINDS] {
        [self.gemini, self.general, self.general, self.git]
    }
}

/// The maximum number of bytes read from an ignore file. The largest in use have some tens of kilobytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// Longer lines are not patterns, and deeper braces overflow the stack of the glob compiler.
const MAX_LINE_BYTES: usize = 4096;
const MAX_BRACE_DEPTH: usize = 16;

/// The maximum number of lines. More patterns take too long to compile.
const MAX_LINES: usize = 10_000;

/// The ignore files that apply to a directory's entries: its own, and those above it.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    above: Option<Arc<Self>>,
    /// The length of the directory's path. The patterns are relative to it.
    prefix: usize,
    files: [Option<Arc<Patterns>>; KINDS],
    /// Which kinds of files exist, here or above.
    present: [bool; KINDS],
}

/// Identifies the rules of a directory: the rules above them, the directory, and the hashes of its ignore
/// files.
pub(crate) type RulesKey = (usize, usize, [Option<Hash>; KINDS]);

/// The patterns of an ignore file.
#[derive(Debug)]
struct Patterns {
    patterns: Gitignore,
    /// The hash of the file.
    hash: Hash,
    /// Whether the file is longer than the part that was read.
    cut: bool,
}

/// Cache of compiled patterns, by the hash of their file. Compiling takes longer than walking a small tree, and
/// ignore files rarely change.
#[derive(Debug, Default)]
pub(crate) struct IgnoreCache(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    patterns: HashMap<Hash, Option<Arc<Patterns>>>,
    /// The size of the files.
    bytes: usize,
}

impl IgnoreCache {
    /// The maximum size of the files. Compiled patterns take about ten times as much.
    const MAX_BYTES: usize = 1024 * 1024;

    fn compiled(&self, content: &[u8]) -> Option<Arc<Patterns>> {
        let key = blake3::hash(content);
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().patterns.get(&key) {
            return known.clone();
        }
        let patterns = compiled(content, key).map(Arc::new);
        let mut known = lock();
        if known.bytes + content.len() > Self::MAX_BYTES {
            *known = Known::default();
        }
        known.bytes += content.len();
        known.patterns.insert(key, patterns.clone());
        patterns
    }
}

/// How the ignore files match an entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum IgnoreMatch {
    Ignored = 0,
    /// A pattern with `!` matches.
    Whitelisted = 1,
    None = 2,
}

impl Rules {
    /// The rules for a directory's entries, including its own ignore files if it has any.
    pub(crate) fn below(
        above: &Arc<Self>,
        dir: &RelPath,
        known: &IgnoreCache,
        read: impl Fn(&[u8]) -> Option<Vec<u8>>,
    ) -> Arc<Self> {
        let files = IGNORE_FILES.map(|name| read(name).and_then(|bytes| known.compiled(&bytes)));
        if files.iter().all(Option::is_none) {
            return above.clone();
        }
        let prefix = if dir.is_root() { 0 } else { dir.as_bytes().len() + 1 };
        Arc::new(Self::new(above, prefix, files))
    }

    /// The same rules below other ones: `from` are the rules above them now, and `to` replaces these.
    pub(crate) fn moved(self: &Arc<Self>, from: &Arc<Self>, to: &Arc<Self>) -> Arc<Self> {
        if Arc::ptr_eq(self, from) {
            return to.clone();
        }
        Arc::new(Self::new(to, self.prefix, self.files.clone()))
    }

    fn new(above: &Arc<Self>, prefix: usize, files: [Option<Arc<Patterns>>; KINDS]) -> Self {
        let present = std::array::from_fn(|kind| above.present[kind] || files[kind].is_some());
        Self { above: Some(above.clone()), prefix, files, present }
    }

    /// Whether a walk with these ignore files has the same results as one with the standard ones.
    pub(crate) fn is_standard(&self, obeyed: IgnoreFiles) -> bool {
        let kinds = obeyed.kinds().into_iter().zip(IgnoreFiles::STANDARD.kinds()).zip(self.present);
        kinds.into_iter().all(|((obeyed, standard), present)| obeyed == standard || !present)
    }

    /// Rules with the same key are equal, as long as the rules above them are kept.
    pub(crate) fn key(&self) -> RulesKey {
        let above = self.above.as_ref().map_or(0, |above| Arc::as_ptr(above) as usize);
        let hashes = self.files.each_ref().map(|file| file.as_ref().map(|file| file.hash));
        (above, self.prefix, hashes)
    }

    /// How many ignore files were not read to their end, without those of `above`.
    pub(crate) fn cut(self: &Arc<Self>, above: &Arc<Self>) -> u64 {
        if Arc::ptr_eq(self, above) {
            return 0;
        }
        self.files.iter().flatten().filter(|patterns| patterns.cut).count() as u64
    }

    /// The rules for the entries of a directory that the caller named. If the rules above it ignore all of its
    /// entries, they do not apply.
    fn for_named(
        self: Arc<Self>,
        dir: &RelPath,
        none: Arc<Self>,
        obeyed: IgnoreFiles,
    ) -> Arc<Self> {
        let anything = [dir.as_bytes(), b"/\x01"].concat();
        let closed = self.matched(&anything, false, obeyed) == IgnoreMatch::Ignored
            && self.matched(&anything, true, obeyed) == IgnoreMatch::Ignored
            && self.matched(dir.as_bytes(), true, obeyed) != IgnoreMatch::Whitelisted;
        if closed { none } else { self }
    }

    /// Matches the entry at `path`, relative to the root, against the ignore files that are obeyed.
    pub(crate) fn matched(
        &self,
        path: &[u8],
        is_directory: bool,
        obeyed: IgnoreFiles,
    ) -> IgnoreMatch {
        let kinds = obeyed.kinds();
        for kind in (0..KINDS).filter(|kind| kinds[*kind]) {
            let mut rules = Some(self);
            while let Some(here) = rules {
                if let Some(patterns) = &here.files[kind] {
                    let below = Path::new(OsStr::from_bytes(&path[here.prefix..]));
                    match patterns.patterns.matched(below, is_directory) {
                        Match::Ignore(_) => return IgnoreMatch::Ignored,
                        Match::Whitelist(_) => return IgnoreMatch::Whitelisted,
                        Match::None => {}
                    }
                }
                rules = here.above.as_deref();
            }
        }
        IgnoreMatch::None
    }
}

/// Whether this is the name of an ignore file.
pub(crate) fn is_ignore_file(name: &[u8]) -> bool {
    IGNORE_FILES.contains(&name)
}

fn compiled(content: &[u8], hash: Hash) -> Option<Patterns> {
    let content = content.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(content);
    // With any other root, each path would be compared with it.
    let mut builder = GitignoreBuilder::new(".");
    let mut cut = content.len() as u64 > MAX_BYTES;
    let content = &content[..content.len().min(MAX_BYTES as usize)];
    for (number, line) in content.split(|byte| *byte == b'\n').enumerate() {
        if number == MAX_LINES {
            cut = true;
            break;
        }
        // The `ignore` crate stops reading at invalid UTF-8, and so does ripgrep.
        let Ok(line) = std::str::from_utf8(line) else { break };
        if line.len() <= MAX_LINE_BYTES && brace_depth(line) <= MAX_BRACE_DEPTH {
            // An invalid line is dropped, and the others stay.
            let _ = builder.add_line(None, line.strip_suffix('\r').unwrap_or(line));
        }
    }
    let patterns = builder.build().ok().filter(|patterns| cut || !patterns.is_empty())?;
    Some(Patterns { patterns, hash, cut })
}

/// The maximum nesting depth of a pattern's braces.
pub fn brace_depth(pattern: &str) -> usize {
    let mut depth = 0_usize;
    let mut deepest = 0;
    for byte in pattern.bytes() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

impl Workspace {
    /// The rules that apply in a directory, from its root down. Ignore files above the root do not apply.
    pub(crate) fn rules_for(&self, root: usize, dir: &RelPath, obeyed: IgnoreFiles) -> Arc<Rules> {
        let tree = self.root(root).tree();
        let none = tree.no_rules();
        let mut rules = none.clone();
        let mut at = RelPath::root();
        for name in dir.names() {
            if let Ok(fd) = self.root(root).open_below(&at, sys::DIR_PATH) {
                let read = |file: &[u8]| {
                    let kind = crate::Metadata::of(&sys::stat_at(&fd, file).ok()?).kind;
                    self.ignore_file(root, &fd, &at, file, kind)
                };
                rules = tree.interned(Rules::below(&rules, &at, &self.ignore_cache, read));
            }
            at.push(&name);
        }
        if dir.is_root() { rules } else { rules.for_named(dir, none, obeyed) }
    }

    /// The content of an ignore file, which is a regular file or a symlink to one inside the workspace.
    pub(crate) fn ignore_file(
        &self,
        root: usize,
        dir: &OwnedFd,
        path: &RelPath,
        name: &[u8],
        kind: Kind,
    ) -> Option<Vec<u8>> {
        let file = match kind {
            Kind::File => {
                let fd = sys::open_at(dir, name, rustix::fs::OFlags::RDONLY).ok()?;
                File::regular(fd).ok()?
            }
            Kind::Symlink => self.linked_file(root, path, name).ok()?.1,
            _ => return None,
        };
        // One more byte shows whether the file is longer.
        let mut content = Vec::new();
        file.take(MAX_BYTES + 1).read_to_end(&mut content).ok()?;
        Some(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(above: &Arc<Rules>, dir: &str, files: &[(&str, &str)]) -> Arc<Rules> {
        let dir: RelPath =
            dir.split('/').filter_map(|name| crate::Name::parse(name.as_bytes()).ok()).collect();
        Rules::below(above, &dir, &IgnoreCache::default(), |name| {
            let file = files.iter().find(|(file, _)| file.as_bytes() == name)?;
            Some(file.1.as_bytes().to_vec())
        })
    }

    #[test]
    fn the_nearest_file_of_the_strongest_kind_decides() {
        let root = rules(&Arc::default(), "", &[(".gitignore", "*.log\n/build/\n!keep.log\r\n")]);
        let sub = rules(&root, "sub", &[(".gitignore", "!a.log\nb.txt\n"), (".ignore", "c.*\n")]);
        let below = rules(&sub, "sub/x", &[(".gitignore", "!c.rs\n")]);
        for (rules, path, is_directory, ruling) in [
            (&root, "a.log", false, IgnoreMatch::Ignored),
            (&root, "keep.log", false, IgnoreMatch::Whitelisted),
            (&root, "build", true, IgnoreMatch::Ignored),
            (&root, "build", false, IgnoreMatch::None),
            (&sub, "sub/build", true, IgnoreMatch::None),
            (&sub, "sub/a.log", false, IgnoreMatch::Whitelisted),
            (&sub, "sub/z.log", false, IgnoreMatch::Ignored),
            (&sub, "sub/b.txt", false, IgnoreMatch::Ignored),
            (&below, "sub/x/c.rs", false, IgnoreMatch::Ignored),
            (&below, "sub/x/d.rs", false, IgnoreMatch::None),
        ] {
            assert_eq!(
                rules.matched(path.as_bytes(), is_directory, IgnoreFiles::STANDARD),
                ruling,
                "{path}"
            );
        }
    }

    #[test]
    fn lines_that_are_no_patterns_do_not_spoil_the_others() {
        let deep = format!("{}a{}\n", "{".repeat(5_000), "}".repeat(5_000));
        let content = format!("{deep}{}\n[\n\u{feff}\n*.log\n", "x".repeat(10_000));
        let rules = rules(&Arc::default(), "", &[(".gitignore", &content)]);
        assert_eq!(rules.matched(b"a.log", false, IgnoreFiles::STANDARD), IgnoreMatch::Ignored);
        assert_eq!(rules.matched(b"a.txt", false, IgnoreFiles::STANDARD), IgnoreMatch::None);
    }

    #[test]
    fn a_huge_file_of_patterns_is_read_as_far_as_it_is_worth() {
        let content: String = (0..100_000).map(|n| format!("*a{n}*b*c\n")).collect();
        let above = Arc::default();
        let rules = rules(&above, "", &[(".gitignore", &(content + "last\n"))]);
        assert_eq!(rules.matched(b"a1bc", false, IgnoreFiles::STANDARD), IgnoreMatch::Ignored);
        assert_eq!(rules.matched(b"last", false, IgnoreFiles::STANDARD), IgnoreMatch::None);
        assert_eq!(rules.cut(&above), 1);
    }
}
