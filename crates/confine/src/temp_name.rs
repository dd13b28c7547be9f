//! The names of temp files, which identify their content.
//!
//! A name has the inode of the file that Pinfold wrote, and a digest of the file that the call expects to displace.
//! So another process can distinguish new content, which may be deleted, from a displaced file that may exist nowhere
//! else. This also works on file systems without extended attributes.

use std::fmt::Write as _;
use std::os::fd::OwnedFd;
use std::time::SystemTime;

use crate::{Hash, Identity, Kind, Metadata, Name, Result, sys};

const PREFIX: &str = ".pinfold-";
const SUFFIX: &str = ".tmp";
/// Separates the digest from the original name, in aside names.
const ASIDE: &str = ".aside.";

/// The parsed name of a temp file.
#[derive(Clone, Debug, Default)]
pub(crate) struct TempName {
    random: String,
    /// The inode of the file that Pinfold wrote.
    pub(crate) inode: Option<u64>,
    /// The file that may be displaced, and then has this name.
    displaces: Option<Digest>,
    /// The original name of the displaced file, if nothing takes its place in the same step.
    aside_of: Option<Name>,
    /// A digest of the directory and of this name. A file with a forged name, for example from a repository, does not
    /// have the right one.
    directory: Option<u64>,
}

/// The state of a file when a call found it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Digest {
    /// The digest of its inode, size and modification time. A rename changes none of them.
    stat: u64,
    /// Whether every later change of the file shows in its times.
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

/// The kind of content that a temp file has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TempContent {
    /// The file that Pinfold wrote, an empty one that it has just created, or one that it could not delete. Nobody
    /// needs it.
    Written,
    /// The file that the call expected to displace, judged by its metadata.
    Displaced,
    /// A directory that is deleted with everything in it. Tools show it, since other processes may add files.
    RemovedTree,
    /// Any other file: one that another process saved, or one that is not Pinfold's.
    Unknown,
}

impl TempName {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self { random: format!("{:016x}", random_number()?), ..Self::default() })
    }

    /// The same name with the inode of a file that Pinfold wrote, and with the digest of the file that may be
    /// displaced.
    pub(crate) fn with(self, inode: Option<u64>, displaces: Option<Digest>) -> Self {
        Self { inode, displaces, ..self }
    }

    /// The same name for the file `name` of a directory, which is set aside. It has to get its name back if nothing
    /// takes its place.
    pub(crate) fn aside_in(self, directory: Identity, name: &Name) -> Self {
        let proof = self.directory_digest(directory, name);
        Self { aside_of: Some(name.clone()), directory: Some(proof), ..self }
    }

    /// Whether the name was made for this directory, so that Pinfold set the file aside.
    pub(crate) fn is_made_for(&self, directory: Identity) -> bool {
        let proof = self.aside_of.as_ref().map(|name| self.directory_digest(directory, name));
        proof.is_some() && proof == self.directory
    }

    fn directory_digest(&self, directory: Identity, name: &Name) -> u64 {
        let mut hasher = blake3::Hasher::new();
        hasher.update(
            format!("{} {} {} ", directory.device(), directory.inode(), self.random).as_bytes(),
        );
        first_bytes(&hasher.update(name.as_bytes()).finalize())
    }

    pub(crate) fn name(&self) -> Result<Name> {
        let mut text = format!("{PREFIX}{}", self.random);
        let mut field = |kind: char, number: u64| {
            write!(text, "-{kind}{number:x}").expect("a String takes anything");
        };
        if let Some(inode) = self.inode {
            field('n', inode);
        }
        if let Some(Digest { stat, settled, content }) = self.displaces {
            field(if settled { 's' } else { 't' }, stat);
            if let Some(content) = content {
                field('c', content);
            }
        }
        if let Some(directory) = self.directory {
            field('d', directory);
        }
        match &self.aside_of {
            Some(name) => {
                Name::parse(&[text.as_bytes(), ASIDE.as_bytes(), name.as_bytes()].concat())
            }
            None => Name::parse((text + SUFFIX).as_bytes()),
        }
    }

    /// Parses a name that [`Self::name`] made. Returns `None` for any other name.
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
                ("d", _) if parsed.directory.is_none() => parsed.directory = Some(number),
                _ => return None,
            }
        }
        Some(parsed)
    }

    /// The kind of content in a temp file with this name and metadata.
    pub(crate) fn content(&self, meta: &Metadata) -> TempContent {
        let created = !self.is_specific() && meta.len == 0 && meta.kind == Kind::File;
        // Pinfold sets aside neither its new files nor those that it is deleting.
        let own = self.aside_of.is_none() && matches!(meta.kind, Kind::File | Kind::Symlink);
        let has_own_inode = self.inode == Some(meta.identity.inode());
        match self.displaces {
            None if has_own_inode && self.aside_of.is_none() && meta.kind == Kind::Directory => {
                TempContent::RemovedTree
            }
            _ if own && (created || has_own_inode) => TempContent::Written,
            Some(digest) if digest.stat == stat_digest(meta) => TempContent::Displaced,
            _ => TempContent::Unknown,
        }
    }

    /// Whether a file with the metadata of the displaced one also has its content. `hash` reads it.
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

    /// Whether the name has more than the prefix. Only Pinfold makes such names.
    pub(crate) fn is_specific(&self) -> bool {
        self.inode.is_some() || self.displaces.is_some()
    }
}

