//! The seam for authentication: who sends a request. `layers::identity` asks, `server` is told whom to ask.

use std::fmt::Debug;

use async_trait::async_trait;
use wf_core::models::Principal;

/// A request that proves nobody's identity. Says nothing about why: the answer must not either.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the request is not authenticated")]
pub struct Unauthenticated;

/// Finds out who sends a request.
///
/// Laws: the answer depends on the head of the request only, never on its body; nothing of the credentials is logged
/// or kept beyond what is needed to recognise them again.
#[async_trait]
pub trait Authenticator: Debug + Send + Sync {
    /// The principal behind a request head.
    ///
    /// # Errors
    /// [`Unauthenticated`] for a missing, malformed, expired, foreign or forged credential alike.
    async fn authenticate(&self, head: &http::request::Parts)
    -> Result<Principal, Unauthenticated>;
}

/// No authentication: everybody is the principal `local`. For a loopback listener.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

#[async_trait]
impl Authenticator for Nobody {
    async fn authenticate(&self, _: &http::request::Parts) -> Result<Principal, Unauthenticated> {
        Ok(Principal::local())
    }
}
