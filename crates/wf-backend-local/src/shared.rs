//! What the store's handle, its writer and its checkpointer share: configuration, the files, and how it is doing.

use std::fs::File;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::config::LocalConfig;
use crate::failpoint;
use crate::fault::{Failure, Trouble};
use crate::place::{Footprint, InUse};

/// Shared by all parts of an open store.
#[derive(Debug)]
pub(crate) struct Shared {
    /// How it was opened, with an absolute path.
    pub(crate) config: LocalConfig,
    /// The database file, its log and the log's index as they were opened.
    pub(crate) footprint: Footprint,
    /// How it is doing.
    pub(crate) health: Health,
    /// Says to others that the file is in use, as long as there is a handle or a thread that uses it.
    in_use: InUse,
    /// The database, once its pages had to be forgotten. Never closed: that would drop the locks of SQLite.
    forgetting: OnceLock<ManuallyDrop<File>>,
    /// Faults that a test asked for.
    #[cfg(test)]
    pub(crate) sabotage: crate::writer::sabotage::Sabotage,
}

impl Shared {
    /// Of a store that was just opened.
    pub(crate) fn new(config: LocalConfig, footprint: Footprint, in_use: InUse) -> Self {
        Self {
            config,
            footprint,
            health: Health::default(),
            in_use,
            forgetting: OnceLock::new(),
            #[cfg(test)]
            sabotage: crate::writer::sabotage::Sabotage::default(),
        }
    }

    /// After an error of the disk: has the system forget what it keeps of the files in memory. Blocks that could not be written
    /// back count as clean there. ext4 takes the same bytes a second time, says that they are on the disk, and has zeros in
    /// their place after the next mount: the blocks are still marked as never written, and it does not look again.
    #[cfg(target_os = "linux")]
    pub(crate) fn forget_pages(&self) {
        use rustix::fs::{Advice, fadvise};
        if failpoint::is_asked(failpoint::PAGES_KEPT) {
            return;
        }
        if self.forgetting.get().is_none()
            && let Ok(file) = File::open(&self.config.path)
        {
            // If somebody was faster this one stays open as well, for the same reason.
            let _ = self.forgetting.set(ManuallyDrop::new(file));
        }
        let forget = |file: &File| {
            if let Err(error) = fadvise(file, 0, None, Advice::DontNeed) {
                tracing::warn!(%error, "pages of the database cannot be forgotten");
            }
        };
        if let Some(database) = self.forgetting.get() {
            forget(database);
        }
        // Nobody has locks on the log.
        if let Ok(log) = File::open(self.config.wal_path()) {
            forget(&log);
        }
    }

    /// Elsewhere there is nothing to be done.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn forget_pages(&self) {}

    /// Another process has the file open too, or that cannot be told.
    pub(crate) fn is_used_by_others(&self) -> bool {
        self.in_use.by_others()
    }

    /// When a commit that was not applied may be tried again, in milliseconds; unknown when only a person can help.
    pub(crate) fn after_ms(&self, failure: &Failure) -> Option<i64> {
        let Failure::NotApplied(trouble) = failure else {
            return None;
        };
        match trouble {
            Trouble::Busy(_) => Some(250),
            Trouble::Full(_) | Trouble::Io(_) | Trouble::Other(_) => Some(1_000),
            // By then the build that changed it may answer.
            Trouble::SchemaChanged { .. } => Some(2_000),
            Trouble::QueueFull => Some(self.health.batch_ms().saturating_mul(2).clamp(20, 2_000)),
            Trouble::ReadOnly(_)
            | Trouble::Refused(_)
            | Trouble::Slow { .. }
            | Trouble::Replaced
            | Trouble::Closed
            | Trouble::WriterLost
            | Trouble::ReaderLost
            | Trouble::Malformed(_) => None,
        }
    }
}

/// How the store is doing, for readiness and metrics.
#[derive(Debug)]
pub(crate) struct Health {
    writable: AtomicBool,
    /// Why the last write failed.
    trouble: Mutex<String>,
    batches: AtomicU64,
    batch_ms: AtomicU64,
    wal_bytes: AtomicU64,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            writable: AtomicBool::new(true),
            trouble: Mutex::default(),
            batches: AtomicU64::new(0),
            batch_ms: AtomicU64::new(0),
            wal_bytes: AtomicU64::new(0),
        }
    }
}

impl Health {
    /// The last write succeeded.
    pub(crate) fn is_writable(&self) -> bool {
        self.writable.load(Ordering::Relaxed)
    }

    /// Why the last write that failed did.
    pub(crate) fn trouble(&self) -> String {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn unwritable(&self, why: String) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = why;
        self.writable.store(false, Ordering::Relaxed);
    }

    /// Batches committed so far.
    pub(crate) fn batches(&self) -> u64 {
        self.batches.load(Ordering::Relaxed)
    }

    /// A batch of `jobs` jobs was committed.
    pub(crate) fn wrote(&self, jobs: usize, took: Duration) {
        self.writable.store(true, Ordering::Relaxed);
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.took(took);
        let size = u32::try_from(jobs).unwrap_or(u32::MAX);
        metrics::histogram!("checkpoint_commit_batch_size").record(f64::from(size));
        metrics::histogram!("checkpoint_commit_seconds").record(took.as_secs_f64());
    }

    /// A moving average over about eight batches, rounded up.
    fn took(&self, took: Duration) {
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let before = self.batch_ms.load(Ordering::Relaxed);
        let average = before.saturating_mul(7).saturating_add(ms).div_ceil(8);
        self.batch_ms.store(average, Ordering::Relaxed);
    }

    /// A batch was not committed. One that waited in vain says as much about when to come back as one that was.
    pub(crate) fn failed(&self, failure: &Failure, took: Duration) {
        self.took(took);
        if !matches!(failure, Failure::NotApplied(Trouble::Refused(_))) {
            self.unwritable(failure.to_string());
        }
        let kind = match failure {
            Failure::NotApplied(_) => "not_applied",
            Failure::Unknown(_) => "unknown",
            Failure::Corrupt(_) => "corrupt",
        };
        metrics::counter!("checkpoint_commit_failures", "outcome" => kind).increment(1);
    }

    /// The writer panicked.
    pub(crate) fn writer_panicked(&self) {
        self.unwritable(Trouble::WriterLost.to_string());
        metrics::counter!("checkpoint_writer_panics").increment(1);
    }

    /// Average time of a batch, in milliseconds, rounded up.
    pub(crate) fn batch_ms(&self) -> i64 {
        i64::try_from(self.batch_ms.load(Ordering::Relaxed)).unwrap_or(i64::MAX)
    }

    /// Jobs that wait.
    pub(crate) fn queue_depth(&self, jobs: usize) {
        let jobs = u32::try_from(jobs).unwrap_or(u32::MAX);
        metrics::gauge!("checkpoint_commit_queue_depth").set(f64::from(jobs));
    }

    /// The size of the write-ahead log when it was last looked at, in bytes.
    pub(crate) fn wal_bytes(&self) -> u64 {
        self.wal_bytes.load(Ordering::Relaxed)
    }

    /// The size of the write-ahead log.
    pub(crate) fn saw_wal(&self, bytes: u64) {
        self.wal_bytes.store(bytes, Ordering::Relaxed);
        // Exact up to 4 GiB, and nobody compares single bytes beyond.
        let mib = u32::try_from(bytes >> 20).unwrap_or(u32::MAX);
        let rest = u32::try_from(bytes & 0xf_ffff).unwrap_or(0);
        metrics::gauge!("checkpoint_wal_bytes").set(f64::from(mib) * 1_048_576.0 + f64::from(rest));
    }
}