fn hex(digits: &str) -> Option<u64> {
    let lower = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    u64::from_str_radix(digits, 16).ok().filter(|_| lower)
}

/// Whether a directory entry is one of Pinfold's own temp files, which no tool shows.
///
/// The name alone proves nothing, because anybody can give a file or directory such a name.
pub(crate) fn is_own_temp(dir: &OwnedFd, name: &[u8]) -> bool {
    TempName::parse(name).is_some()
        && sys::stat_at(dir, name).is_ok_and(|stat| is_temp(name, &Metadata::of(&stat)))
}

/// As [`is_own_temp`], for an entry with this metadata.
pub(crate) fn is_temp(name: &[u8], meta: &Metadata) -> bool {
    let content = TempName::parse(name).map(|temp| temp.content(meta));
    matches!(content, Some(TempContent::Written | TempContent::Displaced))
}

/// Whether an entry is new content that Pinfold writes, or wrote before it was killed.
pub(crate) fn is_new_content(name: &[u8], meta: &Metadata) -> bool {
    TempName::parse(name).is_some_and(|temp| temp.content(meta) == TempContent::Written)
}

/// A unique name for content that the user has to see. It is never swept.
pub(crate) fn kept_name() -> Result<Name> {
    Name::parse(format!("{PREFIX}kept-{:016x}", random_number()?).as_bytes())
}

/// 256 random bits as text, for a token or a key.
pub fn random_secret() -> Result<String> {
    let words = [random_number()?, random_number()?, random_number()?, random_number()?];
    Ok(words.map(|word| format!("{word:016x}")).concat())
}

/// A random number.
pub fn random_number() -> Result<u64> {
    Ok(u64::from_ne_bytes(sys::random()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_was_put_in_them() {
        let digest = Digest { stat: 0xfeed, settled: true, content: Some(7) };
        let loose = Digest { settled: false, content: None, ..digest };
        let target = Name::parse(b"a-b.aside.c.tmp").unwrap();
        let directory = Metadata::of(&sys::stat(sys::open_root("/".as_ref()).unwrap()).unwrap());
        let new = |inode, displaces| TempName::new().unwrap().with(inode, displaces);
        let aside = |name: TempName| name.aside_in(directory.identity, &target);
        for (made, specific) in [
            (TempName::new().unwrap(), false),
            (new(Some(12), None), true),
            (new(None, Some(digest)), true),
            (new(Some(12), Some(loose)), true),
            (aside(new(None, Some(digest))), true),
            (aside(new(Some(12), Some(loose))), true),
        ] {
            let parsed = TempName::parse(made.name().unwrap().as_bytes()).unwrap();
            assert_eq!(parsed.name().unwrap(), made.name().unwrap());
            assert_eq!((parsed.inode, parsed.displaces), (made.inode, made.displaces));
            assert_eq!((parsed.aside_of(), parsed.is_specific()), (made.aside_of(), specific));
            assert_eq!(parsed.is_made_for(directory.identity), made.aside_of().is_some());
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
