//! One shard under lease: looks at what its rows ask for, some workflows at once.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use wf_core::engine::pass::{End, Looked};
use wf_core::limits::LEASE_MS;
use wf_core::models::Timestamp;
use wf_core::ports::{Epoch, LeaseToken, ReadError};
use wf_core::reconcile::Observation;

use crate::execution::lease::ShardLease;
use crate::execution::pass::{Hands, fraction};

/// Workflows of a shard that are looked at side by side.
pub(super) const WIDTH: usize = 8;
/// Workflows that one turn looks at.
const PAGE: u32 = 128;
/// The wait when the rows ask for nothing.
pub(super) const IDLE: Duration = Duration::from_secs(5);
/// The wait when there is more to look at.
const PAUSE: Duration = Duration::from_millis(20);
/// The wait before those are looked at again that were overtaken, or come due in a moment.
const SOON: Duration = Duration::from_millis(500);
/// The longest wait when the table does not answer.
const TROUBLE_MAX: Duration = Duration::from_secs(30);
/// A lease is renewed after this, by the monotonic clock; no work begins under an older one.
const RENEW: Duration = Duration::from_millis(LEASE_MS.unsigned_abs() / 3);

/// A shard, and what this process has of it.
#[derive(Debug)]
pub(super) struct Shard {
    number: u8,
    held: Option<(Epoch, Instant)>,
    /// Nothing is tried before this: somebody else has the lease, or the table does not answer.
    not_before: Option<Instant>,
    /// Turns in a row in which the table did not answer.
    failures: u32,
}

impl Shard {
    pub(super) fn new(number: u8) -> Self {
        Self { number, held: None, not_before: None, failures: 0 }
    }

    pub(super) fn number(&self) -> u8 {
        self.number
    }

    pub(super) fn epoch(&self) -> Option<Epoch> {
        self.held.map(|(epoch, _)| epoch)
    }

    /// The lease is ours, and young enough to begin something under it.
    fn is_held(&self) -> bool {
        self.held.is_some_and(|(_, since)| since.elapsed() < RENEW)
    }

    /// Takes or renews the lease where that is due; false when somebody else has it.
    pub(super) async fn hold(
        &mut self,
        hands: &Hands,
        token: &LeaseToken,
    ) -> Result<bool, ReadError> {
        if self.is_held() {
            return Ok(true);
        }
        // Counted from before the call: the lease is never younger than we believe.
        let since = Instant::now();
        let lease = ShardLease::new(self.number, token.clone(), hands.clock.now(), LEASE_MS);
        self.held = None;
        self.held = hands.bindings.hold(&lease).await?.map(|epoch| (epoch, since));
        Ok(self.held.is_some())
    }

    /// Looks at what the rows ask for; how long until there is something to do.
    pub(super) async fn turn(&mut self, hands: &Arc<Hands>, token: &LeaseToken) -> Duration {
        if let Some(left) = self.not_before.and_then(|at| at.checked_duration_since(Instant::now()))
            && !left.is_zero()
        {
            return left;
        }
        self.not_before = None;
        let wait = match self.work(hands, token).await {
            Ok(wait) => {
                self.failures = 0;
                wait
            }
            Err(error) => {
                let shard = self.number;
                tracing::warn!(%error, shard, "the reconciler cannot read its rows now");
                self.trouble()
            }
        };
        let held = if self.held.is_some() { 1.0 } else { 0.0 };
        metrics::gauge!("checkpoint_reconciler_shards_held", "shard" => self.number.to_string())
            .set(held);
        if self.held.is_none() {
            self.tell_lag(0);
        }
        wait
    }

    /// How long the oldest row has waited: of a shard that somebody else works on, that one tells.
    fn tell_lag(&self, ms: i64) {
        let lag = Duration::from_millis(ms.unsigned_abs()).as_secs_f64();
        metrics::gauge!("checkpoint_reconciler_lag_seconds", "shard" => self.number.to_string())
            .set(lag);
    }

    /// Waits longer and longer.
    fn trouble(&mut self) -> Duration {
        let longest = Duration::from_secs(1).saturating_mul(1 << self.failures.min(10));
        let wait = longest.min(TROUBLE_MAX).mul_f64(0.5 + fraction() / 2.0);
        self.failures = self.failures.saturating_add(1);
        self.rest(wait)
    }

    fn rest(&mut self, wait: Duration) -> Duration {
        self.not_before = Some(Instant::now() + wait);
        wait
    }

    async fn work(
        &mut self,
        hands: &Arc<Hands>,
        token: &LeaseToken,
    ) -> Result<Duration, ReadError> {
        if !self.hold(hands, token).await? {
            return Ok(self.rest(RENEW.mul_f64(0.5 + fraction() / 2.0)));
        }
        let Some(epoch) = self.epoch() else { return Ok(IDLE) };
        let now = hands.clock.now();
        let due = hands.bindings.due(self.number, now, PAGE).await?;
        let oldest = due.iter().map(|attention| attention.not_before).min();
        let lag_ms = oldest.map_or(0, |at| now.since_ms(at)).max(0);
        self.tell_lag(lag_ms);
        let all = due.len();
        let mut looked = Vec::with_capacity(all);
        let mut running = JoinSet::new();
        for attention in due {
            if running.len() == WIDTH {
                looked.extend(ended(running.join_next().await));
            }
            // Under a lease that may be over soon nothing begins: it is renewed in the next turn.
            if !self.is_held() {
                break;
            }
            let hands = Arc::clone(hands);
            running.spawn(async move { hands.pass(&attention, epoch, Observation::Nothing).await });
        }
        while let Some(one) = running.join_next().await {
            looked.extend(ended(Some(one)));
        }
        let more = looked.len() < all || all >= usize::try_from(PAGE).unwrap_or(usize::MAX);
        Ok(self.wait_after(&looked, more, hands.clock.now()))
    }

    /// How long until there is something to do, after a turn that looked at these.
    fn wait_after(&mut self, looked: &[Looked], more: bool, now: Timestamp) -> Duration {
        let may_pass = |one: &Looked| matches!(one.end, End::Failed { may_pass: true, .. });
        if looked.iter().any(may_pass) {
            return self.trouble();
        }
        if more {
            return PAUSE;
        }
        let next = looked.iter().filter_map(|one| match &one.end {
            End::Again(at) => Some(Duration::from_millis(at.since_ms(now).max(0).unsigned_abs())),
            End::Overtaken => Some(SOON),
            End::Settled | End::Proposed | End::Failed { .. } => None,
        });
        next.min().map_or(IDLE, |next| next.clamp(SOON, IDLE))
    }
}

/// A pass that ended by a bug is begun again in another turn: its row is still there.
pub(super) fn ended(joined: Option<Result<Looked, tokio::task::JoinError>>) -> Option<Looked> {
    match joined? {
        Ok(looked) => Some(looked),
        Err(error) => {
            panicked(&error, "a pass");
            None
        }
    }
}

/// Tells of work that a bug ended.
pub(super) fn panicked(error: &tokio::task::JoinError, what: &'static str) {
    metrics::counter!("checkpoint_background_panics_total", "work" => "reconciler").increment(1);
    tracing::error!(%error, what, "a part of the reconciler ended by a bug, and begins again");
}
