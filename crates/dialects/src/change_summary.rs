//! Summarises changes, in the same words for all dialects.

use pinfold::operations::{
    ChangeFiles, Delete, Edit, EditNotebook, Insert, Mkdir, Move, RemoveTree, Undo, Write,
};
use pinfold::{Done, Kind, MatchKind, Receipt};

use crate::phrases::{count, shortened};

/// `line 3`, `lines 3-5`.
fn line_range((first, last): (u64, u64)) -> String {
    if first == last { format!("line {first}") } else { format!("lines {first}-{last}") }
}

/// The summary of a change.
pub(crate) struct ChangeSummary {
    /// One line for the user.
    pub(crate) short: String,
    /// One line that names the file.
    line: String,
    /// Notices after that line, such as warnings.
    notices: Vec<String>,
    /// Sentences on edits that did not match exactly. Each has the index of the notice with the same information.
    match_sentences: Vec<(usize, String)>,
    /// The diff, if the answer includes it.
    diff: Option<String>,
    /// The number of bytes that were written, or that a dry run would write.
    pub(crate) bytes_written: u64,
    /// Whether an answer with fields needs the line, too, because no field has this information.
    needs_line: bool,
    dry_run: bool,
}

/// Notes on an applied patch.
#[derive(Default)]
pub(crate) struct PatchNotes {
    /// The chunks that did not match exactly: the kind of match, the file if there are several, and the first and
    /// last line.
    pub(crate) lenient: Vec<(MatchKind, Option<String>, (u64, u64))>,
    /// How many other hard links still have the old content of a file.
    pub(crate) other_names: u64,
    pub(crate) notices: Vec<String>,
}

impl ChangeSummary {
    /// Summarises a created or replaced file.
    pub(crate) fn of_write(done: &Done<Write>, path: &str) -> Self {
        if !done.outcome.changed {
            return Self::unchanged(&done.receipt, path);
        }
        let verbs =
            if done.outcome.created { ["Created", "create"] } else { ["Updated", "update"] };
        let mut summary = Self::new(&done.receipt, verbs, " ", path);
        let lines = done.outcome.lines.filter(|_| !done.outcome.created);
        let lines = lines.map(|(came, went)| format!(", +{came} \u{2212}{went} lines"));
        summary.add_size(done.outcome.bytes, &lines.unwrap_or_default());
        if let Some(before) = done.outcome.recoded_from {
            let mark = if before.bom { " with a byte order mark" } else { "" };
            summary.notices.push(format!("the file was {}{mark} before", before.name()));
        }
        summary.note_other_names(done.outcome.other_names);
        summary
    }

    /// Summarises replacements in a file.
    pub(crate) fn of_edit(done: &Done<Edit>, path: &str) -> Self {
        if done.outcome.created {
            let mut summary = Self::new(&done.receipt, ["Created", "create"], " ", path);
            summary.add_size(done.outcome.bytes, "");
            return summary;
        }
        let times = count(done.outcome.replacements as u64, "occurrence");
        let verbs = [format!("Replaced {times}"), format!("replace {times}")];
        let verbs = verbs.each_ref().map(String::as_str);
        let mut summary = Self::new(&done.receipt, verbs, " in ", path);
        let place = match done.outcome.lines.as_slice() {
            [lines] => line_range(*lines),
            _ => "one of the edits".into(),
        };
        summary.note_match(done.outcome.match_kind, &place);
        if done.outcome.changed_elsewhere {
            summary.notices.push("the file has changed elsewhere since it was last read".into());
        }
        summary.note_other_names(done.outcome.other_names);
        summary
    }

    /// Summarises a patch. `list` names the files.
    pub(crate) fn of_patch(done: &Done<ChangeFiles>, list: &str, notes: PatchNotes) -> Self {
        let verbs = ["Success. Updated the following files", "update the following files"];
        let mut summary = Self::new(&done.receipt, verbs, ":\n", list);
        for (match_kind, path, lines) in notes.lenient {
            let place = match path {
                Some(path) => format!("{path} {}", line_range(lines)),
                None => line_range(lines),
            };
            summary.note_match(match_kind, &place);
        }
        summary.note_other_names(notes.other_names);
        summary.notices.extend(notes.notices);
        summary
    }

    /// Notes how a text was matched, unless it matched exactly.
    fn note_match(&mut self, match_kind: MatchKind, place: &str) {
        let (notice, sentence) = match match_kind {
            MatchKind::Exact | MatchKind::LineEndings => return,
            MatchKind::TrailingWhitespace => (
                format!("{place}: matched without regard to blanks at the end of lines"),
                format!("Matched with trailing blanks ignored, {place}."),
            ),
            MatchKind::Indentation => (
                format!(
                    "{place}: matched with another indentation; the new text was indented like the file"
                ),
                format!("Matched with another indentation, {place}."),
            ),
        };
        self.match_sentences.push((self.notices.len(), sentence));
        self.notices.push(notice);
    }

    /// Summarises inserted lines.
    pub(crate) fn of_insert(done: &Done<Insert>, path: &str) -> Self {
        let (first, last) = done.outcome.lines;
        let lines = count(last - first + 1, "line");
        let verbs = [format!("Inserted {lines}"), format!("insert {lines}")];
        let verbs = verbs.each_ref().map(String::as_str);
        let mut summary = Self::new(&done.receipt, verbs, " in ", path);
        summary.note_other_names(done.outcome.other_names);
        summary
    }

