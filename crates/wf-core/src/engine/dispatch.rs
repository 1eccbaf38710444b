//! Delivers the outbox: takes leases of streams, delivers in order, settles. At least once (notifications.md).

use crate::limits::LEASE_MS;
use crate::models::Timestamp;
use crate::ports::{
    Claim, ClaimedStream, DeliveryError, LeaseToken, OutboxRow, ReadError, SettleError, Settled,
    Settlement,
};

use super::Engine;

/// Streams that one pass takes.
const STREAMS_MAX: u32 = 16;
/// Failed attempts after which a message is given up.
const ATTEMPTS_MAX: u32 = 12;
/// First and longest wait between attempts, in milliseconds.
const BACKOFF_MS: (i64, i64) = (1_000, 300_000);
/// Longest failure text kept, in characters.
const ERROR_CHARS_MAX: usize = 200;

impl Engine {
    /// Delivers due messages once; returns how many were settled. A lease that was lost in between is somebody else's
    /// work: the message may be delivered twice, never not at all.
    ///
    /// # Errors
    /// [`ReadError`] when the store does not answer.
    pub async fn dispatch_once(&self) -> Result<usize, ReadError> {
        let claim = Claim {
            now: self.parts.clock.now(),
            lease_ms: LEASE_MS,
            token: LeaseToken(self.parts.ids.random_hex()),
            limit: STREAMS_MAX,
        };
        let mut settled = 0;
        for stream in self.parts.store.claim_outbox(&claim).await? {
            let results = self.deliver(&stream).await;
            settled += results.len();
            let settlement = Settlement {
                tenant: stream.tenant,
                workflow_id: stream.workflow_id,
                recipient: stream.recipient,
                token: stream.token,
                now: self.parts.clock.now(),
                results,
            };
            match self.parts.store.settle_outbox(&settlement).await {
                Ok(()) | Err(SettleError::LeaseLost) => {}
                Err(SettleError::Unavailable { source }) => {
                    return Err(ReadError::Unavailable { source });
                }
            }
        }
        Ok(settled)
    }

    /// Delivers the rows of a stream in order, up to the first that does not get through.
    async fn deliver(&self, stream: &ClaimedStream) -> Vec<(String, Settled)> {
        let mut results = Vec::with_capacity(stream.rows.len());
        for row in &stream.rows {
            let delivered = self.parts.notifications.deliver(&row.message).await;
            let (settled, passed) = match delivered {
                Ok(()) => (Settled::Delivered, true),
                Err(error) => {
                    let settled = self.failed(row, &error);
                    let passed = match settled {
                        Settled::Delivered | Settled::Dead { .. } => true,
                        Settled::Retry { .. } => false,
                    };
                    (settled, passed)
                }
            };
            results.push((row.message.id.clone(), settled));
            if !passed {
                break;
            }
        }
        results
    }

    fn failed(&self, row: &OutboxRow, error: &DeliveryError) -> Settled {
        let text: String = error.source.to_string().chars().take(ERROR_CHARS_MAX).collect();
        if error.permanent || row.status.attempts + 1 >= ATTEMPTS_MAX {
            return Settled::Dead { error: text };
        }
        let jitter = self.parts.ids.random_hex();
        let wait = backoff(row.status.attempts, &jitter).max(error.retry_after_ms.unwrap_or(0));
        let at: Timestamp = self.parts.clock.now().plus_ms(wait);
        Settled::Retry { at, error: text }
    }
}

/// Exponential, between half and all of the step, so that many failures do not come back at once.
fn backoff(attempts: u32, random_hex: &str) -> i64 {
    let (first, longest) = BACKOFF_MS;
    let step = first.saturating_mul(1_i64 << attempts.min(20)).min(longest);
    let random = random_hex.get(..4).and_then(|hex| i64::from_str_radix(hex, 16).ok());
    step / 2 + step / 2 * random.unwrap_or(0xffff) / 0xffff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_grows_to_its_bound_and_is_spread() {
        assert_eq!(backoff(0, "ffff"), 1_000);
        assert_eq!(backoff(0, "0000"), 500);
        assert_eq!(backoff(3, "ffff"), 8_000);
        assert_eq!(backoff(60, "ffff"), 300_000);
    }
}
