//! What a collector is sent: traces that go on, batches that are linked, figures, and no secret; and that a collector
//! which is dead or hangs stops nobody.

use std::collections::BTreeSet;
use std::net::TcpListener;

use opentelemetry_proto::tonic::metrics::v1::{metric, number_data_point};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::collector::{Collector, Manner, attribute};
use crate::pump;
use crate::server::{self, Server, until};

/// A trace in a header, one in `_meta`, and the spans in them.
const HEADER: &str = "0af7651916cd43dd8448eb211c80319c";
const META: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "b7ad6b7169203331";
/// In every place where a caller may put a text of its own.
const SECRET: &str = "hunter2-do-not-send";

fn serve(endpoint: &str, more: &[(&str, &str)]) -> Server {
    let mut environment = vec![("WF_TELEMETRY_OTLP_ENDPOINT", endpoint)];
    environment.extend(more);
    Server::start_with(TempDir::new().unwrap(), &[], &environment)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One call of a tool, in the trace of its headers and its `_meta`.
fn call(server: &Server, headers: &str, meta: &Value, tool: &str, arguments: &Value) {
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    let body = body.to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: 2025-11-25\r\n\
         authorization: Bearer {SECRET}\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let (status, answer) = server::exchange(server.port(), &request).unwrap();
    assert_eq!(status, 200, "{answer}");
}

fn parent(trace: &str) -> String {
    format!("00-{trace}-{CALLER}-01")
}

/// The spans of requests for `tool`.
fn requests(collector: &Collector, tool: &str) -> Vec<Span> {
    let of_tool = |span: &Span| attribute(span, "gen_ai.tool.name").as_deref() == Some(tool);
    collector.spans().into_iter().filter(of_tool).collect()
}

/// The span of the only call of `tool`.
fn only(collector: &Collector, tool: &str) -> Span {
    until(tool, || requests(collector, tool).len() == 1);
    requests(collector, tool).remove(0)
}

#[test]
fn traces_go_on_and_batches_are_linked_and_nothing_secret_leaves() {
    let collector = Collector::start(Manner::Takes);
    let headers = ("OTEL_EXPORTER_OTLP_HEADERS", "x-api-key=for%20the%20collector");
    let slow = ("FAILPOINTS", "commit.before=sleep(20)");
    let server = serve(&collector.endpoint(), &[headers, slow]);
    let in_header = format!("traceparent: {}\r\ntracestate: a=1\r\n", parent(HEADER));

    // By the header; the message says nothing.
    let unknown = json!({"workflow_id": SECRET});
    call(&server, &in_header, &json!({"baggage": format!("k={SECRET}")}), "get_status", &unknown);
    let by_header = only(&collector, "get_status");
    assert_eq!(hex(&by_header.trace_id), HEADER);
    assert_eq!(hex(&by_header.parent_span_id), CALLER);
    assert_eq!(by_header.trace_state, "a=1");
    assert_eq!(
        (by_header.name.as_str(), by_header.kind()),
        ("tools/call get_status", SpanKind::Server)
    );
    let is = |key: &str| attribute(&by_header, key);
    assert_eq!(is("mcp.method.name").as_deref(), Some("tools/call"));
    assert_eq!(is("http.response.status_code").as_deref(), Some("200"));
    assert_eq!(is("error.type").as_deref(), Some("WORKFLOW_NOT_FOUND"));

    // By the message: it wins, and the header's trace is linked.
    let start = json!({
        "procedure_id": "pump-inspection", "assets": {"pump": "PUMP-204"},
        "inputs": {"work_order": SECRET}, "idempotency_key": SECRET,
    });
    let meta = json!({"traceparent": parent(META)});
    call(&server, &in_header, &meta, "start_workflow", &start);
    let by_meta = only(&collector, "start_workflow");
    assert_eq!(hex(&by_meta.trace_id), META);
    let linked: Vec<String> = by_meta.links.iter().map(|link| hex(&link.trace_id)).collect();
    assert_eq!(linked, [HEADER]);
    let children = || {
        let mut spans = collector.spans();
        spans.retain(|span| span.parent_span_id == by_meta.span_id);
        spans
    };
    for name in ["load", "decide", "commit"] {
        until(name, || children().iter().any(|s| s.name == name && hex(&s.trace_id) == META));
    }

    // By nothing that can be read: a trace of its own.
    let broken = json!({"traceparent": "00-0-0-01"});
    call(&server, "traceparent: nonsense\r\n", &broken, "find_work", &json!({}));
    let own = only(&collector, "find_work");
    assert!(own.parent_span_id.is_empty(), "{own:?}");

    batches(&server, &collector);
    server.stop();
    let (service, metrics) = collector.metrics().expect("figures are sent at the end");
    assert_eq!(service, "checkpoint");
    let calls = metrics.iter().find(|metric| metric.name == "checkpoint_tool_calls_total").unwrap();
    let Some(metric::Data::Sum(calls)) = &calls.data else { unreachable!("{calls:?}") };
    let found = calls.data_points.iter().any(|point| {
        point.attributes.iter().any(|a| a.key == "tool" && format!("{a:?}").contains("find_work"))
            && point.value == Some(number_data_point::Value::AsDouble(1.0))
    });
    assert!(found, "{calls:?}");

    for (path, head, body) in collector.sent() {
        assert!(head.contains("x-api-key: for the collector"), "{head}");
        let bytes = body.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
        assert!(!bytes, "{path}: {}", String::from_utf8_lossy(&body));
    }
}

/// Callers at once. The disk is slow in a build for tests, so that one commit to it serves several of them.
fn batches(server: &Server, collector: &Collector) {
    std::thread::scope(|scope| {
        for caller in 0..8 {
            scope.spawn(move || {
                for call in 0..8 {
                    let name = format!("PUMP-{caller}-{call}");
                    pump::start(server, &name, &name);
                }
            });
        }
    });
    until("a batch is linked to two commits and they to it", || {
        let spans = collector.spans();
        let mut batches = spans.iter().filter(|span| span.name == "batch" && span.links.len() > 1);
        batches.any(|batch| is_linked(batch, &spans))
    });
}

/// Whether each link of the batch is the commit of a call in a trace of its own, which links back.
fn is_linked(batch: &Span, spans: &[Span]) -> bool {
    let served = |span: &&Span| batch.links.iter().any(|link| link.span_id == span.span_id);
    let commits: Vec<&Span> = spans.iter().filter(served).collect();
    let traces: BTreeSet<&[u8]> = commits.iter().map(|commit| &*commit.trace_id).collect();
    let back = |commit: &&Span| commit.links.iter().any(|link| link.span_id == batch.span_id);
    batch.parent_span_id.is_empty()
        && traces.len() == batch.links.len()
        && commits.iter().all(|commit| commit.name == "commit" && back(commit))
}

#[test]
fn a_collector_that_is_dead_or_hangs_stops_no_call() {
    // A port that nobody listens at any more.
    let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let hanging = Collector::start(Manner::Hangs);
    for (endpoint, complains) in [(format!("http://{dead}"), true), (hanging.endpoint(), false)] {
        let server = serve(&endpoint, &[]);
        pump::start(&server, "PUMP-204", "k1");
        if complains {
            until("two attempts failed", || failures(&server) > 1);
            pump::start(&server, "PUMP-205", "k2");
            let said = server.log().matches("the collector takes nothing").count();
            assert_eq!(said, 1, "{}", server.log());
        } else {
            until("the collector is asked", || !hanging.sent().is_empty());
            pump::start(&server, "PUMP-205", "k2");
        }
        server.stop();
    }
}

/// Attempts to send spans that failed.
fn failures(server: &Server) -> u64 {
    const COUNTER: &str = "checkpoint_otlp_failures_total{signal=\"traces\"} ";
    let (_, text) = server.get("/metrics").unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(COUNTER));
    value.map_or(0, |value| value.parse().unwrap())
}
