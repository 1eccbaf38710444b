//! The client that messages are sent with: it trusts what the operating system trusts, and looks again after a while, so
//! that an authority that came or went counts without a restart.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use crate::connect::Connector;
use crate::pressure::AT_ONCE;

/// How long a connection stays open for the next message.
const IDLE: Duration = Duration::from_secs(15);
/// How long what the system trusts is taken as it was read.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_secs(10 * 60);

pub(crate) type HttpsClient = Client<HttpsConnector<Connector>, Full<Bytes>>;

/// TLS that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The system has no certificates to trust, so that no receiver can be recognised.
    #[error("there are no trusted certificates on this system")]
    NoRoots(#[source] io::Error),
    /// TLS as the program was built with.
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
}

/// Says what is trusted now.
pub(crate) type Trust = Arc<dyn Fn() -> Result<ClientConfig, TrustError> + Send + Sync>;

/// What the operating system trusts; nothing where there is no TLS.
pub(crate) fn of_the_system(secure: bool) -> Trust {
    Arc::new(move || {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TrustError::Tls)?;
        let builder = if secure {
            builder.with_native_roots().map_err(TrustError::NoRoots)?
        } else {
            builder.with_root_certificates(RootCertStore::empty())
        };
        Ok(builder.with_no_client_auth())
    })
}

/// The client, and what makes another one.
pub(crate) struct Trusting {
    trust: Trust,
    connector: Connector,
    known: Mutex<(Instant, HttpsClient)>,
}

impl fmt::Debug for Trusting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trusting").field("connector", &self.connector).finish_non_exhaustive()
    }
}

impl Trusting {
    /// Looks for the first time.
    pub(crate) fn open(trust: Trust, connector: Connector) -> Result<Self, TrustError> {
        let made = client(trust()?, connector.clone());
        Ok(Self { trust, connector, known: Mutex::new((Instant::now(), made)) })
    }

    /// The client that counts now. When it cannot be read what is trusted, that of before stays.
    pub(crate) async fn client(&self) -> HttpsClient {
        let known = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            if known.0.elapsed() < LOOK_AGAIN {
                return known.1.clone();
            }
            // Who looks does so for all; the others go on with what is known.
            known.0 = Instant::now();
            known.1.clone()
        };
        let trust = Arc::clone(&self.trust);
        match spawn_blocking(move || trust()).await {
            Ok(Ok(tls)) => {
                let made = client(tls, self.connector.clone());
                self.known.lock().unwrap_or_else(PoisonError::into_inner).1 = made.clone();
                made
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "what the system trusts cannot be read again, the old certificates stay");
                known
            }
            // The runtime ends.
            Err(_) => known,
        }
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
