//! Asks the authenticator who sends the request. Inside, the caller is known and the credentials are out of the headers.

use std::sync::Arc;

use http::Uri;
use http::header::{AUTHORIZATION, HeaderValue};
use http::request::Parts;

use super::{Around, Inner, proceed};
use crate::access::Visitor;
use crate::auth::{Authenticator, Caller, Refusal};
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

/// What a caller was recognised by, for an answer that takes longer than a credential may count: whoever listens for
/// changes is asked for again before anything is told.
#[derive(Debug, Clone)]
pub(crate) struct Credentials {
    authenticator: Arc<dyn Authenticator>,
    /// Marked as sensitive: it is in no log.
    sent: HeaderValue,
    uri: Uri,
}

impl Credentials {
    fn new(authenticator: &Arc<dyn Authenticator>, mut sent: HeaderValue, head: &Parts) -> Self {
        sent.set_sensitive(true);
        Self { authenticator: Arc::clone(authenticator), sent, uri: head.uri.clone() }
    }

    /// Whose they are now.
    pub(crate) async fn caller(&self) -> Result<Caller, Refusal> {
        let (mut head, ()) = http::Request::new(()).into_parts();
        head.uri = self.uri.clone();
        head.headers.insert(AUTHORIZATION, self.sent.clone());
        self.authenticator.authenticate(&head).await
    }
}

impl Around for Identity {
    async fn around<S: Inner>(self, request: Request, next: S) -> Response {
        let Some(entrance) = self.entrances.at(Route::of(request.uri().path())) else {
            return Fault::NotFound.into_response();
        };
        let (mut head, body) = request.into_parts();
        let denied = match self.authenticator.authenticate(&head).await {
            Ok(caller) => {
                if let Some(sent) = head.headers.remove(AUTHORIZATION) {
                    let credentials = Credentials::new(&self.authenticator, sent, &head);
                    head.extensions.insert(credentials);
                }
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
