//! A sink that records what it was given and fails on a script.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use wf_core::ports::{DeliveryError, Message, NotificationPort};

use crate::fault::Gate;

/// How a delivery goes.
#[derive(Debug, Clone)]
pub enum Delivery {
    /// Taken, and said so.
    Taken,
    /// Taken, but the answer is lost: the dispatcher will come again.
    AnswerLost,
    /// Not taken.
    Refused {
        /// Trying again cannot help.
        permanent: bool,
        /// The sink asks to wait this long, in milliseconds.
        retry_after_ms: Option<i64>,
    },
    /// Waits at the gate, then is taken.
    Held(Gate),
    /// The sink itself breaks.
    Panics,
}

/// The cause in every error of a [`RecordingSink`].
#[derive(Debug, thiserror::Error)]
#[error("the test's script says so")]
struct Scripted;

#[derive(Debug, Default)]
struct Record {
    script: VecDeque<Delivery>,
    attempts: Vec<Message>,
    taken: Vec<Message>,
}

/// Takes every message unless its script says otherwise. Clones are the same sink.
#[derive(Debug, Clone, Default)]
pub struct RecordingSink {
    record: Arc<Mutex<Record>>,
}

impl RecordingSink {
    /// A sink that takes everything.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next deliveries go like this, one after the other.
    pub fn script(&self, deliveries: impl IntoIterator<Item = Delivery>) {
        self.lock().script.extend(deliveries);
    }

    /// The next `times` deliveries are refused, for now or for ever.
    pub fn refuse(&self, times: usize, permanent: bool) {
        let refused = Delivery::Refused { permanent, retry_after_ms: None };
        self.script(std::iter::repeat_n(refused, times));
    }

    /// Every message it was given, taken or not, in order.
    #[must_use]
    pub fn attempts(&self) -> Vec<Message> {
        self.lock().attempts.clone()
    }

    /// Every message it took, in order; repeats as often as they came.
    #[must_use]
    pub fn taken(&self) -> Vec<Message> {
        self.lock().taken.clone()
    }
}

fn error(permanent: bool, retry_after_ms: Option<i64>) -> DeliveryError {
    DeliveryError { permanent, retry_after_ms, source: Box::new(Scripted) }
}

#[async_trait]
impl NotificationPort for RecordingSink {
    async fn deliver(&self, message: &Message) -> Result<(), DeliveryError> {
        let delivery = {
            let mut record = self.lock();
            record.attempts.push(message.clone());
            record.script.pop_front().unwrap_or(Delivery::Taken)
        };
        let answer = match delivery {
            Delivery::Taken => Ok(()),
            Delivery::AnswerLost => Err(error(false, None)),
            Delivery::Refused { permanent, retry_after_ms } => {
                return Err(error(permanent, retry_after_ms));
            }
            Delivery::Held(gate) => {
                gate.pass().await;
                Ok(())
            }
            Delivery::Panics => std::panic::resume_unwind(Box::new(Scripted)),
        };
        self.lock().taken.push(message.clone());
        answer
    }
}
