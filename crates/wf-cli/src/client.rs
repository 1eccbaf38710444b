//! A small MCP client for `call`: one stateless `tools/call` of revision 2025-11-25; and [`get`] for the pages of an
//! operator.
//!
//! Streamable HTTP, sections "Sending Messages to the Server" and "Protocol Version Header" of that revision: both
//! answer forms are accepted and the version header is sent. Servers of this product need no `initialize`.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, USER_AGENT};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Map, Value, json};

use crate::config::auth::is_private_on_the_way;
use crate::exit::{Cause, Failure};
use crate::trust;

/// The revision that is spoken.
const REVISION: &str = "2025-11-25";
/// What it says it is.
const AGENT: &str = concat!("wf-cli/", env!("CARGO_PKG_VERSION"));
/// Largest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A server to call.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    url: Uri,
    /// The whole `Authorization` header; its `Debug` says nothing of it.
    authorization: Option<HeaderValue>,
}

impl Endpoint {
    /// Reads the URL of an MCP endpoint.
    ///
    /// # Errors
    /// When it is none.
    pub(crate) fn parse(url: &str) -> Result<Self, Failure> {
        let wrong = || {
            Failure::usage(format!("{url} is no URL of an MCP endpoint"))
                .help("for example --url http://127.0.0.1:8080/mcp")
        };
        let mut parts = url.parse::<Uri>().map_err(|_| wrong())?.into_parts();
        if !matches!(parts.scheme.as_ref().map(Scheme::as_str), Some("http" | "https")) {
            return Err(wrong());
        }
        if parts.path_and_query.as_ref().is_none_or(|path| path == "/") {
            parts.path_and_query = Some(PathAndQuery::from_static("/mcp"));
        }
        let url = Uri::from_parts(parts).map_err(|_| wrong())?;
        if url.host().is_none_or(str::is_empty) {
            return Err(wrong());
        }
        Ok(Self { url, authorization: None })
    }

    /// Sends this bearer token with every call (RFC 6750 section 2.1).
    ///
    /// # Errors
    /// When it is none, or others could read it on the way (RFC 6750 section 5.3).
    pub(crate) fn with_token(mut self, token: &str) -> Result<Self, Failure> {
        let wrong = || Failure::usage("the token is none: it has characters that no token has");
        if token.is_empty() || !token.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(wrong());
        }
        if !is_private_on_the_way(&self.url.to_string()) {
            return Err(Failure::usage("a token is not sent over plain http to another machine")
                .help("call it over https, or on its own machine"));
        }
        let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| wrong())?;
        value.set_sensitive(true);
        self.authorization = Some(value);
        Ok(self)
    }

    /// Calls a tool; the `result` of the JSON-RPC answer.
    ///
    /// # Errors
    /// Unavailable when no answer came or the server is busy; failed when the answer is an error or none of MCP.
    pub(crate) async fn call_tool(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        wait: Duration,
    ) -> Result<Value, Failure> {
        let message = json!({
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": { "name": tool, "arguments": arguments },
        });
        let answered = tokio::time::timeout(wait, self.post(message.to_string().into()));
        let (status, kind, body) = answered.await.map_err(|_| {
            Failure::unavailable(format!("no answer within {} s", wait.as_secs()))
                .help("send the very same call again, with the same idempotency_key")
        })??;
        let answer = read_answer(status, &kind, &body)?;
        if let Some(error) = answer.get("error") {
            let text = error.get("message").and_then(Value::as_str).unwrap_or("");
            let code = error.get("code").and_then(Value::as_i64).unwrap_or(0);
            return Err(Failure::failed(format!("the server refused the call: {text} ({code})")));
        }
        answer
            .get("result")
            .cloned()
            .ok_or_else(|| Failure::failed("the answer is no JSON-RPC response"))
    }

    async fn post(&self, body: Bytes) -> Result<(StatusCode, String, Bytes), Failure> {
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(&self.url)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .header("mcp-protocol-version", REVISION)
            .header(USER_AGENT, AGENT)
            .body(Full::new(body))
            .map_err(|error| Failure::usage("the call cannot be written").because(error))?;
        if let Some(value) = &self.authorization {
            request.headers_mut().insert(AUTHORIZATION, value.clone());
        }
        exchange(request).await
    }
}

