//! Faults that unit tests of this crate ask the writer of one store for; not compiled into the crate otherwise. Some are
//! SQLite's own. Places where a whole process can be made to fail are `crate::failpoint`.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rusqlite::Connection;

use super::job::Job;

/// What goes wrong in the next transaction that has this fault at its head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// COMMIT answers an error and SQLite rolls back, as after a failed fsync.
    CommitFails,
    /// The file may not grow beyond this many pages.
    PagesMax(u32),
    /// The writer panics before COMMIT.
    PanicBeforeCommit,
    /// The writer panics between COMMIT and the answers.
    PanicAfterCommit,
}

/// Faults to come, one per transaction.
#[derive(Debug, Default)]
pub(crate) struct Sabotage {
    queue: Mutex<VecDeque<Fault>>,
    now: Mutex<Option<Fault>>,
    begun: AtomicUsize,
}

impl Sabotage {
    /// Asks for a fault.
    pub(crate) fn push(&self, fault: Fault) {
        lock(&self.queue).push_back(fault);
    }

    /// Transactions with a commit in them that were about to begin so far. The checkpointer's probe, which comes when
    /// it likes while the store is not healthy, is none.
    pub(crate) fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }

    pub(crate) fn before(&self, conn: &Connection, jobs: &[Job]) {
        if jobs.iter().any(|job| matches!(job, Job::Commit(..))) {
            self.begun.fetch_add(1, Ordering::SeqCst);
        }
        let fault = lock(&self.queue).pop_front();
        *lock(&self.now) = fault;
        match fault {
            // It stays with the connection: whoever keeps that can never commit again.
            Some(Fault::CommitFails) => conn.commit_hook(Some(|| true)).unwrap(),
            Some(Fault::PagesMax(pages)) => {
                conn.execute_batch(&format!("PRAGMA max_page_count = {pages}")).unwrap();
            }
            Some(Fault::PanicBeforeCommit | Fault::PanicAfterCommit) | None => {}
        }
    }

    pub(crate) fn in_transaction(&self) {
        if *lock(&self.now) == Some(Fault::PanicBeforeCommit) {
            panic!("asked for, before COMMIT");
        }
    }

    pub(crate) fn after_commit(&self) {
        if *lock(&self.now) == Some(Fault::PanicAfterCommit) {
            panic!("asked for, after COMMIT");
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
