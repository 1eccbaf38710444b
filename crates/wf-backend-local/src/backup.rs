//! A copy of the store in one file, made while it is in use.
//!
//! `VACUUM INTO` reads one snapshot and writes a compact database without a log. It goes into a temporary name beside
//! the target, is made durable, and only then gets its name.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;

use crate::config::{LocalConfig, beside};
use crate::connection::{self, close, int, run};
use crate::fault::Cause;
use crate::place;
use crate::schema;

/// A finished backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupReport {
    /// The file.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its schema version.
    pub schema: u64,
}

/// A backup that was not made.
#[derive(Debug, Error)]
pub enum BackupError {
    /// There is something at the target already.
    #[error("{path} exists already: give the backup another name", path = .path.display())]
    Exists {
        /// The target.
        path: PathBuf,
    },
    /// The target cannot be written.
    #[error("{path} cannot be written", path = .path.display())]
    Target {
        /// The target.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The store did not answer, or the disk of the target is full.
    #[error("the store could not be copied")]
    Copy(#[source] Arc<Cause>),
}

/// Copies the database of `config` to `to`, which must not exist.
pub(crate) fn copy(config: &LocalConfig, to: &Path) -> Result<BackupReport, BackupError> {
    if std::fs::symlink_metadata(to).is_ok() {
        return Err(BackupError::Exists { path: to.to_owned() });
    }
    let suffix = schema::fresh_id().map_err(failed)?;
    let partial = beside(to, &format!(".{suffix}.partial"));
    let made = copy_into(config, &partial, to);
    if made.is_err() {
        // It may never have come into being.
        let _ = std::fs::remove_file(&partial);
    }
    made
}

fn failed(error: Cause) -> BackupError {
    BackupError::Copy(Arc::new(error))
}

fn copy_into(config: &LocalConfig, partial: &Path, to: &Path) -> Result<BackupReport, BackupError> {
    let target = |source: std::io::Error| BackupError::Target { path: to.to_owned(), source };
    let schema = vacuum(config, partial)?;
    // SQLite has closed the copy: opening it here takes no lock away from anybody.
    let file = File::options().read(true).write(true).open(partial).map_err(target)?;
    file.sync_all().map_err(target)?;
    let bytes = file.metadata().map_err(target)?.len();
    rename_new(partial, to).map_err(|e| {
        if e.kind() == std::io::ErrorKind::AlreadyExists {
            BackupError::Exists { path: to.to_owned() }
        } else {
            target(e)
        }
    })?;
    place::sync_directory(to).map_err(target)?;
    Ok(BackupReport { path: to.to_owned(), bytes, schema })
}

/// Writes the database of `config` into the new file `to`, for its owner's eyes only. Answers its schema version.
pub(crate) fn vacuum(config: &LocalConfig, to: &Path) -> Result<u64, BackupError> {
    let target = |source: std::io::Error| BackupError::Target { path: to.to_owned(), source };
    let name = to.to_str().ok_or_else(|| target(std::io::Error::other("the name is not UTF-8")))?;
    // SQLite fills a file that is there and empty, and so leaves its permissions as they are.
    if !place::create_new(to).map_err(target)? {
        return Err(BackupError::Exists { path: to.to_owned() });
    }
    let copied = connection::looking(config).and_then(|conn| {
        let version = int(&conn, "PRAGMA user_version")?;
        run(&conn, "VACUUM INTO ?1", [name])?;
        close(conn);
        Ok(u64::try_from(version).unwrap_or(0))
    });
    copied.map_err(failed)
}

/// Renames without ever replacing. A second name, then one name less, where the file system cannot do it in one step.
pub(crate) fn rename_new(from: &Path, to: &Path) -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {}
            other => return other.map_err(Into::into),
        }
    }
    std::fs::hard_link(from, to)?;
    std::fs::remove_file(from)
}
