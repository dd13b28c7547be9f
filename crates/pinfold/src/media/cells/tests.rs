use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// In the layout of Jupyter.
const NOTEBOOK: &str = r##"{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "m1",
   "metadata": {},
   "source": [
    "# Title\n",
    "text"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 3,
   "id": "c1",
   "metadata": {
    "tags": ["x"]
   },
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": ["1\n"]
    }
   ],
   "source": [
    "print(1)"
   ]
  }
 ],
 "metadata": {},
 "nbformat": 4,
 "nbformat_minor": 5
}
"##;

fn edited(notebook: &str, edit: &CellEdit) -> (String, ChangedCell) {
    let changed = edit_cell(notebook.as_bytes(), edit).unwrap();
    (String::from_utf8(changed.bytes.clone()).unwrap(), changed)
}

fn replace(cell: &str, source: &str, kind: Option<CellKind>) -> CellEdit {
    CellEdit::Replace { cell: cell.into(), source: source.into(), kind }
}

fn insert(after: Option<&str>, source: &str, kind: CellKind) -> CellEdit {
    CellEdit::Insert { after: after.map(str::to_owned), source: source.into(), kind }
}

#[test]
fn only_source_outputs_and_count_of_a_code_cell_change() {
    let (after, changed) = edited(NOTEBOOK, &replace("c1", "x = \"é\"\nx", None));
    let expected = NOTEBOOK
        .replace("\"execution_count\": 3", "\"execution_count\": null")
        .replace("    \"print(1)\"\n", "    \"x = \\\"é\\\"\\n\",\n    \"x\"\n");
    let outputs = expected.find("\"outputs\": [").unwrap() + "\"outputs\": [".len();
    let end = expected.find("   ],\n   \"source\": [\n    \"x =").unwrap() + 3;
    let expected = format!("{}{}", &expected[..outputs], &expected[end..]);
    assert_eq!(after, expected);
    assert!(changed.cleared);
    assert_eq!((changed.number, changed.kind.as_str(), changed.cells), (2, "code", 2));
}

#[test]
fn a_cell_of_another_kind_has_the_members_of_that_kind() {
    let cell = |text: &str, index: usize| {
        serde_json::from_str::<Value>(text).unwrap()["cells"][index].clone()
    };
    let (after, changed) = edited(NOTEBOOK, &replace("c1", "", Some(CellKind::Markdown)));
    let expected =
        json!({"cell_type": "markdown", "id": "c1", "metadata": {"tags": ["x"]}, "source": []});
    assert_eq!(cell(&after, 1), expected);
    assert!(changed.cleared);
    let (after, changed) = edited(NOTEBOOK, &replace("m1", "1", Some(CellKind::Code)));
    assert!(!changed.cleared);
    assert!(after.contains(
        "   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"id\": \"m1\",\n   \"metadata\": {},\n   \
         \"outputs\": [],\n   \"source\": [\n    \"1\"\n   ]\n  },"
    ));
}

#[test]
fn new_cells_are_laid_out_like_the_others() {
    let (after, changed) = edited(NOTEBOOK, &insert(Some("m1"), "a\nb\n", CellKind::Code));
    let id = changed.id.unwrap();
    let cell = format!(
        "  }},\n  {{\n   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"id\": \"{id}\",\n   \
         \"metadata\": {{}},\n   \"outputs\": [],\n   \"source\": [\n    \"a\\n\",\n    \"b\\n\"\n   ]\n  }},\n  {{\n"
    );
    assert!(after.contains(&cell), "{after}");
    assert_eq!(after.replace(&cell, "  },\n  {\n"), NOTEBOOK);

    let spaced = r#"{"cells": [{"cell_type": "raw", "source": "a"}], "nbformat": 4}"#;
    let (after, changed) = edited(spaced, &insert(None, "b\n", CellKind::Raw));
    let first = r#"{"cell_type": "raw", "metadata": {}, "source": "b\n"}"#;
    assert_eq!(after, spaced.replace("[{", &format!("[{first},{{")));
    assert_eq!((changed.number, changed.id), (1, None));

    let empty = "{\n \"cells\": [],\n \"nbformat\": 4,\n \"nbformat_minor\": 2\n}\n";
    let (after, _) = edited(empty, &insert(None, "a", CellKind::Markdown));
    assert_eq!(
        after,
        "{\n \"cells\": [\n  {\n   \"cell_type\": \"markdown\",\n   \"metadata\": {},\n   \"source\": [\n    \
         \"a\"\n   ]\n  }\n ],\n \"nbformat\": 4,\n \"nbformat_minor\": 2\n}\n"
    );
    let (gone, changed) = edited(&after, &CellEdit::Delete { cell: "1".into() });
    assert_eq!((gone.as_str(), changed.cells), (empty, 0));
}

