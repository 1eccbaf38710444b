//! A small HTTP/1.1 client over a raw socket, so that tests decide every byte.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::schemas;
use crate::world::within;

/// Sends each request on a connection of its own.
#[derive(Clone)]
pub(crate) struct Client {
    address: SocketAddr,
}

/// One answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.as_str())
    }

    /// All of it but what differs between any two requests.
    pub(crate) fn comparable(&self) -> (u16, Vec<(String, String)>, Vec<u8>) {
        let differs = ["date", "x-request-id"];
        let kept = self.headers.iter().filter(|(name, _)| !differs.contains(&name.as_str()));
        (self.status, kept.cloned().collect(), self.body.clone())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| panic!("no JSON: {:?}", String::from_utf8_lossy(&self.body)))
    }

    /// The `result` of a JSON-RPC answer with status 200; one of a tool fits both schemas.
    pub(crate) fn result(&self) -> Value {
        let json = self.json();
        assert_eq!(self.status, 200, "{json}");
        assert!(json.get("error").is_none(), "{json}");
        let result = json["result"].clone();
        if let Some(body) = result.get("structuredContent") {
            schemas::check(body);
            assert_eq!(result["isError"], body["ok"] == false, "{result}");
            assert_eq!(result["content"][0]["text"], body["speech"], "{result}");
            let text = result["content"][1]["text"].as_str().expect("text");
            let canonical = wf_core::idempotency::canonical_string(body).expect("canonical");
            assert_eq!(text, canonical);
        }
        result
    }

    /// Status and code of a JSON-RPC error.
    pub(crate) fn rpc(&self) -> (u16, i64) {
        let json = self.json();
        assert_eq!(json["jsonrpc"], "2.0", "{json}");
        (self.status, json["error"]["code"].as_i64().unwrap_or_else(|| panic!("{json}")))
    }
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address }
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        within(TcpStream::connect(self.address)).await.expect("connects")
    }

    /// A `POST /mcp` as clients send it; `extra` headers replace the usual ones of the same name.
    pub(crate) fn request(&self, extra: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
        let host = self.address.to_string();
        let length = body.len().to_string();
        let usual = [
            ("host", host.as_str()),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("content-length", &length),
        ];
        let mut head = "POST /mcp HTTP/1.1\r\n".to_owned();
        for (name, value) in usual.iter().filter(|(n, _)| extra.iter().all(|(e, _)| e != n)) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        // An empty value stands for no header.
        for (name, value) in extra.iter().filter(|(_, value)| !value.is_empty()) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        [head.as_bytes(), body].concat()
    }

    pub(crate) async fn post(&self, extra: &[(&str, &str)], body: &[u8]) -> Answer {
        self.raw(&self.request(extra, body)).await
    }

    pub(crate) async fn tool(&self, tool: &str, arguments: Value) -> Answer {
        let body = call(tool, arguments).to_string();
        self.post(&[], body.as_bytes()).await
    }

    /// A request without a body.
    pub(crate) async fn ask(&self, method: &str, path: &str, extra: &[(&str, &str)]) -> Answer {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n", self.address);
        for (name, value) in extra {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        self.raw(head.as_bytes()).await
    }

    /// Any bytes, one answer.
    pub(crate) async fn raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect().await;
        within(stream.write_all(bytes)).await.expect("sends");
        receive(&mut stream).await.expect("an answer")
    }
}

/// A call of a tool.
pub(crate) fn call(tool: &str, arguments: Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
}

/// The next answer on a connection; `None` when it is closed before one begins.
pub(crate) async fn receive(stream: &mut (impl AsyncRead + Unpin)) -> Option<Answer> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            break at + 4;
        }
        let mut byte = [0];
        match within(stream.read(&mut byte)).await {
            Ok(1) => bytes.push(byte[0]),
            Ok(_) | Err(_) if bytes.is_empty() => return None,
            other => panic!("{other:?} after {:?}", String::from_utf8_lossy(&bytes)),
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).expect("text");
    let mut lines = head.lines();
    let status = lines.next().and_then(|l| l.split(' ').nth(1)).expect("a status line");
    let headers: Vec<_> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.map_or(0, |(_, value)| value.parse().expect("a length"));
    let mut body = vec![0; length];
    within(stream.read_exact(&mut body)).await.expect("the body");
    Some(Answer { status: status.parse().expect("a status"), headers, body })
}
