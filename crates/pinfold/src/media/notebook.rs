//! Renders Jupyter notebooks as text: the cells in order, each with its source and outputs.
//!
//! Formats 3 and 4 are supported. The content is not trusted: a value that is missing or has the wrong
//! type is left out.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinfold_confine::RawPath;
use pinfold_text::exceeds_json_values;
use serde_json::{Map, Value};

use super::image::is_picture;
use crate::Error;
use crate::limits::{
    MAX_NOTEBOOK_IMAGES, MAX_NOTEBOOK_OUTPUT_CHARS, MAX_NOTEBOOK_PARTS, MAX_SHOWN_IMAGE_BYTES,
    MAX_SHOWN_IMAGE_SIDE,
};

/// A notebook, rendered as text.
#[derive(Clone, Debug, Default)]
pub struct Notebook {
    /// All cells with their outputs. An image is a line with its number.
    pub text: String,
    /// The images among the outputs: media type, and data in base64.
    pub images: Vec<(String, String)>,
    /// How many cells there are.
    pub cells: usize,
    image_bytes: u64,
}

/// Refuses a change that makes a valid notebook invalid.
pub(crate) fn check_notebook(path: &RawPath, before: &[u8], after: &[u8]) -> Result<(), Error> {
    match parse(after).map(|_| ()) {
        Err(problem) if parse(before).is_ok() => {
            Err(Error::BreaksNotebook { path: path.clone(), problem })
        }
        _ => Ok(()),
    }
}

/// Whether a file's name is that of a notebook.
pub(crate) fn has_notebook_name(path: &RawPath) -> bool {
    path.as_str().to_lowercase().ends_with(".ipynb")
}

/// Renders a notebook; the error says why the content is not one.
pub(crate) fn notebook(content: &[u8]) -> Result<Notebook, String> {
    let json = parse(content)?;
    let cells: Vec<&Value> = match (&json["cells"], &json["worksheets"]) {
        (Value::Array(cells), _) => cells.iter().collect(),
        (_, sheets) => items(sheets).iter().flat_map(|sheet| items(&sheet["cells"])).collect(),
    };
    let mut notebook = Notebook { cells: cells.len(), ..Notebook::default() };
    for (number, cell) in cells.into_iter().enumerate() {
        notebook.add_cell(number + 1, cell);
    }
    Ok(notebook)
}

