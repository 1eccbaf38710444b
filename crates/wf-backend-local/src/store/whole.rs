//! What is asked of the file as a whole, beside the port: a copy, whether it is whole, what is left of what was erased, and
//! how it is doing.

use std::path::Path;

use wf_core::ports::ReadError;

use super::LocalStore;
use crate::backup::{self, BackupError, BackupReport};
use crate::fault::{Trouble, read_error};
use crate::threads::blocking;
use crate::writer::tasks::erase;
use crate::{connection, restore, strays};

impl LocalStore {
    /// Copies the store, as it is at one instant, into a new file, while it is in use.
    ///
    /// # Errors
    /// [`BackupError`]; nothing is left behind at `to`.
    pub async fn backup(&self, to: &Path) -> Result<BackupReport, BackupError> {
        let (config, to) = (self.config().clone(), to.to_owned());
        blocking(move || backup::copy(&config, &to)).await
    }

    /// What SQLite finds wrong in the file, at most 21 lines; nothing when it is whole. Reads all of it, which takes long
    /// on a large store, on a connection of its own.
    ///
    /// # Errors
    /// [`ReadError`] when the file cannot even be read.
    pub async fn integrity_check(&self) -> Result<Vec<String>, ReadError> {
        let config = self.config().clone();
        let faults = blocking(move || restore::integrity(&connection::read_only(&config)?)).await;
        faults.map_err(read_error)
    }

    /// Rows that belong to nothing, and columns that differ from the state that they copy: what the port does not show. At
    /// most 20 lines of a kind; nothing when all is well. Reads all of it, on a connection of its own.
    ///
    /// # Errors
    /// [`ReadError`] when the file cannot even be read.
    pub async fn strays(&self) -> Result<Vec<String>, ReadError> {
        let config = self.config().clone();
        blocking(move || strays::look(&config)).await.map_err(read_error)
    }

    /// Overwrites what an erasure left in the log, and with `compact` in unused places of the file: then all of it is
    /// written anew, and commits wait meanwhile. False when somebody read from the log, so that it could not be cut back.
    ///
    /// # Errors
    /// [`ReadError`] when the file cannot be written.
    pub async fn forget(&self, compact: bool) -> Result<bool, ReadError> {
        let config = self.config().clone();
        blocking(move || erase::forget(&config, compact)).await.map_err(read_error)
    }

    /// True while the last write succeeded and the file is still the one that was opened; what readiness asks.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.inner.shared.health.is_writable()
            && self.inner.shared.footprint.is_unchanged()
            && !self.inner.queue.is_closed()
    }

    /// Why commits cannot be taken now, if they cannot; see [`is_healthy`](Self::is_healthy).
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        if self.is_healthy() {
            return None;
        }
        if !self.inner.shared.footprint.is_unchanged() {
            return Some(Trouble::Replaced.to_string());
        }
        if self.inner.queue.is_closed() {
            return Some(Trouble::Closed.to_string());
        }
        Some(self.inner.shared.health.trouble())
    }

    /// Size of the write-ahead log when it was last looked at, in bytes.
    #[must_use]
    pub fn wal_bytes(&self) -> u64 {
        self.inner.shared.health.wal_bytes()
    }

    /// Commits and other writes that wait for the writer.
    #[must_use]
    pub fn queue_depth(&self) -> usize {
        let queue = &self.inner.queue;
        queue.max_capacity().saturating_sub(queue.capacity())
    }
}
