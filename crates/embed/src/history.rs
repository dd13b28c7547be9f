//! Checkpoints and rewind. They are not tools: programs can call them, and models cannot, by any name.

use pinfold::operations::{Rewind, RewindScope, Rewound};
use pinfold::{CallOptions, Error, Receipt, Session};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckpointArgs {
    #[serde(default)]
    label: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RewindArgs {
    to: String,
    #[serde(default)]
    everybody: bool,
    #[serde(default)]
    leave_out_conflicts: bool,
}

/// Adds a checkpoint: `{label}`. Returns `{id}` as JSON text in the form of a tool's result.
pub(crate) fn checkpoint(session: &Session, arguments: &Value) -> String {
    text(parse(arguments).and_then(|CheckpointArgs { label }| {
        let id = session.checkpoint(&label)?;
        Ok(json!({ "id": id }))
    }))
}

/// Undoes all changes since a checkpoint or a change: `{to, everybody, leave_out_conflicts}`.
pub(crate) fn rewind(session: &Session, arguments: &Value, options: &CallOptions) -> String {
    text(parse(arguments).and_then(|args| revert(session, args, options)))
}

fn text(done: Result<Value, Error>) -> String {
    match done {
        Ok(data) => json!({ "success": true, "data": data }),
        Err(error) => json!({
            "success": false,
            "error": error.with_hint(),
            "metadata": { "code": pinfold_dialects::code(&error) },
        }),
    }
    .to_string()
}

fn parse<T: DeserializeOwned>(arguments: &Value) -> Result<T, Error> {
    T::deserialize(arguments).map_err(|error| Error::InvalidArgument(error.to_string()))
}

fn revert(session: &Session, args: RewindArgs, options: &CallOptions) -> Result<Value, Error> {
    let scope = if args.everybody { RewindScope::AllSessions } else { RewindScope::OwnSession };
    let rewind =
        Rewind::to(args.to).with_scope(scope).with_leave_out_conflicts(args.leave_out_conflicts);
    let done = session.audited(
        &options.clone().with_tool("rewind"),
        |call| session.perform_with(&rewind, call),
        |done| (done.as_ref().map_or_else(pinfold_dialects::code, |_| "ok"), 0),
    )?;
    Ok(data(&done.outcome, &done.receipt, args.leave_out_conflicts))
}

fn data(rewound: &Rewound, receipt: &Receipt, leave_out_conflicts: bool) -> Value {
    let files = rewound.files.iter().map(|file| {
        let (added, removed) = file.lines.unzip();
        json!({
            "path": file.path,
            "what": file.what,
            "back_to": file.back_to,
            "lines_added": added,
            "lines_removed": removed,
        })
    });
    let conflicts = rewound.conflicts.iter();
    let conflicts = conflicts.map(|it| json!({ "path": it.path, "why": it.why }));
    let refused = !rewound.conflicts.is_empty() && !leave_out_conflicts;
    json!({
        "done": !refused && !receipt.dry_run,
        "dry_run": receipt.dry_run,
        "id": receipt.id,
        "changes": rewound.changes,
        "files": files.collect::<Vec<_>>(),
        "conflicts": conflicts.collect::<Vec<_>>(),
    })
}
