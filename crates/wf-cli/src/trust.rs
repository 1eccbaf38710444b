//! TLS towards servers of others, for `client` and `otlp`: it trusts what the operating system trusts. `SSL_CERT_FILE` and
//! `SSL_CERT_DIR` name other authorities, as for every program that asks OpenSSL's places.

use std::error::Error;
use std::io;
use std::sync::Arc;

use hyper_rustls::ConfigBuilderExt as _;
use rustls::{ClientConfig, RootCertStore};

/// TLS that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TrustError {
    /// The system has no certificates to trust.
    #[error("there are no trusted certificates on this system")]
    NoRoots(#[source] io::Error),
    /// TLS as the program was built with.
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
}

/// What the operating system trusts; nothing where there is no TLS, so that a system without certificates will do.
pub(crate) fn of_the_system(secure: bool) -> Result<ClientConfig, TrustError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TrustError::Tls)?;
    let config = if secure {
        builder.with_native_roots().map_err(TrustError::NoRoots)?
    } else {
        builder.with_root_certificates(RootCertStore::empty())
    };
    Ok(config.with_no_client_auth())
}

/// What TLS itself did not like, if that is among the causes of `error`: it may be inside an error of the system, which
/// does not name it as its source.
pub(crate) fn refusal<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = match inner {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}
