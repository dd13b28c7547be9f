//! The types of the packages' options, arguments and results are generated from the schemas, and committed with the
//! packages' sources. `PINFOLD_BLESS=1 cargo test -p pinfold-embed --test types` writes them.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::fmt::Write as _;
use std::path::Path;

use pinfold::Settings;
use pinfold_dialects::{core_dialects, every_dialect, tools_of};
use pinfold_embed::NameStyle;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// Compares a generated file with the committed one, or writes it.
fn check(path: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if std::env::var_os("PINFOLD_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == text,
        "{} is not up to date; run this test with `PINFOLD_BLESS=1`",
        path.display()
    );
}

fn settings() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    settings.into_generator().into_root_schema_for::<Settings>().to_value()
}

/// The properties of an object, each with its schema and whether it must be there.
fn properties(schema: &Value) -> Vec<(&String, &Value, bool)> {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let properties = schema["properties"].as_object().unwrap();
    properties
        .iter()
        .map(|(name, property)| (name, property, required.contains(&Value::from(name.as_str()))))
        .collect()
}

/// The alternatives of a schema, or the schema itself.
fn alternatives(schema: &Value) -> Vec<Value> {
    let listed = ["anyOf", "oneOf"].iter().find_map(|key| schema[key].as_array());
    if let Some(listed) = listed {
        return listed.iter().flat_map(alternatives).collect();
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(|value| serde_json::json!({ "const": value })).collect();
    }
    match &schema["type"] {
        Value::Array(types) => types
            .iter()
            .map(|kind| {
                let mut one = schema.clone();
                one["type"] = kind.clone();
                one
            })
            .collect(),
        _ => vec![schema.clone()],
    }
}

/// The values of the option `dialect`, as strings of the language.
fn dialect_names() -> Vec<String> {
    let names = every_dialect().iter().map(|dialect| dialect.name).chain(["all"]);
    names.map(|name| format!("\"{name}\"")).collect()
}

/// The lines of a property's comment: description, values, default.
fn doc_lines(schema: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    let text = schema["description"].as_str().unwrap_or_default();
    let first_paragraph = text.split("\n\n").next().unwrap_or_default();
    if !first_paragraph.is_empty() {
        lines.push(first_paragraph.replace('\n', " "));
    }
    for one in alternatives(schema) {
        if let (false, Some(text)) = (one["const"].is_null(), one["description"].as_str()) {
            lines.push(format!(
                "`{}`: {}",
                one["const"].as_str().unwrap(),
                text.replace('\n', " ")
            ));
        }
    }
    match &schema["default"] {
        Value::Null | Value::Object(_) => {}
        default => lines.push(format!("Default: `{default}`.")),
    }
    lines
}

mod typescript {
    use super::*;

    fn type_of(schema: &Value, indent: usize) -> String {
        let mut names: Vec<String> = Vec::new();
        for one in alternatives(schema) {
            let name = match (&one["const"], one["type"].as_str()) {
                (Value::Null, Some("string")) => "string".into(),
                (Value::Null, Some("integer" | "number")) => "number".into(),
                (Value::Null, Some("boolean")) => "boolean".into(),
                (Value::Null, Some("null")) => "null".into(),
                (Value::Null, Some("array")) => {
                    format!("Array<{}>", type_of(&one["items"], indent))
                }
                (Value::Null, Some("object")) => {
                    let end = " ".repeat(indent);
                    format!("{{\n{}{end}}}", fields(&one, indent + 2, NameStyle::Snake))
                }
                (Value::Null, other) => panic!("{other:?} in {one}"),
                (value, _) => value.to_string(),
            };
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.join(" | ")
    }

    fn fields(schema: &Value, indent: usize, style: NameStyle) -> String {
        let mut text = String::new();
        let blank = " ".repeat(indent);
        for (name, property, required) in properties(schema) {
            doc(&mut text, &doc_lines(property), &blank);
            let plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
            let name = if plain { style.spell(name) } else { format!("\"{name}\"") };
            let mark = if required { "" } else { "?" };
            let kind = type_of(property, indent);
            // A null means that the field is left out.
            let kind = if required {
                kind
            } else {
                format!("{} | null | undefined", kind.trim_end_matches(" | null"))
            };
            writeln!(text, "{blank}{name}{mark}: {kind};").unwrap();
        }
        text
    }

    fn doc(text: &mut String, lines: &[String], blank: &str) {
        // A pattern in the text must not end the comment.
        let lines: Vec<_> = lines.iter().map(|line| line.replace("*/", "*\\/")).collect();
        match lines.as_slice() {
            [] => {}
            [line] => writeln!(text, "{blank}/** {line} */").unwrap(),
            lines => {
                writeln!(text, "{blank}/**").unwrap();
                for line in lines {
                    writeln!(text, "{blank} * {line}").unwrap();
                }
                writeln!(text, "{blank} */").unwrap();
            }
        }
    }

    /// `file.read`, `read_file` and `Read` as names of types.
    fn type_name(tool: &str) -> String {
        let parts = tool.split(['.', '_']);
        parts.map(|part| part[..1].to_uppercase() + &part[1..]).collect()
    }

    pub(super) fn module() -> String {
        let mut text = String::from(
            "// Generated from Pinfold's schemas by `cargo test -p pinfold-embed --test types`. Do not edit.\n\n",
        );
        doc(&mut text, &["The settings of the configuration file, in camelCase.".into()], "");
        writeln!(
            text,
            "export interface Settings {{\n{}}}\n",
            fields(&settings(), 2, NameStyle::Camel)
        )
        .unwrap();
        doc(&mut text, &["A family of tools; `all` means the first three.".into()], "");
        writeln!(text, "export type Dialect = {};\n", dialect_names().join(" | ")).unwrap();
        let tools = tools_of(&core_dialects());
        for tool in &tools {
            doc(&mut text, &[format!("The arguments of `{}`.", tool.entry.name)], "");
            let name = type_name(tool.entry.name);
            writeln!(
                text,
                "export interface {name}Args {{\n{}}}\n",
                fields(tool.input(), 2, NameStyle::Snake)
            )
            .unwrap();
            if let Some(output) = tool.output() {
                doc(&mut text, &[format!("The result of `{}`.", tool.entry.name)], "");
                writeln!(
                    text,
                    "export interface {name}Data {{\n{}}}\n",
                    fields(&output, 2, NameStyle::Snake)
                )
                .unwrap();
            }
        }
        doc(&mut text, &["The arguments of every tool, by tool name.".into()], "");
        text.push_str("export interface ToolArgs {\n");
        for tool in &tools {
            writeln!(text, "  \"{}\": {}Args;", tool.entry.name, type_name(tool.entry.name))
                .unwrap();
        }
        text.push_str("}\n\n");
        doc(
            &mut text,
            &["The results of the tools that return an object, by tool name.".into()],
            "",
        );
        text.push_str("export interface ToolData {\n");
        for tool in tools.iter().filter(|tool| tool.output().is_some()) {
            writeln!(text, "  \"{}\": {}Data;", tool.entry.name, type_name(tool.entry.name))
                .unwrap();
        }
        text.push_str("}\n");
        text
    }
}

mod python {
    use super::*;

