//! Delivers the outbox: takes leases of streams, delivers in order, settles. At least once.
//!
//! A stream is (workflow, recipient), the unit of order and of lease. Streams go side by side, so that none waits for the
//! sink of another. Who serves claims with [`Engine::claim_streams`] and runs [`Engine::deliver_stream`] in tasks of its
//! own; [`Engine::dispatch_once`] does both once, for everybody else. `together` has what this needs of futures.

pub(super) mod together;

use std::error::Error;
use std::fmt;

use crate::limits::{
    DELIVERY_ATTEMPTS_MAX, DELIVERY_BACKOFF_MAX_MS, DELIVERY_CLAIM_MS, DELIVERY_MS,
    DELIVERY_SETTLE_MS, LEASE_MS, RETRY_AFTER_MAX_MS,
};
use crate::models::{TenantId, WorkflowId};
use crate::ports::{
    Claim, ClaimedStream, DeliveryError, LeaseToken, Message, OutboxRow, ReadError, SettleError,
    Settled, Settlement,
};

use super::Engine;
use together::Timer;

/// Streams that one round of [`Engine::dispatch_once`] takes.
const STREAMS_MAX: u32 = 16;
/// First wait between attempts, in milliseconds.
const BACKOFF_FIRST_MS: i64 = 1_000;
/// Longest failure text kept, in characters.
const ERROR_CHARS_MAX: usize = 200;
/// How long after its claim the next delivery of a stream may begin: later it could outlive the lease.
const BEGIN_MS: i64 = LEASE_MS - DELIVERY_CLAIM_MS - DELIVERY_MS - DELIVERY_SETTLE_MS;

/// A stream under lease, and how long its deliveries may begin by the monotonic clock.
pub struct LeasedStream {
    stream: ClaimedStream,
    may_begin: Timer,
}

impl LeasedStream {
    /// Whom its messages are for.
    #[must_use]
    pub fn recipient(&self) -> &str {
        &self.stream.recipient
    }
}

impl fmt::Debug for LeasedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeasedStream").field("stream", &self.stream).finish_non_exhaustive()
    }
}

/// What became of the messages of one stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dispatched {
    /// Messages that their sink took.
    pub delivered: usize,
    /// The message that did not get through and is tried again; those behind it wait.
    pub retried: Option<Undelivered>,
    /// Messages that were given up.
    pub given_up: Vec<Undelivered>,
    /// Somebody else had the lease when it was to be written down: the messages come again, under the same ids.
    pub lease_lost: bool,
}

impl Dispatched {
    fn settled(&self) -> usize {
        self.delivered + usize::from(self.retried.is_some()) + self.given_up.len()
    }
}

/// A message that did not get through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undelivered {
    /// Its id.
    pub id: String,
    /// Its tenant.
    pub tenant: TenantId,
    /// Its workflow.
    pub workflow_id: WorkflowId,
    /// Failed attempts, this one included.
    pub attempts: u32,
    /// Why, at most 200 characters.
    pub error: String,
}

/// A sink that gave no answer of its own.
#[derive(Debug, thiserror::Error)]
enum NoAnswer {
    #[error("the sink did not answer in time")]
    Late,
    #[error("the sink panicked")]
    Panicked,
}

impl Engine {
    /// Delivers due messages once, streams side by side; returns how many were settled. A lease that was lost in
    /// between is somebody else's work: the message may be delivered twice, never not at all.
    ///
    /// # Errors
    /// [`ReadError`] when the store does not answer.
    pub async fn dispatch_once(&self) -> Result<usize, ReadError> {
        let leased = self.claim_streams(STREAMS_MAX).await?;
        let delivering = leased.into_iter().map(|stream| self.deliver_stream(stream));
        let mut settled = 0;
        for dispatched in together::all(delivering).await {
            settled += dispatched?.settled();
        }
        Ok(settled)
    }

    /// Takes the lease of streams with due messages, at most `limit`. Each must go to [`Engine::deliver_stream`] at once;
    /// one that does not comes again when its lease is over.
    ///
    /// # Errors
    /// [`ReadError`] when the store does not answer.
    pub async fn claim_streams(&self, limit: u32) -> Result<Vec<LeasedStream>, ReadError> {
        let clock = self.parts.clock.as_ref();
        let mut late = clock.sleep(DELIVERY_CLAIM_MS.unsigned_abs());
        let claim = Claim {
            now: clock.now(),
            lease_ms: LEASE_MS,
            token: LeaseToken(self.parts.ids.random_hex()),
            limit,
        };
        let claimed = self.parts.store.claim_outbox(&claim).await?;
        if together::is_over(&mut late).await {
            // The store was so slow that too little of the leases is left: they are given back.
            for stream in &claimed {
                self.settle(stream, Vec::new()).await?;
            }
            return Ok(Vec::new());
        }
        let leased =
            |stream| LeasedStream { stream, may_begin: clock.sleep(BEGIN_MS.unsigned_abs()) };
        Ok(claimed.into_iter().map(leased).collect())
    }

