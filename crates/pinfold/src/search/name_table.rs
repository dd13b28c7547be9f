//! The paths of many files in one buffer, and fast ways to find those that a glob matches.
//!
//! Most globs match the end, the beginning or a part of a name, which needs no regex. For the others, the table is
//! searched for a literal part of the glob, and only paths with it are matched.

use memchr::memchr2;
use memchr::memmem::{self, Finder};

/// Paths in the order of their files.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct NameTable {
    /// A NUL byte, and another one after each path. Names have no NUL bytes.
    paths: Vec<u8>,
    /// The offset of each path.
    starts: Vec<u32>,
    /// The end of each path: see [`tail`].
    tails: Vec<u64>,
}

/// The last eight bytes of a text, the last one in the highest bits.
fn tail(text: &[u8]) -> u64 {
    let mut bytes = [0; size_of::<u64>()];
    let last = &text[text.len().saturating_sub(bytes.len())..];
    let free = bytes.len() - last.len();
    bytes[free..].copy_from_slice(last);
    u64::from_le_bytes(bytes)
}

/// A query for a glob without braces, at any depth.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum NameQuery {
    /// Names that are equal to this.
    Is(String),
    /// Names that end with this.
    EndsWith(String),
    /// Names that begin with this.
    StartsWith(String),
    /// Names that contain this.
    Contains(String),
    /// Paths that contain this literal, if it is not empty, and that the glob matches.
    Glob(String),
}

impl NameQuery {
    /// The query for a glob without braces.
    pub(crate) fn new(glob: &str) -> Self {
        let mut name = glob;
        while let Some(rest) = name.strip_prefix("**/") {
            name = rest;
        }
        let inner = name.trim_matches('*');
        let is_plain =
            !inner.is_empty() && !inner.contains(['*', '?', '[', ']', '{', '}', '\\', '/']);
        if name.len() < glob.len() && is_plain {
            let stars = (name.find(inner), name.len() - inner.len());
            let inner = inner.to_owned();
            match stars {
                (Some(0), 0) => return Self::Is(inner),
                (Some(1), 1) => return Self::EndsWith(inner),
                (Some(0), 1) => return Self::StartsWith(inner),
                (Some(1), 2) => return Self::Contains(inner),
                _ => {}
            }
        }
        // In a class or braces, or after a backslash, a character may not be literal. A replacement character stands
        // for invalid bytes.
        let has_literals = !glob.contains(['[', '\\', '{', '}', char::REPLACEMENT_CHARACTER]);
        let literals = glob.split(['*', '?', '/']).filter(|_| has_literals);
        Self::Glob(literals.max_by_key(|part| part.len()).unwrap_or_default().to_owned())
    }

    /// Whether a file with this name matches. Returns `None` if that depends on its whole path.
    pub(crate) fn fits_name(&self, name: &[u8]) -> Option<bool> {
        match self {
            Self::Is(whole) => Some(name == whole.as_bytes()),
            Self::EndsWith(end) => Some(name.ends_with(end.as_bytes())),
            Self::StartsWith(start) => Some(name.starts_with(start.as_bytes())),
            Self::Contains(part) => Some(memmem::find(name, part.as_bytes()).is_some()),
            Self::Glob(_) => None,
        }
    }
}

impl Default for NameTable {
    fn default() -> Self {
        Self { paths: vec![0], starts: Vec::new(), tails: Vec::new() }
    }
}

impl NameTable {
    pub(crate) fn push(&mut self, path: &[u8]) {
        self.tails.push(tail(path));
        self.starts.push(self.paths.len() as u32);
        self.paths.extend_from_slice(path);
        self.paths.push(0);
    }

    /// Inserts a path before the one with this number.
    pub(crate) fn insert(&mut self, number: usize, path: &[u8]) {
        let start = self.starts.get(number).map_or(self.paths.len(), |start| *start as usize);
        self.tails.insert(number, tail(path));
        self.paths.splice(start..start, path.iter().copied().chain([0]));
        let added = path.len() as u32 + 1;
        self.starts.insert(number, start as u32);
        self.starts[number + 1..].iter_mut().for_each(|start| *start += added);
    }

