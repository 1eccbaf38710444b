//! What a request leaves behind: log lines and metrics, and nothing that was said.

use std::io::{self, Write};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{EnvFilter, Registry};

use crate::client::call;
use crate::world::World;

#[derive(Debug, Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    fn text(&self) -> String {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// What this process logs from now on, rmcp and hyper included. Of the whole process: which places are worth asking is
/// remembered for all threads together, so a subscriber of one thread may miss lines.
static LINES: LazyLock<Lines> = LazyLock::new(|| {
    let lines = Lines::default();
    let layer = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(lines.clone());
    let subscriber = Registry::default().with(EnvFilter::new("trace")).with(layer);
    tracing::subscriber::set_global_default(subscriber).expect("the only one of this process");
    lines
});

/// Stands in arguments and credentials.
const SAID: &str = "canary-5f1d";
/// Stands wherever else a client may write something.
const SENT: &str = "canary-77aa";

#[tokio::test]
async fn log_lines_tell_the_request_and_nothing_that_was_said() {
    let lines = LazyLock::force(&LINES);
    let world = World::new().await;
    let arguments = json!({"workflow_id": "w", "step_id": "s", "note": SAID, "value": SAID});
    let message = call("submit_step", arguments).to_string();
    let secret = format!("Bearer {SAID}");
    let headers = [("authorization", secret.as_str()), ("x-request-id", "req-77")];
    let answer = world.client().post(&headers, message.as_bytes()).await;
    assert_eq!(answer.result()["isError"], true);
    // Also what is refused before it is a call.
    world.client().post(&headers, SENT.as_bytes()).await;
    world.client().ask("GET", &format!("/{SENT}"), &headers).await;
    let method = json!({"jsonrpc": "2.0", "id": 1, "method": SENT});
    world.post(&method).await;

    let text = lines.text();
    let ours = |line: &&str| line.contains("req-77") && line.contains("answered");
    let line = text.lines().find(ours).expect("a line");
    for part in [
        "id=\"req-77\"",
        "route=\"/mcp\"",
        "method=\"tools/call\"",
        "tool=\"submit_step\"",
        "outcome=\"error\"",
        "code=\"WORKFLOW_NOT_FOUND\"",
        "status=200",
        "ms=",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
    // hyper shows what comes over the wire at its lowest level; rmcp shows messages, but never gets the arguments.
    let above_the_wire = |line: &&str| !line.contains(" hyper::");
    for line in text.lines().filter(above_the_wire) {
        assert!(!line.contains(SAID), "{line}");
        assert!(!line.contains(SENT) || line.contains(" rmcp::"), "{line}");
    }
    assert!(text.contains(" rmcp::"), "rmcp was asked to show everything");
}

static METRICS: LazyLock<PrometheusHandle> = LazyLock::new(|| {
    PrometheusBuilder::new().install_recorder().expect("the only recorder of this process")
});

#[tokio::test]
async fn requests_and_calls_are_counted() {
    let metrics = LazyLock::force(&METRICS);
    let world = World::new().await;
    world.call("find_work", json!({})).await;
    world.call("get_status", json!({"workflow_id": "unknown"})).await;
    world.client().ask("GET", "/nowhere", &[]).await;
    let text = metrics.render();
    for line in [
        "checkpoint_http_requests_total{route=\"/mcp\",status=\"200\"}",
        "checkpoint_http_requests_total{route=\"unknown\",status=\"404\"}",
        "checkpoint_tool_calls_total{tool=\"find_work\",outcome=\"list\",code=\"\",duplicate=\"false\"}",
        "checkpoint_tool_calls_total{tool=\"get_status\",outcome=\"error\",code=\"WORKFLOW_NOT_FOUND\",duplicate=\"false\"}",
        "checkpoint_tool_seconds_count{tool=\"find_work\"}",
        "checkpoint_requests_in_flight",
        "checkpoint_connections",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}
