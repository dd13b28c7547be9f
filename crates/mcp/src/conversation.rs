//! One client's conversation: its session, and what part of the workspace it is about.

use std::sync::{Arc, Mutex, PoisonError};

use pinfold::Error;
use pinfold_dialects::Toolbox;
use rmcp::model::LoggingLevel;

/// A conversation with one client.
#[derive(Debug)]
pub(crate) struct Conversation {
    /// The tools on the whole workspace.
    whole: Arc<Toolbox>,
    ground: Mutex<Ground>,
    /// Held while the client is asked for its roots.
    pub(crate) asking: tokio::sync::Mutex<()>,
    /// Held by the change at work. Those that wait get it in the order in which they came, so what a
    /// client sends one after the other is done one after the other, however it spells the paths.
    pub(crate) changing: tokio::sync::Mutex<()>,
    level: Mutex<Option<LoggingLevel>>,
}

/// The tools on what the client's roots leave of the workspace, or why there is nothing left.
pub(crate) type Tools = Result<Arc<Toolbox>, Arc<Error>>;

#[derive(Debug, Default)]
struct Ground {
    tools: Option<Tools>,
    /// How often the client has said that its roots are others now, and how often it had when it was
    /// last asked for them.
    changes: u64,
    asked_at: u64,
}

impl Conversation {
    pub(crate) fn new(toolbox: Toolbox) -> Self {
        Self {
            whole: Arc::new(toolbox),
            ground: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
            changing: tokio::sync::Mutex::default(),
            level: Mutex::default(),
        }
    }

    pub(crate) fn whole(&self) -> &Arc<Toolbox> {
        &self.whole
    }

    /// The tools, if it is known what the client's roots leave.
    pub(crate) fn tools(&self) -> Option<Tools> {
        let ground = self.ground();
        if ground.asked_at < ground.changes { None } else { ground.tools.clone() }
    }

    /// What was last known: to fall back on, where the client does not say what is so now.
    pub(crate) fn last_tools(&self) -> Tools {
        self.ground().tools.clone().unwrap_or_else(|| Ok(self.whole.clone()))
    }

    /// The client is asked for its roots now. Changes that it reports from here on come later.
    pub(crate) fn asking_now(&self) -> u64 {
        self.ground().changes
    }

    /// The roots that the client had when it was asked leave this.
    pub(crate) fn settle(&self, tools: Tools, asked_at: u64) -> Tools {
        let mut ground = self.ground();
        ground.asked_at = asked_at;
        ground.tools.insert(tools).clone()
    }

    /// The client's roots are others now.
    pub(crate) fn roots_changed(&self) {
        self.ground().changes += 1;
    }

    pub(crate) fn set_level(&self, level: LoggingLevel) {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
    }

    pub(crate) fn level(&self) -> Option<LoggingLevel> {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ground(&self) -> std::sync::MutexGuard<'_, Ground> {
        self.ground.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
