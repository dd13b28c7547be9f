//! Pinfold's tools as agents call them.
//!
//! A [`Dialect`] is a family of tools with its own names, arguments, answers and error codes; all of
//! them perform the same operations of the engine. A [`Toolbox`] serves one or more dialects on a
//! session: JSON in, an [`Answer`] out, and never an error or a panic.
//!
//! ```
//! use pinfold::Session;
//! use pinfold_dialects::{DOTTED, Toolbox};
//! use serde_json::json;
//!
//! # let dir = tempfile::tempdir()?;
//! let toolbox = Toolbox::new(Session::open([dir.path()])?, &[&DOTTED]);
//! let answer = toolbox.call("file.write", json!({"path": "a.txt", "content": "hello\n"}));
//! assert_eq!(answer.to_json(), json!({"success": true, "bytes_written": 6}));
//!
//! let answer = toolbox.call("file.read", json!({"path": "b.txt"}));
//! assert_eq!(answer.to_json()["error"], "file_not_found");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod answer;
mod args;
mod attachment;
mod change_summary;
mod classic;
mod code;
mod dialect;
mod dotted;
mod editor;
mod export;
mod file_commands;
mod gemini;
mod hint;
mod limits;
mod matches;
mod memory;
mod names;
mod opencode;
mod patch;
mod phrases;
mod portable_names;
mod reference;
mod schema;
mod scoped;
mod tool;
mod tool_context;
mod toolbox;
mod toolset;

pub use answer::{Answer, Block, Blocks, Image, Resource, ToolResult};
pub use classic::CLASSIC;
pub use code::code;
pub use dialect::{Dialect, core_dialects, every_dialect, named_dialects};
pub use dotted::DOTTED;
pub use editor::{EDITOR, EDITOR_20250124};
pub use export::{Format, list};
pub use gemini::GEMINI;
pub use memory::{MEMORY, check_settings};
pub use opencode::OPENCODE;
pub use patch::{APPLY, PATCH, hosted_patch};
pub use reference::REFERENCE;
pub use scoped::SCOPED;
pub use tool::{Annotations, ToolEntry};
pub use toolbox::{
    FrontEndHint, Performed, PreparedCall, ToolInfo, Toolbox, portable_tools_of, tools_of,
};
pub use toolset::TOOLSET;

pub(crate) use tool::Tool;
pub(crate) use tool_context::ToolContext;
