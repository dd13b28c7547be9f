//! Lists that change, and the subscriptions whose clients want to know.
//!
//! Nothing is really added or taken away: the tools here only say that a list is another one now.

use rmcp::model::{CallToolRequestParams, CallToolResult, Tool};
use rmcp::service::SubscriptionContext;
use tokio::sync::watch;

use crate::content::{plain, success};

/// How often each list was said to have changed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lists {
    tools: u64,
    prompts: u64,
}

pub(crate) fn tools() -> Vec<Tool> {
    vec![
        plain("test_trigger_tool_change", "Says that the list of tools has changed."),
        plain("test_trigger_prompt_change", "Says that the list of prompts has changed."),
    ]
}

pub(crate) fn call(
    lists: &watch::Sender<Lists>,
    request: &CallToolRequestParams,
) -> Option<CallToolResult> {
    match &*request.name {
        "test_trigger_tool_change" => lists.send_modify(|lists| lists.tools += 1),
        "test_trigger_prompt_change" => lists.send_modify(|lists| lists.prompts += 1),
        _ => return None,
    }
    Some(success("Whoever listens is told."))
}

/// Tells a client of every change since the lists were as in `told`, until it no longer listens.
pub(crate) async fn tell(
    mut lists: watch::Receiver<Lists>,
    mut told: Lists,
    subscription: &SubscriptionContext,
) {
    let sink = subscription.sink();
    loop {
        let now = *lists.borrow_and_update();
        // The sink refuses what was not asked for, and a client that is gone needs to know no more.
        if now.tools != told.tools {
            _ = sink.notify_tool_list_changed().await;
        }
        if now.prompts != told.prompts {
            _ = sink.notify_prompt_list_changed().await;
        }
        told = now;
        tokio::select! {
            () = subscription.cancelled() => return,
            changed = lists.changed() => if changed.is_err() { return },
        }
    }
}