    fn type_of(schema: &Value) -> String {
        let mut literals: Vec<String> = Vec::new();
        let mut names: Vec<String> = Vec::new();
        for one in alternatives(schema) {
            let name = match (&one["const"], one["type"].as_str()) {
                (Value::Null, Some("string")) => "str".into(),
                (Value::Null, Some("integer")) => "int".into(),
                (Value::Null, Some("boolean")) => "bool".into(),
                (Value::Null, Some("null")) => "None".into(),
                (Value::Null, Some("array")) => format!("list[{}]", type_of(&one["items"])),
                (Value::Null, other) => panic!("{other:?} in {one}"),
                (value, _) => {
                    literals.push(value.to_string());
                    continue;
                }
            };
            names.push(name);
        }
        if !literals.is_empty() {
            names.insert(0, format!("Literal[{}]", literals.join(", ")));
        }
        names.join(" | ")
    }

    fn class(text: &mut String, name: &str, about: &str, schema: &Value) {
        writeln!(text, "\n\nclass {name}(TypedDict, total=False):\n    \"\"\"{about}\"\"\"")
            .unwrap();
        for (key, property, _) in properties(schema) {
            text.push('\n');
            for line in doc_lines(property) {
                writeln!(text, "    # {line}").unwrap();
            }
            let kind = match key.as_str() {
                "permissions" => "Permissions".into(),
                // In the schema, a path is a string.
                "audit" | "journal" | "memory" => {
                    type_of(property).replace("str", "str | PathLike[str]")
                }
                _ => type_of(property),
            };
            writeln!(text, "    {key}: {kind}").unwrap();
        }
    }

    pub(super) fn module() -> String {
        let mut text = String::from(
            "\"\"\"The settings, by their names in the configuration file.\n\n\
             Generated from Pinfold's schemas by `cargo test -p pinfold-embed --test types`. Do not edit.\n\
             \"\"\"\n\nfrom __future__ import annotations\n\nfrom os import PathLike\nfrom typing import Literal, TypeAlias, TypedDict\n",
        );
        let names = dialect_names().join(",\n    ");
        text.push_str("\n# A family of tools; `all` means the first three.\n");
        writeln!(text, "Dialect: TypeAlias = Literal[\n    {names},\n]").unwrap();
        let settings = settings();
        let permissions = &settings["properties"]["permissions"];
        class(&mut text, "Permissions", "The permission mode and rules.", permissions);
        class(&mut text, "Settings", "The settings.", &settings);
        text
    }
}

#[test]
fn typescript_types_are_those_of_the_schemas() {
    check("packages/node/src/generated.ts", &typescript::module());
}

#[test]
fn python_types_are_those_of_the_schemas() {
    check("packages/python/python/pinfold/_settings.py", &python::module());
}
