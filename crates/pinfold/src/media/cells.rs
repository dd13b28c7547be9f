//! Changes one cell of a notebook in its JSON text, so that every byte outside the cell stays.
//!
//! Within the cell, too, only the necessary parts change. New parts get the same layout as those around them.

mod layout;

use std::collections::HashSet;
use std::ops::Range;

use pinfold_text::{json_elements, json_member};
use serde_json::Value;

use self::layout::{Layout, colon, members, quoted, set};
use super::notebook::{one_line, parse};
use crate::limits::MAX_SUGGESTED_NAMES;
use crate::similar_names::similar_names;

/// A change of one cell of a notebook. A cell is named by its id. A cell without an id is named by its number,
/// counting from 1, as in `cell-3`.
#[derive(Clone, Debug)]
pub enum CellEdit {
    /// Replaces the source of a cell. The outputs and the execution count of a code cell are cleared.
    Replace {
        /// The cell.
        cell: String,
        /// Its new source.
        source: String,
        /// Its new kind; `None` to keep it.
        kind: Option<CellKind>,
    },
    /// Inserts a cell.
    Insert {
        /// The cell before it; `None` to make it the first.
        after: Option<String>,
        /// Its source.
        source: String,
        /// Its kind.
        kind: CellKind,
    },
    /// Removes a cell.
    Delete {
        /// The cell.
        cell: String,
    },
}

/// The kind of a cell.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CellKind {
    /// Code.
    Code,
    /// Text in Markdown.
    Markdown,
    /// Text for another format.
    Raw,
}

impl CellKind {
    /// Its name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Markdown => "markdown",
            Self::Raw => "raw",
        }
    }
}

/// A notebook with a changed cell.
pub(crate) struct ChangedCell {
    /// The whole file's new bytes.
    pub(crate) bytes: Vec<u8>,
    /// The cell's number, counting from 1. For a removed cell, it is the number before the removal.
    pub(crate) number: usize,
    /// Its id, if it has one.
    pub(crate) id: Option<String>,
    /// Its kind, as the file names it.
    pub(crate) kind: String,
    /// Whether outputs or an execution count were removed from a remaining cell.
    pub(crate) cleared: bool,
    /// How many cells there are now.
    pub(crate) cells: usize,
}

/// Why no cell was changed.
#[derive(Debug)]
pub(crate) enum CellProblem {
    /// The file is not a notebook whose cells can be changed.
    NotANotebook(String),
    /// No cell has this name.
    NoCell {
        /// The name.
        cell: String,
        /// Similar names.
        near: Vec<String>,
    },
}

/// Changes a cell.
pub(crate) fn edit_cell(content: &[u8], edit: &CellEdit) -> Result<ChangedCell, CellProblem> {
    let json = parse(content).map_err(CellProblem::NotANotebook)?;
    let text = std::str::from_utf8(content).expect("JSON that was parsed is UTF-8");
    let cells = Cells::new(text, &json)?;
    let (number, id, kind, splice, cleared) = match edit {
        CellEdit::Replace { cell, source, kind } => {
            let index = cells.position(cell)?;
            let kind = kind.map_or_else(|| cells.kind(index), |kind| kind.name());
            let (new, cleared) = cells.replaced(index, source, kind);
            (index, cells.id(index), kind, (cells.items[index].clone(), new), cleared)
        }
        CellEdit::Insert { after, source, kind } => {
            let before = after.as_deref().map(|cell| cells.position(cell)).transpose()?;
            let id = cells.new_id(source);
            let new = cells.inserted(before, source, *kind, id.as_deref());
            (before.map_or(0, |before| before + 1), id, kind.name(), new, false)
        }
        CellEdit::Delete { cell } => {
            let index = cells.position(cell)?;
            let gone = (cells.with_separator(index), String::new());
            (index, cells.id(index), cells.kind(index), gone, false)
        }
    };
    let (Range { start, end }, new) = splice;
    let bytes = [&text[..start], &new, &text[end..]].concat().into_bytes();
    let count = match edit {
        CellEdit::Replace { .. } => cells.items.len(),
        CellEdit::Insert { .. } => cells.items.len() + 1,
        CellEdit::Delete { .. } => cells.items.len() - 1,
    };
    Ok(ChangedCell { bytes, number: number + 1, id, kind: kind.into(), cleared, cells: count })
}

