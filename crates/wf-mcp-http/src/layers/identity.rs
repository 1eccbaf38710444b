//! Asks the authenticator who sends the request. Inside, the principal is known and the credentials are gone.

use std::sync::Arc;

use http::header::AUTHORIZATION;

use super::{Around, Inner, proceed};
use crate::auth::{Authenticator, Caller, Refusal};
use crate::exchange::{Request, Response};
use crate::fault::Fault;

/// Authenticates in front of everything inside.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) authenticator: Arc<dyn Authenticator>,
}

impl Around for Identity {
    async fn around<S: Inner>(self, request: Request, next: S) -> Response {
        let (mut head, body) = request.into_parts();
        match self.authenticator.authenticate(&head).await {
            Ok(Caller::User(principal)) => {
                head.headers.remove(AUTHORIZATION);
                head.extensions.insert(principal);
                proceed(next, Request::from_parts(head, body)).await
            }
            // Nothing inside knows service callers yet.
            Ok(Caller::Service(_)) | Err(Refusal::Unauthenticated) => {
                Fault::Unauthorized.into_response()
            }
            Err(Refusal::BadRequest(sentence)) => Fault::Credentials(sentence).into_response(),
            Err(refusal @ Refusal::Unavailable { .. }) => {
                Fault::NotReady { reason: refusal.to_string() }.into_response()
            }
        }
    }
}
