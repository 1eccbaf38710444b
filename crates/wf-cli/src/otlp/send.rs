//! One POST to the collector (OTLP 1.x, "OTLP/HTTP"): binary protobuf, with a limit on everything, tried again where the
//! protocol says that this helps. Trouble is logged when it begins, every minute while it lasts, and when it is over.

use std::error::Error;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::exit::chain;
use crate::trust::{self, TrustError};

/// Variable with further headers, as every OTLP exporter reads it: `name=value,name=value`, percent-encoded.
pub(super) const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
/// How long one attempt may take.
const DEADLINE: Duration = Duration::from_secs(10);
/// What of an answer is read, in bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Attempts for one message, and the pause after the first; the next pauses are twice as long each.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(500);
/// How often trouble is logged while it lasts.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);

/// An endpoint that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum EndpointError {
    /// Not a URL, or one with user information, a query or a fragment.
    #[error("it must be a plain URL such as http://127.0.0.1:4318")]
    Url,
    /// Not `name=value,…`.
    #[error("{HEADERS} must be name=value,name=value")]
    Headers,
    /// TLS cannot be used.
    #[error(transparent)]
    Trust(#[from] TrustError),
}

/// An attempt that failed.
#[derive(Debug, thiserror::Error)]
enum SendError {
    #[error("the collector cannot be reached")]
    Failed(#[source] Box<dyn Error + Send + Sync>),
    #[error("the collector did not answer within {} seconds", DEADLINE.as_secs())]
    Late,
    #[error("the collector answered {0}")]
    Status(StatusCode),
}

impl SendError {
    /// Whether the same message may be taken later (OTLP, "Retryable Response Codes").
    fn may_pass(&self) -> bool {
        match self {
            Self::Failed(_) | Self::Late => true,
            Self::Status(status) => matches!(status.as_u16(), 429 | 502 | 503 | 504),
        }
    }
}

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    Traces,
    Metrics,
}

impl Signal {
    const fn name(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Metrics => "metrics",
        }
    }

    /// Counts what nobody will see.
    pub(super) fn dropped(self, why: &'static str, count: u64) {
        metrics::counter!("checkpoint_otlp_dropped_total", "signal" => self.name(), "why" => why)
            .increment(count);
    }
}

/// The way to one collector.
#[derive(Debug)]
pub(super) struct Sender {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    traces: Uri,
    metrics: Uri,
    headers: HeaderMap,
    trouble: Mutex<Trouble>,
}

/// What was said of trouble.
#[derive(Debug, Default)]
struct Trouble {
    said: Option<Instant>,
}

impl Sender {
    /// Prepares it; connects nowhere yet. `headers` is what the variable [`HEADERS`] says.
    pub(super) fn open(endpoint: &str, headers: &str) -> Result<Self, EndpointError> {
        let (traces, metrics) = (below(endpoint, "v1/traces")?, below(endpoint, "v1/metrics")?);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(trust::of_the_system(traces.scheme_str() == Some("https"))?)
            .https_or_http()
            .enable_http1()
            .build();
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_max_idle_per_host(1)
            .build(connector);
        let headers = read_headers(headers).ok_or(EndpointError::Headers)?;
        Ok(Self { client, traces, metrics, headers, trouble: Mutex::default() })
    }

    /// Sends `message`, with `count` spans or figures in it; the answer, if it was taken. After `end` there is one attempt.
    pub(super) async fn send(
        &self,
        signal: Signal,
        message: Bytes,
        count: u64,
        end: &mut watch::Receiver<bool>,
    ) -> Option<Bytes> {
        let mut pause = PAUSE;
        for attempt in 1..=ATTEMPTS {
            let error = match timeout(DEADLINE, self.once(signal, message.clone())).await {
                Ok(Ok(answer)) => {
                    self.works();
                    return Some(answer);
                }
                Ok(Err(error)) => error,
                Err(_) => SendError::Late,
            };
            metrics::counter!("checkpoint_otlp_failures_total", "signal" => signal.name())
                .increment(1);
            self.complain(signal, &error);
            if attempt == ATTEMPTS || !error.may_pass() || *end.borrow() {
                break;
            }
            // An end cuts the pause short; the last attempt comes after it.
            let _ = timeout(pause, end.wait_for(|ended| *ended)).await;
            pause *= 2;
        }
        signal.dropped("collector", count);
        None
    }

