//! What a store is opened with. Read by `open`; nothing here touches the disk.

use std::path::{Path, PathBuf};

/// How to open a SQLite store. Make one with [`LocalConfig::new`] and change what you must.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LocalConfig {
    /// The database file. Its directory must exist; `-wal`, `-shm` and `.lock` files appear beside it.
    pub path: PathBuf,
    /// How long a write waits for another process that is writing, in milliseconds.
    pub busy_timeout_ms: u64,
    /// Commits that may wait for the writer; more are refused at once.
    pub queue_max: usize,
    /// Connections for reading, at least 1. Each is a thread.
    pub readers: u32,
    /// How long a read may take, in milliseconds.
    pub read_timeout_ms: u64,
    /// The size of the `-wal` file from which it is cut back even when there is no pause, in bytes.
    pub wal_bytes_max: u64,
    /// How often the `-wal` file is carried over into the database file, in milliseconds.
    pub checkpoint_every_ms: u64,
    /// Open the file although it lies on a network file system, where locks and memory maps cannot be relied on.
    pub allow_network_fs: bool,
}

impl LocalConfig {
    /// The defaults for the database file at `path`.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            busy_timeout_ms: 2_000,
            queue_max: 1_024,
            readers: 4,
            read_timeout_ms: 5_000,
            wal_bytes_max: 64 * 1024 * 1024,
            checkpoint_every_ms: 1_000,
            allow_network_fs: false,
        }
    }

    /// The file beside the database whose lock says who uses it: shared by servers, exclusive for a restore.
    #[must_use]
    pub fn lock_path(&self) -> PathBuf {
        beside(&self.path, ".lock")
    }

    /// The write-ahead log.
    #[must_use]
    pub fn wal_path(&self) -> PathBuf {
        beside(&self.path, "-wal")
    }

    /// The shared-memory index of the write-ahead log.
    #[must_use]
    pub fn shm_path(&self) -> PathBuf {
        beside(&self.path, "-shm")
    }
}

/// `path` with `suffix` appended to its file name.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
