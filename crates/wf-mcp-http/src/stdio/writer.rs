//! Writes lines, one after the other, each whole. `transport` queues them.

use serde_json::Value;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::exchange::InFlight;

/// Lines that may wait to be written. More make their senders wait, and those hold their places.
pub(super) const QUEUE: usize = 16;

/// A line on its way out.
#[derive(Debug)]
pub(super) struct Outgoing {
    line: Vec<u8>,
    /// The place of the request that this answers: it is free once the answer is written.
    place: Option<InFlight>,
}

impl Outgoing {
    /// A message, as it is to be written.
    pub(super) fn new(mut message: Vec<u8>, place: Option<InFlight>) -> Self {
        message.push(b'\n');
        Self { line: message, place }
    }

    /// A message of ours.
    pub(super) fn of(message: &Value) -> Self {
        Self::new(message.to_string().into_bytes(), None)
    }
}

/// Writes until nothing more can come. When the reader of these lines is gone, `gone` is cancelled.
pub(super) async fn write<W: AsyncWrite + Unpin>(
    mut queue: mpsc::Receiver<Outgoing>,
    mut output: W,
    gone: CancellationToken,
) {
    while let Some(Outgoing { line, place }) = queue.recv().await {
        if gone.is_cancelled() {
            continue;
        }
        let written = async {
            output.write_all(&line).await?;
            output.flush().await
        };
        if let Err(error) = written.await {
            tracing::debug!(%error, "the client does not read any more");
            gone.cancel();
        }
        drop(place);
    }
}
