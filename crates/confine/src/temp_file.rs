//! Temp files: their names, and the new content of a file until it takes the file's place.
//!
//! A temp file stands beside the file that it is for, since a rename cannot cross file systems. Its
//! name says what it holds: the inode of the file that Pinfold wrote, and a digest of the file that
//! the call expects to displace. So another process can tell new content that may be deleted from a
//! displaced file that may exist nowhere else, also on file systems without extended attributes.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::SystemTime;

use rustix::io::Errno;

use crate::dir::Dir;
use crate::target::Original;
use crate::{Error, Hash, Kind, Metadata, Name, Result, sys};

const PREFIX: &str = ".pinfold-";
const SUFFIX: &str = ".tmp";
/// Comes between the digest and the file's own name, where that has to be known again.
const ASIDE: &str = ".aside.";

/// What the name of a temp file says.
#[derive(Debug, Default)]
pub(crate) struct TempName {
    random: String,
    /// The inode of the file that Pinfold wrote.
    inode: Option<u64>,
    /// The file that may be displaced, and so be under this name.
    displaces: Option<Digest>,
    /// The name that the displaced file had, if nothing takes its place in the same step.
    aside_of: Option<Name>,
}

/// A file as it was when a call found it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Digest {
    /// Of its inode, size and modification time. A rename changes none of them.
    stat: u64,
    /// Whether any later change to the file shows in its times.
    settled: bool,
    content: Option<u64>,
}

impl Digest {
    pub(crate) fn new(meta: &Metadata, content: Option<&Hash>) -> Self {
        let content = content.map(first_bytes);
        Self { stat: stat_digest(meta), settled: meta.is_settled(), content }
    }
}

fn stat_digest(meta: &Metadata) -> u64 {
    let modified = meta.modified.duration_since(SystemTime::UNIX_EPOCH);
    let modified = modified.unwrap_or_else(|before| before.duration());
    let stat = format!("{} {} {}", meta.identity.inode(), meta.len, modified.as_nanos());
    first_bytes(&blake3::hash(stat.as_bytes()))
}

fn first_bytes(hash: &Hash) -> u64 {
    hash.as_bytes()[..8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// What is under a temp name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TempContent {
    /// The file that Pinfold wrote, or an empty one that it has just created.
    Written,
    /// By its metadata, the file that the call expected to displace.
    Displaced,
    /// Anything else: a file that another process saved, or one that is not Pinfold's at all.
    Unknown,
}

impl TempName {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self { random: format!("{:016x}", random_number()?), ..Self::default() })
    }

    pub(crate) fn displacing(digest: Digest) -> Result<Self> {
        Ok(Self { displaces: Some(digest), ..Self::new()? })
    }

    /// For a file that is moved aside, and has to be found again if nothing takes its place.
    pub(crate) fn aside(digest: Digest, name: &Name) -> Result<Self> {
        Ok(Self { aside_of: Some(name.clone()), ..Self::displacing(digest)? })
    }

    pub(crate) fn name(&self) -> Result<Name> {
        let mut text = format!("{PREFIX}{}", self.random);
        if let Some(inode) = self.inode {
            text += &format!("-n{inode:x}");
        }
        if let Some(Digest { stat, settled, content }) = self.displaces {
            text += &format!("-{}{stat:x}", if settled { 's' } else { 't' });
            if let Some(content) = content {
                text += &format!("-c{content:x}");
            }
        }
        match &self.aside_of {
            Some(name) => {
                Name::parse(&[text.as_bytes(), ASIDE.as_bytes(), name.as_bytes()].concat())
            }
            None => Name::parse(format!("{text}{SUFFIX}").as_bytes()),
        }
    }

    /// What a name says, if it is one that [`Self::name`] makes.
    pub(crate) fn parse(name: &[u8]) -> Option<Self> {
        let rest = name.strip_prefix(PREFIX.as_bytes())?;
        let (fields, aside_of) =
            match rest.windows(ASIDE.len()).position(|at| at == ASIDE.as_bytes()) {
                Some(at) => (&rest[..at], Some(Name::parse(&rest[at + ASIDE.len()..]).ok()?)),
                None => (rest.strip_suffix(SUFFIX.as_bytes())?, None),
            };
        let mut fields = std::str::from_utf8(fields).ok()?.split('-');
        let random = fields.next().filter(|random| random.len() == 16 && hex(random).is_some())?;
        let mut parsed = Self { random: random.to_owned(), aside_of, ..Self::default() };
        for field in fields {
            let (kind, number) = field.split_at_checked(1)?;
            let number = hex(number)?;
            match (kind, &mut parsed.displaces) {
                ("n", None) if parsed.inode.is_none() => parsed.inode = Some(number),
                ("s" | "t", displaces @ None) => {
                    *displaces = Some(Digest { stat: number, settled: kind == "s", content: None });
                }
                ("c", Some(digest)) if digest.content.is_none() => digest.content = Some(number),
                _ => return None,
            }
        }
        Some(parsed)
    }

    /// What a file with this name and metadata is.
    pub(crate) fn content(&self, meta: &Metadata) -> TempContent {
        let created = !self.is_specific() && meta.len == 0;
        // What Pinfold writes is never set aside.
        let written = self.aside_of.is_none() && meta.kind == Kind::File;
        match self.displaces {
            _ if meta.kind == Kind::Directory => TempContent::Unknown,
            _ if written && (created || self.inode == Some(meta.identity.inode())) => {
                TempContent::Written
            }
            Some(digest) if digest.stat == stat_digest(meta) => TempContent::Displaced,
            _ => TempContent::Unknown,
        }
    }

    /// Whether a file whose metadata are those of the displaced one has its content too. `hash`
    /// reads it.
    pub(crate) fn is_verified(&self, hash: impl FnOnce() -> Option<Hash>) -> bool {
        match self.displaces {
            Some(Digest { content: Some(content), .. }) => {
                hash().is_some_and(|now| first_bytes(&now) == content)
            }
            Some(Digest { settled, content: None, .. }) => settled,
            None => false,
        }
    }

    pub(crate) fn aside_of(&self) -> Option<&Name> {
        self.aside_of.as_ref()
    }

    /// Whether the name says more than that it is a temp file's: only Pinfold makes such names.
    pub(crate) fn is_specific(&self) -> bool {
        self.inode.is_some() || self.displaces.is_some()
    }
}

