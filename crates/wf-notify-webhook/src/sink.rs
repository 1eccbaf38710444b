//! The sink: one message, one attempt, one verdict.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderName, HeaderValue};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::timeout;
use wf_core::ports::{DeliveryError, Message, NotificationPort, Source};

use crate::address::Allowed;
use crate::answer::{Meaning, meaning, retry_after_ms};
#[cfg(test)]
use crate::connect::Lookup;
use crate::connect::{Connector, SystemLookup};
use crate::pressure::{Pressed, Pressure};
use crate::request;
use crate::secret::{SecretError, SecretFile};
use crate::target::{Target, TargetError};
#[cfg(test)]
use crate::trust::Trust;
use crate::trust::{self, TrustError, Trusting};

/// How long a delivery may take, from the name look-up to the status.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);
/// What of an answer is read, in bytes, so that the connection can be used again. Nothing of it counts but the status.
pub(crate) const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// How long the rest of an answer may take once its status is known.
const ANSWER_WAIT: Duration = Duration::from_secs(1);

/// One webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookConfig {
    /// Where messages are sent.
    pub url: String,
    /// The file with the secret: `whsec_` and base64, one line, or two while the secret is replaced.
    pub secret_file: PathBuf,
    /// Loopback and private addresses too, and plain HTTP to them.
    pub allow_private: bool,
    /// Who sends: `ce-source`, a URI reference (CloudEvents 1.0 section 3.1).
    pub source: String,
}

