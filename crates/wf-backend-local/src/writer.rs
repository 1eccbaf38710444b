//! Group commit: one task owns the one connection that writes.
//!
//! It takes whatever waits in the queue (at most [`BATCH_MAX`], no artificial delay), opens a `BEGIN IMMEDIATE`
//! transaction, reads in it what the conditions need, judges each commit in order against that and the ones before it,
//! writes all that hold with set-based statements, and commits: one fsync for all. Every answer, refusals included,
//! goes out after COMMIT, since a refusal may rest on a commit of the same batch.
//!
//! - Nothing is remembered between batches but the connection: other processes write to the file too.
//! - Any error throws the connection away. SQLite rolls back by itself after a full disk or an I/O error, which the
//!   driver does not notice: it would stay inside a transaction for ever.
//! - An error before COMMIT was sent means that nothing is applied. If it may be the fault of one record, the batch
//!   runs again one job per transaction, so that only that one fails.
//! - An error of COMMIT leaves the outcome of the whole batch open.
//! - Callers only hold the receiving end of an answer; when they go away nothing is cancelled.
//!
//! Files: [`job`] (what waits in the queue), [`judge`] (conditions, pure), [`sheet`] and [`statements`] (set-based SQL),
//! [`apply`] and [`write`] (a batch of commits), [`tasks`] (all other writes).

pub(crate) mod apply;
pub(crate) mod job;
pub(crate) mod judge;
#[cfg(test)]
pub(crate) mod sabotage;
pub(crate) mod sheet;
pub(crate) mod statements;
pub(crate) mod tasks;
pub(crate) mod write;

use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::{Connection as _, SqliteConnection};
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::connection;
use crate::failpoint;
use crate::fault::{Failure, Trouble};
use crate::shared::Shared;

use job::{Answer, Job};
use sheet::SqlCache;

/// Jobs of one transaction at most.
pub(crate) const BATCH_MAX: usize = 128;

/// How long closing may take before it is given up; a checkpoint that waits for a reader, for example.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The queue, shared by a writer and the one that takes over if it panics.
type Queue = Arc<Mutex<mpsc::Receiver<Job>>>;

/// Starts the writer. It ends when every sender is gone, or after [`Job::Close`].
pub(crate) fn spawn(shared: Arc<Shared>, queue: mpsc::Receiver<Job>) {
    let queue = Arc::new(Mutex::new(queue));
    tokio::spawn(async move {
        loop {
            let writer = Writer {
                shared: Arc::clone(&shared),
                live: None,
                held_up: None,
                sql: SqlCache::default(),
            };
            match tokio::spawn(writer.run(Arc::clone(&queue))).await {
                Ok(()) => return,
                // Jobs of the batch in hand lost their answer, which is told to them as an unknown outcome. A panic is
                // a bug; the next batch gets a new writer with a new connection.
                Err(error) if error.is_panic() => {
                    shared.health.writer_panicked();
                    tracing::error!(%error, "the writer of the store panicked; starting another");
                }
                Err(_cancelled) => return,
            }
        }
    });
}

#[derive(Debug)]
struct Writer {
    shared: Arc<Shared>,
    live: Option<SqliteConnection>,
    /// Why the last batch was refused, when somebody else was writing all the time.
    held_up: Option<Failure>,
    sql: SqlCache,
}

impl Writer {
    async fn run(mut self, queue: Queue) {
        let mut queue = queue.lock().await;
        let mut closed: Option<oneshot::Sender<()>> = None;
        while let Some(first) = queue.recv().await {
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
                self.batch(jobs).await;
            }
            if let Some(failure) = self.held_up.take() {
                closed = self.refuse_waiting(&mut queue, &failure).or(closed);
            }
        }
        if tokio::time::timeout(CLOSE_TIMEOUT, self.close()).await.is_err() {
            tracing::warn!(
                "the store was not closed in time; its log is carried over at the next start"
            );
        }
        if let Some(done) = closed {
            // Whoever asked may be gone.
            let _ = done.send(());
        }
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

    async fn batch(&mut self, jobs: Vec<Job>) {
        let start = Instant::now();
        let count = jobs.len();
        let outcome = self.attempt(&jobs).await;
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
                    Box::pin(self.batch(vec![job])).await;
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

    /// Runs the jobs in one transaction. The connection comes back only after a success.
    async fn attempt(&mut self, jobs: &[Job]) -> Result<Vec<Answer>, Failure> {
        if !self.shared.footprint.is_unchanged() {
            return Err(Failure::NotApplied(Trouble::Replaced));
        }
        let mut live = match self.live.take() {
            Some(live) => live,
            None => {
                let opened = connection::open_writing(&self.shared.config).await;
                opened.map_err(Failure::before_commit)?
            }
        };
        let answers = self.transact(&mut live, jobs).await;
        if answers.is_ok() || failpoint::is_asked(failpoint::CONNECTION_KEPT) {
            self.live = Some(live);
        }
        answers
    }

    async fn transact(
        &mut self,
        conn: &mut SqliteConnection,
        jobs: &[Job],
    ) -> Result<Vec<Answer>, Failure> {
        #[cfg(test)]
        self.shared.sabotage.before(conn).await;
        failpoint::hit(failpoint::BEGIN_BEFORE).map_err(Failure::before_commit)?;
        let mut tx = conn.begin_with("BEGIN IMMEDIATE").await.map_err(Failure::before_commit)?;
        failpoint::hit(failpoint::BEGIN_AFTER).map_err(Failure::before_commit)?;
        let answers = apply::apply(&mut tx, jobs, &mut self.sql).await?;
        #[cfg(test)]
        self.shared.sabotage.in_transaction();
        failpoint::hit(failpoint::COMMIT_BEFORE).map_err(Failure::before_commit)?;
        #[cfg(feature = "failpoints")]
        if failpoint::is_asked(failpoint::COMMIT_NEVER) {
            tx.rollback().await.map_err(Failure::before_commit)?;
            return Ok(answers);
        }
        tx.commit().await.map_err(Failure::at_commit)?;
        #[cfg(test)]
        self.shared.sabotage.after_commit();
        failpoint::hit(failpoint::COMMIT_AFTER).map_err(Failure::at_commit)?;
        Ok(answers)
    }

    async fn close(&mut self) {
        let Some(mut live) = self.live.take() else {
            return;
        };
        if let Err(error) = crate::checkpoint::truncate(&mut live).await {
            tracing::warn!(%error, "the last checkpoint did not succeed");
        }
        if let Err(error) = live.close().await {
            tracing::warn!(%error, "the connection that writes did not close");
        }
    }
}
