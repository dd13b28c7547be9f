//! Caches the contents of files that were searched lately, so that the next search need not open them.
//!
//! The key of a content is the version of its file. A file that changed has another version, and the `FileSet` of a
//! search has only files that policy shows. The cache has one version of each path, and evicts by second chance,
//! which approximates least recently used.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::search::file_set::SetFile;
use crate::search::memo::VersionHasher;

/// The content of a file.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) bytes: Box<[u8]>,
    pub(crate) properties: TextProperties,
}

/// The properties that decide how a text is searched.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct TextProperties {
    pub(crate) is_ascii: bool,
    /// Whether it has a NUL byte or a byte order mark. If so, results depend on how it is read.
    pub(crate) has_nul_or_bom: bool,
}

impl TextProperties {
    pub(crate) fn of(text: &[u8]) -> Self {
        Self { is_ascii: text.is_ascii(), ..Self::of_unknown(text) }
    }

    /// The same for a text that need not be checked for ASCII.
    pub(crate) fn of_unknown(text: &[u8]) -> Self {
        let has_nul_or_bom = has_byte_order_mark(text) || memchr::memchr(0, text).is_some();
        Self { is_ascii: false, has_nul_or_bom }
    }
}

/// A file with a byte order mark is decoded when it is searched.
pub(crate) fn has_byte_order_mark(text: &[u8]) -> bool {
    text.starts_with(b"\xEF\xBB\xBF")
        || text.starts_with(b"\xFF\xFE")
        || text.starts_with(b"\xFE\xFF")
}

/// The cached contents.
#[derive(Debug, Default)]
pub(crate) struct ContentCache(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    contents: HashMap<u64, CachedContent, BuildHasherDefault<VersionHasher>>,
    /// The cached version of each path, by a hash of the path.
    versions: HashMap<u64, u64, BuildHasherDefault<VersionHasher>>,
    /// The versions in the order of eviction. Some of them are no longer cached.
    order: VecDeque<u64>,
    bytes: usize,
    max_bytes: usize,
}

#[derive(Debug)]
struct CachedContent {
    content: Arc<Content>,
    /// The hash of its path.
    path: u64,
    /// Whether it was used since the last eviction reached it.
    is_used: bool,
}

/// The memory of a content, in addition to its bytes.
const OVERHEAD: usize =
    2 * size_of::<(u64, CachedContent)>() + size_of::<Content>() + 6 * size_of::<u64>();

impl ContentCache {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The maximum size in bytes.
    pub(crate) fn max_bytes(&self) -> usize {
        self.lock().max_bytes
    }

    /// The size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// Sets the maximum size in bytes.
    pub(crate) fn limit(&self, max_bytes: usize) {
        let mut state = self.lock();
        state.max_bytes = max_bytes;
        state.make_room();
    }

    /// The contents of the files with these versions.
    pub(crate) fn get(&self, versions: impl Iterator<Item = u64>) -> Vec<Option<Arc<Content>>> {
        let mut state = self.lock();
        let mut content = |version| {
            let kept = state.contents.get_mut(&version)?;
            kept.is_used = true;
            Some(kept.content.clone())
        };
        versions.map(&mut content).collect()
    }

    /// Caches the content of a file, and drops its previous one.
    pub(crate) fn put(&self, file: &SetFile, content: Content) {
        self.put_version(file.path_hash(), file.version, content);
    }

    fn put_version(&self, path: u64, version: u64, content: Content) {
        let mut state = self.lock();
        let size = content.bytes.len() + OVERHEAD;
        if size > state.max_bytes || state.contents.contains_key(&version) {
            return;
        }
        if let Some(old) = state.versions.get(&path).copied() {
            state.remove(old);
        }
        let kept = CachedContent { content: Arc::new(content), path, is_used: false };
        state.contents.insert(version, kept);
        state.versions.insert(path, version);
        state.bytes += size;
        state.order.push_back(version);
        state.make_room();
    }
}

impl State {
    fn remove(&mut self, version: u64) {
        let Some(gone) = self.contents.remove(&version) else { return };
        self.bytes -= gone.content.bytes.len() + OVERHEAD;
        if self.versions.get(&gone.path) == Some(&version) {
            self.versions.remove(&gone.path);
        }
        if self.order.len() > 2 * self.contents.len() + 64 {
            self.order.retain(|version| self.contents.contains_key(version));
        }
    }

    fn make_room(&mut self) {
        while self.bytes > self.max_bytes
            && let Some(version) = self.order.pop_front()
        {
            match self.contents.get_mut(&version) {
                Some(kept) if kept.is_used => {
                    kept.is_used = false;
                    self.order.push_back(version);
                }
                _ => self.remove(version),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(len: usize) -> Content {
        let bytes = vec![b'x'; len].into_boxed_slice();
        Content { properties: TextProperties::of(&bytes), bytes }
    }

    #[test]
    fn what_was_used_stays_and_the_limit_holds() {
        let cache = ContentCache::default();
        cache.put_version(1, 1, content(10));
        assert!(cache.get([1].into_iter())[0].is_none(), "nothing is kept without a limit");
        cache.limit(10 * (1_000 + OVERHEAD));
        (0..10).for_each(|version| cache.put_version(version, version, content(1_000)));
        assert!(cache.get([3, 7].into_iter()).iter().all(Option::is_some));
        (10..18).for_each(|version| cache.put_version(version, version, content(1_000)));
        assert!(cache.get([3, 7, 17].into_iter()).iter().all(Option::is_some));
        assert!(cache.get([0, 1, 2, 4].into_iter()).iter().all(Option::is_none));
        cache.put_version(18, 18, content(100_000));
        assert!(cache.get([18].into_iter())[0].is_none(), "larger than all of it");
        assert!(cache.bytes() <= cache.max_bytes());
        cache.limit(0);
        assert_eq!(cache.bytes(), 0);
    }

    #[test]
    fn one_version_of_a_path_is_kept() {
        let cache = ContentCache::default();
        cache.limit(1_000_000);
        for version in 0..1_000 {
            cache.put_version(version % 3, version, content(1_000));
        }
        assert_eq!(cache.bytes(), 3 * (1_000 + OVERHEAD));
        assert!(cache.get([997, 998, 999].into_iter()).iter().all(Option::is_some));
        assert!(cache.lock().order.len() < 100, "what is gone is forgotten");
    }

    #[test]
    fn traits_tell_how_a_text_is_searched() {
        for (text, is_ascii, has_nul_or_bom) in [
            (&b"plain"[..], true, false),
            ("\u{e9}".as_bytes(), false, false),
            (b"a\0b", true, true),
            (b"\xEF\xBB\xBFa", false, true),
            (b"\xFF\xFEa", false, true),
            (b"", true, false),
        ] {
            assert_eq!(
                TextProperties::of(text),
                TextProperties { is_ascii, has_nul_or_bom },
                "{text:?}"
            );
        }
    }
}
