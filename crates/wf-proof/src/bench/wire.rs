//! One caller's connection of a load: bodies are written beforehand and answers looked at as bytes, because the caller
//! takes its processor time from the machine that the server runs on. Errors end the run: a load that loses calls
//! measures something else.

use std::net::SocketAddr;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::fault::Fault;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A call as it is sent: of MCP, the body is everything.
#[derive(Debug, Clone)]
pub struct Call {
    /// Where to.
    pub path: Uri,
    /// In the header `Idempotency-Key`, for who wants it there.
    pub key: Option<HeaderValue>,
    /// What.
    pub body: Bytes,
}

impl From<Bytes> for Call {
    fn from(body: Bytes) -> Self {
        Self { path: Uri::from_static("/mcp"), key: None, body }
    }
}

/// A connection that is kept.
#[derive(Debug)]
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    headers: HeaderMap,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// When nobody answers there.
    pub async fn open(address: SocketAddr) -> Result<Self, Fault> {
        let stream = TcpStream::connect(address).await.map_err(Fault::io("connecting"))?;
        stream.set_nodelay(true).map_err(Fault::io("connecting"))?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| lost(&error))?;
        tokio::spawn(connection);
        let host = HeaderValue::from_str(&address.to_string())
            .map_err(|error| Fault::Run(format!("the address is no host: {error}")))?;
        let headers = HeaderMap::from_iter([
            (HOST, host),
            (CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (ACCEPT, HeaderValue::from_static("application/json, text/event-stream")),
            (
                HeaderName::from_static("mcp-protocol-version"),
                HeaderValue::from_static("2025-11-25"),
            ),
        ]);
        Ok(Self { sender, headers })
    }

    /// The same with a token in each call.
    ///
    /// # Errors
    /// When the token cannot be in a header.
    pub fn bearing(mut self, token: &str) -> Result<Self, Fault> {
        let value = HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|error| Fault::Run(format!("the token is no header: {error}")))?;
        self.shows(value);
        Ok(self)
    }

    /// From now on this is in `Authorization`.
    pub fn shows(&mut self, credential: HeaderValue) {
        self.headers.insert(AUTHORIZATION, credential);
    }

    /// One call; the body of the answer.
    ///
    /// # Errors
    /// When the connection breaks or the status is not one of success.
    pub async fn call(&mut self, call: impl Into<Call>) -> Result<Bytes, Fault> {
        let Call { path, key, body } = call.into();
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = path;
        *request.headers_mut() = self.headers.clone();
        if let Some(key) = key {
            request.headers_mut().insert(IDEMPOTENCY_KEY, key);
        }
        self.sender.ready().await.map_err(|error| lost(&error))?;
        let answer = self.sender.send_request(request).await.map_err(|error| lost(&error))?;
        let status = answer.status();
        let body = answer.into_body().collect().await.map_err(|error| lost(&error))?.to_bytes();
        if status.is_success() {
            return Ok(body);
        }
        let said: String = String::from_utf8_lossy(&body).chars().take(300).collect();
        Err(Fault::Run(format!("a call was answered with {status}: {said}")))
    }
}

fn lost(error: &hyper::Error) -> Fault {
    Fault::Run(format!("a connection of the load broke: {error}"))
}