    /// Summarises a replaced, inserted or deleted cell.
    pub(crate) fn of_cell(done: &Done<EditNotebook>, verbs: [&str; 2], path: &str) -> Self {
        let edited = &done.outcome;
        if !edited.changed {
            return Self::unchanged(&done.receipt, &format!("cell {} of {path}", edited.number));
        }
        let id = edited.id.as_ref().map(|id| format!(", id {}", shortened(id).escape_debug()));
        let cell = format!("cell {} ({}{})", edited.number, edited.kind, id.unwrap_or_default());
        let verbs = verbs.map(|verb| format!("{verb} {cell}"));
        let verbs = verbs.each_ref().map(String::as_str);
        let mut summary = Self::new(&done.receipt, verbs, " in ", path);
        if edited.cleared {
            let would = if done.receipt.dry_run { "would be" } else { "were" };
            let notice = format!("the cell's outputs and execution count {would} cleared");
            summary.notices.push(notice);
        }
        summary.note_other_names(edited.other_names);
        summary
    }

    /// Summarises an undone change.
    pub(crate) fn of_undo(done: &Done<Undo>, path: &str) -> Self {
        Self::new(&done.receipt, ["Undone", "undo"], ": the last change of ", path)
    }

    /// Summarises a deleted file.
    pub(crate) fn of_delete(done: &Done<Delete>, path: &str) -> Self {
        let verbs = if done.outcome.link {
            ["Deleted the symlink", "delete the symlink"]
        } else {
            ["Deleted", "delete"]
        };
        Self::new(&done.receipt, verbs, " ", path)
    }

    /// Summarises a directory that was deleted with everything in it.
    pub(crate) fn of_tree_removal(done: &Done<RemoveTree>, path: &str) -> Self {
        let files = count(done.outcome.files as u64, "file");
        let verbs = ["Deleted", "delete"].map(|verb| format!("{verb} the directory with {files}"));
        Self::new(&done.receipt, verbs.each_ref().map(String::as_str), ": ", path)
    }

    /// Summarises a directory that was created or already existed.
    pub(crate) fn of_mkdir(done: &Done<Mkdir>, path: &str) -> Self {
        if done.outcome.created {
            let verbs = ["Created the directory", "create the directory"];
            return Self::new(&done.receipt, verbs, " ", path);
        }
        let mut summary = Self::new(&done.receipt, ["Unchanged", "change nothing"], ": ", path);
        summary.line.push_str(" exists");
        summary
    }

    /// Summarises a move.
    pub(crate) fn of_move(done: &Done<Move>, from: &str, to: &str) -> Self {
        let verbs = match done.outcome.kind {
            Kind::Directory => ["Moved the directory", "move the directory"],
            Kind::Symlink => ["Moved the symlink", "move the symlink"],
            _ => ["Moved", "move"],
        };
        Self::new(&done.receipt, verbs, " ", &format!("{from} to {to}"))
    }

    /// Summarises a request that changed nothing.
    fn unchanged(receipt: &Receipt, what: &str) -> Self {
        let mut summary = Self::new(receipt, ["Unchanged", "change nothing"], ": ", what);
        summary.line.push_str(" already has this content");
        summary.needs_line = true;
        summary
    }

    /// Starts a summary with `Created PATH`, or `[Dry Run] Would create PATH`.
    fn new(receipt: &Receipt, [did, would]: [&str; 2], link: &str, path: &str) -> Self {
        let short =
            if receipt.dry_run { format!("[Dry Run] Would {would}") } else { did.to_owned() };
        Self {
            line: format!("{short}{link}{path}"),
            short,
            notices: receipt.warning.iter().cloned().collect(),
            match_sentences: Vec::new(),
            diff: receipt.diff.clone(),
            bytes_written: 0,
            needs_line: false,
            dry_run: receipt.dry_run,
        }
    }

    fn add_size(&mut self, bytes: u64, lines: &str) {
        self.bytes_written = bytes;
        let size = format!(" ({}{lines})", count(bytes, "byte"));
        self.short.push_str(&size);
        self.line.push_str(&size);
    }

    fn note_other_names(&mut self, other_names: u64) {
        if other_names > 0 {
            let names = count(other_names, "other hard link");
            self.notices.push(format!("the old content is still there under {names}"));
        }
    }

    /// The sentence on how an edit matched, and the notices, each on its own line.
    pub(crate) fn closing(&self) -> String {
        let sentences = self.match_sentences.iter().map(|(_, sentence)| format!("\n{sentence}"));
        let is_in_sentence =
            |number| self.match_sentences.iter().any(|(notice, _)| *notice == number);
        let notices =
            self.notices.iter().enumerate().filter(|(number, _)| !is_in_sentence(*number));
        notices.fold(sentences.collect(), |text, (_, notice)| format!("{text}\n({notice})"))
    }

    /// The line and the notices, without the diff.
    fn headline(&self) -> String {
        self.notices.iter().fold(self.line.clone(), |text, notice| format!("{text}\n({notice})"))
    }

    /// For dialects with their own wording: the given words, followed by the notices. For a dry run, the whole
    /// summary.
    pub(crate) fn after(&self, words: String) -> String {
        if self.dry_run { self.long() } else { words + &self.closing() }
    }

    /// The line, the notices and the diff, for the model.
    pub(crate) fn long(&self) -> String {
        let mut text = self.headline();
        if let Some(diff) = &self.diff {
            text.push('\n');
            text.push_str(diff);
        }
        text
    }

    /// For dialects that answer with fields: the information that no field has, if any.
    pub(crate) fn message(&self) -> Option<String> {
        if self.dry_run {
            return Some(self.long());
        }
        (self.needs_line || !self.notices.is_empty()).then(|| self.headline())
    }
}
