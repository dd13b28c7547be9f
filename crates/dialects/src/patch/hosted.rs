//! The operations of OpenAI's hosted `apply_patch` tool, which the caller's program performs.

use pinfold::patch::{FilePatch, Patch};
use serde::Deserialize;
use serde_json::Value;

/// An operation from the model's answer.
#[derive(Deserialize)]
#[serde(tag = "type")]
enum Operation {
    #[serde(rename = "create_file")]
    Create { path: String, diff: String },
    #[serde(rename = "update_file")]
    Update { path: String, diff: String },
    #[serde(rename = "delete_file")]
    Delete { path: String },
}

/// The patch that an operation of OpenAI's hosted `apply_patch` tool stands for, as `apply_patch` takes it:
/// `{type: create_file | update_file | delete_file, path, diff}`. The error is for the model.
///
/// ```
/// use pinfold_dialects::hosted_patch;
/// use serde_json::json;
///
/// let patch = hosted_patch(&json!({"type": "delete_file", "path": "a.txt"})).unwrap();
/// assert_eq!(patch, "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch\n");
/// ```
pub fn hosted_patch(operation: &Value) -> Result<String, String> {
    let operation = Operation::deserialize(operation)
        .map_err(|error| format!("this is no operation of apply_patch: {error}"))?;
    let (marker, path, diff) = match &operation {
        Operation::Create { path, diff } => ("Add", path, diff.as_str()),
        Operation::Update { path, diff } => ("Update", path, diff.as_str()),
        Operation::Delete { path } => ("Delete", path, ""),
    };
    let end = if diff.is_empty() || diff.ends_with('\n') { "" } else { "\n" };
    let patch = format!("*** Begin Patch\n*** {marker} File: {path}\n{diff}{end}*** End Patch\n");
    // `apply_patch` refuses text that is not a patch.
    let Ok(parsed) = Patch::parse(&patch) else { return Ok(patch) };
    match parsed.files.as_slice() {
        [FilePatch::Update { move_to: Some(_), .. }] => {
            Err("the diff moves the file, which the operation does not say".into())
        }
        [file] if file.path() == path.trim() => Ok(patch),
        _ => Err("the path and the diff of an operation are about one file".into()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_operation_cannot_reach_another_file() {
        let operation = |kind: &str, path: &str, diff: &str| {
            hosted_patch(&json!({"type": kind, "path": path, "diff": diff}))
        };
        let update = operation("update_file", "a", "@@\n-b\n+c").unwrap();
        assert_eq!(update, "*** Begin Patch\n*** Update File: a\n@@\n-b\n+c\n*** End Patch\n");
        assert!(operation("create_file", "a", "+b\n").is_ok());
        for (kind, path, diff) in [
            ("update_file", "a", "@@\n-b\n*** Delete File: c\n"),
            ("update_file", "a", "*** Move to: c\n@@\n-b\n"),
            ("create_file", "a", "+b\n*** Add File: c\n+d\n"),
            ("delete_file", "a\n*** Delete File: c", ""),
            ("rename_file", "a", ""),
        ] {
            assert!(operation(kind, path, diff).is_err(), "{kind} {path:?} {diff:?}");
        }
        assert!(hosted_patch(&json!({"type": "create_file", "path": "a"})).is_err());
    }
}
