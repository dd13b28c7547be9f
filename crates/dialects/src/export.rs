//! Tool lists in the formats of model providers and clients.

use std::str::FromStr;

use serde_json::{Value, json};

use crate::ToolInfo;

/// The format of a tool list.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Format {
    /// `tools/list` of the Model Context Protocol.
    Mcp,
    /// Functions and custom tools of OpenAI's chat completions.
    OpenAi,
    /// Tools of Anthropic's messages.
    Anthropic,
    /// Function declarations of Gemini.
    Gemini,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 4] = [Self::Mcp, Self::OpenAi, Self::Anthropic, Self::Gemini];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }
}

impl FromStr for Format {
    type Err = String;

    /// Parses a format's name. The error lists the names.
    fn from_str(name: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|format| format.name() == name);
        named.ok_or_else(|| format!("the formats are {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// Lists tools in a format.
pub fn list(tools: &[ToolInfo], format: Format) -> Value {
    let tools = tools.iter();
    match format {
        Format::Mcp => json!({ "tools": tools.map(mcp).collect::<Vec<_>>() }),
        Format::OpenAi => tools.map(open_ai).collect(),
        Format::Anthropic => tools.map(anthropic).collect(),
        Format::Gemini => {
            json!([{ "functionDeclarations": tools.map(gemini).collect::<Vec<_>>() }])
        }
    }
}

/// A name for providers that allow only letters, digits, `_` and `-`. The toolbox accepts this name, too.
pub(crate) fn without_dots(name: &str) -> String {
    name.replace('.', "_")
}

fn mcp(tool: &ToolInfo) -> Value {
    let annotations = tool.entry.annotations;
    let annotations = json!({
        "readOnlyHint": annotations.read_only,
        "destructiveHint": annotations.destructive,
        "idempotentHint": annotations.idempotent,
        "openWorldHint": false,
    });
    let mut listed = json!({
        "name": tool.name(),
        "title": tool.entry.title,
        "description": tool.description(),
        "inputSchema": tool.input(),
    });
    if let Some(output) = tool.output() {
        listed["outputSchema"] = output;
    }
    listed["annotations"] = annotations;
    listed
}

fn open_ai(tool: &ToolInfo) -> Value {
    if let Some((syntax, definition)) = tool.grammar() {
        let grammar = json!({ "syntax": syntax, "definition": definition });
        return json!({
            "type": "custom",
            "custom": {
                "name": tool.entry.name,
                "description": tool.description(),
                "format": { "type": "grammar", "grammar": grammar },
            },
        });
    }
    json!({
        "type": "function",
        "function": {
            "name": without_dots(tool.entry.name),
            "description": tool.description(),
            "parameters": tool.input(),
        },
    })
}

fn anthropic(tool: &ToolInfo) -> Value {
    if let Some(known) = tool.entry.anthropic {
        return known();
    }
    json!({
        "name": without_dots(tool.entry.name),
        "description": tool.description(),
        "input_schema": tool.input(),
    })
}

fn gemini(tool: &ToolInfo) -> Value {
    let mut parameters = tool.input().clone();
    remove_everywhere(&mut parameters, "additionalProperties");
    json!({
        "name": without_dots(tool.entry.name),
        "description": tool.description(),
        "parameters": parameters,
    })
}

/// Removes a key at all levels. Gemini accepts a subset of OpenAPI schemas and refuses unknown keys.
fn remove_everywhere(value: &mut Value, key: &str) {
    match value {
        Value::Object(object) => {
            object.remove(key);
            object.values_mut().for_each(|value| remove_everywhere(value, key));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| remove_everywhere(item, key)),
        _ => {}
    }
}
