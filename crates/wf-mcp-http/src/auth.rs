//! The seam for authentication: who sends a request. `layers::identity` asks, `server` is told whom to ask.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use wf_core::models::{Principal, TenantId};

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