/// The cells of a notebook, in its text.
struct Cells<'t> {
    text: &'t str,
    /// The cells, parsed.
    values: &'t [Value],
    /// Where each cell is in the text.
    items: Vec<Range<usize>>,
    /// Where the array of cells is.
    array: Range<usize>,
    layout: Layout,
    /// One more level of indentation.
    indent: String,
    /// Whether cells have ids.
    has_ids: bool,
}

impl<'t> Cells<'t> {
    fn new(text: &'t str, json: &'t Value) -> Result<Self, CellProblem> {
        let refuse = |problem: String| Err(CellProblem::NotANotebook(problem));
        if json["nbformat"].as_u64().is_some_and(|format| format != 4) {
            let format = &json["nbformat"];
            return refuse(format!(
                "it is in nbformat {format}, and has to be converted to nbformat 4 first"
            ));
        }
        let Some(values) = json["cells"].as_array() else {
            return refuse(
                "its cells are in worksheets, and it has to be converted to nbformat 4 first"
                    .into(),
            );
        };
        if let Some(number) = values.iter().position(|cell| !cell["cell_type"].is_string()) {
            return refuse(format!("its cell {} has no `cell_type`", number + 1));
        }
        let bounds = text.find('{').zip(text.rfind('}'));
        let (start, last) = bounds.expect("a value with members is an object");
        let root = json_elements(text, start..last + 1);
        let is_cells = |element: &&Range<usize>| {
            let [key, _] = json_member(text, (*element).clone());
            serde_json::from_str::<String>(&text[key]).is_ok_and(|name| name == "cells")
        };
        // If a key occurs several times, the parser takes the last.
        let array = root.iter().rfind(is_cells).expect("the parser found the member");
        let [_, array] = json_member(text, array.clone());
        let items = json_elements(text, array.clone());
        let root = Layout::of(text, &(start..last + 1), &root).expect("there is a member");
        let blanks = root.lead.trim_start_matches(['\r', '\n']).to_owned();
        let layout = Layout::of(text, &array, &items).unwrap_or_else(|| root.inner(&blanks));
        let indent = layout.lead.strip_prefix(&root.lead).unwrap_or_default().to_owned();
        let has_id = |cell: &Value| cell["id"].is_string();
        let has_ids = json["nbformat_minor"].as_u64().is_some_and(|minor| minor >= 5)
            || values.iter().any(has_id);
        Ok(Self { text, values, items, array, layout, indent, has_ids })
    }

    fn id(&self, index: usize) -> Option<String> {
        self.values[index]["id"].as_str().map(str::to_owned)
    }