/// Parses a notebook, which has cells in one of two places.
pub(super) fn parse(content: &[u8]) -> Result<Value, String> {
    let content = content.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(content);
    if exceeds_json_values(content, MAX_NOTEBOOK_PARTS) {
        return Err(format!("it has more than {MAX_NOTEBOOK_PARTS} parts"));
    }
    // The parser refuses JSON that is nested too deeply for the stack.
    let json: Value = serde_json::from_slice(content).map_err(|error| error.to_string())?;
    if json["cells"].is_array() || json["worksheets"].is_array() {
        Ok(json)
    } else {
        Err("it has no cells".into())
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The text of a string, or of an array of strings.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}

impl Notebook {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Appends text, and a newline if it does not end with one.
    fn lines(&mut self, text: &str) {
        self.text.push_str(text);
        if !text.is_empty() && !text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    fn add_cell(&mut self, number: usize, cell: &Value) {
        let kind = cell["cell_type"].as_str().unwrap_or("unknown");
        if number > 1 {
            self.line("");
        }
        self.line(&format!("--- Cell {number} ({}) ---", one_line(kind)));
        let id = cell["id"].as_str().map(|id| format!("id: {}", one_line(id)));
        let count = cell.get("execution_count").or(cell.get("prompt_number"));
        let count = count.and_then(Value::as_u64).map(|count| format!("execution count: {count}"));
        let facts: Vec<_> = [id, count].into_iter().flatten().collect();
        if !facts.is_empty() {
            self.line(&facts.join(", "));
        }
        let source = cell.get("source").or(cell.get("input")).map(text).unwrap_or_default();
        self.lines(&source);
        if let Some(attachments) = cell["attachments"].as_object() {
            for (name, kinds) in attachments {
                let kinds: Vec<_> = kinds.as_object().into_iter().flat_map(Map::keys).collect();
                let kinds = kinds.into_iter().map(|kind| one_line(kind)).collect::<Vec<_>>();
                self.line(&format!("[attachment {}: {}]", one_line(name), kinds.join(", ")));
            }
        }
        for output in items(&cell["outputs"]) {
            self.add_output(output);
        }
    }

    fn add_output(&mut self, output: &Value) {
        let kind = output["output_type"].as_str().unwrap_or_default();
        match kind {
            "stream" => {
                let name = output.get("name").or(output.get("stream"));
                let name = name.and_then(Value::as_str).unwrap_or("stdout");
                self.line(&format!("--- Output ({}) ---", one_line(name)));
                self.cut_lines(&text(&output["text"]));
            }
            "error" | "pyerr" => {
                self.line("--- Output (error) ---");
                let traceback: Vec<_> = match &output["traceback"] {
                    Value::String(text) => vec![text.as_str()],
                    other => items(other).iter().filter_map(Value::as_str).collect(),
                };
                let (name, value) = (text(&output["ename"]), text(&output["evalue"]));
                if traceback.is_empty() {
                    self.cut_lines(&format!("{name}: {value}"));
                } else {
                    self.cut_lines(&traceback.join("\n"));
                }
            }
            "display_data" | "execute_result" | "pyout" | "update_display_data" => {
                self.line("--- Output ---");
                match output["data"].as_object() {
                    Some(data) => self.add_data(data),
                    // In format 3 the data are fields of the output, with short names.
                    None => {
                        let data = output.as_object().map(short_names).unwrap_or_default();
                        self.add_data(&data);
                    }
                }
            }
            other => self.line(&format!("--- Output ({}) ---", one_line(other))),
        }
    }

    /// Adds the images of an output, and its plainest text representation.
    fn add_data(&mut self, data: &Map<String, Value>) {
        for (kind, value) in data {
            if is_picture(kind) {
                let data: String = text(value).split_ascii_whitespace().collect();
                match self.refusal(&data) {
                    Some(why) => self.line(&format!("[{kind}, not shown: {why}]")),
                    None => {
                        self.image_bytes += data.len() as u64;
                        self.images.push((kind.clone(), data));
                        self.line(&format!("[image {}: {kind}]", self.images.len()));
                    }
                }
            }
        }
        let plain = ["text/plain", "text/markdown", "text/latex", "text/html", "image/svg+xml"];
        let shown = plain.iter().find_map(|kind| Some((*kind, data.get(*kind)?)));
        if let Some((_, value)) = shown {
            self.cut_lines(&text(value));
        }
        for (kind, value) in data {
            let known = plain.contains(&kind.as_str()) || kind.starts_with("image/");
            if !known {
                let name = if kind.contains("widget") { "widget" } else { "data" };
                let size = value.to_string().len();
                self.line(&format!("[{name} {}, {size} bytes]", one_line(kind)));
            }
        }
    }

    /// The reason why an image cannot be shown, if there is one.
    fn refusal(&self, data: &str) -> Option<&'static str> {
        if self.images.len() >= MAX_NOTEBOOK_IMAGES {
            return Some("there are too many images");
        }
        if self.image_bytes + data.len() as u64 > MAX_SHOWN_IMAGE_BYTES {
            return Some("it is too large");
        }
        let Ok(bytes) = STANDARD.decode(data) else { return Some("it is damaged") };
        match imagesize::blob_size(&bytes) {
            Err(_) => Some("it is damaged"),
            Ok(size) if size.width.max(size.height) > MAX_SHOWN_IMAGE_SIDE => {
                Some("it is too large")
            }
            Ok(_) => None,
        }
    }

    /// Appends output without terminal escapes, cut if it is long.
    fn cut_lines(&mut self, output: &str) {
        let plain = without_escapes(output);
        match plain.char_indices().nth(MAX_NOTEBOOK_OUTPUT_CHARS) {
            None => self.lines(&plain),
            Some((cut, _)) => {
                let left = plain[cut..].chars().count();
                self.lines(&format!("{}... [+{left} characters]", &plain[..cut]));
            }
        }
    }
}

/// The data of a format 3 output, by media type.
fn short_names(output: &Map<String, Value>) -> Map<String, Value> {
    let kinds = [
        ("text", "text/plain"),
        ("html", "text/html"),
        ("latex", "text/latex"),
        ("svg", "image/svg+xml"),
        ("png", "image/png"),
        ("jpeg", "image/jpeg"),
        ("json", "application/json"),
        ("javascript", "application/javascript"),
    ];
    let named = |(short, kind): (&str, &str)| Some((kind.to_owned(), output.get(short)?.clone()));
    kinds.into_iter().filter_map(named).collect()
}

/// A name from the notebook, without control characters, cut to 100 characters.
pub(super) fn one_line(name: &str) -> String {
    name.chars().filter(|character| !character.is_control()).take(100).collect()
}

/// Text without terminal escape sequences.
fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        if character != '\u{1b}' {
            plain.push(character);
            continue;
        }
        match rest.next() {
            // CSI: parameters, then a final byte.
            Some('[') => {
                rest.find(|character| ('\u{40}'..='\u{7e}').contains(character));
            }
            // OSC: a text, until BEL or ESC.
            Some(']') => {
                let last = rest.find(|character| matches!(character, '\u{7}' | '\u{1b}'));
                if last == Some('\u{1b}') {
                    rest.next();
                }
            }
            _ => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAAAAAC4HznGAAAAC0lEQVR4nGNgAAEAAAYAAf6MZ8gAAAAASUVORK5CYII=";

    fn read(notebook: Value) -> Notebook {
        super::notebook(notebook.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn cells_come_in_order_with_their_outputs() {
        let notebook = read(json!({"nbformat": 4, "cells": [
            {"cell_type": "markdown", "id": "m1", "source": ["# Title\n", "text"],
             "attachments": {"a.png": {"image/png": "AAAA"}}},
            {"cell_type": "code", "execution_count": 3, "source": "print(1)", "outputs": [
                {"output_type": "stream", "name": "stderr", "text": ["\u{1b}[31mred\u{1b}[0m\n"]},
                {"output_type": "execute_result", "data": {"text/plain": "1", "image/png": [&PNG[..40], "\n", &PNG[40..]]}},
                {"output_type": "display_data", "data": {"application/vnd.jupyter.widget-view+json": {"model_id": "x"}}},
                {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["\u{1b}]0;title\u{7}Trace", "line 2"]}
            ]}
        ]}));
        assert_eq!(notebook.cells, 2);
        assert_eq!(notebook.images, [("image/png".to_owned(), PNG.to_owned())]);
        let expected = "--- Cell 1 (markdown) ---\nid: m1\n# Title\ntext\n[attachment a.png: image/png]\n\n\
            --- Cell 2 (code) ---\nexecution count: 3\nprint(1)\n--- Output (stderr) ---\nred\n\
            --- Output ---\n[image 1: image/png]\n1\n\
            --- Output ---\n[widget application/vnd.jupyter.widget-view+json, 16 bytes]\n\
            --- Output (error) ---\nTrace\nline 2\n";
        assert_eq!(notebook.text, expected);
    }

    #[test]
    fn format_3_is_supported() {
        let notebook = read(json!({"nbformat": 3, "worksheets": [{"cells": [
            {"cell_type": "code", "prompt_number": 7, "input": ["1+1"], "outputs": [
                {"output_type": "pyout", "prompt_number": 7, "text": ["2"], "png": PNG},
                {"output_type": "stream", "stream": "stdout", "text": "out"},
                {"output_type": "pyerr", "ename": "NameError", "evalue": "x", "traceback": []}
            ]},
            {"cell_type": "heading", "level": 2, "source": "Part"}
        ]}]}));
        assert!(
            notebook
                .text
                .contains("execution count: 7\n1+1\n--- Output ---\n[image 1: image/png]\n2\n")
        );
        assert!(notebook.text.contains("--- Output (stdout) ---\nout\n"));
        assert!(notebook.text.contains("NameError: x\n"));
        assert!(notebook.text.contains("--- Cell 2 (heading) ---\nPart\n"));
    }

    #[test]
    fn long_outputs_are_cut_with_a_note() {
        let long = "é".repeat(MAX_NOTEBOOK_OUTPUT_CHARS + 5);
        let notebook = read(json!({"cells": [{"cell_type": "code", "source": "", "outputs": [
            {"output_type": "stream", "text": long}
        ]}]}));
        assert!(notebook.text.ends_with("é... [+5 characters]\n"));
    }

    #[test]
    fn content_that_is_no_notebook_is_an_error() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for content in ["{", "[]", "{\"cells\": 3}", "", &deep] {
            assert!(notebook(content.as_bytes()).is_err());
        }
        let odd = json!({"cells": [1, null, "x", {"cell_type": 5, "source": 7, "outputs": {"a": 1}},
                                   {"outputs": [[], {"output_type": "display_data", "data": []}]}]});
        assert_eq!(read(odd).cells, 5);
    }
}
