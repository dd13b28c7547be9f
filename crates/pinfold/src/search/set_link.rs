//! The symlinks of a set that is for finding files by name.
//!
//! A link to a file of the same set is resolved once. All directories on the way to that file are watched, so the link
//! leads to it as long as the set is current.

use std::sync::OnceLock;

use pinfold_confine::{Place, WalkedFile, Workspace};

use crate::search::file_set::{FileSet, SetFile};

/// A symlink of a set.
#[derive(Clone, Debug)]
pub(crate) struct SetLink {
    /// Its path below the start of the walk.
    pub(crate) path: Vec<u8>,
    pub(crate) link: WalkedFile,
    /// The number of the file of the set that it leads to; `None` if it leads elsewhere, or through another link.
    target: OnceLock<Option<u32>>,
}

impl SetLink {
    pub(crate) fn new(path: Vec<u8>, link: WalkedFile) -> Self {
        Self { path, link, target: OnceLock::new() }
    }

    /// The file of its set that it leads to. Returns `None` if it has to be resolved.
    pub(crate) fn target_in<'s>(
        &self,
        set: &'s FileSet,
        workspace: &Workspace,
    ) -> Option<&'s SetFile> {
        let target = self.target.get_or_init(|| self.find_target(set, workspace));
        set.files.get((*target)? as usize)
    }

    /// Forgets the number of its target, since the files of the set may change.
    pub(super) fn forget_target(&mut self) {
        self.target = OnceLock::new();
    }

    fn find_target(&self, set: &FileSet, workspace: &Workspace) -> Option<u32> {
        let link = self.link.place();
        let (target, _) = workspace.linked_to(&self.link).ok()?;
        let (_, text) = workspace.lstat_place(&link).ok()?;
        if !leads_straight(link.path.as_bytes(), &text?, target.path.as_bytes())
            || link.root != target.root
        {
            return None;
        }
        let by_path = |file: &SetFile| Place::by_path(&file.file.place(), &target);
        set.files.binary_search_by(by_path).ok().map(|number| number as u32)
    }
}

/// Whether a link at a path, with this text, leads to the real path `target` through no other link: some steps up,
/// and then down by names. A path through another link would not end at the names that it is written with.
fn leads_straight(link: &[u8], text: &[u8], target: &[u8]) -> bool {
    let mut at: Vec<&[u8]> = link.split(|byte| *byte == b'/').collect();
    at.pop();
    let mut rest = text;
    while let Some(above) = rest.strip_prefix(b"../") {
        if at.pop().is_none() {
            return false;
        }
        rest = above;
    }
    let names = rest.split(|byte| *byte == b'/');
    at.extend(names.clone());
    !names.clone().any(|name| matches!(name, b"" | b"." | b"..")) && at.join(&b'/') == target
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_steps_up_and_then_names_lead_straight_to_a_file() {
        for (link, text, target, expected) in [
            ("link", "file", "file", true),
            ("a/link", "file", "a/file", true),
            ("a/b/link", "../c/file", "a/c/file", true),
            ("a/b/link", "../../file", "file", true),
            ("a/link", "../../file", "file", false),
            ("a/link", "/file", "file", false),
            ("a/link", "b/../file", "a/file", false),
            ("a/link", "./file", "a/file", false),
            ("a/link", "b/file", "c/file", false),
            ("link", "..", "", false),
        ] {
            let [link, text, target] = [link, text, target].map(str::as_bytes);
            assert_eq!(leads_straight(link, text, target), expected, "{link:?} {text:?}");
        }
    }
}
