//! Tool lists, as clients and model providers get them.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]

use pinfold::Session;
use pinfold_dialects::{
    CLASSIC, EDITOR, EDITOR_20250124, Format, PATCH, REFERENCE, Toolbox, core_dialects,
    every_dialect, list, named_dialects, portable_tools_of, tools_of,
};
use serde_json::{Value, json};

fn toolbox() -> Toolbox {
    Toolbox::new(Session::open([env!("CARGO_MANIFEST_DIR")]).unwrap(), &core_dialects())
}

#[test]
fn every_format_is_as_it_was() {
    for (name, format) in [
        ("mcp", Format::Mcp),
        ("openai", Format::OpenAi),
        ("anthropic", Format::Anthropic),
        ("gemini", Format::Gemini),
    ] {
        insta::assert_json_snapshot!(name, list(toolbox().tools(), format));
    }
}

#[test]
fn every_other_dialect_is_listed_as_it_was() {
    for dialect in &every_dialect()[core_dialects().len()..] {
        let name = format!("mcp-{}", dialect.name);
        insta::assert_json_snapshot!(name, list(&tools_of(&[dialect]), Format::Mcp));
    }
}

/// Every schema within `schema`, itself included.
fn schemas(schema: &Value) -> Vec<&Value> {
    let properties = schema["properties"].as_object();
    let below = properties.into_iter().flat_map(|properties| properties.values());
    let below = below.chain(schema.get("items")).flat_map(schemas);
    std::iter::once(schema).chain(below).collect()
}

#[test]
fn models_are_not_led_astray_by_schemas() {
    for tool in &tools_of(every_dialect()) {
        let name = tool.entry.name;
        assert!(!tool.description().is_empty(), "{name}");
        for schema in schemas(tool.input()) {
            for noise in ["title", "format", "$schema", "$ref", "$defs", "anyOf", "default"] {
                assert!(schema.get(noise).is_none(), "{name}: {noise} in {schema}");
            }
            assert!(schema["type"].is_string(), "{name}: {schema}");
        }
        assert_eq!(tool.input()["additionalProperties"], false, "{name}");
        for (argument, schema) in tool.input()["properties"].as_object().unwrap() {
            assert!(schema["description"].is_string(), "{name}: {argument}");
        }
    }
}

#[test]
fn only_tools_that_change_nothing_say_so() {
    for tool in toolbox().tools() {
        let changes = ["Write", "Edit", "MultiEdit", "Delete", "file.write", "file.patch"];
        let changes = changes.iter().chain(&[
            "file.delete",
            "write_file",
            "Move",
            "file.move",
            "NotebookEdit",
        ]);
        let reads = !changes.copied().any(|name| name == tool.entry.name);
        assert_eq!(tool.entry.annotations.read_only, reads, "{}", tool.entry.name);
        assert_eq!(tool.entry.annotations.destructive, !reads, "{}", tool.entry.name);
    }
}

#[test]
fn providers_that_know_no_dots_get_names_that_are_known_again() {
    let toolbox = toolbox();
    for tool in list(toolbox.tools(), Format::OpenAi).as_array().unwrap() {
        let name = tool["function"]["name"].as_str().unwrap();
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{name}");
        let answer = toolbox.call(name, Value::Null).to_json();
        assert!(!answer.to_string().contains("there is no tool"), "{name}: {answer}");
    }
}

#[test]
fn lists_are_short() {
    for (dialect, bytes) in [(&CLASSIC, 7_600), (&REFERENCE, 9_000)] {
        let list = list(&tools_of(&[dialect]), Format::Mcp).to_string();
        assert!(list.len() <= bytes, "{} bytes are paid for in every conversation", list.len());
    }
}

#[test]
fn the_editor_is_listed_as_the_tool_that_models_know() {
    let listed = |dialect| list(&tools_of(&[dialect]), Format::Anthropic);
    let name = "str_replace_based_edit_tool";
    let entry = json!({"type": "text_editor_20250728", "name": name, "max_characters": 16_000});
    assert_eq!(listed(&EDITOR), json!([entry]));
    let entry = json!({"type": "text_editor_20250124", "name": "str_replace_editor"});
    assert_eq!(listed(&EDITOR_20250124), json!([entry]));
    for dialect in [&EDITOR, &EDITOR_20250124] {
        let list = list(&tools_of(&[dialect]), Format::Mcp).to_string();
        assert!(list.len() <= 2_000, "{} bytes are paid for in every conversation", list.len());
    }
}

#[test]
fn a_patch_is_a_custom_tool_with_its_grammar() {
    let tools = list(&tools_of(&[&PATCH]), Format::OpenAi);
    let custom = &tools[0]["custom"];
    assert_eq!((&tools[0]["type"], &custom["name"]), (&json!("custom"), &json!("apply_patch")));
    let grammar = &custom["format"]["grammar"];
    assert_eq!(grammar["syntax"], "lark");
    assert!(grammar["definition"].as_str().unwrap().starts_with("// One patch"));
    assert_eq!(tools[1]["type"], "function");
    // A framework that knows functions only gets one.
    let portable = list(&portable_tools_of(&[&PATCH]), Format::OpenAi);
    assert_eq!(portable[0]["function"]["parameters"]["required"], json!(["input"]));
}

#[test]
fn dialects_that_share_a_name_are_not_served_together() {
    assert!(named_dialects(["all"]).is_ok());
    assert!(named_dialects(["classic", "editor", "editor-20250124"]).is_ok());
    for pair in [
        ["scoped", "patch"],
        ["scoped", "reference"],
        ["toolset", "opencode"],
        ["patch", "opencode"],
    ] {
        let refused = named_dialects(pair).unwrap_err();
        assert!(refused.contains("both have a tool `"), "{refused}");
    }
    assert!(named_dialects(["apply"]).is_err());
    let unknown = named_dialects(["latin"]).unwrap_err();
    assert!(unknown.contains("the dialects are classic, dotted, scoped, "), "{unknown}");
}
