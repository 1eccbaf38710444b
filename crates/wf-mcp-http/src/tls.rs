//! TLS of the main listener: a certificate chain and its key, which may be replaced while the server runs.
//!
//! `accept` shakes hands with it. HTTP/1.1 is the only protocol that is offered (docs/adr/0010), early data is never
//! taken (it can be replayed, RFC 8446 section 8). What is wrong with a file is said without showing any of it.

mod validity;

use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// A certificate chain with its key, shared by all clones.
#[derive(Debug, Clone)]
pub struct Tls(Arc<RwLock<Served>>);

/// What is served now.
#[derive(Debug)]
struct Served {
    config: Arc<ServerConfig>,
    /// The end of the certificate of the chain that ends first.
    ends_at: Option<i64>,
}

/// A chain and a key that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The first text is not a chain of certificates in PEM.
    #[error("the certificate is not a chain of certificates in PEM")]
    Certificate,
    /// The second text is not a private key in PEM.
    #[error("the key is not a private key in PEM (PKCS #8, PKCS #1 or SEC 1)")]
    Key,
    /// Both are readable and do not fit together, or are of a kind that TLS does not know.
    #[error("the certificate and the key cannot be used together")]
    Rejected(#[source] rustls::Error),
}

impl Tls {
    /// From a chain, the server's own certificate first, and the key of that one, both in PEM (RFC 7468).
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn new(chain: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        Ok(Self(Arc::new(RwLock::new(served(chain, key)?))))
    }

    /// Takes another chain and key for connections from now on; open ones keep theirs.
    ///
    /// # Errors
    /// [`TlsError`]; then the old ones stay.
    pub fn replace(&self, chain: &[u8], key: &[u8]) -> Result<(), TlsError> {
        let served = served(chain, key)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = served;
        Ok(())
    }

    /// When the certificate of the chain that ends first ends, as Unix time in seconds (`notAfter`, RFC 5280 section
    /// 4.1.2.5); `None` when none can be read.
    #[must_use]
    pub fn ends_at(&self) -> Option<i64> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).ends_at
    }

    /// Shakes hands for one connection.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner).config))
    }
}

fn served(chain: &[u8], key: &[u8]) -> Result<Served, TlsError> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(chain)
        .collect::<Result<_, _>>()
        .map_err(|_| TlsError::Certificate)?;
    if chain.is_empty() {
        return Err(TlsError::Certificate);
    }
    let ends_at =
        chain.iter().filter_map(|one: &CertificateDer<'_>| validity::not_after(one)).min();
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| TlsError::Key)?;
    // Named here, since a process may have several providers and then no default.
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Rejected)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(TlsError::Rejected)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.max_early_data_size = 0;
    Ok(Served { config: Arc::new(config), ends_at })
}
