//! `EditNotebook`: changes one cell of a notebook.

use pinfold_confine::{Place, RawPath};

use crate::change::Replace;
use crate::ledger::Freshness;
use crate::limits::MAX_NOTEBOOK_BYTES;
use crate::media::{CellEdit, CellProblem, edit_cell, has_notebook_name};
use crate::operations::edit::{changed_since_read, check_size};
use crate::{ChangeSet, Error, Operation, ReadBeforeWrite, View};

/// Replaces, inserts or removes one cell of a Jupyter notebook. Every byte outside of that cell stays.
///
/// ```
/// use pinfold::Session;
/// use pinfold::media::CellEdit;
/// use pinfold::operations::{EditNotebook, Write};
///
/// # let dir = tempfile::tempdir()?;
/// # let workspace = dir.path();
/// let session = Session::open([workspace])?;
/// let notebook = r#"{"nbformat": 4, "cells": [{"cell_type": "code", "id": "a1", "source": "1"}]}"#;
/// session.perform(&Write::new("a.ipynb", notebook))?;
/// let edit = CellEdit::Replace { cell: "a1".into(), source: "2".into(), kind: None };
/// let edited = session.perform(&EditNotebook::new("a.ipynb", edit))?.outcome;
/// assert_eq!((edited.number, edited.cells), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EditNotebook {
    /// The notebook.
    pub path: RawPath,
    /// The change of the cell.
    pub edit: CellEdit,
    /// Whether the notebook must have been read first.
    pub read_rule: ReadBeforeWrite,
}

/// A changed cell.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NotebookEdited {
    /// The notebook's place.
    pub place: Place,
    /// The notebook's new size in bytes.
    pub bytes: u64,
    /// The cell's number, counting from 1. For a removed cell, it is the number before the removal.
    pub number: usize,
    /// The cell's id, if it has one.
    pub id: Option<String>,
    /// The cell's kind, such as `code`.
    pub kind: String,
    /// Whether outputs or an execution count were removed from a remaining cell.
    pub cleared: bool,
    /// How many cells there are now.
    pub cells: usize,
    /// Whether the notebook changed.
    pub changed: bool,
    /// How many other hard links still have the old content.
    pub other_names: u64,
}

impl EditNotebook {
    /// Changes a cell of a notebook.
    pub fn new(path: impl Into<RawPath>, edit: CellEdit) -> Self {
        Self { path: path.into(), edit, read_rule: ReadBeforeWrite::Off }
    }
}

builder!(EditNotebook {
    with_read_rule(read_rule: ReadBeforeWrite),
});

impl Operation for EditNotebook {
    type Changes = ChangeSet;
    type Outcome = NotebookEdited;

    fn edited_files(&self) -> Vec<&RawPath> {
        vec![&self.path]
    }

    fn plan(&self, view: &View<'_>) -> Result<(NotebookEdited, ChangeSet), Error> {
        let mut target = view.target(&self.path)?;
        let meta = *target.meta().ok_or_else(|| view.not_found(&self.path))?;
        if !has_notebook_name(&self.path) {
            return Err(self.not_a_notebook("its name does not end in `.ipynb`".into()));
        }
        check_size(view, &self.path, meta.len)?;
        if meta.len > MAX_NOTEBOOK_BYTES {
            return Err(self.not_a_notebook(format!("it has more than {MAX_NOTEBOOK_BYTES} bytes")));
        }
        let before = target.content().map_err(|error| view.path_error(&self.path, error))?;
        let freshness = view.freshness(&self.path, &target, self.read_rule)?;
        if let Freshness::Changed(then) = freshness {
            return Err(changed_since_read(view, &self.path, &target, (&before, &then), None));
        }
        let made = edit_cell(&before, &self.edit).map_err(|problem| match problem {
            CellProblem::NotANotebook(problem) => self.not_a_notebook(problem),
            CellProblem::NoCell { cell, near } => {
                let cell = cell.chars().take(100).collect::<String>().escape_debug().to_string();
                Error::NoCell { path: self.path.clone(), cell, near }
            }
        })?;
        check_size(view, &self.path, made.bytes.len() as u64)?;
        let edited = NotebookEdited {
            place: target.place().clone(),
            bytes: made.bytes.len() as u64,
            number: made.number,
            id: made.id,
            kind: made.kind,
            cleared: made.cleared,
            cells: made.cells,
            changed: made.bytes != before,
            other_names: meta.links.saturating_sub(1),
        };
        if !edited.changed {
            return Ok((edited, ChangeSet::default()));
        }
        let replace = Replace::new(self.path.clone(), target, made.bytes);
        let replace = Replace { before: Some(before), answers_with_diff: true, ..replace };
        Ok((edited, ChangeSet::of(replace)))
    }
}

impl EditNotebook {
    fn not_a_notebook(&self, problem: String) -> Error {
        Error::NotANotebook { path: self.path.clone(), problem }
    }
}
