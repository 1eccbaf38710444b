//! Authentication: who sends a request. `layers::identity` asks, `server` is told whom to ask.
//!
//! The seam is [`Authenticator`]. Behind it [`JwtAuthenticator`] recognises callers by the tokens of an authorization
//! server; [`DevKey`] stands in for one on a developer's machine.

mod address;
mod bearer;
mod cache;
mod check;
mod claims;
mod dev_key;
mod fetch;
mod issuer;
mod jwt;
mod key;
mod keys;
mod masked;
mod settings;
mod token;

#[cfg(test)]
mod tests;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use wf_core::models::{Principal, TenantId};

pub use address::AddressError;
pub use dev_key::{DevKey, DevKeyError, DevToken};
pub use fetch::FetchError;
pub use issuer::{Issuer, IssuerError, Metadata, WellKnown};
pub use jwt::{JwtAuthenticator, JwtError};
pub use masked::Masked;
pub use settings::{
    AlgorithmError, Audience, JwtConfig, JwtConfigError, KeyTimes, SigningAlgorithm,
};

/// The scope to see workflows.
pub const SCOPE_READ: &str = "workflow:read";
/// The scope to drive one's own workflows.
pub const SCOPE_WRITE: &str = "workflow:write";
/// The scope to read and write all workflows of the tenant and to resolve blocks.
pub const SCOPE_SUPERVISE: &str = "workflow:supervise";

/// Who sends a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// A person who acts, with what they may do. Shared, since a recognised credential gives the same one again.
    User(Arc<Principal>),
    /// A client without a person behind it: it may learn what there is (`initialize`, the lists), never act.
    Service(ServiceCaller),
}

/// A client that speaks for nobody (OAuth `client_credentials`, RFC 6749 section 4.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceCaller {
    /// The tenant that everything is scoped to.
    pub tenant: TenantId,
    /// The OAuth client.
    pub client_id: Arc<str>,
}

/// Why nobody was recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The request proves nobody's identity: 401. Says nothing about why: the answer must not either.
    #[error("the request is not authenticated")]
    Unauthenticated,
    /// The request carries credentials in a way that no client should (RFC 6750 section 3.1): 400.
    #[error("{0}")]
    BadRequest(&'static str),
    /// Nothing can be told about any credential yet, for want of the issuer's keys: 503.
    #[error("credentials cannot be checked at the moment")]
    Unavailable {
        /// When to ask again.
        after: Duration,
    },
}

/// Finds out who sends a request.
///
/// Laws: the answer depends on the head of the request only, never on its body; nothing of the credentials is logged
/// or kept beyond what is needed to recognise them again.
#[async_trait]
pub trait Authenticator: Debug + Send + Sync {
    /// The caller behind a request head.
    ///
    /// # Errors
    /// [`Refusal::Unauthenticated`] for a missing, malformed, expired, foreign or forged credential alike; the other
    /// refusals when it is not the credential that is wrong.
    async fn authenticate(&self, head: &http::request::Parts) -> Result<Caller, Refusal>;
}

/// No authentication: everybody is the principal `local`. For a loopback listener.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

#[async_trait]
impl Authenticator for Nobody {
    async fn authenticate(&self, _: &http::request::Parts) -> Result<Caller, Refusal> {
        Ok(Caller::User(Arc::new(Principal::local())))
    }
}
