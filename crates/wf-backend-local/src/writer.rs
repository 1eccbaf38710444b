//! Group commit: one thread owns the one connection that writes.
//!
//! It takes whatever waits in the queue (at most [`BATCH_MAX`], no artificial delay), opens a `BEGIN IMMEDIATE`
//! transaction, reads in it what the conditions need, judges each commit in order against that and the ones before it,
//! writes all that hold with set-based statements, and commits: one fsync for all. Every answer, refusals included,
//! goes out after COMMIT, since a refusal may rest on a commit of the same batch.
//!
//! - Nothing is remembered between batches but the connection: other processes write to the file too.
//! - Any error throws the connection away: after a full disk or an I/O error SQLite may or may not have rolled back, and
//!   what it has in memory of the file may or may not be so. A new connection reads the file.
//! - After an error of the disk what the system keeps of the files in memory is forgotten too: it may say of bytes that it
//!   lost that they are written.
//! - An error before COMMIT was sent means that nothing is applied. If it may be the fault of one record, the batch
//!   runs again one job per transaction, so that only that one fails.
//! - An error of COMMIT leaves the outcome of the whole batch open.
//! - Callers only hold the receiving end of an answer; when they go away nothing is cancelled.
//! - In a trace a batch is a span of its own, linked to the commits that it served and they to it: one COMMIT has many
//!   callers, so it can be the child of none.
//!
//! Files: [`job`] (what waits in the queue), [`judge`] (conditions, pure), [`sheet`] and [`statements`] (set-based SQL),
//! [`apply`] and [`mod@write`] (a batch of commits), [`tasks`] (all other writes).

pub(crate) mod apply;
pub(crate) mod job;
pub(crate) mod judge;
#[cfg(test)]
pub(crate) mod sabotage;
pub(crate) mod sheet;
pub(crate) mod statements;
pub(crate) mod tasks;
pub(crate) mod write;

use std::io;
use std::sync::Arc;
use std::time::Instant;

use rusqlite::{Connection, DropBehavior};
use tokio::sync::{mpsc, oneshot};
use tracing::Span;

use crate::connection::{self, close, immediate};
use crate::failpoint;
use crate::fault::{Failure, Trouble};
use crate::shared::Shared;
use crate::threads::{self, Ended};

use job::{Answer, Job};
use sheet::SqlCache;

/// Jobs of one transaction at most.
pub(crate) const BATCH_MAX: usize = 128;

/// Starts the writer. It ends when every sender is gone, or after [`Job::Close`], and closes the file after everybody
/// else: the last connection to close is the one that carries the whole log over and removes it.
pub(crate) fn spawn(
    shared: Arc<Shared>,
    mut queue: mpsc::Receiver<Job>,
    anchor: Connection,
) -> io::Result<Ended> {
    threads::spawn("wf-write", move || {
        let live = threads::until_it_returns(
            || Writer::new(&shared).run(&mut queue),
            // Jobs of the batch in hand lost their answer, which is told to them as an unknown outcome. The next batch
            // gets a new writer with a new connection.
            |what| {
                shared.health.writer_panicked();
                tracing::error!(what, "the writer of the store panicked; starting another");
            },
        );
        close(anchor);
        if let Some(live) = live {
            if let Err(error) = crate::checkpoint::truncate(&live) {
                tracing::warn!(%error, "the last checkpoint did not succeed");
            }
            close(live);
        }
    })
}

#[derive(Debug)]
struct Writer<'a> {
    shared: &'a Shared,
    live: Option<Connection>,
    /// Why the last batch was refused, when somebody else was writing all the time.
    held_up: Option<Failure>,
    sql: SqlCache,
}

impl<'a> Writer<'a> {
    fn new(shared: &'a Shared) -> Self {
        Self { shared, live: None, held_up: None, sql: SqlCache::default() }
    }

    /// Takes what waits until nothing more can come. Answers the connection, which is still open.
    fn run(mut self, queue: &mut mpsc::Receiver<Job>) -> Option<Connection> {
        let mut closed: Option<oneshot::Sender<()>> = None;
        while let Some(first) = queue.blocking_recv() {
            let mut jobs = Vec::new();
            let mut next = Some(first);
            while let Some(job) = next {
                match job {
                    Job::Close(done) => {
                        // What is in the queue already is still done; nothing more gets in.
                        queue.close();
                        closed = Some(done);
                    }
                    Job::Commit(..) | Job::Task(..) => jobs.push(job),
                }
                next = (jobs.len() < BATCH_MAX).then(|| queue.try_recv().ok()).flatten();
            }
            self.shared.health.queue_depth(queue.len());
            if !jobs.is_empty() {
                self.batch(jobs);
            }
            if let Some(failure) = self.held_up.take() {
                closed = self.refuse_waiting(queue, &failure).or(closed);
            }
        }
        if let Some(done) = closed {
            // Whoever asked may be gone.
            let _ = done.send(());
        }
        self.live
    }