fn hex(digits: &str) -> Option<u64> {
    let lower = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    u64::from_str_radix(digits, 16).ok().filter(|_| lower)
}

/// Whether a directory's entry is one of Pinfold's own temp files, which no tool shows.
///
/// The name alone proves nothing: anybody can give a file or directory such a name.
pub(crate) fn is_own_temp(dir: &OwnedFd, name: &[u8]) -> bool {
    TempName::parse(name).is_some()
        && sys::stat_at(dir, name).is_ok_and(|stat| is_temp(name, &Metadata::of(&stat)))
}

/// As [`is_own_temp`], for an entry with this metadata.
pub(crate) fn is_temp(name: &[u8], meta: &Metadata) -> bool {
    TempName::parse(name).is_some_and(|temp| temp.content(meta) != TempContent::Unknown)
}

/// A name that nothing else has, for content that the user has to see. It is never swept.
fn kept_name() -> Result<Name> {
    Name::parse(format!("{PREFIX}kept-{:016x}", random_number()?).as_bytes())
}

/// A number that nobody can guess.
pub fn random_number() -> Result<u64> {
    Ok(u64::from_ne_bytes(sys::random()?))
}

/// A directory entry with a temp name. Dropping this deletes it, unless its content is needed.
#[derive(Debug)]
pub(crate) struct TempEntry {
    pub(crate) dir: Arc<Dir>,
    pub(crate) name: Name,
    pub(crate) delete_on_drop: bool,
}

impl TempEntry {
    /// Renames the entry to a name that is never swept, and gives the error that says so.
    pub(crate) fn keep(&mut self) -> Error {
        self.delete_on_drop = false;
        if let Some(kept) = keep(&self.dir, &self.name) {
            self.name = kept;
        }
        Error::RollbackFailed { kept: self.name.to_string() }
    }
}

/// Gives content that the user needs a name that is shown and never swept.
pub(crate) fn keep(dir: &Dir, name: &Name) -> Option<Name> {
    let kept = kept_name().ok()?;
    retry(|| sys::rename(dir.fd(), name.as_bytes(), kept.as_bytes()))?;
    Some(kept)
}

impl Drop for TempEntry {
    fn drop(&mut self) {
        if self.delete_on_drop {
            retry(|| sys::remove(self.dir.fd(), self.name.as_bytes()));
        }
    }
}

/// Tries a step of a clean-up up to three times.
pub(crate) fn retry<T>(mut attempt: impl FnMut() -> rustix::io::Result<T>) -> Option<T> {
    (0..3).find_map(|_| attempt().ok())
}

/// The new content of a file, until it takes the file's place.
pub(crate) struct TempFile {
    pub(crate) entry: TempEntry,
    pub(crate) fd: OwnedFd,
    pub(crate) meta: Metadata,
}

impl TempFile {
    /// Creates a temp file that will displace the file with the digest, if there is one.
    pub(crate) fn create(dir: &Arc<Dir>, mode: u32, displaces: Option<Digest>) -> Result<Self> {
        let mut temp_name = TempName::new()?;
        let name = temp_name.name()?;
        let fd = match sys::create_at(dir.fd(), name.as_bytes(), mode) {
            // The directory itself was removed.
            Err(Errno::NOENT) => return Err(Error::Changed),
            other => other?,
        };
        let mut entry = TempEntry { dir: dir.clone(), name, delete_on_drop: true };
        // The lock tells other processes that the temp file is in use.
        match sys::try_lock_temp(&fd) {
            Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {}
            other => other?,
        }
        let meta = Metadata::of(&sys::stat(&fd)?);
        temp_name = TempName { inode: Some(meta.identity.inode()), displaces, ..temp_name };
        let named = temp_name.name()?;
        match sys::rename(dir.fd(), entry.name.as_bytes(), named.as_bytes()) {
            Err(Errno::NOENT) => return Err(Error::Changed),
            other => other?,
        }
        entry.name = named;
        Ok(Self { entry, fd, meta })
    }

