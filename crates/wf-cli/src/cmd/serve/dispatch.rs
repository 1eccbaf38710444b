//! Delivers the outbox while the server runs: claims streams, delivers each in a task of its own, says how it went.
//!
//! Order, leases and retries are `wf_core::engine::dispatch`; where a message goes is `crate::sink`.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep, timeout};
use wf_core::engine::{Dispatched, Engine, Undelivered};
use wf_core::ports::ReadError;

use super::signals::stopped;
use crate::exit::chain;

/// How long messages that nobody announced may wait: those of other processes, and retries that fell due.
const POLL: Duration = Duration::from_secs(1);
/// How long commits are collected before one claim serves them.
const GATHER: Duration = Duration::from_millis(50);
/// How long a stream that ended is waited with for others, so that one claim serves all of them.
const SETTLE: Duration = Duration::from_millis(5);
/// First and longest pause after the store failed.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));
/// How long deliveries that run may go on once the server ends.
const LAST_ROUND: Duration = Duration::from_secs(2);
/// Streams that are delivered at once. A receiver that hangs holds some of them only: its sink sees to that.
const STREAMS_MAX: usize = 64;
/// Streams that are claimed at once while callers commit: a commit waits for what is written before it.
const STREAMS_BESIDE_COMMITS: usize = 16;
/// How many times as long as a claim took the dispatcher rests after it while callers commit, so that most commits meet
/// nothing of it; and the longest rest.
const REST: (u32, Duration) = (10, Duration::from_secs(1));
/// How long after a commit callers count as committing.
const COMMITTING: Duration = Duration::from_secs(1);
/// Failed deliveries are logged so often at most, with how many there were.
const COMPLAIN_EVERY: Duration = Duration::from_secs(10);

/// Delivers until the server ends.
pub(super) async fn deliver(
    engine: Arc<Engine>,
    commits: Arc<Notify>,
    stop: watch::Receiver<bool>,
) {
    let mut streams = Streams::new(engine);
    let end = stopped(stop);
    tokio::pin!(end);
    loop {
        // Never dropped half-way: what it leases must be delivered.
        let claimed = streams.claim().await;
        tokio::select! {
            biased;
            () = &mut end => break,
            () = streams.pause(claimed, &commits) => {}
        }
    }
    streams.finish().await;
}

/// Streams that are being delivered.
#[derive(Debug)]
struct Streams {
    engine: Arc<Engine>,
    running: JoinSet<Result<Dispatched, ReadError>>,
    backoff: Duration,
    failed: bool,
    claim_took: Duration,
    committed: Option<Instant>,
    complained: Option<Instant>,
    unsaid: u64,
}

impl Streams {
    fn new(engine: Arc<Engine>) -> Self {
        Self {
            engine,
            running: JoinSet::new(),
            backoff: BACKOFF.0,
            failed: false,
            claim_took: Duration::ZERO,
            committed: None,
            complained: None,
            unsaid: 0,
        }
    }

    /// Waits for a reason to claim again. It may be dropped at any time.
    async fn pause(&mut self, claimed: usize, commits: &Notify) {
        if self.failed {
            let wait = self.backoff;
            self.backoff = (self.backoff * 2).min(BACKOFF.1);
            self.failed = false;
            sleep(wait).await;
            return;
        }
        self.backoff = BACKOFF.0;
        if claimed > 0 && self.callers_commit(commits).await {
            sleep((self.claim_took * REST.0).min(REST.1)).await;
            self.note_ended();
            return;
        }
        if self.running.len() < STREAMS_MAX && claimed > 0 {
            return;
        }
        let ended = if self.running.is_empty() {
            if timeout(POLL, commits.notified()).await.is_ok() {
                self.committed = Some(Instant::now());
            }
            sleep(GATHER).await;
            None
        } else if self.running.len() < STREAMS_MAX {
            tokio::select! {
                ended = self.running.join_next() => ended,
                () = commits.notified() => {
                    self.committed = Some(Instant::now());
                    sleep(GATHER).await;
                    None
                }
                () = sleep(POLL) => None,
            }
        } else {
            self.running.join_next().await
        };
        if let Some(ended) = ended {
            self.note(ended);
            sleep(SETTLE).await;
        }
        self.note_ended();
    }