    pub(crate) fn remove(&mut self, number: usize) {
        let (start, end) = (self.starts[number] as usize, self.end(number) + 1);
        self.paths.drain(start..end);
        self.starts.remove(number);
        self.tails.remove(number);
        let removed = (end - start) as u32;
        self.starts[number..].iter_mut().for_each(|start| *start -= removed);
    }

    fn path(&self, number: usize) -> &[u8] {
        let start = self.starts[number] as usize;
        &self.paths[start..self.end(number)]
    }

    fn end(&self, number: usize) -> usize {
        self.starts.get(number + 1).map_or(self.paths.len(), |next| *next as usize) - 1
    }

    /// The numbers of the paths that one of the queries matches, sorted. `fits` tells whether the original glob
    /// matches a path.
    pub(crate) fn matching(&self, queries: &[NameQuery], fits: impl Fn(&[u8]) -> bool) -> Vec<u32> {
        let ends: Vec<_> = queries.iter().filter_map(NameEnd::new).collect();
        let mut found = match ends.as_slice() {
            [] => Vec::new(),
            [end] => self.by_tail(|tail| end.admits(tail)),
            ends => self.by_tail(|tail| ends.iter().fold(false, |any, end| any | end.admits(tail))),
        };
        if !ends.iter().all(NameEnd::is_in_tail) {
            found.retain(|number| {
                let (tail, path) = (self.tails[*number as usize], self.path(*number as usize));
                ends.iter().any(|end| end.admits(tail) && end.fits(path))
            });
        }
        for query in queries {
            match query {
                NameQuery::Is(_) | NameQuery::EndsWith(_) => {}
                NameQuery::StartsWith(part) => self.by_part(part, &mut found, |before, rest| {
                    matches!(before, b'/' | 0) && is_last(rest)
                }),
                NameQuery::Contains(part) => {
                    self.by_part(part, &mut found, |_, rest| is_last(rest));
                }
                NameQuery::Glob(literal) if literal.is_empty() => {
                    let all = (0..self.starts.len()).filter(|number| fits(self.path(*number)));
                    found.extend(all.map(|number| number as u32));
                }
                NameQuery::Glob(literal) => {
                    let mut last = None;
                    let mut fits_path = |at: usize| {
                        let number = self.number_at(at);
                        let is_new = last.replace(number) != Some(number);
                        is_new && fits(self.path(number))
                    };
                    let finder = Finder::new(literal);
                    let hits = finder.find_iter(&self.paths).filter(|at| fits_path(*at));
                    found.extend(hits.map(|at| self.number_at(at) as u32));
                }
            }
        }
        if ends.len() < queries.len() && queries.len() > 1 {
            found.sort_unstable();
        }
        found.dedup();
        found
    }

    /// The numbers of the paths whose tails are admitted. Where many are, a branch for each would be mispredicted.
    fn by_tail(&self, admits: impl Fn(u64) -> bool) -> Vec<u32> {
        let mut found = vec![0; self.tails.len()];
        let mut len = 0;
        for (tail, number) in self.tails.iter().zip(0..) {
            found[len] = number;
            len += usize::from(admits(*tail));
        }
        found.truncate(len);
        found
    }

    /// Finds the paths in which `is_hit` accepts an occurrence of a literal. It gets the byte before the occurrence
    /// and the text after it.
    fn by_part(&self, part: &str, found: &mut Vec<u32>, is_hit: impl Fn(u8, &[u8]) -> bool) {
        let finder = Finder::new(part);
        let hits = finder
            .find_iter(&self.paths)
            .filter(|at| is_hit(self.paths[at.saturating_sub(1)], &self.paths[at + part.len()..]));
        found.extend(hits.map(|at| self.number_at(at) as u32));
    }

    /// The number of the path at an offset.
    fn number_at(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start as usize <= offset) - 1
    }
}

/// A query for the end of a path.
struct NameEnd<'q> {
    end: &'q [u8],
    is_whole_name: bool,
    tail: u64,
    /// The bits of a path's tail that have to be equal.
    mask: u64,
}