    /// Copies the file's owner, mode and extended attributes. The order matters: a change of owner
    /// clears bits of the mode, and the mode is part of an access list.
    pub(crate) fn copy_metadata(&self, original: &Original) -> Result<()> {
        let Metadata { uid, gid, mode, .. } = *original.file.meta();
        if (self.meta.uid, self.meta.gid) != (uid, gid) {
            sys::change_owner(&self.fd, uid, gid).map_err(|errno| match errno {
                Errno::PERM => Error::Owner { uid, gid },
                other => other.into(),
            })?;
        }
        self.drop_attributes_but(original)?;
        // Without set-user-id and set-group-id: the owner lent those rights to the old content.
        sys::change_mode(&self.fd, mode & 0o1777)?;
        self.copy_attributes(original)
    }

    /// Removes the attributes that the file does not have. A default access list of the directory
    /// would let other users in, once the mode allows for it.
    fn drop_attributes_but(&self, original: &Original) -> Result<()> {
        let names = |file: &OwnedFd| match sys::attribute_names(file) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(Vec::new()),
            other => other,
        };
        let given = names(&self.fd)?;
        if given.is_empty() {
            return Ok(());
        }
        let kept = names(original.file.fd())?;
        let listed = |list: &[u8], name: &[u8]| list.split(|byte| *byte == 0).any(|n| n == name);
        let all = given.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        for name in all.filter(|name| !listed(&kept, name)) {
            match sys::remove_attribute(&self.fd, name) {
                // The system sets these labels itself.
                Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NODATA)
                    if name.starts_with(b"security.") => {}
                Err(Errno::NODATA) => {}
                other => other?,
            }
        }
        Ok(())
    }

    fn copy_attributes(&self, original: &Original) -> Result<()> {
        let names = match sys::attribute_names(original.file.fd()) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(()),
            other => other?,
        };
        for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            // Capabilities are rights too, and signatures are those of the old content.
            if [&b"security.capability"[..], b"security.ima", b"security.evm"].contains(&name) {
                continue;
            }
            let value = match sys::attribute(original.file.fd(), name) {
                // It was removed, or this process may not read it.
                Err(Errno::NODATA | Errno::OPNOTSUPP) => continue,
                other => other?,
            };
            match sys::set_attribute(&self.fd, name, &value) {
                // Only the system sets these.
                Err(Errno::PERM | Errno::OPNOTSUPP) if !name.starts_with(b"user.") => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// The metadata now; `None` if `fstat` fails.
    pub(crate) fn meta_now(&self) -> Option<Metadata> {
        retry(|| sys::stat(&self.fd)).map(|stat| Metadata::of(&stat))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_was_put_in_them() {
        let digest = Digest { stat: 0xfeed, settled: true, content: Some(7) };
        let loose = Digest { settled: false, content: None, ..digest };
        let target = Name::parse(b"a-b.aside.c.tmp").unwrap();
        for (made, specific) in [
            (TempName::new().unwrap(), false),
            (TempName { inode: Some(12), ..TempName::new().unwrap() }, true),
            (TempName::displacing(digest).unwrap(), true),
            (TempName { inode: Some(12), ..TempName::displacing(loose).unwrap() }, true),
            (TempName::aside(digest, &target).unwrap(), true),
        ] {
            let parsed = TempName::parse(made.name().unwrap().as_bytes()).unwrap();
            assert_eq!(parsed.name().unwrap(), made.name().unwrap());
            assert_eq!((parsed.inode, parsed.displaces), (made.inode, made.displaces));
            assert_eq!((parsed.aside_of(), parsed.is_specific()), (made.aside_of(), specific));
        }
    }

    #[test]
    fn other_names_are_not_taken_for_temp_names() {
        assert!(TempName::parse(kept_name().unwrap().as_bytes()).is_none());
        for name in [
            ".pinfold-.tmp",
            ".pinfold-0123456789abcdeg.tmp",
            ".pinfold-0123456789ABCDEF.tmp",
            ".pinfold-0123456789abcdef-.tmp",
            ".pinfold-0123456789abcdef-x1.tmp",
            ".pinfold-0123456789abcdef-n1-n1.tmp",
            ".pinfold-0123456789abcdef-c1.tmp",
            ".pinfold-0123456789abcdef-n+1.tmp",
            "a.tmp",
            ".pinfold",
        ] {
            assert!(TempName::parse(name.as_bytes()).is_none(), "{name}");
        }
    }
}