    fn note_ended(&mut self) {
        while let Some(ended) = self.running.try_join_next() {
            self.note(ended);
        }
    }

    /// Whether somebody committed a moment ago. Waits for nothing.
    async fn callers_commit(&mut self, commits: &Notify) -> bool {
        tokio::select! {
            biased;
            () = commits.notified() => self.committed = Some(Instant::now()),
            () = std::future::ready(()) => {}
        }
        self.is_beside_commits()
    }

    fn is_beside_commits(&self) -> bool {
        self.committed.is_some_and(|at| at.elapsed() < COMMITTING)
    }

    /// Claims what is due and has room, and begins to deliver it; how many streams.
    async fn claim(&mut self) -> usize {
        let most = if self.is_beside_commits() { STREAMS_BESIDE_COMMITS } else { STREAMS_MAX };
        let room = STREAMS_MAX.saturating_sub(self.running.len()).min(most);
        let Some(limit) = u32::try_from(room).ok().filter(|room| *room > 0) else {
            return 0;
        };
        let begun = Instant::now();
        let claiming = self.engine.claim_streams(limit).await;
        self.claim_took = begun.elapsed();
        match claiming {
            Ok(leased) => {
                let claimed = leased.len();
                for stream in leased {
                    let engine = Arc::clone(&self.engine);
                    self.running.spawn(async move { engine.deliver_stream(stream).await });
                }
                claimed
            }
            Err(error) => {
                self.store_failed(&error);
                0
            }
        }
    }

    fn note(&mut self, ended: Result<Result<Dispatched, ReadError>, JoinError>) {
        let dispatched = match ended {
            Ok(Ok(dispatched)) => dispatched,
            Ok(Err(error)) => return self.store_failed(&error),
            Err(error) => {
                // Its lease ends by itself, and the messages come again.
                tracing::error!(%error, "a delivery ended by a bug");
                return;
            }
        };
        for dead in &dispatched.given_up {
            metrics::counter!("checkpoint_notifications_given_up_total").increment(1);
            tracing::error!(
                id = %dead.id,
                tenant = %dead.tenant,
                workflow = %dead.workflow_id,
                attempts = dead.attempts,
                reason = %dead.error,
                "a message is given up; `wf-cli outbox retry` sends it again"
            );
        }
        if let Some(undelivered) = &dispatched.retried {
            self.complain(undelivered);
        }
        if dispatched.lease_lost {
            tracing::warn!("a lease ended before its delivery; its messages may come twice");
        }
    }

    fn complain(&mut self, undelivered: &Undelivered) {
        if self.complained.is_some_and(|at| at.elapsed() < COMPLAIN_EVERY) {
            self.unsaid += 1;
            return;
        }
        self.complained = Some(Instant::now());
        tracing::warn!(
            id = %undelivered.id,
            attempts = undelivered.attempts,
            reason = %undelivered.error,
            others = std::mem::take(&mut self.unsaid),
            "messages are not delivered, and are tried again"
        );
    }

    fn store_failed(&mut self, error: &ReadError) {
        self.failed = true;
        metrics::counter!("checkpoint_dispatch_failures_total").increment(1);
        tracing::warn!(error = chain(error), "messages cannot be delivered now");
    }

    /// One more claim for what was committed last, and a little time for what runs. What stays pending is in the outbox
    /// and is delivered by the next start; so is what runs on, once its lease is over.
    async fn finish(mut self) {
        let last = async {
            self.claim().await;
            while let Some(ended) = self.running.join_next().await {
                self.note(ended);
            }
        };
        if timeout(LAST_ROUND, last).await.is_err() {
            tracing::warn!("the last messages stay in the outbox: no time left");
        }
    }
}