/// Gets a page of an operator (`/healthz`, `/readyz`, `/metrics`) from a server of this product.
///
/// # Errors
/// Unavailable when no whole answer came within `wait`.
pub(crate) async fn get(
    address: SocketAddr,
    path: &str,
    wait: Duration,
) -> Result<(StatusCode, Bytes), Failure> {
    let asked = async {
        let request = Request::builder()
            .uri(format!("http://{address}{path}"))
            .header(USER_AGENT, AGENT)
            .body(Full::new(Bytes::new()))
            .map_err(|error| Failure::usage("the question cannot be written").because(error))?;
        exchange(request).await
    };
    let (status, _, body) = tokio::time::timeout(wait, asked).await.map_err(|_| {
        Failure::unavailable(format!("no answer from {address} within {} s", wait.as_secs()))
    })??;
    Ok((status, body))
}

/// One request on a connection of its own: status, content type, body. Sent once: whether it is sent again is for whoever
/// calls to say.
async fn exchange(request: Request<Full<Bytes>>) -> Result<(StatusCode, String, Bytes), Failure> {
    let secure = request.uri().scheme_str() == Some("https");
    let authority = request.uri().authority().map_or("", Authority::as_str).to_owned();
    let asks = request.method() == Method::GET;
    let tls = trust::of_the_system(secure).map_err(|error| {
        Failure::failed("no certificate can be checked").because(error).help(AUTHORITIES)
    })?;
    let connector =
        HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1();
    let client = Client::builder(TokioExecutor::new())
        .pool_max_idle_per_host(0)
        .retry_canceled_requests(false)
        .build(connector.build());
    let answered = client.request(request).await;
    let response = answered.map_err(|error| unanswered(error, &authority, asks))?;
    let status = response.status();
    let kind = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("")
        .to_owned();
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX)
        .collect()
        .await
        .map_err(|error| Failure::unavailable("the answer could not be read").because(error))?
        .to_bytes();
    Ok((status, kind, body))
}

/// What to do where an authority is not known.
const AUTHORITIES: &str = "name the host as its certificate does; for an authority of your own name its file: SSL_CERT_FILE=authority.pem wf-cli call …";

/// Why no answer came: TLS refused, nobody is there, or nobody knows what became of it.
fn unanswered(error: hyper_util::client::legacy::Error, authority: &str, asks: bool) -> Failure {
    if let Some(refusal) = trust::refusal(&error) {
        let failure = if matches!(refusal, rustls::Error::InvalidCertificate(_)) {
            Failure::failed(format!("the certificate of {authority} is not to be trusted"))
                .help(AUTHORITIES)
        } else {
            Failure::failed(format!("no TLS with {authority}"))
                .help("a server without a certificate is called by http://")
        };
        return failure.because(refusal.clone());
    }
    if error.is_connect() {
        let failure = Failure::unavailable(format!("no server answers at {authority}"))
            .because(first_of_the_system(error));
        return if asks {
            failure
        } else {
            failure.help("start one with `wf-cli serve`, or name another with --url")
        };
    }
    if error.source().and_then(|e| e.downcast_ref()).is_some_and(hyper::Error::is_parse) {
        return Failure::failed(format!("{authority} does not answer in HTTP"))
            .because(error)
            .help("a server with a certificate is called by https://");
    }
    let failure =
        Failure::unavailable("the connection broke before the answer; the outcome is unknown")
            .because(error);
    if asks {
        failure
    } else {
        failure.help("send the very same call again, with the same idempotency_key")
    }
}

/// What the operating system said, without the layers above it.
fn first_of_the_system(error: hyper_util::client::legacy::Error) -> Cause {
    let mut next: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(cause) = next {
        if let Some(code) = cause.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error) {
            return io::Error::from_raw_os_error(code).into();
        }
        next = cause.source();
    }
    error.into()
}

fn read_answer(status: StatusCode, kind: &str, body: &[u8]) -> Result<Value, Failure> {
    let text = String::from_utf8_lossy(body);
    let answer = if kind.starts_with("text/event-stream") {
        last_event(&text)
    } else {
        serde_json::from_str(&text).ok()
    };
    match answer {
        Some(answer) if answer.get("jsonrpc").is_some() => Ok(answer),
        Some(_) | None => Err(http_failure(status, &text)),
    }
}

