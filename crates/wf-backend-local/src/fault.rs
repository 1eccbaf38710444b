//! The only mapping of SQLite's errors to the errors of the port.
//!
//! Before COMMIT was sent nothing is applied: `Unavailable`. Once it was sent, an error leaves the outcome open, since
//! SQLite may have written the commit although it says otherwise: `Ambiguous`. A damaged file is `Corrupt`, never
//! repaired and never made anew.

use std::sync::Arc;

use rusqlite::Error as SqliteError;
use thiserror::Error;
use wf_core::ports::{CommitError, DefinitionError, OpenError, ReadError, SettleError};

/// What went wrong underneath.
#[derive(Debug, Error)]
pub enum Cause {
    /// SQLite says so.
    #[error(transparent)]
    Sqlite(#[from] SqliteError),
    /// The operating system says so.
    #[error(transparent)]
    System(#[from] std::io::Error),
    /// Something stored cannot be read back.
    #[error("{0}")]
    Unreadable(String),
    /// The database is not as it must be.
    #[error("{0}")]
    Unfit(String),
}

/// Why the store did not do what was asked; the source of the port's errors.
#[derive(Debug, Clone, Error)]
pub enum Trouble {
    /// `SQLITE_BUSY`: another process writes, for longer than the store waits.
    #[error("another process holds the write lock of the database file")]
    Busy(#[source] Arc<Cause>),
    /// `SQLITE_FULL`, or no space left on the device.
    #[error("the disk is full: free some space, the store goes on by itself")]
    Full(#[source] Arc<Cause>),
    /// `SQLITE_READONLY`.
    #[error("the database file cannot be written")]
    ReadOnly(#[source] Arc<Cause>),
    /// `SQLITE_IOERR` and its kind.
    #[error("the disk reported an error")]
    Io(#[source] Arc<Cause>),
    /// `SQLITE_CONSTRAINT` and its kind: the fault of one record, not of the store.
    #[error("the database refused a record")]
    Refused(#[source] Arc<Cause>),
    /// Anything else.
    #[error("the database did not answer")]
    Other(#[source] Arc<Cause>),
    /// The read took too long.
    #[error("the read took longer than {ms} ms")]
    Slow {
        /// The limit.
        ms: u64,
    },
    /// A file under the store is not the one that was opened.
    #[error(
        "the database file, or -wal or -shm beside it, was replaced or deleted while in use: put it back, or stop the server, restore a backup if the database file is gone, and start again"
    )]
    Replaced,
    /// Another build changed the schema of the open file.
    #[error(
        "the database has schema version {found} now and this build writes version {known} only: another build changed it while in use; start the build that did"
    )]
    SchemaChanged {
        /// The version found, as it is written in the file.
        found: i64,
        /// The one that this build writes.
        known: u64,
    },
    /// Too many commits, or too many reads, wait already.
    #[error("too many calls are waiting")]
    QueueFull,
    /// The store was closed, or is being closed.
    #[error("the store is closed")]
    Closed,
    /// The writer stopped in the middle of this commit.
    #[error("the writer stopped in the middle of the commit")]
    WriterLost,
    /// The reader stopped in the middle of this read.
    #[error("the reader stopped in the middle of the read")]
    ReaderLost,
    /// What was asked contradicts itself; a bug of the caller.
    #[error("the request is not well formed: {0}")]
    Malformed(&'static str),
}

/// What kind of error it is, told from SQLite's primary code (<https://sqlite.org/rescode.html>).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Busy,
    Full,
    ReadOnly,
    Io,
    Corrupt,
    NotADatabase,
    OneRecord,
    Unreadable,
    Other,
}

/// SQLite's primary code, when it is SQLite that failed.
fn primary_code(cause: &Cause) -> Option<i32> {
    match cause {
        Cause::Sqlite(error) => Some(error.sqlite_error()?.extended_code & 0xff),
        Cause::System(_) | Cause::Unreadable(_) | Cause::Unfit(_) => None,
    }
}

fn is_unreadable(cause: &Cause) -> bool {
    match cause {
        Cause::Unreadable(_) => true,
        Cause::Sqlite(error) => matches!(
            error,
            SqliteError::FromSqlConversionFailure(..)
                | SqliteError::IntegralValueOutOfRange(..)
                | SqliteError::InvalidColumnType(..)
                | SqliteError::Utf8Error(..)
        ),
        Cause::System(_) | Cause::Unfit(_) => false,
    }
}

/// A read that was stopped, because it took longer than it may.
pub(crate) fn is_interrupted(cause: &Cause) -> bool {
    primary_code(cause) == Some(9)
}

/// Another connection holds what this one needs.
pub(crate) fn is_busy(cause: &Cause) -> bool {
    kind(cause) == Kind::Busy
}

fn kind(cause: &Cause) -> Kind {
    if is_unreadable(cause) {
        return Kind::Unreadable;
    }
    let Some(code) = primary_code(cause) else {
        return Kind::Other;
    };
    match code {
        // BUSY, LOCKED, PROTOCOL (a lock that could not be had)
        5 | 6 | 15 => Kind::Busy,
        13 => Kind::Full,
        8 => Kind::ReadOnly,
        // IOERR, CANTOPEN
        10 | 14 => Kind::Io,
        11 => Kind::Corrupt,
        26 => Kind::NotADatabase,
        // TOOBIG, CONSTRAINT, MISMATCH
        18..=20 => Kind::OneRecord,
        _ => Kind::Other,
    }
}

fn trouble(error: Cause) -> Result<Trouble, String> {
    let kind = kind(&error);
    let source = Arc::new(error);
    Ok(match kind {
        Kind::Busy => Trouble::Busy(source),
        Kind::Full => Trouble::Full(source),
        Kind::ReadOnly => Trouble::ReadOnly(source),
        Kind::Io => Trouble::Io(source),
        Kind::OneRecord => Trouble::Refused(source),
        Kind::Other => Trouble::Other(source),
        Kind::Corrupt => return Err("the database file is corrupt".to_owned()),
        Kind::NotADatabase => return Err("the file is not a SQLite database".to_owned()),
        Kind::Unreadable => return Err(format!("a row cannot be read ({source})")),
    })
}

/// A write that did not succeed, told to everybody whose work was in it.
#[derive(Debug, Clone)]
pub(crate) enum Failure {
    /// COMMIT was not sent.
    NotApplied(Trouble),
    /// COMMIT was sent, or nobody knows.
    Unknown(Trouble),
    /// The file is damaged; COMMIT was not sent.
    Corrupt(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotApplied(trouble) => write!(f, "{trouble}"),
            Self::Unknown(trouble) => write!(f, "{trouble}, and the outcome is unknown"),
            Self::Corrupt(what) => write!(f, "{what}"),
        }
    }
}

impl Failure {
    /// An error before COMMIT was sent.
    pub(crate) fn before_commit(error: Cause) -> Self {
        match trouble(error) {
            Ok(trouble) => Self::NotApplied(trouble),
            Err(what) => Self::Corrupt(what),
        }
    }

    /// An error of COMMIT itself.
    pub(crate) fn at_commit(error: Cause) -> Self {
        let error = match trouble(error) {
            Ok(trouble) => trouble,
            Err(what) => Trouble::Other(Arc::new(Cause::Unfit(what))),
        };
        Self::Unknown(error)
    }

    /// True when one of the records may be at fault, its own or a damaged one that it meets, and the others may pass
    /// without it.
    pub(crate) fn may_be_one_records(&self) -> bool {
        match self {
            Self::NotApplied(trouble) => matches!(trouble, Trouble::Refused(_) | Trouble::Other(_)),
            Self::Corrupt(_) => true,
            Self::Unknown(_) => false,
        }
    }

    /// True when the disk may have failed, so that it is not known what it has of the files.
    pub(crate) fn may_be_the_disks(&self) -> bool {
        match self {
            Self::NotApplied(trouble) => matches!(trouble, Trouble::Io(_) | Trouble::Full(_)),
            Self::Unknown(_) => true,
            Self::Corrupt(_) => false,
        }
    }

    /// As the answer to a commit. `after_ms` is when to try again.
    pub(crate) fn into_commit_error(self, after_ms: Option<i64>) -> CommitError {
        match self {
            Self::NotApplied(trouble) => {
                CommitError::Unavailable { after_ms, source: trouble.into() }
            }
            Self::Unknown(trouble) => CommitError::Ambiguous { source: trouble.into() },
            Self::Corrupt(what) => CommitError::Corrupt { what },
        }
    }

    /// As the answer to work that answers like a read.
    pub(crate) fn into_read_error(self) -> ReadError {
        match self {
            Self::NotApplied(trouble) | Self::Unknown(trouble) => {
                ReadError::Unavailable { source: trouble.into() }
            }
            Self::Corrupt(what) => ReadError::Corrupt { what },
        }
    }

    /// As the answer to a settlement, a revival or a sweep.
    pub(crate) fn into_settle_error(self) -> SettleError {
        SettleError::Unavailable { source: self.into_source() }
    }

    /// As the answer to a definition.
    pub(crate) fn into_definition_error(self) -> DefinitionError {
        DefinitionError::Unavailable { source: self.into_source() }
    }

    fn into_source(self) -> wf_core::ports::Source {
        match self {
            Self::NotApplied(trouble) | Self::Unknown(trouble) => trouble.into(),
            Self::Corrupt(what) => what.into(),
        }
    }
}

/// An error of a read.
pub(crate) fn read_error(error: Cause) -> ReadError {
    Failure::before_commit(error).into_read_error()
}

/// A stored thing that cannot be read.
pub(crate) fn unreadable(what: &str, why: impl std::fmt::Display) -> Cause {
    Cause::Unreadable(format!("{what}: {why}"))
}

/// An error while opening `path`.
pub(crate) fn open_error(path: &std::path::Path, error: Cause) -> OpenError {
    let path = path.display();
    match trouble(error) {
        Ok(Trouble::ReadOnly(_)) => OpenError::Refused {
            message: format!("{path} cannot be written: make it and its directory writable"),
        },
        Ok(trouble) => OpenError::Unavailable { source: trouble.into() },
        Err(what) => OpenError::Corrupt {
            what: format!("{path}: {what}; restore a backup, or give another path"),
        },
    }
}
