//! Bounds how many MCP requests are worked on at once. More are refused at once rather than queued, so that the ones
//! inside keep their speed. Health and metrics are never shed.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::{Around, Inner, proceed};
use crate::exchange::{InFlight, Request, Response};
use crate::fault::Fault;
use crate::routes::Route;

/// Sheds load in front of everything inside.
#[derive(Debug, Clone)]
pub(crate) struct Shedding {
    pub(crate) places: Arc<Semaphore>,
}

impl Around for Shedding {
    async fn around<S: Inner>(self, mut request: Request, next: S) -> Response {
        let route = Route::of(request.uri().path());
        if !route.is_mcp() && route != Route::Ack {
            return proceed(next, request).await;
        }
        match self.places.try_acquire_owned() {
            Ok(permit) => {
                // Held here until the answer, and by `handler` until the call is over.
                let place = InFlight::new(permit);
                request.extensions_mut().insert(place.clone());
                let response = proceed(next, request).await;
                drop(place);
                response
            }
            Err(_) => Fault::Overloaded.into_response(),
        }
    }
}
