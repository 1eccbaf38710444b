//! What may leave in a span: the attributes listed here, under the names that OpenTelemetry has for them. Whatever else a
//! span carries stays here, so that no secret, no reading and no text of a person leaves because somebody traced it.
//!
//! Names are those of the semantic conventions of MCP (which are in development), HTTP and errors; `checkpoint.*` are our
//! own. docs/observability.md has the same table.

use opentelemetry::trace::{SpanKind, Status};
use opentelemetry::{KeyValue, Value};
use opentelemetry_sdk::trace::{SpanData, SpanEvents};

/// A field of our spans, and the attribute that it becomes.
pub(super) const LISTED: &[(&str, &str)] = &[
    ("method", "mcp.method.name"),
    ("tool", "gen_ai.tool.name"),
    ("http", "http.request.method"),
    ("route", "http.route"),
    ("http.response.status_code", "http.response.status_code"),
    ("code", "error.type"),
    ("id", "checkpoint.request_id"),
    ("tenant", "checkpoint.tenant"),
    ("outcome", "checkpoint.outcome"),
    ("size", "checkpoint.batch_size"),
    ("sink", "checkpoint.sink"),
];

/// Codes of errors that are nobody's but the server's.
const OURS: &[&str] = &["INTERNAL", "BACKEND_UNAVAILABLE"];

/// The span as it may leave.
pub(super) fn listed(mut span: SpanData) -> SpanData {
    // No span of ours has events; those of libraries have texts.
    span.events = SpanEvents::default();
    if matches!(span.status, Status::Error { .. }) {
        span.status = Status::error("");
    }
    span.attributes = span.attributes.into_iter().filter_map(renamed).collect();
    match &*span.name {
        "request" => request(&mut span),
        "deliver" => span.span_kind = SpanKind::Client,
        _ => {}
    }
    span
}

fn renamed(attribute: KeyValue) -> Option<KeyValue> {
    let (_, name) = LISTED.iter().find(|(field, _)| *field == attribute.key.as_str())?;
    Some(KeyValue::new(*name, attribute.value))
}

fn text<'a>(span: &'a SpanData, name: &str) -> Option<std::borrow::Cow<'a, str>> {
    span.attributes.iter().find(|a| a.key.as_str() == name).map(|a| a.value.as_str())
}

/// A request is the server's half of an MCP call: `tools/call get_status`. What is no MCP is HTTP: `GET /healthz`.
fn request(span: &mut SpanData) {
    span.span_kind = SpanKind::Server;
    let method = text(span, "mcp.method.name");
    let tool = text(span, "gen_ai.tool.name");
    let route = text(span, "http.route");
    let lines = route.as_deref() == Some("stdio");
    let failed = text(span, "error.type").is_some_and(|code| OURS.contains(&&*code));
    let name = match (&method, &tool) {
        (Some(method), Some(tool)) => format!("{method} {tool}"),
        (Some(method), None) => method.to_string(),
        (None, _) => {
            let verb = text(span, "http.request.method");
            format!("{} {}", verb.as_deref().unwrap_or("request"), route.as_deref().unwrap_or(""))
        }
    };
    let calls_tool = tool.is_some();
    span.name = name.trim_end().to_owned().into();
    if lines {
        span.attributes.retain(|a| a.key.as_str() != "http.route");
    }
    if calls_tool {
        span.attributes.push(KeyValue::new("gen_ai.operation.name", "execute_tool"));
    }
    let transport = Value::from(if lines { "pipe" } else { "tcp" });
    span.attributes.push(KeyValue::new("network.transport", transport));
    if failed {
        span.status = Status::error("");
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use opentelemetry::InstrumentationScope;
    use opentelemetry::trace::{Event, SpanContext, SpanId};
    use opentelemetry_sdk::trace::SpanLinks;

    use super::*;

    fn span(name: &'static str, attributes: &[(&'static str, &'static str)]) -> SpanData {
        let mut events = SpanEvents::default();
        events.events.push(Event::with_name("a text"));
        SpanData {
            span_context: SpanContext::empty_context(),
            parent_span_id: SpanId::INVALID,
            parent_span_is_remote: false,
            span_kind: SpanKind::Internal,
            name: name.into(),
            start_time: SystemTime::UNIX_EPOCH,
            end_time: SystemTime::UNIX_EPOCH,
            attributes: attributes.iter().map(|(key, value)| KeyValue::new(*key, *value)).collect(),
            dropped_attributes_count: 0,
            events,
            links: SpanLinks::default(),
            status: Status::error("a text"),
            instrumentation_scope: InstrumentationScope::default(),
        }
    }

    fn seen(span: &SpanData) -> Vec<(String, String)> {
        let pair = |a: &KeyValue| (a.key.to_string(), a.value.to_string());
        span.attributes.iter().map(pair).collect()
    }

    #[test]
    fn what_is_not_listed_stays_here() {
        let left = listed(span("load", &[("token", "eyJ"), ("note", "private"), ("tenant", "t")]));
        assert_eq!(seen(&left), [("checkpoint.tenant".to_owned(), "t".to_owned())]);
        assert!(left.events.events.is_empty());
        assert_eq!(left.status, Status::error(""));
    }

    #[test]
    fn a_request_is_named_by_what_was_asked() {
        let call =
            [("method", "tools/call"), ("tool", "get_status"), ("http", "POST"), ("route", "mcp")];
        let left = listed(span("request", &call));
        assert_eq!((&*left.name, &left.span_kind), ("tools/call get_status", &SpanKind::Server));
        let seen = seen(&left);
        for (key, value) in [
            ("mcp.method.name", "tools/call"),
            ("gen_ai.tool.name", "get_status"),
            ("gen_ai.operation.name", "execute_tool"),
            ("network.transport", "tcp"),
        ] {
            assert!(seen.contains(&(key.to_owned(), value.to_owned())), "{seen:?}");
        }
        let probe = listed(span("request", &[("http", "GET"), ("route", "healthz")]));
        assert_eq!(&*probe.name, "GET healthz");
        let lines = listed(span("request", &[("method", "tools/list"), ("route", "stdio")]));
        assert_eq!(&*lines.name, "tools/list");
        assert!(text(&lines, "http.route").is_none());
        assert_eq!(text(&lines, "network.transport").as_deref(), Some("pipe"));
    }

    #[test]
    fn only_our_own_failures_are_errors() {
        let with = |code| {
            let mut data = span("request", &[("method", "tools/call"), ("code", code)]);
            data.status = Status::Unset;
            listed(data).status
        };
        assert_eq!(with("BACKEND_UNAVAILABLE"), Status::error(""));
        assert_eq!(with("TOO_EARLY"), Status::Unset);
    }
}
