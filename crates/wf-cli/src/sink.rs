//! The `log` sink: one structured log line for each message of the outbox.

use async_trait::async_trait;
use wf_core::ports::{DeliveryError, Message, NotificationPort};

/// Writes messages to the log. Messages hold no sensitive value by construction.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LogSink;

#[async_trait]
impl NotificationPort for LogSink {
    async fn deliver(&self, message: &Message) -> Result<(), DeliveryError> {
        metrics::counter!("checkpoint_notifications_delivered_total", "sink" => "log").increment(1);
        tracing::info!(
            target: "checkpoint::notification",
            id = %message.id,
            kind = %message.kind,
            time = %message.time,
            tenant = %message.tenant,
            workflow = %message.workflow_id,
            seq = message.seq,
            recipient = %message.recipient,
            data = %message.data,
            "notification"
        );
        Ok(())
    }
}
