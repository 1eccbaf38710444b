//! Asks the authenticator who sends the request. Inside, the caller is known and the credentials are gone.

use std::sync::Arc;

use http::header::AUTHORIZATION;

use super::{Around, Inner, proceed};
use crate::access::Visitor;
use crate::auth::{Authenticator, Refusal};
use crate::entrance::Entrances;
use crate::exchange::{Request, Response};
use crate::fault::{Denied, Fault};
use crate::routes::Route;

/// Authenticates in front of everything inside.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) authenticator: Arc<dyn Authenticator>,
    pub(crate) entrances: Entrances,
}

impl Around for Identity {
    async fn around<S: Inner>(self, request: Request, next: S) -> Response {
        let Some(entrance) = self.entrances.at(Route::of(request.uri().path())) else {
            return Fault::NotFound.into_response();
        };
        let (mut head, body) = request.into_parts();
        let denied = match self.authenticator.authenticate(&head).await {
            Ok(caller) => {
                head.headers.remove(AUTHORIZATION);
                head.extensions.insert(Visitor { caller, entrance: Arc::clone(entrance) });
                return proceed(next, Request::from_parts(head, body)).await;
            }
            Err(Refusal::Unauthenticated) => entrance.unauthorized(),
            Err(Refusal::BadRequest(sentence)) => Denied::Credentials(sentence),
            Err(Refusal::Unavailable { after }) => Denied::KeysUnavailable { after },
        };
        Fault::Denied(denied).into_response()
    }
}
