//! The sink: one message, one attempt, one verdict.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout};
use wf_core::ports::{DeliveryError, Message, NotificationPort, Source};

use crate::address::Allowed;
use crate::answer::{Meaning, meaning, retry_after_ms};
#[cfg(test)]
use crate::connect::Lookup;
use crate::connect::{Connector, SystemLookup};
use crate::pressure::{AT_ONCE, Pressed, Pressure};
use crate::request;
use crate::secret::{SecretError, SecretFile};
use crate::target::{Target, TargetError};

/// How long a delivery may take, from the name look-up to the status.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);
/// What of an answer is read, in bytes, so that the connection can be used again. Nothing of it counts but the status.
pub(crate) const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// How long the rest of an answer may take once its status is known.
const ANSWER_WAIT: Duration = Duration::from_secs(1);
/// How long a connection stays open for the next message.
const IDLE: Duration = Duration::from_secs(15);
/// How long the certificates of authorities that the system trusts are taken as they were read.
const TRUST_AGAIN: Duration = Duration::from_secs(10 * 60);

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
    /// The system has no certificates to trust, so that no receiver can be recognised.
    #[error("there are no trusted certificates on this system")]
    NoRoots(#[source] io::Error),
    /// TLS as the program was built with.
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
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
    connector: Connector,
    /// The client, and when it took over what the system trusts.
    client: Mutex<(Instant, HttpsClient)>,
    deadline: Duration,
}

type HttpsClient = Client<HttpsConnector<Connector>, Full<Bytes>>;

impl WebhookSink {
    /// Reads the secret and checks the URL; sends nothing yet.
    ///
    /// # Errors
    /// [`OpenError`] when the configuration cannot be used.
    pub fn open(config: &WebhookConfig) -> Result<Self, OpenError> {
        let allowed = Allowed { private: config.allow_private };
        let target = Target::parse(&config.url, allowed)?;
        let tls = tls(target.is_secure())?;
        let connector = Connector::new(Arc::new(SystemLookup), allowed);
        Self::with(config, target, tls, connector, DEADLINE)
    }

    fn with(
        config: &WebhookConfig,
        target: Target,
        tls: ClientConfig,
        connector: Connector,
        deadline: Duration,
    ) -> Result<Self, OpenError> {
        let secrets = SecretFile::open(&config.secret_file)?;
        let client = Mutex::new((Instant::now(), client(tls, connector.clone())));
        let (source, pressure) = (config.source.clone(), Pressure::default());
        Ok(Self { target, source, secrets, pressure, connector, client, deadline })
    }

    /// The client, with what the system trusts now or a while ago. When that cannot be read, what was trusted before is.
    async fn client(&self) -> HttpsClient {
        let known = {
            let mut known = self.client.lock().unwrap_or_else(PoisonError::into_inner);
            if !self.target.is_secure() || known.0.elapsed() < TRUST_AGAIN {
                return known.1.clone();
            }
            // Who looks does so for all; the others go on with what is known.
            known.0 = Instant::now();
            known.1.clone()
        };
        match spawn_blocking(|| tls(true)).await {
            Ok(Ok(tls)) => {
                let new = client(tls, self.connector.clone());
                self.client.lock().unwrap_or_else(PoisonError::into_inner).1 = new.clone();
                new
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "what the system trusts cannot be read again, the old certificates stay");
                known
            }
            // The runtime ends.
            Err(_) => known,
        }
    }

    /// For tests inside this crate: with what is trusted, how names are looked up, and how long an answer may take.
    #[cfg(test)]
    pub(crate) fn for_tests(
        config: &WebhookConfig,
        tls: ClientConfig,
        lookup: Arc<dyn Lookup>,
        deadline: Duration,
    ) -> Result<Self, OpenError> {
        let allowed = Allowed { private: config.allow_private };
        let target = Target::parse(&config.url, allowed)?;
        Self::with(config, target, tls, Connector::new(lookup, allowed), deadline)
    }

    /// Reads the file of the secret again: to be called when it changed. From then on messages are signed with what is in it.
    ///
    /// # Errors
    /// [`SecretError`] when it cannot be used; messages go on with the keys that were in it.
    pub fn reload_secret(&self) -> Result<(), SecretError> {
        self.secrets.reload()
    }

    async fn send(&self, message: &Message) -> Result<(), DeliveryError> {
        let _place = self.pressure.place().await.map_err(pressed)?;
        let secrets = self.secrets.current();
        let now = SystemTime::now();
        let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        let request = request::of(message, &self.target, &self.source, &secrets, seconds)
            .map_err(|error| failed(true, None, SendError::Unwritable(error)))?;
        let client = self.client().await;
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
        let sent = self.send(message).await;
        if let Err(error) = &sent {
            let receiver = self.target.origin();
            tracing::debug!(id = %message.id, receiver, error = %error.source, "a webhook was not taken");
        }
        sent
    }
}

fn client(tls: ClientConfig, connector: Connector) -> HttpsClient {
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_http1()
        .wrap_connector(connector);
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(AT_ONCE)
        .build(connector)
}

fn tls(secure: bool) -> Result<ClientConfig, OpenError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(OpenError::Tls)?;
    let builder = if secure {
        builder.with_native_roots().map_err(OpenError::NoRoots)?
    } else {
        builder.with_root_certificates(RootCertStore::empty())
    };
    Ok(builder.with_no_client_auth())
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
