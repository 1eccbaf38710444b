//! Where messages go: takes them, refuses them for now, hangs, and loses its own answers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::sleep;
use wf_core::ports::{DeliveryError, Message, NotificationPort};

use super::sea::{Fate, Sea};

/// Everything that was taken, in order.
#[derive(Debug, Clone)]
pub(super) struct Sink {
    sea: Sea,
    taken: Arc<Mutex<Vec<Message>>>,
}

#[derive(Debug, thiserror::Error)]
#[error("the sink of the simulation")]
struct Refused;

impl Sink {
    pub(super) fn new(sea: &Sea) -> Self {
        Self { sea: sea.clone(), taken: Arc::default() }
    }

    /// What was taken first, by the place of each in that order.
    pub(super) fn first_taken(&self) -> BTreeMap<String, usize> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let mut first = BTreeMap::new();
        for (place, message) in taken.iter().enumerate() {
            first.entry(message.id.clone()).or_insert(place);
        }
        first
    }
}

#[async_trait]
impl NotificationPort for Sink {
    async fn deliver(&self, message: &Message) -> Result<(), DeliveryError> {
        sleep(self.sea.delay()).await;
        let fate = self.sea.fate();
        self.sea.note(format_args!("sink {} {fate:?}", message.id));
        let refused =
            || DeliveryError { permanent: false, retry_after_ms: None, source: Box::new(Refused) };
        match fate {
            Fate::Before => return Err(refused()),
            // Longer than anybody waits for a sink.
            Fate::Later => sleep(Duration::from_secs(120)).await,
            Fate::Fine | Fate::After => {}
        }
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).push(message.clone());
        if fate == Fate::After { Err(refused()) } else { Ok(()) }
    }
}