    fn kind(&self, index: usize) -> &'t str {
        self.values[index]["cell_type"].as_str().unwrap_or_default()
    }

    /// The index of the cell with a name.
    fn position(&self, name: &str) -> Result<usize, CellProblem> {
        let no_cell = |near| Err(CellProblem::NoCell { cell: name.into(), near });
        let named = |wanted: &str| -> Vec<usize> {
            let is_named = |index: &usize| {
                self.values[*index]["id"]
                    .as_str()
                    .is_some_and(|id| id == wanted || one_line(id) == wanted)
            };
            (0..self.values.len()).filter(is_named).collect()
        };
        let number = |index: usize| format!("cell-{}", index + 1);
        match named(name).as_slice() {
            [index] => return Ok(*index),
            [] => {}
            several => {
                return no_cell(
                    several.iter().take(MAX_SUGGESTED_NAMES).map(|i| number(*i)).collect(),
                );
            }
        }
        let digits = ["cell-", "cell ", "Cell "].iter().find_map(|word| name.strip_prefix(word));
        let digits = digits.unwrap_or(name);
        let index = digits.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        if let Some(index) = index.filter(|index| *index < self.values.len()) {
            // An id is better than a number, since it stays the same when cells are inserted or removed.
            return match self.id(index).filter(|id| named(id).len() == 1) {
                Some(id) => no_cell(vec![id]),
                None => Ok(index),
            };
        }
        let ids: Vec<String> = (0..self.values.len()).filter_map(|index| self.id(index)).collect();
        let near = similar_names(name, ids.iter().map(String::as_str), MAX_SUGGESTED_NAMES);
        no_cell(near.into_iter().map(str::to_owned).collect())
    }

    /// A new id, if cells have ids. It is derived from the content, so that a dry run shows the real one.
    fn new_id(&self, source: &str) -> Option<String> {
        let ids: HashSet<_> = self.values.iter().filter_map(|cell| cell["id"].as_str()).collect();
        let id = |attempt: u64| {
            let mut hasher = blake3::Hasher::new();
            hasher.update(self.text.as_bytes()).update(source.as_bytes());
            hasher.update(&attempt.to_le_bytes()).finalize().to_hex()[..8].to_owned()
        };
        self.has_ids.then(|| {
            (0..).map(id).find(|id| !ids.contains(id.as_str())).expect("ids do not run out")
        })
    }

    /// The cell with another source, and whether outputs or an execution count were removed.
    fn replaced(&self, index: usize, source: &str, kind: &str) -> (String, bool) {
        let (range, value) = (&self.items[index], &self.values[index]);
        let elements = json_elements(self.text, range.clone());
        let layout = Layout::of(self.text, range, &elements).expect("a cell has a type");
        let mut members = members(self.text, &elements);
        set(&mut members, "cell_type", quoted(kind));
        set(&mut members, "source", self.source(source, &layout, value["source"].is_string()));
        let is_code = kind == CellKind::Code.name();
        for (name, empty) in [("outputs", "[]"), ("execution_count", "null")] {
            if is_code {
                set(&mut members, name, empty.into());
            } else {
                members.retain(|member| member.name != name);
            }
        }
        // A code cell has no attachments.
        members.retain(|member| member.name != "attachments" || !is_code);
        let has_outputs = value["outputs"].as_array().is_some_and(|outputs| !outputs.is_empty());
        let cleared = has_outputs || value["execution_count"].is_number();
        let elements: Vec<_> =
            members.iter().map(|member| member.key.clone() + &member.value).collect();
        (layout.render(['{', '}'], &elements), cleared)
    }

    /// Where a new cell goes, and its text with a separator.
    fn inserted(
        &self,
        before: Option<usize>,
        source: &str,
        kind: CellKind,
        id: Option<&str>,
    ) -> (Range<usize>, String) {
        let model = before.unwrap_or(0);
        let range = self.items.get(model).cloned().unwrap_or_default();
        let elements = self.items.get(model).map(|range| json_elements(self.text, range.clone()));
        let elements = elements.unwrap_or_default();
        let layout = Layout::of(self.text, &range, &elements);
        let layout = layout.unwrap_or_else(|| self.layout.inner(&self.indent));
        let colon = colon(&members(self.text, &elements));
        let as_string = self.values.get(model).is_some_and(|cell| cell["source"].is_string());
        let is_code = kind == CellKind::Code;
        // Jupyter writes the members in this order.
        let members = [
            Some(("cell_type", quoted(kind.name()))),
            is_code.then(|| ("execution_count", "null".into())),
            id.map(|id| ("id", quoted(id))),
            Some(("metadata", "{}".into())),
            is_code.then(|| ("outputs", "[]".into())),
            Some(("source", self.source(source, &layout, as_string))),
        ];
        let element = |(name, value): (&str, String)| format!("{}{colon}{value}", quoted(name));
        let elements: Vec<_> = members.into_iter().flatten().map(element).collect();
        let cell = layout.render(['{', '}'], &elements);
        let separator = &self.layout.separator;
        match (before, self.items.first()) {
            (Some(before), _) => {
                let end = self.items[before].end;
                (end..end, format!("{separator}{cell}"))
            }
            (None, Some(first)) => (first.start..first.start, format!("{cell}{separator}")),
            (None, None) => (self.array.clone(), self.layout.render(['[', ']'], &[cell])),
        }
    }

    /// A cell and the separator that goes with it.
    fn with_separator(&self, index: usize) -> Range<usize> {
        match (index.checked_sub(1), self.items.get(index + 1)) {
            (Some(before), _) => self.items[before].end..self.items[index].end,
            (None, Some(next)) => self.items[index].start..next.start,
            (None, None) => self.array.start + 1..self.array.end - 1,
        }
    }

    /// The source of a cell, as an array of its lines or as one string.
    fn source(&self, source: &str, cell: &Layout, as_string: bool) -> String {
        if as_string {
            return quoted(source);
        }
        let lines: Vec<_> = source.split_inclusive('\n').map(quoted).collect();
        cell.inner(&self.indent).render(['[', ']'], &lines)
    }
}

#[cfg(test)]
mod tests;
