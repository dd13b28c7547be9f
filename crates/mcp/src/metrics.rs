//! The counters of a server, for Prometheus.

use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// The counters of a server. Labels hold only names that the user chose and words of the protocol, no paths.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    calls: Family<CallLabels, Counter>,
    durations: Family<ToolLabels, Histogram, fn() -> Histogram>,
    refusals: Family<RefusalLabels, Counter>,
    received: Family<WorkspaceLabels, Counter>,
    sent: Family<WorkspaceLabels, Counter>,
    sessions: Family<WorkspaceLabels, Gauge>,
    index_files: Family<WorkspaceLabels, Gauge>,
    index_bytes: Family<WorkspaceLabels, Gauge>,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct WorkspaceLabels {
    workspace: String,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct ToolLabels {
    workspace: String,
    tool: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct CallLabels {
    workspace: String,
    tool: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct RefusalLabels {
    workspace: String,
    status: u16,
}

/// From a small read to the usual deadline, in seconds.
const BUCKETS: [f64; 12] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.01, 0.05, 0.25, 1.0, 5.0, 20.0, 60.0];

/// The size of a workspace's search index, and how many sessions there are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct State {
    pub(crate) sessions: usize,
    pub(crate) index_files: u64,
    pub(crate) index_bytes: u64,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("pinfold");
        let calls = Family::default();
        registry.register("calls", "Calls of tools, by outcome", calls.clone());
        let durations: Family<_, _, fn() -> Histogram> =
            Family::new_with_constructor(|| Histogram::new(BUCKETS));
        let seconds = Unit::Seconds;
        registry.register_with_unit("call_duration", "Time of calls", seconds, durations.clone());
        let refusals = Family::default();
        registry.register("http_refusals", "Requests answered by an error", refusals.clone());
        let (received, sent) = (Family::default(), Family::default());
        registry.register("http_received_bytes", "Bytes of request bodies", received.clone());
        registry.register("http_sent_bytes", "Bytes of response bodies", sent.clone());
        let sessions = Family::default();
        registry.register("http_sessions", "Open HTTP sessions", sessions.clone());
        let (index_files, index_bytes) = (Family::default(), Family::default());
        registry.register("index_files", "Files in the search index", index_files.clone());
        registry.register("index_bytes", "Memory of the search index", index_bytes.clone());
        Self {
            registry,
            calls,
            durations,
            refusals,
            received,
            sent,
            sessions,
            index_files,
            index_bytes,
        }
    }
}

impl Metrics {
    /// Counts an answered call.
    pub(crate) fn called(
        &self,
        workspace: &str,
        tool: &'static str,
        outcome: &'static str,
        taken: Duration,
    ) {
        let workspace = workspace.to_owned();
        let labels = ToolLabels { workspace: workspace.clone(), tool };
        self.durations.get_or_create(&labels).observe(taken.as_secs_f64());
        self.calls.get_or_create(&CallLabels { workspace, tool, outcome }).inc();
    }

    /// Counts a request that was answered by an error.
    pub(crate) fn refused(&self, workspace: &str, status: u16) {
        let workspace = workspace.to_owned();
        self.refusals.get_or_create(&RefusalLabels { workspace, status }).inc();
    }

    /// Counts the body of a request.
    pub(crate) fn received(&self, workspace: &str, bytes: usize) {
        self.received.get_or_create(&of(workspace)).inc_by(bytes as u64);
    }

    /// Counts a part of an answer.
    pub(crate) fn sent(&self, workspace: &str, bytes: usize) {
        self.sent.get_or_create(&of(workspace)).inc_by(bytes as u64);
    }

    /// Sets the gauges. Called before each scrape.
    pub(crate) fn set_state(&self, workspace: &str, state: State) {
        let labels = of(workspace);
        self.sessions.get_or_create(&labels).set(state.sessions as i64);
        self.index_files.get_or_create(&labels).set(state.index_files as i64);
        self.index_bytes.get_or_create(&labels).set(state.index_bytes as i64);
    }

    /// All metrics in OpenMetrics' text format.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        _ = text::encode(&mut text, &self.registry);
        text
    }
}

fn of(workspace: &str) -> WorkspaceLabels {
    WorkspaceLabels { workspace: workspace.to_owned() }
}
