//! Who a token is: the one port of the console besides the engine. `wf-cli` answers with the authenticator of `/mcp`.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use wf_core::models::Principal;

/// Why a token lets nobody in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Turned {
    /// It is malformed, expired, foreign or forged: one answer for all.
    #[error("the token counts for nobody")]
    Unknown,
    /// It is a client's own, without a person behind it.
    #[error("the token is that of a service, not of a person")]
    Service,
    /// No token can be checked at the moment.
    #[error("tokens cannot be checked at the moment")]
    Unavailable,
}

/// Says who may come in.
///
/// Laws: nothing of a token is logged or kept; a token that has expired is [`Turned::Unknown`] from then on.
#[async_trait]
pub trait Door: Debug + Send + Sync {
    /// Whom everybody is taken for, where nobody has to sign in.
    fn open_to(&self) -> Option<Arc<Principal>>;

    /// Whose token it is, now. The console asks at every request.
    ///
    /// # Errors
    /// [`Turned`].
    async fn recognise(&self, token: &str) -> Result<Arc<Principal>, Turned>;
}
