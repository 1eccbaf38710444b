//! Everything that can be wrong with a request, and the only map from it (and from the core's error codes) to HTTP
//! statuses and JSON-RPC codes.
//!
//! Three kinds of answers: a [`Fault`] of HTTP (body `{"error", "message"}`), a [`RpcFault`] of JSON-RPC, and the error
//! codes of the core, which are results of tools ([`carried_as_result`]) or, where nothing can carry them, errors ([`unread`]).

mod denied;
mod read;

use std::borrow::Cow;

use bytes::Bytes;
use http::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{Response as HttpResponse, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Map, Value, json};
use wf_core::errors::ErrorCode;

use crate::exchange::Response;
use crate::tools::SUPPORTED_VERSIONS;

pub(crate) use denied::Denied;
pub(crate) use read::{nothing_at, unasked, unread};

/// A request that HTTP refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A line of the head ends without a carriage return (RFC 9112 section 2.2 allows to refuse it).
    BareLineFeed,
    /// No `Host`, or several, or one that is none (RFC 9112 section 3.2).
    Host,
    /// Addressed to a name that this server does not have.
    HostForbidden,
    /// A browser's page of a foreign origin.
    OriginForbidden,
    /// A caller who is not let in.
    Denied(Denied),
    /// No such path.
    NotFound,
    /// The path knows other methods.
    MethodNotAllowed {
        /// Those.
        allow: &'static str,
    },
    /// The client takes no JSON.
    NotAcceptable,
    /// The body did not arrive in time.
    BodyTimeout,
    /// The body broke off.
    BodyBroken,
    /// The body is too large.
    BodyTooLarge {
        /// Bytes allowed.
        limit: usize,
    },
    /// The body is no JSON by its label.
    ContentType,
    /// The body is compressed.
    ContentEncoding,
    /// Too many requests in flight.
    Overloaded,
    /// This replica cannot work now.
    NotReady {
        /// Why.
        reason: String,
    },
    /// No answer in time.
    Timeout,
    /// A bug.
    Internal {
        /// The id under which it is logged.
        incident: String,
    },
    /// A request that JSON-RPC refuses.
    Rpc(RpcFault),
}

impl From<Denied> for Fault {
    fn from(denied: Denied) -> Self {
        Self::Denied(denied)
    }
}

impl From<RpcFault> for Fault {
    fn from(fault: RpcFault) -> Self {
        Self::Rpc(fault)
    }
}

impl Fault {
    /// The status, the word in `error`, and a sentence that says what to do.
    fn told(&self) -> (StatusCode, &'static str, Cow<'static, str>) {
        use StatusCode as S;
        let (status, word, sentence) = match self {
            Self::BareLineFeed => (S::BAD_REQUEST, "bad_request", "end header lines with CR LF"),
            Self::Host => (S::BAD_REQUEST, "bad_request", "send exactly one valid Host header"),
            Self::HostForbidden => (
                S::FORBIDDEN,
                "host_forbidden",
                "this server does not answer under that host name; add it to server.allowed_hosts",
            ),
            Self::OriginForbidden => (
                S::FORBIDDEN,
                "origin_forbidden",
                "pages of this origin may not call; add it to server.allowed_origins",
            ),
            Self::Denied(denied) => return denied.told(),
            Self::NotFound => (S::NOT_FOUND, "not_found", "MCP is at POST /mcp"),
            Self::MethodNotAllowed { .. } => (
                S::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                "see the Allow header; this server has no sessions and no event streams",
            ),
            Self::NotAcceptable => (S::NOT_ACCEPTABLE, "not_acceptable", "accept application/json"),
            Self::BodyTimeout => {
                (S::REQUEST_TIMEOUT, "request_timeout", "the body did not arrive in time")
            }
            Self::BodyBroken => (S::BAD_REQUEST, "bad_request", "the body broke off"),
            Self::BodyTooLarge { limit } => {
                let sentence = format!("send at most {limit} bytes");
                return (S::PAYLOAD_TOO_LARGE, "body_too_large", sentence.into());
            }
            Self::ContentType => (
                S::UNSUPPORTED_MEDIA_TYPE,
                "unsupported_media_type",
                "send Content-Type: application/json",
            ),
            Self::ContentEncoding => (
                S::UNSUPPORTED_MEDIA_TYPE,
                "unsupported_content_encoding",
                "send the body uncompressed",
            ),
            Self::Overloaded => (
                S::SERVICE_UNAVAILABLE,
                "overloaded",
                "nothing was done; send the same request again",
            ),
            Self::NotReady { reason } => {
                return (S::SERVICE_UNAVAILABLE, "not_ready", reason.clone().into());
            }
            Self::Timeout => (
                S::SERVICE_UNAVAILABLE,
                "timeout",
                "the outcome is unknown; send the same request again",
            ),
            Self::Internal { incident } => {
                let sentence = format!("a bug; it is logged as {incident}");
                return (S::INTERNAL_SERVER_ERROR, "internal", sentence.into());
            }
            Self::Rpc(fault) => {
                return (fault.kind.status(), "rpc", fault.message.clone().into());
            }
        };
        (status, word, Cow::Borrowed(sentence))
    }

    /// The refusal as a message, where there is no HTTP around it.
    pub(crate) fn as_message(&self) -> Value {
        if let Self::Rpc(fault) = self {
            return fault.body();
        }
        let (_, _, sentence) = self.told();
        RpcFault::new(None, RpcKind::InvalidRequest, sentence).body()
    }

