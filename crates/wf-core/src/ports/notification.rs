//! `NotificationPort`: where messages of the outbox go.

use std::fmt::Debug;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::models::{TenantId, Timestamp, WorkflowId};
use crate::state_machine::Event;

use super::Source;

/// One message: what a sink gets (notifications.md, Body). Never holds a sensitive value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Stable over redelivery: see [`Message::id_of`].
    pub id: String,
    /// The event's kind.
    #[serde(rename = "type")]
    pub kind: String,
    /// The event's time.
    pub time: Timestamp,
    /// The tenant.
    pub tenant: TenantId,
    /// The workflow.
    pub workflow_id: WorkflowId,
    /// The event's place in the history.
    pub seq: u64,
    /// Who is told; a name that the configuration routes.
    pub recipient: String,
    /// What about.
    pub data: Value,
}

/// Characters of the event's hash in the id of a message.
const HASH_CHARS: usize = 8;

impl Message {
    /// The id of the message by which a recipient is told of an event: `<workflow id>/<seq>/<recipient>/<hash>`, the first
    /// eight digits of the event's hash at its end. A store that was restored writes its history anew from some place on,
    /// and a receiver that remembers ids must not take the new message for the one of the lost time.
    #[must_use]
    pub fn id_of(event: &Event, recipient: &str) -> String {
        let hash = event.hash.as_str();
        let hash = hash.get(..HASH_CHARS).unwrap_or(hash);
        format!("{}/{}/{recipient}/{hash}", event.workflow_id, event.seq)
    }
}

/// A delivery that did not succeed.
#[derive(Debug, Error)]
#[error("the message was not delivered")]
pub struct DeliveryError {
    /// Trying again cannot help.
    pub permanent: bool,
    /// The sink asked to wait this long, in milliseconds.
    pub retry_after_ms: Option<i64>,
    /// Why.
    #[source]
    pub source: Source,
}

/// A sink. Deliveries are at least once; a receiver drops repeats by the message id.
#[async_trait]
pub trait NotificationPort: Debug + Send + Sync {
    /// Delivers one message, or says why not.
    ///
    /// # Errors
    /// [`DeliveryError`]; the dispatcher tries again unless it is permanent.
    async fn deliver(&self, message: &Message) -> Result<(), DeliveryError>;
}
