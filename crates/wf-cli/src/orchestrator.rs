//! The local orchestrator: acknowledges a start inside its own commit, wakes the dispatcher after each commit, and fires
//! deadlines when they are due.
//!
//! Everything that it must not forget is in the store: it looks there at the start, after each firing and at the latest
//! after [`ALONE`], so that a restart, a clock that was set or another process that died delay a deadline and never lose
//! it. What firing means is `wf_core::engine::schedule`; `cmd::serve::work` starts it again should it panic.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use wf_core::engine::{Engine, Fired};
use wf_core::models::{Timestamp, Workflow};
use wf_core::ports::{ClockPort as _, NextDeadline, OrchestratorPort, ReadError};

use crate::ambient::SystemClock;
use crate::exit::chain;

/// Longest sleep where no other process has the store: what is set here wakes, a clock that was set does not.
const ALONE: Duration = Duration::from_secs(60);
/// Longest sleep where one has: it may set a deadline and die.
const SHARED: Duration = Duration::from_secs(1);
/// First and longest pause after the store did not answer.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));
/// Pause after something was due and somebody else was firing it.
const CROWDED: Duration = Duration::from_millis(50);
/// Deadlines of one claim: so many can be fired well within their lease.
const CLAIM_MAX: u32 = 256;

/// An orchestrator that lives in this process. Clones are handles on the same one.
#[derive(Debug, Clone)]
pub(crate) struct LocalOrchestrator {
    committed: Arc<Notify>,
    earlier: Arc<Notify>,
    /// Until when it sleeps, in milliseconds since 1970.
    until: Arc<AtomicI64>,
}

impl Default for LocalOrchestrator {
    fn default() -> Self {
        let until = Arc::new(AtomicI64::new(i64::MAX));
        Self { committed: Arc::default(), earlier: Arc::default(), until }
    }
}

#[async_trait]
impl OrchestratorPort for LocalOrchestrator {
    fn acknowledges_at_start(&self) -> bool {
        true
    }

    async fn committed(&self, workflow: &Workflow) {
        self.committed.notify_one();
        let next = workflow.deadlines.values().map(|deadline| deadline.fire_at.as_ms()).min();
        if next.is_some_and(|at| at < self.until.load(Ordering::Acquire)) {
            self.earlier.notify_one();
        }
    }
}

impl LocalOrchestrator {
    /// Woken after each commit of this process. A hint: what it misses, a poll finds.
    pub(crate) fn commits(&self) -> Arc<Notify> {
        Arc::clone(&self.committed)
    }

    /// Fires deadlines as they come, for ever. It may be dropped at any time: what was claimed is due again later.
    pub(crate) async fn keep_time(self, engine: Arc<Engine>) {
        let mut backoff = BACKOFF.0;
        loop {
            // Before the look: a deadline that is set in between notifies.
            self.until.store(i64::MAX, Ordering::Release);
            match round(&engine).await {
                Ok(wait) => {
                    backoff = BACKOFF.0;
                    self.sleep(wait).await;
                }
                Err(error) => {
                    metrics::counter!("checkpoint_deadline_failures_total").increment(1);
                    let error = chain(&error);
                    tracing::warn!(error, wait = ?backoff, "deadlines cannot be fired now");
                    sleep(backoff).await;
                    backoff = (backoff * 2).min(BACKOFF.1);
                }
            }
        }
    }

    async fn sleep(&self, wait: Duration) {
        if wait.is_zero() {
            return;
        }
        let ms = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
        self.until.store(SystemClock.now().plus_ms(ms).as_ms(), Ordering::Release);
        let _ = timeout(wait, self.earlier.notified()).await;
    }
}

/// Fires what is due, or says how long nothing is.
async fn round(engine: &Engine) -> Result<Duration, ReadError> {
    let next = engine.next_due().await?;
    let wait = wait(&next, SystemClock.now());
    if !wait.is_zero() {
        return Ok(wait);
    }
    let fired = engine.fire_due(CLAIM_MAX).await?;
    tell(&fired);
    let nobody = fired == Fired::default();
    Ok(if nobody { CROWDED } else { Duration::ZERO })
}

/// How long to sleep; nothing when something is due.
fn wait(next: &NextDeadline, now: Timestamp) -> Duration {
    let longest = if next.shared { SHARED } else { ALONE };
    next.at
        .map_or(longest, |at| Duration::from_millis(at.since_ms(now).unsigned_abs()).min(longest))
}

fn tell(fired: &Fired) {
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    if fired.settled > 0 {
        metrics::counter!("checkpoint_deadlines_fired_total").increment(count(fired.settled));
        let late = Duration::from_millis(fired.late_ms.unsigned_abs());
        metrics::histogram!("checkpoint_deadline_lateness_seconds").record(late.as_secs_f64());
        tracing::debug!(deadlines = fired.settled, ?late, "deadlines fired");
    }
    if fired.kept > 0 {
        metrics::counter!("checkpoint_deadlines_kept_total").increment(count(fired.kept));
        tracing::warn!(deadlines = fired.kept, "deadlines could not be fired and are tried again");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_is_until_the_next_deadline_and_never_past_its_bound() {
        let now = Timestamp::from_ms(1_000_000);
        let at = |ms: Option<i64>, shared| {
            let next = NextDeadline { at: ms.map(|ms| now.plus_ms(ms)), shared };
            wait(&next, now)
        };
        assert_eq!(at(None, false), ALONE);
        assert_eq!(at(None, true), SHARED);
        assert_eq!(at(Some(300), true), Duration::from_millis(300));
        assert_eq!(at(Some(30_000), true), SHARED);
        assert_eq!(at(Some(30_000), false), Duration::from_secs(30));
        assert_eq!(at(Some(3_600_000), false), ALONE);
        assert_eq!(at(Some(0), false), Duration::ZERO);
        assert_eq!(at(Some(-5), true), Duration::ZERO);
    }
}
