//! A collector that keeps what an OTLP exporter sends it, over HTTP on a free port.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value;
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

/// What came: path, head in lower case, body.
type Sent = (String, String, Vec<u8>);

/// How it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// It takes everything.
    Takes,
    /// It takes connections, reads, and answers nothing.
    Hangs,
}

/// A collector, until the test ends.
#[derive(Debug)]
pub(crate) struct Collector {
    port: u16,
    sent: Arc<Mutex<Vec<Sent>>>,
}

impl Collector {
    pub(crate) fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let sent = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&sent);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || take(stream, &kept, manner));
            }
        });
        Self { port, sent }
    }

    /// What the configuration names.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Everything that came so far.
    pub(crate) fn sent(&self) -> Vec<Sent> {
        self.sent.lock().unwrap().clone()
    }

    /// All spans that came so far.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let traces = self.sent().into_iter().filter(|(path, ..)| path == "/v1/traces");
        traces
            .flat_map(|(_, _, body)| {
                ExportTraceServiceRequest::decode(&*body).unwrap().resource_spans
            })
            .flat_map(|resource| resource.scope_spans)
            .flat_map(|scope| scope.spans)
            .collect()
    }

    /// The figures that came last, with the name of who sent them.
    pub(crate) fn metrics(&self) -> Option<(String, Vec<Metric>)> {
        let (.., body) = self.sent().into_iter().rfind(|(path, ..)| path == "/v1/metrics")?;
        let mut message = ExportMetricsServiceRequest::decode(&*body).unwrap();
        let of = message.resource_metrics.pop()?;
        let attributes = of.resource.unwrap_or_default().attributes;
        let name = attributes.into_iter().find(|attribute| attribute.key == "service.name")?;
        let Some(any_value::Value::StringValue(name)) = name.value?.value else { return None };
        Some((name, of.scope_metrics.into_iter().flat_map(|scope| scope.metrics).collect()))
    }
}

/// The text of an attribute.
pub(crate) fn attribute(span: &Span, key: &str) -> Option<String> {
    let found = span.attributes.iter().find(|attribute| attribute.key == key)?;
    let value = found.value.as_ref()?.value.as_ref()?;
    if let any_value::Value::StringValue(text) = value {
        return Some(text.clone());
    }
    let any_value::Value::IntValue(number) = value else { return None };
    Some(number.to_string())
}

fn take(stream: TcpStream, kept: &Mutex<Vec<Sent>>, manner: Manner) {
    let mut answers = stream.try_clone().unwrap();
    let mut lines = BufReader::new(stream);
    while let Some(sent) = request(&mut lines) {
        kept.lock().unwrap().push(sent);
        if manner == Manner::Hangs {
            // Kept open until the other side gives up.
            let _ = lines.read(&mut [0]);
            return;
        }
        let answer =
            b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n";
        if answers.write_all(answer).is_err() {
            return;
        }
    }
}

fn request(lines: &mut BufReader<TcpStream>) -> Option<Sent> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if lines.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let path = head.split(' ').nth(1)?.to_owned();
    let head = head.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
    let mut body = vec![0; length.parse().ok()?];
    lines.read_exact(&mut body).ok()?;
    Some((path, head, body))
}
