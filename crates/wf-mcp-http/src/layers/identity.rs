//! Asks the authenticator who sends the request. Inside, the principal is known and the credentials are gone.

use std::sync::Arc;

use http::header::AUTHORIZATION;

use super::{Around, Inner, proceed};
use crate::auth::Authenticator;
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
            Ok(principal) => {
                head.headers.remove(AUTHORIZATION);
                head.extensions.insert(Arc::new(principal));
                proceed(next, Request::from_parts(head, body)).await
            }
            Err(_) => Fault::Unauthorized.into_response(),
        }
    }
}