fn http_failure(status: StatusCode, body: &str) -> Failure {
    let excerpt: String = body.chars().take(200).collect();
    let message = format!("the server answered {status}: {excerpt}");
    match status {
        StatusCode::REQUEST_TIMEOUT
        | StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => Failure::unavailable(message)
            .help("send the very same call again, with the same idempotency_key"),
        StatusCode::UNAUTHORIZED => Failure::failed(message).help(
            "give a token that the server takes: --token or WF_TOKEN; `wf-cli token issue` makes one for serve --auth dev",
        ),
        StatusCode::NOT_FOUND => {
            Failure::failed(message).help("the URL of the endpoint usually ends in /mcp")
        }
        _ => Failure::failed(message),
    }
}

/// The data of the last response in a stream of server-sent events; requests and notifications are passed over.
fn last_event(stream: &str) -> Option<Value> {
    stream
        .replace("\r\n", "\n")
        .split("\n\n")
        .filter_map(|event| {
            let data: Vec<&str> = event
                .lines()
                .filter_map(|line| line.strip_prefix("data:"))
                .map(str::trim_start)
                .collect();
            serde_json::from_str::<Value>(&data.join("\n")).ok()
        })
        .filter(|message| message.get("result").is_some() || message.get("error").is_some())
        .last()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;

    #[test]
    fn urls_have_a_scheme_and_a_host_and_the_path_is_known() {
        let url = |text: &str| Endpoint::parse(text).unwrap().url.to_string();
        assert_eq!(url("http://[::1]:9/mcp?a=b"), "http://[::1]:9/mcp?a=b");
        assert_eq!(url("https://wf.example.com"), "https://wf.example.com/mcp");
        assert_eq!(url("https://wf.example.com/x/"), "https://wf.example.com/x/");
        for bad in ["", "127.0.0.1:8080", "/mcp", "ftp://x/mcp", "http:///mcp", "https://:9/mcp"] {
            assert_eq!(Endpoint::parse(bad).unwrap_err().exit(), Exit::Usage, "{bad:?}");
        }
    }

    #[test]
    fn a_token_is_sent_and_never_shown() {
        let endpoint =
            Endpoint::parse("http://[::1]:9/mcp").unwrap().with_token("abc.def").unwrap();
        assert_eq!(endpoint.authorization.as_ref().unwrap(), "Bearer abc.def");
        assert!(!format!("{endpoint:?}").contains("abc"));
        for bad in ["", "a b", "a\nb", "é"] {
            let endpoint = Endpoint::parse("http://[::1]:9/mcp").unwrap();
            assert_eq!(endpoint.with_token(bad).unwrap_err().exit(), Exit::Usage, "{bad:?}");
        }
        for (url, sent) in [
            ("http://localhost:9/mcp", true),
            ("http://127.0.0.1/mcp", true),
            ("https://wf.example.com/mcp", true),
            ("http://wf.example.com/mcp", false),
            ("http://10.0.0.1:8080/mcp", false),
            ("http://127.0.0.1.example.com/mcp", false),
        ] {
            let bearing = Endpoint::parse(url).unwrap().with_token("abc.def");
            assert_eq!(bearing.is_ok(), sent, "{url}");
        }
    }

    #[test]
    fn both_answer_forms_are_read() {
        let one = r#"{"jsonrpc":"2.0","id":1,"result":{"a":1}}"#;
        let plain = read_answer(StatusCode::OK, "application/json", one.as_bytes()).unwrap();
        assert_eq!(plain["result"]["a"], 1);
        let stream = format!(
            "id: 0\r\ndata:\r\n\r\nevent: message\r\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}}\r\n\r\ndata: {one}\r\n\r\n"
        );
        let streamed = read_answer(StatusCode::OK, "text/event-stream", stream.as_bytes()).unwrap();
        assert_eq!(streamed, plain);
    }

    #[test]
    fn a_busy_server_is_unavailable_and_a_wrong_one_is_not() {
        let exit = |status, body: &str| {
            read_answer(status, "application/json", body.as_bytes()).unwrap_err().exit()
        };
        assert_eq!(exit(StatusCode::SERVICE_UNAVAILABLE, "{}"), Exit::Unavailable);
        assert_eq!(exit(StatusCode::NOT_FOUND, "no"), Exit::Failed);
        assert_eq!(exit(StatusCode::OK, "<html>"), Exit::Failed);
    }
}