    async fn once(&self, signal: Signal, message: Bytes) -> Result<Bytes, SendError> {
        let mut request = Request::post(match signal {
            Signal::Traces => self.traces.clone(),
            Signal::Metrics => self.metrics.clone(),
        })
        .body(Full::new(message))
        .map_err(|error| SendError::Failed(error.into()))?;
        *request.headers_mut() = self.headers.clone();
        let response = self.client.request(request).await;
        let response = response.map_err(|error| SendError::Failed(error.into()))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        if !status.is_success() {
            return Err(SendError::Status(status));
        }
        Ok(body.map_err(SendError::Failed)?.to_bytes())
    }

    fn complain(&self, signal: Signal, error: &SendError) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if trouble.said.is_none_or(|at| at.elapsed() >= COMPLAIN_EVERY) {
            trouble.said = Some(Instant::now());
            let (signal, error) = (signal.name(), chain(error));
            tracing::warn!(signal, error, "the collector takes nothing; calls go on without it");
        }
    }

    fn works(&self) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if trouble.said.take().is_some() {
            tracing::info!("the collector takes spans and figures again");
        }
    }
}

/// The address of a signal: the path is added to that of the endpoint (OTLP exporter specification, "Endpoint URLs").
fn below(endpoint: &str, path: &str) -> Result<Uri, EndpointError> {
    let base: Uri = endpoint.parse().map_err(|_| EndpointError::Url)?;
    let secret = base.authority().is_some_and(|a| a.as_str().contains('@'));
    if secret || base.query().is_some() || base.scheme().is_none() || endpoint.contains('#') {
        return Err(EndpointError::Url);
    }
    format!("{}/{path}", endpoint.trim_end_matches('/')).parse().map_err(|_| EndpointError::Url)
}

/// The headers of every request: ours, and those of the variable.
fn read_headers(text: &str) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=')?;
        let name: HeaderName = name.trim().parse().ok()?;
        let mut value = HeaderValue::from_bytes(&decoded(value.trim())?).ok()?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
    let agent = concat!("checkpoint/", env!("CARGO_PKG_VERSION"));
    headers.insert(USER_AGENT, HeaderValue::from_static(agent));
    Some(headers)
}

/// Undoes percent-encoding.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let digit = |b: u8| char::from(b).to_digit(16);
                let (high, low) = (digit(bytes.next()?)?, digit(bytes.next()?)?);
                u8::try_from(high * 16 + low).ok()?
            }
            other => other,
        });
    }
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_paths_below_the_endpoint() {
        let at = |endpoint| below(endpoint, "v1/traces").map(|uri| uri.to_string()).ok();
        assert_eq!(at("http://h:4318").as_deref(), Some("http://h:4318/v1/traces"));
        assert_eq!(at("https://h/otlp/").as_deref(), Some("https://h/otlp/v1/traces"));
        for bad in ["http://user:secret@h", "http://h/?token=x", "http://h/#x", "h:4318"] {
            assert_eq!(at(bad), None, "{bad}");
        }
    }

    #[test]
    fn headers_of_the_environment_are_decoded_and_never_shown() {
        let headers = read_headers("api-key=s%20ecret, x = 1,").unwrap();
        assert_eq!(headers.get("api-key").unwrap(), "s ecret");
        assert!(!format!("{headers:?}").contains("ecret"), "{headers:?}");
        assert_eq!(headers.get("x").unwrap(), "1");
        assert_eq!(headers.get("content-type").unwrap(), "application/x-protobuf");
        for bad in ["no pair", "a b=1", "a=%2", "a=%zz", "a=%0a"] {
            assert!(read_headers(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn what_may_pass_is_tried_again() {
        let status = |code| SendError::Status(StatusCode::from_u16(code).unwrap()).may_pass();
        assert!([429, 502, 503, 504].into_iter().all(status));
        assert!(![400, 401, 404, 413, 500].into_iter().any(status));
        assert!(SendError::Late.may_pass());
    }
}
