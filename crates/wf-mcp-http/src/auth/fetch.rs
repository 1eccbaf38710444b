//! The HTTP client for an issuer's documents: bounded in time and size, and it goes nowhere but where it is told to.
//!
//! `issuer` and `keys` use it through [`Fetch`]. hyper's client follows no redirects, so a redirect is a status like
//! any other here: an error.

use std::error::Error;
use std::fmt::Debug;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::header::{ACCEPT, HeaderValue};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::{ClientConfig, RootCertStore};
use tokio::task::spawn_blocking;

use super::address::Address;

/// Largest document, in bytes. Sets of keys have some kilobytes.
pub(super) const DOCUMENT_BYTES_MAX: usize = 256 * 1024;
/// How long a fetch may take, from the name look-up to the last byte.
const DEADLINE: Duration = Duration::from_secs(3);

/// A document that could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The system has no certificates to trust, so that no `https` address can be checked.
    #[error("there are no trusted certificates on this system")]
    NoRoots(#[source] io::Error),
    /// No connection, no TLS, or no HTTP.
    #[error("the request failed")]
    Failed(#[source] Box<dyn Error + Send + Sync>),
    /// Another status than 200. Redirects are not followed.
    #[error("the answer has status {0}")]
    Status(StatusCode),
    /// Larger than 256 KiB.
    #[error("the answer has more than {limit} bytes")]
    TooLarge {
        /// Bytes allowed.
        limit: usize,
    },
    /// No whole answer within three seconds.
    #[error("no answer within {after:?}")]
    Timeout {
        /// What was waited.
        after: Duration,
    },
}

/// Gets a document by its address.
#[async_trait]
pub(super) trait Fetch: Debug + Send + Sync {
    /// The whole document.
    async fn get(&self, address: &Address) -> Result<Bytes, FetchError>;
}

/// The client over the network.
#[derive(Debug)]
pub(super) struct HttpFetch {
    client: Mutex<HttpsClient>,
    /// Only what the system trusts is read again: not what a test gave, nor the nothing that loopback needs.
    system: bool,
    deadline: Duration,
}

type HttpsClient = Client<HttpsConnector<HttpConnector>, Empty<Bytes>>;

impl HttpFetch {
    /// Trusts what the operating system trusts; on a system without certificates only loopback can be fetched.
    pub(super) fn new(secure: bool) -> Result<Self, FetchError> {
        Ok(Self { system: secure, ..Self::with(config(secure)?, DEADLINE) })
    }

    pub(super) fn with(config: ClientConfig, deadline: Duration) -> Self {
        Self { client: Mutex::new(client(config)), system: false, deadline }
    }

    /// The client, with what the system trusts now: a fetch every few minutes can afford to look. When that cannot be
    /// read, what was trusted before is.
    async fn client(&self) -> HttpsClient {
        let read = if self.system { spawn_blocking(|| config(true)).await.ok() } else { None };
        let mut known = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        match read {
            Some(Ok(config)) => *known = client(config),
            Some(Err(error)) => {
                tracing::warn!(%error, "what the system trusts cannot be read again, the old certificates stay");
            }
            None => {}
        }
        known.clone()
    }

    async fn whole(&self, address: &Address) -> Result<Bytes, FetchError> {
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = address.uri().clone();
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
        let response = self
            .client()
            .await
            .request(request)
            .await
            .map_err(|e| FetchError::Failed(Box::new(e)))?;
        if response.status() != StatusCode::OK {
            return Err(FetchError::Status(response.status()));
        }
        match Limited::new(response.into_body(), DOCUMENT_BYTES_MAX).collect().await {
            Ok(body) => Ok(body.to_bytes()),
            Err(error) if error.is::<LengthLimitError>() => {
                Err(FetchError::TooLarge { limit: DOCUMENT_BYTES_MAX })
            }
            Err(error) => Err(FetchError::Failed(error)),
        }
    }
}

fn config(secure: bool) -> Result<ClientConfig, FetchError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|source| FetchError::Failed(source.into()))?;
    let config = if secure {
        builder.with_native_roots().map_err(FetchError::NoRoots)?
    } else {
        builder.with_root_certificates(RootCertStore::empty())
    };
    Ok(config.with_no_client_auth())
}

fn client(config: ClientConfig) -> HttpsClient {
    let connector =
        HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1();
    Client::builder(TokioExecutor::new())
        // A fetch every few minutes: nothing to keep open.
        .pool_max_idle_per_host(0)
        .build(connector.build())
}

#[async_trait]
impl Fetch for HttpFetch {
    async fn get(&self, address: &Address) -> Result<Bytes, FetchError> {
        match tokio::time::timeout(self.deadline, self.whole(address)).await {
            Ok(answer) => answer,
            Err(_) => Err(FetchError::Timeout { after: self.deadline }),
        }
    }
}