#[test]
fn a_cell_without_an_id_of_its_own_goes_by_its_number() {
    let cell = |id: &str| format!("{{\"cell_type\":\"raw\",{id}\"source\":\"\"}}");
    let cells = ["", "\"id\":\"a\",", "\"id\":\"b\",", "\"id\":\"b\",", "\"id\":\"3\","].map(cell);
    let notebook = format!("{{\"nbformat\":4,\"cells\":[{}]}}", cells.join(","));
    for (name, expected) in [
        ("cell-1", Ok(1)),
        ("1", Ok(1)),
        ("Cell 1", Ok(1)),
        ("a", Ok(2)),
        ("3", Ok(5)),
        ("cell-3", Ok(3)),
        ("4", Ok(4)),
        ("cell-2", Err(vec!["a"])),
        ("b", Err(vec!["cell-3", "cell-4"])),
        ("0", Err(vec![])),
        ("6", Err(vec![])),
        ("zzzz", Err(vec![])),
    ] {
        let edit = CellEdit::Delete { cell: name.into() };
        let found = match edit_cell(notebook.as_bytes(), &edit) {
            Ok(changed) => Ok(changed.number),
            Err(CellProblem::NoCell { near, .. }) => Err(near),
            Err(other) => panic!("{other:?}"),
        };
        let expected =
            expected.map_err(|near| near.into_iter().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn other_formats_are_refused() {
    for (notebook, problem) in [
        ("{", "EOF while parsing"),
        (r#"{"nbformat":3,"worksheets":[{"cells":[]}]}"#, "nbformat 3"),
        (r#"{"worksheets":[{"cells":[]}]}"#, "worksheets"),
        (r#"{"cells":[{"source":""}]}"#, "cell 1 has no `cell_type`"),
        (r#"{"cells":[[]]}"#, "cell 1 has no `cell_type`"),
        (r#"{"a":1}"#, "no cells"),
    ] {
        let edit = CellEdit::Delete { cell: "1".into() };
        match edit_cell(notebook.as_bytes(), &edit) {
            Err(CellProblem::NotANotebook(why)) => assert!(why.contains(problem), "{why}"),
            other => panic!("{notebook}: {:?}", other.map(|changed| changed.number)),
        }
    }
}

/// A cell, in one of the layouts in which programs write JSON.
fn cell_text() -> impl Strategy<Value = String> {
    let source = "[ -~é\n\"\\\\{}\\[\\],:]{0,12}";
    let text = prop_oneof![
        source.prop_map(|source| json!(source)),
        prop::collection::vec(source, 0..3).prop_map(|lines| json!(lines)),
    ];
    let kind = prop::sample::select(vec!["code", "markdown", "raw"]);
    (text, kind, "[a-e]{1,2}", any::<bool>(), 0..3).prop_map(|(source, kind, id, has_id, form)| {
        let mut cell =
            json!({"cell_type": kind, "metadata": {"a": [1, {"b": "]"}]}, "source": source});
        if has_id {
            cell["id"] = id.into();
        }
        if kind == "code" {
            cell["outputs"] = json!([{"text": source}]);
            cell["execution_count"] = 7.into();
        }
        match form {
            0 => cell.to_string(),
            1 => serde_json::to_string_pretty(&cell).unwrap(),
            _ => serde_json::to_string_pretty(&cell).unwrap().replace('\n', "\r\n\t"),
        }
    })
}

proptest! {
    #[test]
    fn every_byte_outside_of_the_cell_stays(
        cells in prop::collection::vec(cell_text(), 1..5),
        index: prop::sample::Index,
        source in "[ -~é\n\"\\\\]{0,20}",
        kind in prop::sample::select(vec![CellKind::Code, CellKind::Markdown, CellKind::Raw]),
        separator in prop::sample::select(vec![",", ", ", ",\n  ", " ,\r\n\t"]),
        action in 0..3,
    ) {
        let index = index.index(cells.len());
        let head = "\u{feff} {\"metadata\": {\"cells\": [1]}, \"nbformat\": 4, \"cells\": [\n  ";
        let tail = "\n ], \"x\": \"cells\"}\n\n";
        let before = cells[..index].join(separator);
        let before = if index > 0 { before + separator } else { before };
        let after = cells[index + 1..].join(separator);
        let after = if index + 1 < cells.len() { separator.to_owned() + &after } else { after };
        let notebook = format!("{head}{before}{}{after}{tail}", cells[index]);
        let name = (index + 1).to_string();
        let edit = match action {
            0 => replace(&name, &source, Some(kind)),
            1 => insert(Some(&name), &source, kind),
            _ => CellEdit::Delete { cell: name },
        };
        // A cell with an id of its own is named by that.
        let edit = match (edit_cell(notebook.as_bytes(), &edit), edit) {
            (Err(CellProblem::NoCell { near, .. }), edit) => match edit {
                CellEdit::Replace { source, kind, .. } => CellEdit::Replace { cell: near[0].clone(), source, kind },
                CellEdit::Insert { source, kind, .. } => CellEdit::Insert { after: near.first().cloned(), source, kind },
                CellEdit::Delete { .. } => CellEdit::Delete { cell: near[0].clone() },
            },
            (_, edit) => edit,
        };
        let (changed, _) = edited(&notebook, &edit);
        let [kept_before, kept_after] = [format!("{head}{before}"), format!("{after}{tail}")];
        if action == 2 {
            // Its separator is removed with it.
            let kept = if index > 0 {
                [kept_before.strip_suffix(separator).unwrap().to_owned(), kept_after].concat()
            } else if cells.len() > 1 {
                [kept_before, kept_after.strip_prefix(separator).unwrap().to_owned()].concat()
            } else {
                [kept_before.trim_end(), kept_after.trim_start()].concat()
            };
            prop_assert_eq!(&changed, &kept);
        } else {
            let kept_before = if action == 1 { kept_before + &cells[index] } else { kept_before };
            prop_assert!(changed.starts_with(&kept_before), "{}", changed);
            prop_assert!(changed.ends_with(&kept_after), "{}", changed);
        }
        let parsed = |text: &str| serde_json::from_str::<Value>(text.trim_start_matches('\u{feff}')).unwrap();
        let mut expected: Vec<Value> = cells.iter().map(|cell| parsed(cell)).collect();
        let now = parsed(&changed)["cells"].as_array().unwrap().clone();
        let at = if action == 1 { index + 1 } else { index };
        match action {
            0 => expected[index] = now[at].clone(),
            1 => expected.insert(at, now[at].clone()),
            _ => { expected.remove(index); }
        }
        prop_assert_eq!(&now, &expected);
        if action < 2 {
            let text = match &now[at]["source"] {
                Value::Array(lines) => lines.iter().map(|line| line.as_str().unwrap()).collect(),
                other => other.as_str().unwrap().to_owned(),
            };
            prop_assert_eq!(text, source);
            prop_assert_eq!(now[at]["cell_type"].as_str(), Some(kind.name()));
        }
    }
}