impl<'q> NameEnd<'q> {
    fn new(query: &'q NameQuery) -> Option<Self> {
        let (end, is_whole_name) = match query {
            NameQuery::Is(name) => (name, true),
            NameQuery::EndsWith(end) => (end, false),
            _ => return None,
        };
        let end = end.as_bytes();
        let other_bytes = size_of::<u64>().saturating_sub(end.len());
        let mask = u64::MAX << (8 * other_bytes);
        Some(Self { end, is_whole_name, tail: tail(end), mask })
    }

    /// Whether a path with this tail may match.
    fn admits(&self, tail: u64) -> bool {
        tail & self.mask == self.tail
    }

    /// Whether the tail of a path decides.
    fn is_in_tail(&self) -> bool {
        self.end.len() <= size_of::<u64>() && !self.is_whole_name
    }

    /// Whether a path matches whose tail is admitted.
    fn fits(&self, path: &[u8]) -> bool {
        self.is_in_tail()
            || path.strip_suffix(self.end).is_some_and(|before| {
                !self.is_whole_name || matches!(before.last(), None | Some(b'/'))
            })
    }
}

/// Whether this is the last name of its path.
fn is_last(rest: &[u8]) -> bool {
    memchr2(b'/', 0, rest).is_some_and(|end| rest[end] == 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::glob::Pattern;

    #[test]
    fn common_globs_need_no_regex() {
        let [mutex, header] = ["mutex", ".h"].map(str::to_owned);
        for (glob, query) in [
            ("**/*.h", NameQuery::EndsWith(header)),
            ("**/mutex", NameQuery::Is(mutex.clone())),
            ("**/**/mutex*", NameQuery::StartsWith(mutex.clone())),
            ("**/*mutex*", NameQuery::Contains(mutex.clone())),
            ("*mutex", NameQuery::Glob(mutex.clone())),
            ("**/a/mutex", NameQuery::Glob(mutex.clone())),
            ("**/mu*mutex", NameQuery::Glob(mutex)),
            ("**/mutex**", NameQuery::Glob("mutex".into())),
            ("**/**mutex", NameQuery::Glob("mutex".into())),
            ("**", NameQuery::Glob(String::new())),
            ("**/[a]mutex", NameQuery::Glob(String::new())),
        ] {
            assert_eq!(NameQuery::new(glob), query, "{glob}");
        }
    }

    fn table(paths: &[impl AsRef<[u8]>]) -> NameTable {
        let mut table = NameTable::default();
        paths.iter().for_each(|path| table.push(path.as_ref()));
        table
    }

    #[test]
    fn paths_come_and_go() {
        let mut table = table(&["a", "b/c", "d"]);
        for (number, path) in [(1, "ab/x"), (4, "z"), (0, "A")] {
            table.insert(number, path.as_bytes());
        }
        assert_eq!(table, self::table(&["A", "a", "ab/x", "b/c", "d", "z"]));
        for number in [5, 2, 0] {
            table.remove(number);
        }
        assert_eq!(table, self::table(&["a", "b/c", "d"]));
    }

    proptest! {
        /// The fast ways find the same files as the glob.
        #[test]
        fn a_table_finds_what_the_glob_matches(
            glob in "(\\*\\*/)?([ab.?]|\\*|/|\\*\\*/|[ab]|\\[ab\\]|\\{a,b[.]\\}){1,5}",
            ignore_case: bool,
            paths in prop::collection::btree_set("[abA.]{1,4}(/[abB.]{1,4}){0,3}", 1..20),
        ) {
            let Ok(pattern) = Pattern::parse(&glob, ignore_case) else { return Ok(()) };
            prop_assume!(pattern.directory.is_empty());
            let all: Vec<_> = paths.iter().collect();
            let table = table(&all);
            let found = table.matching(&pattern.name_queries, |path| pattern.fits(path));
            let expected: Vec<_> = paths
                .iter()
                .zip(0_u32..)
                .filter(|(path, _)| pattern.fits_glob(path.as_bytes()))
                .map(|(_, number)| number)
                .collect();
            prop_assert_eq!(&found, &expected, "{} in {:?}", glob, paths);
            let fits = |number: &u32| pattern.fits(all[*number as usize].as_bytes());
            let one_by_one: Vec<_> = (0..all.len() as u32).filter(fits).collect();
            prop_assert_eq!(one_by_one, expected, "{} in {:?}", glob, paths);
        }
    }
}
