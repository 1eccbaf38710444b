//! Fires deadlines while the server runs: looks for the next, claims what is due, fires each workflow's in a task of its
//! own, says how it went.
//!
//! Everything that must not be forgotten is in the store: it is looked at at the start, after each firing and at the
//! latest after [`ALONE`], so that a restart, a clock that was set or another process that died delay a deadline and
//! never lose it. A backlog is worked off as fast as the store takes it while nobody calls, and in small rounds with
//! rests between them while callers commit: they come first. What firing means is `wf_core::engine::schedule`.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep, timeout};
use tracing::Instrument as _;
use wf_core::engine::{Engine, Fired};
use wf_core::models::Timestamp;
use wf_core::ports::{ClockPort as _, NextDeadline, ReadError};

use super::signals::stopped;
use crate::ambient::SystemClock;
use crate::exit::chain;
use crate::failpoint;
use crate::orchestrator::LocalOrchestrator;

/// Longest sleep where no other process has the store: what is set here wakes, a clock that was set does not.
const ALONE: Duration = Duration::from_secs(60);
/// Longest sleep where one has: it may set a deadline and die.
const SHARED: Duration = Duration::from_secs(1);
/// First and longest pause after the store did not answer.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));
/// Pause after something was due and somebody else was firing it.
const CROWDED: Duration = Duration::from_millis(50);
/// Workflows whose deadlines are fired at once: enough for whole batches of the store, and few enough that the last is
/// fired well within its lease.
const FIRING_MAX: usize = 128;
/// So many are still being fired when more are claimed.
const FIRING_FEW: usize = FIRING_MAX / 2;
/// Deadlines that are claimed at once while callers commit: a commit waits for what is written before it.
const BESIDE_COMMITS: usize = 16;
/// How long a firing that ended is waited with for others, so that one look serves all of them.
const SETTLE: Duration = Duration::from_millis(5);
/// How many times as long as a round took the firing rests after it while callers commit, so that most commits meet
/// nothing of it; and the longest rest.
const REST: (u32, Duration) = (8, Duration::from_secs(1));
/// How long firings that run may go on once the server ends.
const LAST_ROUND: Duration = Duration::from_secs(2);

/// Fires until the server ends.
pub(super) async fn fire(
    engine: Arc<Engine>,
    orchestrator: LocalOrchestrator,
    stop: watch::Receiver<bool>,
) {
    let mut firing = Firing::new(engine, orchestrator);
    let end = stopped(stop);
    tokio::pin!(end);
    loop {
        // Never dropped half-way: what it leases must be fired.
        let then = firing.begin().await;
        tokio::select! {
            biased;
            () = &mut end => break,
            () = firing.pause(then) => {}
        }
        firing.tell();
    }
    firing.finish().await;
}

/// What to do before the next look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    /// Nothing, as soon as there is room.
    Look,
    /// Sleep, unless something earlier is set.
    Sleep(Duration),
    /// Rest whatever happens.
    Rest(Duration),
}

/// Deadlines that are being fired.
#[derive(Debug)]
struct Firing {
    engine: Arc<Engine>,
    orchestrator: LocalOrchestrator,
    running: JoinSet<Fired>,
    /// When the running ones began, in a round beside commits.
    round: Instant,
    backoff: Duration,
    fired: Fired,
}

impl Firing {
    fn new(engine: Arc<Engine>, orchestrator: LocalOrchestrator) -> Self {
        Self {
            engine,
            orchestrator,
            running: JoinSet::new(),
            round: Instant::now(),
            backoff: BACKOFF.0,
            fired: Fired::default(),
        }
    }

    /// Claims what is due and has room, and begins to fire it.
    async fn begin(&mut self) -> Then {
        let room = self.room();
        if room == 0 {
            return Then::Look;
        }
        match self.look(room).await {
            Ok(then) => {
                self.backoff = BACKOFF.0;
                then
            }
            Err(error) => {
                metrics::counter!("checkpoint_deadline_failures_total").increment(1);
                let (error, wait) = (chain(&error), self.backoff);
                tracing::warn!(error, ?wait, "deadlines cannot be fired now");
                self.backoff = (wait * 2).min(BACKOFF.1);
                Then::Rest(wait)
            }
        }
    }

