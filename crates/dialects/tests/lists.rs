//! Tool lists, as clients and model providers get them.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]

use pinfold::Session;
use pinfold_dialects::{CLASSIC, Format, Toolbox, dialects, list, tools_of};
use serde_json::Value;

fn toolbox() -> Toolbox {
    Toolbox::new(Session::open([env!("CARGO_MANIFEST_DIR")]).unwrap(), &dialects())
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

/// Every schema within `schema`, itself included.
fn schemas(schema: &Value) -> Vec<&Value> {
    let properties = schema["properties"].as_object();
    let below = properties.into_iter().flat_map(|properties| properties.values());
    let below = below.chain(schema.get("items")).flat_map(schemas);
    std::iter::once(schema).chain(below).collect()
}

#[test]
fn models_are_not_led_astray_by_schemas() {
    for tool in toolbox().tools() {
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
        let changes = changes.iter().chain(&["file.delete", "write_file", "Move", "file.move"]);
        let reads = !changes.copied().any(|name| name == tool.entry.name);
        assert_eq!(tool.entry.hints.read_only, reads, "{}", tool.entry.name);
        assert_eq!(tool.entry.hints.destructive, !reads, "{}", tool.entry.name);
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
fn the_default_list_is_short() {
    let list = list(&tools_of(&[&CLASSIC]), Format::Mcp).to_string();
    assert!(list.len() <= 6_600, "{} bytes are paid for in every conversation", list.len());
}
