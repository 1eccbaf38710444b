//! MCP over HTTP for the `rmcp` client, on hyper: what a server that answers in JSON and has no sessions needs.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Error as SseError, Sse};

/// Largest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A request that got no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    /// No request can be made of this.
    #[error("no request can be made of this")]
    Request(#[from] http::Error),
    /// The connection failed.
    #[error("the connection failed")]
    Connection(#[from] hyper_util::client::legacy::Error),
    /// The answer broke off, or is too long.
    #[error("the answer broke off, or is too long")]
    Body(#[source] Box<dyn std::error::Error + Send + Sync>),
}

type Failed = StreamableHttpError<HttpError>;

impl From<HttpError> for Failed {
    fn from(error: HttpError) -> Self {
        Self::Client(error)
    }
}

/// Keeps its connections.
#[derive(Debug, Clone)]
pub(crate) struct Http(Client<HttpConnector, Full<Bytes>>);

impl Http {
    pub(crate) fn new() -> Self {
        Self(Client::builder(TokioExecutor::new()).build_http())
    }

    async fn post(
        &self,
        uri: &str,
        message: &ClientJsonRpcMessage,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let mut request = Request::post(uri)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let body = Full::new(Bytes::from(serde_json::to_vec(message)?));
        let request = request.body(body).map_err(HttpError::Request)?;
        let answer = self.0.request(request).await.map_err(HttpError::Connection)?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(HttpError::Body)?.to_bytes();
        if status == StatusCode::ACCEPTED {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        // Refusals of JSON-RPC have a body too; anything else says what it is.
        serde_json::from_slice(&body)
            .map(|message| StreamableHttpPostResponse::Json(message, None))
            .map_err(|_| Failed::UnexpectedServerResponse(status.to_string().into()))
    }
}

impl StreamableHttpClient for Http {
    type Error = HttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        _: Option<Arc<str>>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        self.post(&uri, &message, token, headers).await
    }

    async fn delete_session(
        &self,
        _: Arc<str>,
        _: Arc<str>,
        _: Option<String>,
        _: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failed> {
        Err(Failed::ServerDoesNotSupportDeleteSession)
    }

    async fn get_stream(
        &self,
        _: Arc<str>,
        _: Option<Arc<str>>,
        _: Option<String>,
        _: Option<String>,
        _: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failed> {
        Err(Failed::ServerDoesNotSupportSse)
    }
}
