//! One caller's connection: stateless `tools/call` of MCP 2025-11-25, kept alive, opened again when it broke.
//!
//! Never repeats a request by itself: what a caller knows after an attempt must be what really happened to it.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::request::Builder;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use wf_testkit::audit::history::Outcome;

/// Longest wait for one answer.
const PATIENCE: Duration = Duration::from_secs(35);

/// A connection to one server.
#[derive(Debug)]
pub struct Client {
    address: SocketAddr,
    token: Option<String>,
    open: Option<SendRequest<Full<Bytes>>>,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lost {
    /// Nobody listened.
    NotSent,
    /// It may have arrived; why nobody knows.
    Unknown(String),
}

impl Client {
    /// To the server at this address; connects with the first call.
    #[must_use]
    pub fn new(address: SocketAddr) -> Self {
        Self::bearing(address, None)
    }

    /// The same, with a token in every request.
    #[must_use]
    pub fn bearing(address: SocketAddr, token: Option<&str>) -> Self {
        Self { address, token: token.map(str::to_owned), open: None }
    }

    /// From now on with this token, or without one.
    pub fn bears(&mut self, token: Option<String>) {
        self.token = token;
    }

    /// One attempt.
    pub async fn call(&mut self, tool: &str, arguments: &Map<String, Value>) -> Outcome {
        self.send(request_body(tool, arguments)).await
    }

    /// One attempt with a body that is written already.
    pub async fn send(&mut self, body: Bytes) -> Outcome {
        match self.post(body).await {
            Ok(answer) => outcome(&answer),
            Err(Lost::NotSent) => Outcome::NotSent,
            Err(Lost::Unknown(why)) => Outcome::Unknown { why },
        }
    }

    /// One attempt, answered as HTTP answers it. A call that is dropped before it is over closes the connection.
    ///
    /// # Errors
    /// [`Lost`] when there is no answer.
    pub async fn post(&mut self, body: Bytes) -> Result<Response<Bytes>, Lost> {
        let request = Request::builder()
            .method(Method::POST)
            .uri("/mcp")
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .header("mcp-protocol-version", "2025-11-25");
        self.exchange(request, body).await
    }

    /// Asks for one of the pages of an operator: `/readyz`, `/metrics`.
    ///
    /// # Errors
    /// [`Lost`] when there is no answer.
    pub async fn get(&mut self, path: &str) -> Result<Response<Bytes>, Lost> {
        self.exchange(Request::builder().method(Method::GET).uri(path), Bytes::new()).await
    }

    async fn exchange(&mut self, request: Builder, body: Bytes) -> Result<Response<Bytes>, Lost> {
        let late = || Lost::Unknown("no answer in time".to_owned());
        timeout(PATIENCE, self.exchanged(request, body)).await.map_err(|_| late())?
    }

    async fn exchanged(&mut self, request: Builder, body: Bytes) -> Result<Response<Bytes>, Lost> {
        let unknown = |error: hyper::Error| Lost::Unknown(error.to_string());
        // A kept connection that the server closed in the meantime is found out before anything is sent on it.
        let kept = match self.open.take() {
            Some(mut sender) => sender.ready().await.ok().map(|()| sender),
            None => None,
        };
        let mut sender = match kept {
            Some(sender) => sender,
            None => self.connect().await?,
        };
        let request = match &self.token {
            Some(token) => request.header(AUTHORIZATION, format!("Bearer {token}")),
            None => request,
        };
        let request = request
            .header(HOST, self.address.to_string())
            .body(Full::new(body))
            .map_err(|error| Lost::Unknown(error.to_string()))?;
        let (head, body) = sender.send_request(request).await.map_err(unknown)?.into_parts();
        let body = body.collect().await.map_err(unknown)?.to_bytes();
        self.open = Some(sender);
        Ok(Response::from_parts(head, body))
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, Lost> {
        let stream = TcpStream::connect(self.address).await.map_err(|_| Lost::NotSent)?;
        // A small request must not wait for the acknowledgement of the one before it.
        let _ = stream.set_nodelay(true);
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|_| Lost::NotSent)?;
        tokio::spawn(connection);
        Ok(sender)
    }
}

/// The body of a `tools/call`.
#[must_use]
pub fn request_body(tool: &str, arguments: &Map<String, Value>) -> Bytes {
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": tool, "arguments": arguments },
    })
    .to_string()
    .into()
}

/// What a caller knows from an answer to a `tools/call`.
#[must_use]
pub fn outcome(answer: &Response<Bytes>) -> Outcome {
    let (status, body) = (answer.status(), answer.body());
    let parsed: Option<Value> = serde_json::from_slice(body).ok();
    let at = |pointer| parsed.as_ref().and_then(|answer| answer.pointer(pointer)?.as_str());
    // 503 also says that there was no answer in time, and then anything may have happened.
    let nothing_done = matches!(at("/error"), Some("overloaded" | "not_ready"));
    if status == StatusCode::TOO_MANY_REQUESTS || nothing_done {
        return Outcome::Shed { status: status.as_u16() };
    }
    // The second block is the canonical text of the result object (docs/connecting-clients.md).
    match at("/result/content/1/text") {
        Some(text) => Outcome::Answered { text: text.to_owned() },
        None => Outcome::Unknown {
            why: format!(
                "{status}: {}",
                String::from_utf8_lossy(body).chars().take(300).collect::<String>()
            ),
        },
    }
}
