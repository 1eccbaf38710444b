//! Outermost: a panic becomes a 500 and a log line; the connection and the process live on.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;

use super::{Around, Inner, proceed};
use crate::exchange::{Request, Response};
use crate::fault::Fault;
use crate::layers::trace::RequestIds;

/// Catches panics of everything inside.
#[derive(Debug, Clone)]
pub(crate) struct Panics {
    pub(crate) ids: RequestIds,
}

impl Around for Panics {
    async fn around<S: Inner>(self, request: Request, next: S) -> Response {
        match AssertUnwindSafe(proceed(next, request)).catch_unwind().await {
            Ok(response) => response,
            Err(_) => {
                let incident = self.ids.next().0.to_string();
                // The panic hook has printed the message and the place; neither may go to the caller.
                tracing::error!(incident, "a request panicked");
                Fault::Internal { incident }.into_response()
            }
        }
    }
}