/// A webhook that cannot be used as it is configured.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Its URL.
    #[error("nothing is sent to this URL")]
    Target(#[from] TargetError),
    /// Its secret.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// TLS.
    #[error(transparent)]
    Trust(#[from] TrustError),
}

/// An attempt that failed.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// No connection, no TLS, or no HTTP.
    #[error("the request failed")]
    Failed(#[source] Source),
    /// Another status than 2xx. Redirects are not followed.
    #[error("the receiver answered {0}")]
    Status(StatusCode),
    /// No status within ten seconds.
    #[error("the receiver did not answer within {} seconds", DEADLINE.as_secs())]
    Late,
    /// Its places are taken.
    #[error("the receiver is busy with other messages")]
    Busy,
    /// Left alone for a while.
    #[error("the receiver answers nothing; not tried")]
    Hangs,
    /// The message cannot be written as a request.
    #[error("the message cannot be sent")]
    Unwritable(#[source] Source),
}

/// The sink of one webhook.
#[derive(Debug)]
pub struct WebhookSink {
    target: Target,
    source: String,
    secrets: SecretFile,
    pressure: Pressure,
    clients: Trusting,
    deadline: Duration,
}

impl WebhookSink {
    /// Reads the secret and checks the URL; sends nothing yet.
    ///
    /// # Errors
    /// [`OpenError`] when the configuration cannot be used.
    pub fn open(config: &WebhookConfig) -> Result<Self, OpenError> {
        let allowed = Allowed { private: config.allow_private };
        let target = Target::parse(&config.url, allowed)?;
        let trust = trust::of_the_system(target.is_secure());
        let connector = Connector::new(Arc::new(SystemLookup), allowed);
        Self::with(config, target, Trusting::open(trust, connector)?, DEADLINE)
    }

    fn with(
        config: &WebhookConfig,
        target: Target,
        clients: Trusting,
        deadline: Duration,
    ) -> Result<Self, OpenError> {
        let secrets = SecretFile::open(&config.secret_file)?;
        let (source, pressure) = (config.source.clone(), Pressure::default());
        Ok(Self { target, source, secrets, pressure, clients, deadline })
    }

    /// For tests inside this crate: with what is trusted, how names are looked up, and how long an answer may take.
    #[cfg(test)]
    pub(crate) fn for_tests(
        config: &WebhookConfig,
        trust: Trust,
        lookup: Arc<dyn Lookup>,
        deadline: Duration,
    ) -> Result<Self, OpenError> {
        let allowed = Allowed { private: config.allow_private };
        let target = Target::parse(&config.url, allowed)?;
        let clients = Trusting::open(trust, Connector::new(lookup, allowed))?;
        Self::with(config, target, clients, deadline)
    }

    /// Reads the file of the secret again: to be called when it changed. From then on messages are signed with what is in it.
    ///
    /// # Errors
    /// [`SecretError`] when it cannot be used; messages go on with the keys that were in it.
    pub fn reload_secret(&self) -> Result<(), SecretError> {
        self.secrets.reload()
    }

    /// As [`NotificationPort::deliver`], and says in which trace: `traceparent` (W3C Trace Context, section 3.2) goes
    /// into the header of that name. It is not signed, and no part of the message.
    ///
    /// # Errors
    /// [`DeliveryError`] when the receiver did not take the message.
    pub async fn deliver_traced(
        &self,
        message: &Message,
        traceparent: Option<&str>,
    ) -> Result<(), DeliveryError> {
        let sent = self.send(message, traceparent).await;
        if let Err(error) = &sent {
            let receiver = self.target.origin();
            tracing::debug!(id = %message.id, receiver, error = %error.source, "a webhook was not taken");
        }
        sent
    }

    async fn send(
        &self,
        message: &Message,
        traceparent: Option<&str>,
    ) -> Result<(), DeliveryError> {
        let _place = self.pressure.place().await.map_err(pressed)?;
        let secrets = self.secrets.current();
        let now = SystemTime::now();
        let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        let mut request = request::of(message, &self.target, &self.source, &secrets, seconds)
            .map_err(|error| failed(true, None, SendError::Unwritable(error)))?;
        if let Some(value) = traceparent.and_then(|text| HeaderValue::from_str(text).ok()) {
            request.headers_mut().insert(HeaderName::from_static("traceparent"), value);
        }
        let client = self.clients.client().await;
        let response = match timeout(self.deadline, client.request(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                self.pressure.answered();
                return Err(failed(false, None, SendError::Failed(innermost(&error))));
            }
            Err(_) => return Err(failed(false, None, SendError::Late)),
        };
        self.pressure.answered();
        let status = response.status();
        let asked = retry_after_ms(response.headers(), SystemTime::now());
        read_to_the_end(response.into_body()).await;
        match meaning(status) {
            Meaning::Taken => Ok(()),
            Meaning::Later => Err(failed(false, asked, SendError::Status(status))),
            Meaning::Never => Err(failed(true, None, SendError::Status(status))),
        }
    }
}

#[async_trait]
impl NotificationPort for WebhookSink {
    async fn deliver(&self, message: &Message) -> Result<(), DeliveryError> {
        self.deliver_traced(message, None).await
    }
}

fn failed(permanent: bool, retry_after_ms: Option<i64>, error: SendError) -> DeliveryError {
    DeliveryError { permanent, retry_after_ms, source: Box::new(error) }
}

fn pressed(pressed: Pressed) -> DeliveryError {
    match pressed {
        Pressed::Busy => failed(false, None, SendError::Busy),
        Pressed::Hangs(left) => {
            failed(false, i64::try_from(left.as_millis()).ok(), SendError::Hangs)
        }
    }
}

/// hyper's error without its wrappers, which say less than what they wrap.
fn innermost(error: &hyper_util::client::legacy::Error) -> Source {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        message = inner.to_string();
        cause = inner.source();
    }
    io::Error::other(message).into()
}

/// Reads what is left of an answer, within its bounds; a connection with more in it is closed.
async fn read_to_the_end(mut body: Incoming) {
    let reading = async {
        let mut left = ANSWER_BYTES_MAX;
        while let Some(Ok(frame)) = body.frame().await {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            let Some(less) = left.checked_sub(bytes) else { break };
            left = less;
        }
    };
    // Whether it ended or not: its status counts, and dropping the body closes the connection.
    let _ = timeout(ANSWER_WAIT, reading).await;
}
