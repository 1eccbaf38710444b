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
pub(crate) struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    pub(crate) fn text(&self) -> String {
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
pub(crate) static LINES: LazyLock<Lines> = LazyLock::new(|| {
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
    // rmcp shows messages, but never gets the arguments.
    for line in text.lines() {
        assert!(!line.contains(SAID), "{line}");
        assert!(!line.contains(SENT) || line.contains(" rmcp::"), "{line}");
    }
    assert!(text.contains(" rmcp::"), "rmcp was asked to show everything");
}

/// Stands in everything that may prove an identity, wherever a client may put it.
const SECRET: &str = "canary-c4f3";

#[tokio::test]
async fn credentials_are_in_no_log_line_and_in_no_answer() {
    let lines = LazyLock::force(&LINES);
    let world = World::with(|config| config.trusted_proxies = vec!["127.0.0.1".to_owned()]).await;
    let bearer = format!("Bearer {SECRET}");
    let signed = format!("Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJ{SECRET}In0.");
    let cookie = format!("session={SECRET}");
    let origin = format!("https://{SECRET}.example");
    let tracing = format!("00-{SECRET}-b7ad6b7169203331-01");
    let body = call("find_work", json!({})).to_string();
    let mut answers = Vec::new();
    for (name, value) in [
        ("authorization", bearer.as_str()),
        ("authorization", &signed),
        ("proxy-authorization", &bearer),
        ("cookie", &cookie),
        ("x-api-key", SECRET),
        ("x-amz-security-token", SECRET),
        ("origin", &origin),
        ("host", &format!("{SECRET}.example")),
        ("host", &format!("user:{SECRET}@localhost")),
        ("x-request-id", &format!("{SECRET} {SECRET}")),
        ("traceparent", &tracing),
        ("x-forwarded-for", SECRET),
        ("forwarded", &format!("for={SECRET}")),
        ("mcp-session-id", SECRET),
        ("content-type", &format!("application/json; boundary={SECRET}")),
        ("accept", &format!("application/json, text/{SECRET}")),
    ] {
        answers.push(world.client().post(&[(name, value)], body.as_bytes()).await);
    }
    // In the target, where RFC 6750 section 2.3 once had it, and as a method.
    for target in [
        format!("/mcp?access_token={SECRET}"),
        format!("/{SECRET}"),
        format!("/healthz?token={SECRET}"),
        format!("http://user:{SECRET}@localhost/mcp"),
    ] {
        answers.push(world.client().ask("GET", &target, &[]).await);
    }
    answers.push(world.client().ask(&SECRET.to_uppercase(), "/mcp", &[]).await);
    // In the head of a request that is none.
    for raw in [
        format!("GET / HTTP/1.1\r\nhost: localhost\r\nauthorization {SECRET}\r\n\r\n"),
        format!("GET / HTTP/{SECRET}\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nhost: localhost\nauthorization: Bearer {SECRET}\r\n\r\n"),
    ] {
        answers.push(world.client().raw(raw.as_bytes()).await);
    }
    let text = lines.text().to_lowercase();
    for line in text.lines() {
        assert!(!line.contains(SECRET), "{line}");
    }
    for answer in answers {
        let shown = format!("{answer:?} {}", String::from_utf8_lossy(&answer.body)).to_lowercase();
        // An id that a client made up itself is returned to it; every other echo is one too many.
        assert!(!shown.contains(SECRET), "{shown}");
    }
    assert!(text.contains("client=127.0.0.1"), "where a request comes from is told");
}

#[tokio::test]
async fn nobody_can_write_lines_or_colours_into_the_log() {
    let lines = LazyLock::force(&LINES);
    let world = World::new().await;
    let bad = "canary-0b9a\u{1b}[31m\r\nINFO forged";
    let message = json!({"jsonrpc": "2.0", "id": bad, "method": bad, "params": {"name": bad}});
    world.post(&message).await;
    let arguments = json!({"workflow_id": bad, "step_id": bad, "value": bad, "note": bad});
    world.client().tool("submit_step", arguments).await;
    world.client().tool(bad, json!({})).await;
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "find_work", "_meta": {"checkpoint/locale": bad, "progressToken": bad}}});
    world.post(&message).await;
    let text = lines.text();
    assert!(text.contains("canary-0b9a"), "rmcp was asked to show everything");
    // What rmcp tells of a message it tells as it is, over several lines; `wf-cli` escapes it (its tests in `records`).
    let ours = |line: &&str| line.starts_with("20") && !line.contains(" rmcp::");
    for line in text.lines().filter(ours) {
        assert!(!line.contains("canary-0b9a"), "{line:?}");
        assert!(!line.contains('\u{1b}'), "an escape is in the log as it was sent: {line:?}");
    }
}

pub(crate) static METRICS: LazyLock<PrometheusHandle> = LazyLock::new(|| {
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
        "checkpoint_tool_calls_total{tenant=\"default\",tool=\"find_work\",outcome=\"list\",code=\"\",duplicate=\"false\"}",
        "checkpoint_tool_calls_total{tenant=\"default\",tool=\"get_status\",outcome=\"error\",code=\"WORKFLOW_NOT_FOUND\",duplicate=\"false\"}",
        "checkpoint_tool_seconds_count{tool=\"find_work\"}",
        "checkpoint_requests_in_flight",
        "checkpoint_connections",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}
