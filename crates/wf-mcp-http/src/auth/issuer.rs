//! An authorization server as its metadata describes it (RFC 8414). `keys` asks it where its keys are.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value};
use wf_core::idempotency::{StrictLimits, parse_strict};

use super::address::{Address, AddressError};
use super::fetch::{DOCUMENT_BYTES_MAX, Fetch, FetchError, HttpFetch};

/// An authorization server, by its issuer identifier.
#[derive(Debug, Clone)]
pub struct Issuer {
    name: Arc<str>,
    address: Address,
    fetch: Arc<dyn Fetch>,
}

/// Where the metadata was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WellKnown {
    /// At `/.well-known/oauth-authorization-server` (RFC 8414 section 3).
    OAuth,
    /// At `/.well-known/openid-configuration` only, which not every client looks at.
    OpenId,
}

/// The metadata of an authorization server, of the issuer that was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Metadata {
    /// Where it was.
    pub at: WellKnown,
    /// The document, byte for byte.
    pub bytes: Bytes,
    /// What it says.
    pub document: Map<String, Value>,
}

impl Metadata {
    /// Whether the list `name` of the document has `entry`: `code_challenge_methods_supported` has `S256`.
    #[must_use]
    pub fn lists(&self, name: &str, entry: &str) -> bool {
        let list = self.document.get(name).and_then(Value::as_array);
        list.is_some_and(|list| list.iter().any(|item| item.as_str() == Some(entry)))
    }
}

/// An issuer whose documents cannot be used. Every message names the address, where there is one.
#[derive(Debug, thiserror::Error)]
pub enum IssuerError {
    /// The identifier, or the `jwks_uri` of the metadata, is no address to fetch from.
    #[error("{url} cannot be fetched")]
    Address {
        /// The address.
        url: String,
        /// Why.
        #[source]
        source: AddressError,
    },
    /// Nobody answers as hoped for.
    #[error("cannot fetch {url}")]
    Fetch {
        /// The address.
        url: String,
        /// Why.
        #[source]
        source: FetchError,
    },
    /// The client cannot be set up.
    #[error("cannot fetch anything")]
    Client(#[source] FetchError),
    /// The document is not what it should be.
    #[error("{url} {problem}")]
    Document {
        /// The address.
        url: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}

impl Issuer {
    /// An issuer by its identifier; nothing is fetched yet.
    ///
    /// # Errors
    /// [`IssuerError::Address`] and [`IssuerError::Client`].
    pub fn new(name: &str) -> Result<Self, IssuerError> {
        let address = Address::issuer(name)
            .map_err(|source| IssuerError::Address { url: name.to_owned(), source })?;
        let fetch = HttpFetch::new(address.is_secure()).map_err(IssuerError::Client)?;
        Ok(Self::with(name, address, Arc::new(fetch)))
    }

    pub(super) fn with(name: &str, address: Address, fetch: Arc<dyn Fetch>) -> Self {
        Self { name: name.into(), address, fetch }
    }

    /// Fetches the metadata: the OAuth document, or where that is not found the one of OpenID Connect.
    ///
    /// # Errors
    /// [`IssuerError`], also when the document is that of another issuer (RFC 8414 section 3.3).
    pub async fn metadata(&self) -> Result<Metadata, IssuerError> {
        let oauth = self.own(self.address.well_known("oauth-authorization-server"))?;
        match self.fetch.get(&oauth).await {
            Ok(bytes) => self.read(WellKnown::OAuth, &oauth, bytes),
            Err(FetchError::Status(status)) if status.is_client_error() => {
                let openid = self.own(self.address.discovery())?;
                let bytes = fetched(&openid, self.fetch.get(&openid).await)?;
                self.read(WellKnown::OpenId, &openid, bytes)
            }
            Err(source) => Err(IssuerError::Fetch { url: oauth.to_string(), source }),
        }
    }

    /// Where the metadata says that the keys are.
    pub(super) fn keys_at(&self, metadata: &Metadata) -> Result<Address, IssuerError> {
        let Some(url) = metadata.document.get("jwks_uri").and_then(Value::as_str) else {
            let url = self.address.to_string();
            return Err(IssuerError::Document { url, problem: "has metadata without a jwks_uri" });
        };
        self.address
            .leads_to(url)
            .map_err(|source| IssuerError::Address { url: url.chars().take(200).collect(), source })
    }

    fn own(&self, address: Result<Address, AddressError>) -> Result<Address, IssuerError> {
        address.map_err(|source| IssuerError::Address { url: self.name.to_string(), source })
    }

    fn read(&self, at: WellKnown, url: &Address, bytes: Bytes) -> Result<Metadata, IssuerError> {
        let document = object(url, &bytes)?;
        if document.get("issuer").and_then(Value::as_str) != Some(&*self.name) {
            let problem = "is the metadata of another issuer";
            return Err(IssuerError::Document { url: url.to_string(), problem });
        }
        Ok(Metadata { at, bytes, document })
    }
}

/// What was fetched from `url`.
pub(super) fn fetched(
    url: &Address,
    answer: Result<Bytes, FetchError>,
) -> Result<Bytes, IssuerError> {
    answer.map_err(|source| IssuerError::Fetch { url: url.to_string(), source })
}

/// The JSON object in a document.
pub(super) fn object(url: &Address, bytes: &[u8]) -> Result<Map<String, Value>, IssuerError> {
    let limits = StrictLimits { max_bytes: DOCUMENT_BYTES_MAX, max_depth: 16 };
    match parse_strict(bytes, limits) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) | Err(_) => {
            let problem = "is not a JSON object";
            Err(IssuerError::Document { url: url.to_string(), problem })
        }
    }
}
