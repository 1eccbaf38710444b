//! Which requests have no answer yet, and how many may be at work at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::RequestId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::exchange::InFlight;

/// Subscriptions at once. They last, so they take no place of what comes and goes.
const LASTING_MAX: usize = 64;

/// The requests of one client.
#[derive(Debug)]
pub(super) struct Pending {
    places: Arc<Semaphore>,
    all: usize,
    /// Requests by id; one that lasts has no place.
    open: Mutex<HashMap<RequestId, Option<InFlight>>>,
}

/// Why a request is not begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// Its id is that of a request without an answer.
    SameId,
    /// There are too many subscriptions.
    TooMany,
}

impl Pending {
    pub(super) fn new(max: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(max)), all: max, open: Mutex::default() }
    }

    /// Waits until there is a place. Whoever sends more than that has to wait: nothing is lost on the way here.
    pub(super) async fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).acquire_owned().await.ok()
    }

    /// Begins a request; without a place it is one that lasts.
    pub(super) fn begin(&self, id: RequestId, place: Option<InFlight>) -> Result<(), Refused> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.contains_key(&id) {
            return Err(Refused::SameId);
        }
        let lasting = open.values().filter(|place| place.is_none()).count();
        if place.is_none() && lasting >= LASTING_MAX {
            return Err(Refused::TooMany);
        }
        open.insert(id, place);
        Ok(())
    }

    /// Ends a request: it is answered, or its client does not want the answer. What was begun goes on, in its place.
    pub(super) fn end(&self, id: &RequestId) -> Option<InFlight> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.remove(id).flatten()
    }

    /// Waits until nothing is at work and every answer is written.
    pub(super) async fn drained(&self, deadline: Instant) {
        let everything = u32::try_from(self.all).unwrap_or(u32::MAX);
        // Late or not, the caller goes on, and `abandoned` tells.
        drop(timeout_at(deadline, self.places.acquire_many(everything)).await);
    }

    /// How many are still at work.
    pub(super) fn abandoned(&self) -> usize {
        self.all.saturating_sub(self.places.available_permits())
    }
}