    /// The answer.
    pub(crate) fn into_response(self) -> Response {
        let (status, word, sentence) = self.told();
        let body = if let Self::Rpc(fault) = &self {
            fault.body()
        } else if sentence.is_empty() {
            json!({ "error": word })
        } else {
            json!({ "error": word, "message": sentence })
        };
        let mut response = json_response(status, &body);
        let headers = response.headers_mut();
        match self {
            Self::MethodNotAllowed { allow } => {
                headers.insert(ALLOW, HeaderValue::from_static(allow));
            }
            Self::Denied(denied) => denied.mark(headers),
            Self::Overloaded | Self::NotReady { .. } | Self::Timeout => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            // What follows on this connection cannot be told apart from the rest of this request.
            Self::BareLineFeed
            | Self::Host
            | Self::BodyTimeout
            | Self::BodyBroken
            | Self::BodyTooLarge { .. } => {
                headers.insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Self::HostForbidden
            | Self::OriginForbidden
            | Self::NotFound
            | Self::NotAcceptable
            | Self::ContentType
            | Self::ContentEncoding
            | Self::Internal { .. }
            | Self::Rpc(_) => {}
        }
        response
    }
}

/// A request that JSON-RPC refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RpcFault {
    /// The id of the request; absent (MCP 2026-07-28, error responses) when it cannot be read.
    pub(crate) id: Option<Value>,
    /// What kind of refusal.
    pub(crate) kind: RpcKind,
    /// What is wrong and what would be right.
    pub(crate) message: String,
}

/// Kinds of refusal by JSON-RPC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RpcKind {
    /// The body is not JSON.
    Parse,
    /// The JSON is no request.
    InvalidRequest,
    /// The parameters are not those of the method.
    InvalidParams,
    /// A method that the revision of the request does not have.
    MethodNotFound,
    /// A revision of MCP that this server does not speak.
    UnsupportedVersion {
        /// As sent.
        requested: String,
    },
    /// Header and body disagree.
    HeaderMismatch,
}

impl RpcKind {
    /// The HTTP status: a message that cannot be taken at all is 400 (MCP, Streamable HTTP), one that was understood
    /// and refused is 200.
    fn status(&self) -> StatusCode {
        match self {
            Self::Parse
            | Self::InvalidRequest
            | Self::UnsupportedVersion { .. }
            | Self::HeaderMismatch => StatusCode::BAD_REQUEST,
            Self::MethodNotFound => StatusCode::NOT_FOUND,
            Self::InvalidParams => StatusCode::OK,
        }
    }

    /// The code (JSON-RPC 2.0 section 5.1; MCP 2026-07-28 for -3202x).
    pub(crate) const fn code(&self) -> i32 {
        match self {
            Self::Parse => -32700,
            Self::InvalidRequest => -32600,
            Self::MethodNotFound => -32601,
            Self::InvalidParams => -32602,
            Self::UnsupportedVersion { .. } => -32022,
            Self::HeaderMismatch => -32020,
        }
    }
}

impl RpcFault {
    pub(crate) fn new(id: Option<&Value>, kind: RpcKind, message: impl Into<String>) -> Self {
        Self { id: id.cloned(), kind, message: message.into() }
    }

    fn body(&self) -> Value {
        let mut error = Map::new();
        error.insert("code".to_owned(), self.kind.code().into());
        error.insert("message".to_owned(), self.message.clone().into());
        if let RpcKind::UnsupportedVersion { requested } = &self.kind {
            let data = json!({ "supported": SUPPORTED_VERSIONS, "requested": requested });
            error.insert("data".to_owned(), data);
        }
        let mut body = Map::new();
        body.insert("jsonrpc".to_owned(), "2.0".into());
        if let Some(id) = &self.id {
            body.insert("id".to_owned(), id.clone());
        }
        body.insert("error".to_owned(), Value::Object(error));
        Value::Object(body)
    }
}

/// How an error of the core reaches the caller: as the result of the tool, `isError` set, HTTP 200. Never as a status
/// or a JSON-RPC error, which clients show to nobody. Listed one by one so that a new code is thought about.
pub(crate) fn carried_as_result(code: ErrorCode) -> bool {
    match code {
        ErrorCode::ValidationError
        | ErrorCode::IdempotencyConflict
        | ErrorCode::BackendUnavailable
        | ErrorCode::VersionConflict
        | ErrorCode::WorkflowNotFound
        | ErrorCode::ProcedureNotFound
        | ErrorCode::AssetLocked
        | ErrorCode::LockLost
        | ErrorCode::InvalidTransition
        | ErrorCode::StepNotOpen
        | ErrorCode::StepAlreadyRecorded
        | ErrorCode::ImplausibleValue
        | ErrorCode::UnitMismatch
        | ErrorCode::TooEarly
        | ErrorCode::ReasonRequired
        | ErrorCode::NotAllowed
        | ErrorCode::DecisionNotAllowed
        | ErrorCode::LimitExceeded
        | ErrorCode::Internal => true,
    }
}

/// An answer of JSON.
pub(crate) fn json_response(status: StatusCode, body: &Value) -> Response {
    answer(status, "application/json", body.to_string())
}

/// An answer of any type.
pub(crate) fn answer(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Response {
    let mut response = HttpResponse::new(Full::new(body.into()).boxed());
    *response.status_mut() = status;
    let value = HeaderValue::from_static(content_type);
    response.headers_mut().insert(CONTENT_TYPE, value);
    response
}

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Response {
    let mut response = HttpResponse::new(Full::default().boxed());
    *response.status_mut() = status;
    response
}

/// Sets a header of ours.
pub(crate) fn set(response: &mut Response, name: HeaderName, value: &'static str) {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
}