    /// Delivers the rows of a stream in order, up to the first that does not get through or for which the lease has no
    /// time any more, and gives the lease back.
    ///
    /// # Errors
    /// [`ReadError`] when the store does not answer; what was delivered is then delivered again.
    pub async fn deliver_stream(&self, leased: LeasedStream) -> Result<Dispatched, ReadError> {
        let LeasedStream { stream, mut may_begin } = leased;
        let mut dispatched = Dispatched::default();
        let mut results = Vec::with_capacity(stream.rows.len());
        for row in &stream.rows {
            if together::is_over(&mut may_begin).await {
                break;
            }
            let settled = match self.deliver(&row.message).await {
                Ok(()) => Settled::Delivered,
                Err(error) => self.failed(row, &error),
            };
            results.push((row.message.id.clone(), settled.clone()));
            match settled {
                Settled::Delivered => dispatched.delivered += 1,
                Settled::Dead { error } => dispatched.given_up.push(undelivered(row, error)),
                Settled::Retry { error, .. } => {
                    dispatched.retried = Some(undelivered(row, error));
                    break;
                }
            }
        }
        dispatched.lease_lost = !self.settle(&stream, results).await?;
        Ok(dispatched)
    }

    /// Writes down what became of the messages; false when the lease is somebody else's.
    async fn settle(
        &self,
        stream: &ClaimedStream,
        results: Vec<(String, Settled)>,
    ) -> Result<bool, ReadError> {
        let settlement = Settlement {
            tenant: stream.tenant.clone(),
            workflow_id: stream.workflow_id.clone(),
            recipient: stream.recipient.clone(),
            token: stream.token.clone(),
            now: self.parts.clock.now(),
            results,
        };
        match self.parts.store.settle_outbox(&settlement).await {
            Ok(()) => Ok(true),
            Err(SettleError::LeaseLost) => Ok(false),
            Err(SettleError::Unavailable { source }) => Err(ReadError::Unavailable { source }),
        }
    }

    /// One delivery. A sink that hangs or panics has failed like any other: its message is tried again.
    async fn deliver(&self, message: &Message) -> Result<(), DeliveryError> {
        let sending = together::unless_panics(self.parts.notifications.deliver(message));
        let limit = self.parts.clock.sleep(DELIVERY_MS.unsigned_abs());
        let no_answer = match together::within(sending, limit).await {
            Some(Some(answer)) => return answer,
            Some(None) => NoAnswer::Panicked,
            None => NoAnswer::Late,
        };
        Err(DeliveryError { permanent: false, retry_after_ms: None, source: Box::new(no_answer) })
    }

    fn failed(&self, row: &OutboxRow, error: &DeliveryError) -> Settled {
        let text = text(error.source.as_ref());
        if error.permanent || row.status.attempts + 1 >= DELIVERY_ATTEMPTS_MAX {
            return Settled::Dead { error: text };
        }
        let jitter = self.parts.ids.random_hex();
        let asked = error.retry_after_ms.unwrap_or(0).min(RETRY_AFTER_MAX_MS);
        let wait = backoff(row.status.attempts, &jitter).max(asked);
        Settled::Retry { at: self.parts.clock.now().plus_ms(wait), error: text }
    }
}

fn undelivered(row: &OutboxRow, error: String) -> Undelivered {
    Undelivered {
        id: row.message.id.clone(),
        tenant: row.message.tenant.clone(),
        workflow_id: row.message.workflow_id.clone(),
        attempts: row.status.attempts + 1,
        error,
    }
}

/// An error with what caused it, cut to its bound.
fn text(error: &(dyn Error + Send + Sync + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text.chars().take(ERROR_CHARS_MAX).collect()
}

/// Exponential, between half and all of the step, so that many failures do not come back at once.
fn backoff(attempts: u32, random_hex: &str) -> i64 {
    let step =
        BACKOFF_FIRST_MS.saturating_mul(1_i64 << attempts.min(20)).min(DELIVERY_BACKOFF_MAX_MS);
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
        assert_eq!(backoff(60, "ffff"), DELIVERY_BACKOFF_MAX_MS);
    }
}