    /// Somebody else has written for as long as a commit may wait. What has queued up behind is told so now: batch by
    /// batch, the last of a long queue would wait many times as long. Answers who asks to close, if that waits too.
    fn refuse_waiting(
        &self,
        queue: &mut mpsc::Receiver<Job>,
        failure: &Failure,
    ) -> Option<oneshot::Sender<()>> {
        let after_ms = self.shared.after_ms(failure);
        for _ in 0..queue.len() {
            match queue.try_recv() {
                Err(_) => break,
                Ok(Job::Close(done)) => {
                    queue.close();
                    return Some(done);
                }
                Ok(job @ (Job::Commit(..) | Job::Task(..))) => job.fail(failure.clone(), after_ms),
            }
        }
        None
    }

    fn batch(&mut self, jobs: Vec<Job>) {
        let start = Instant::now();
        let count = jobs.len();
        let span = linked(&jobs);
        let outcome = span.in_scope(|| self.attempt(&jobs));
        drop(span);
        match outcome {
            Ok(answers) => {
                self.shared.health.wrote(count, start.elapsed());
                for (job, answer) in jobs.into_iter().zip(answers) {
                    job.answer(answer);
                }
            }
            Err(failure) if count > 1 && failure.may_be_one_records() => {
                tracing::warn!(?failure, count, "a batch failed; running it one by one");
                for job in jobs {
                    self.batch(vec![job]);
                }
            }
            Err(failure) => {
                self.shared.health.failed(&failure, start.elapsed());
                tracing::error!(?failure, count, "a batch failed");
                let after_ms = self.shared.after_ms(&failure);
                for job in jobs {
                    job.fail(failure.clone(), after_ms);
                }
                if matches!(failure, Failure::NotApplied(Trouble::Busy(_))) {
                    self.held_up = Some(failure);
                }
            }
        }
    }

    /// Runs the jobs in one transaction. The connection is kept only after a success.
    fn attempt(&mut self, jobs: &[Job]) -> Result<Vec<Answer>, Failure> {
        if !self.shared.footprint.is_unchanged() {
            return Err(Failure::NotApplied(Trouble::Replaced));
        }
        let mut live = match self.live.take() {
            Some(live) => live,
            None => {
                connection::open_writing(&self.shared.config).map_err(Failure::before_commit)?
            }
        };
        let answers = self.transact(&mut live, jobs);
        if answers.as_ref().is_err_and(Failure::may_be_the_disks) {
            self.shared.forget_pages();
        }
        if answers.is_ok() {
            // A server that nobody calls does not keep what a sweep has read. Without success the pages only stay.
            if jobs.iter().any(Job::roams) {
                let _ = connection::forget_pages(&live);
            }
            self.live = Some(live);
        } else if failpoint::is_asked(failpoint::CONNECTION_KEPT) {
            if let Ok(mut tx) = immediate(&mut live) {
                tx.set_drop_behavior(DropBehavior::Ignore);
            }
            self.live = Some(live);
        }
        answers
    }

    fn transact(&mut self, conn: &mut Connection, jobs: &[Job]) -> Result<Vec<Answer>, Failure> {
        #[cfg(test)]
        self.shared.sabotage.before(conn, jobs);
        failpoint::hit(failpoint::BEGIN_BEFORE).map_err(Failure::before_commit)?;
        let tx = immediate(conn).map_err(Failure::before_commit)?;
        failpoint::hit(failpoint::BEGIN_AFTER).map_err(Failure::before_commit)?;
        let answers = apply::apply(&tx, jobs, &mut self.sql)?;
        #[cfg(test)]
        self.shared.sabotage.in_transaction();
        let fires = jobs.iter().any(Job::fires);
        if fires {
            failpoint::hit(failpoint::DEADLINE_FIRE).map_err(Failure::before_commit)?;
        }
        failpoint::hit(failpoint::COMMIT_BEFORE).map_err(Failure::before_commit)?;
        #[cfg(feature = "failpoints")]
        if failpoint::is_asked(failpoint::COMMIT_NEVER) {
            tx.rollback().map_err(|e| Failure::before_commit(e.into()))?;
            return Ok(answers);
        }
        tx.commit().map_err(|e| Failure::at_commit(e.into()))?;
        #[cfg(test)]
        self.shared.sabotage.after_commit();
        if fires {
            failpoint::hit(failpoint::DEADLINE_FIRED).map_err(Failure::at_commit)?;
        }
        failpoint::hit(failpoint::COMMIT_AFTER).map_err(Failure::at_commit)?;
        Ok(answers)
    }
}

/// A span for the batch; none where nobody who waits for it is traced.
fn linked(jobs: &[Job]) -> Span {
    let traced = || jobs.iter().filter_map(Job::span).filter(|span| !span.is_disabled());
    if traced().next().is_none() {
        return Span::none();
    }
    let batch = tracing::debug_span!(parent: None, "batch", size = jobs.len());
    // All of these first: whether the batch is kept in a trace may depend on whom it serves.
    for span in traced() {
        batch.follows_from(span);
    }
    for span in traced() {
        span.follows_from(&batch);
    }
    batch
}