    /// How many deadlines may be claimed now. A round beside commits begins when the one before it is over.
    fn room(&self) -> usize {
        let running = self.running.len();
        match self.orchestrator.is_beside_commits() {
            true if running > 0 => 0,
            true => BESIDE_COMMITS,
            false if running > FIRING_FEW => 0,
            false => FIRING_MAX - running,
        }
    }

    async fn look(&mut self, room: usize) -> Result<Then, ReadError> {
        // Before the look: a deadline that is set in between notifies.
        self.orchestrator.awake();
        let next = self.engine.next_due().await?;
        let wait = wait(&next, SystemClock.now());
        if !wait.is_zero() {
            return Ok(Then::Sleep(wait));
        }
        let limit = u32::try_from(room).unwrap_or(u32::MAX);
        self.round = Instant::now();
        let claimed = self.engine.claim_due(limit).await?;
        if claimed.is_empty() {
            return Ok(Then::Sleep(CROWDED));
        }
        // Nothing but a stop or an end of the process can be asked for here.
        let _ = failpoint::hit(failpoint::DEADLINE_CLAIMED);
        for due in claimed {
            let engine = Arc::clone(&self.engine);
            let firing = async move { engine.fire_in_order(due).await };
            self.running.spawn(firing.instrument(tracing::debug_span!("deadline")));
        }
        Ok(Then::Look)
    }

    /// Waits for a reason to look again. It may be dropped at any time.
    async fn pause(&mut self, then: Then) {
        match then {
            Then::Look if self.orchestrator.is_beside_commits() => {
                self.until_few(0).await;
                sleep(rest(self.round.elapsed())).await;
            }
            Then::Look => self.until_few(FIRING_FEW).await,
            Then::Rest(wait) => sleep(wait).await,
            Then::Sleep(wait) => {
                // What comes behind one that is being fired can be claimed when that is done.
                let ended = tokio::select! {
                    Some(ended) = self.running.join_next() => Some(ended),
                    () = self.orchestrator.sleep(wait) => None,
                };
                if let Some(ended) = ended {
                    self.note(ended);
                    sleep(SETTLE).await;
                }
                self.until_few(FIRING_MAX).await;
            }
        }
    }

    async fn until_few(&mut self, few: usize) {
        while self.running.len() > few {
            let Some(ended) = self.running.join_next().await else { break };
            self.note(ended);
        }
        while let Some(ended) = self.running.try_join_next() {
            self.note(ended);
        }
    }

    fn note(&mut self, ended: Result<Fired, JoinError>) {
        match ended {
            Ok(fired) => self.fired.add(fired),
            // Its leases end by themselves, and its deadlines come again.
            Err(error) => tracing::error!(%error, "a firing ended by a bug"),
        }
    }

    /// Says what was fired since it was asked last.
    fn tell(&mut self) {
        let fired = std::mem::take(&mut self.fired);
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        if fired.settled > 0 {
            metrics::counter!("checkpoint_deadlines_fired_total").increment(count(fired.settled));
            let late = Duration::from_millis(fired.late_ms.unsigned_abs());
            metrics::histogram!("checkpoint_deadline_lateness_seconds").record(late.as_secs_f64());
            tracing::debug!(deadlines = fired.settled, ?late, "deadlines fired");
        }
        if fired.kept > 0 {
            metrics::counter!("checkpoint_deadlines_kept_total").increment(count(fired.kept));
            tracing::warn!(
                deadlines = fired.kept,
                "deadlines could not be fired and are tried again"
            );
        }
    }

    /// A little time for what runs, so that the next server finds no leases of this one.
    async fn finish(mut self) {
        if timeout(LAST_ROUND, self.until_few(0)).await.is_err() {
            tracing::warn!("deadlines that were being fired are left to the next start");
        }
        self.tell();
    }
}

/// How long to sleep; nothing when something is due.
fn wait(next: &NextDeadline, now: Timestamp) -> Duration {
    let longest = if next.shared { SHARED } else { ALONE };
    next.at
        .map_or(longest, |at| Duration::from_millis(at.since_ms(now).unsigned_abs()).min(longest))
}

/// How long to rest after a round that took so long.
fn rest(took: Duration) -> Duration {
    (took * REST.0).min(REST.1)
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

    #[test]
    fn a_rest_is_longer_than_its_round_and_bounded() {
        assert_eq!(rest(Duration::from_millis(10)), Duration::from_millis(80));
        assert_eq!(rest(Duration::from_secs(9)), Duration::from_secs(1));
    }
}
