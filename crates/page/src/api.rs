//! The requests of the page and their answers, as JSON.

use std::sync::Arc;

use http::StatusCode;
use percent_encoding::percent_decode_str;
use pinfold::Journal;
use pinfold_feed::{Answer, AnswerKind, Command, ServerId};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::history::{History, Query, Versions};
use crate::live::{Live, SendError};
use crate::undo::UndoRequest;

/// Answers the page's requests.
pub(crate) struct Api {
    pub(crate) live: Live,
    pub(crate) history: History,
}

/// A status, and a sentence for the user.
pub(crate) type Refusal = (StatusCode, String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeId {
    id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PostedAnswer {
    server: String,
    request: u64,
    answer: AnswerKind,
    message: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DiffRequest {
    server: String,
    request: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PostedPause {
    /// The server, or all servers if there is none.
    server: Option<String>,
    paused: bool,
}

impl Api {
    /// Answers a request that changes nothing. The query is percent-encoded JSON.
    pub(crate) async fn get(self: &Arc<Self>, name: &str, query: &str) -> Result<Value, Refusal> {
        let query = percent_decode_str(query).decode_utf8_lossy().into_owned();
        match name {
            "changes" => {
                let query: Query = parsed(query.as_bytes())?;
                let list = move |history: &History, journals: Vec<Journal>| {
                    Ok(json!(history.changes(&journals, &query)?))
                };
                self.journals(list).await
            }
            "change" => {
                let ChangeId { id } = parsed(query.as_bytes())?;
                let show = move |history: &History, journals: Vec<Journal>| {
                    let (change, diff) = history.show(&journals, &id)?;
                    Ok(json!({"change": change, "diff": diff}))
                };
                self.journals(show).await
            }
            "compare" => {
                let versions: Versions = parsed(query.as_bytes())?;
                let compare = move |history: &History, journals: Vec<Journal>| {
                    Ok(json!(history.compare(&journals, versions)?))
                };
                self.journals(compare).await
            }
            _ => Err((StatusCode::NOT_FOUND, "there is nothing here".into())),
        }
    }

    /// Performs an action of the user.
    pub(crate) async fn post(self: &Arc<Self>, name: &str, body: &[u8]) -> Result<Value, Refusal> {
        match name {
            "answer" => {
                let PostedAnswer { server, request, answer, message } = parsed(body)?;
                let message = message.filter(|message| !message.trim().is_empty());
                let answer = Command::Answer(Answer { request, answer, message });
                self.send(server, answer).await
            }
            "diff" => {
                let DiffRequest { server, request } = parsed(body)?;
                self.send(server, Command::Diff { request }).await
            }
            "pause" => {
                let PostedPause { server, paused } = parsed(body)?;
                let command = if paused { Command::Pause } else { Command::Resume };
                if let Some(server) = server {
                    return self.send(server, command).await;
                }
                let api = self.clone();
                blocking(move || {
                    for server in api.live.servers() {
                        // A server that has ended makes no changes.
                        _ = api.live.send(&server, &command);
                    }
                    Ok(json!({}))
                })
                .await
            }
            "undo" => {
                let request: UndoRequest = parsed(body)?;
                self.journals(move |history, journals| Ok(json!(history.undo(&journals, request)?)))
                    .await
            }
            _ => Err((StatusCode::NOT_FOUND, "there is nothing here".into())),
        }
    }

    async fn send(self: &Arc<Self>, server: String, command: Command) -> Result<Value, Refusal> {
        let api = self.clone();
        blocking(move || match api.live.send(&ServerId::from(server.as_str()), &command) {
            Ok(()) => Ok(json!({})),
            Err(SendError::NoServer) => Err((StatusCode::GONE, "that server has ended".into())),
            Err(SendError::NoRequest) => {
                Err((StatusCode::CONFLICT, "the request was answered already, or has ended".into()))
            }
        })
        .await
    }

    /// Calls a function with the journals, on a thread that may wait.
    async fn journals(
        self: &Arc<Self>,
        work: impl FnOnce(&History, Vec<Journal>) -> Result<Value, String> + Send + 'static,
    ) -> Result<Value, Refusal> {
        let api = self.clone();
        blocking(move || {
            let journals = api.history.journals(api.live.journals());
            work(&api.history, journals).map_err(|why| (StatusCode::UNPROCESSABLE_ENTITY, why))
        })
        .await
    }
}

async fn blocking(
    work: impl FnOnce() -> Result<Value, Refusal> + Send + 'static,
) -> Result<Value, Refusal> {
    let failed = |error| (StatusCode::INTERNAL_SERVER_ERROR, format!("it failed: {error}"));
    tokio::task::spawn_blocking(work).await.map_err(failed)?
}

fn parsed<T: DeserializeOwned>(json: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(json).map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))
}
