//! What only the store in a file knows: copies of it, its schema, its size. `compose` has what every store knows.

use std::path::Path;
use std::sync::Arc;

pub(crate) use wf_backend_local::LocalStore;
use wf_backend_local::{
    BackupError, LocalConfig, LocalCopy, MigrateReport, RestoreError, RestoreReport,
};
use wf_core::engine::verify::{VerifyReport, verify};
use wf_core::ports::{CopySourcePort, CopyTargetPort, OpenError, StorageBackendPort};

use super::Found;
use crate::exit::{Exit, Failure};

/// Opens the store in this file, making it when it is not there.
///
/// # Errors
/// As the store says, with the matching exit code.
pub(super) async fn open(path: &Path) -> Result<Found, Failure> {
    let opened = LocalStore::open(LocalConfig::new(path)).await.map_err(cannot_open)?;
    Ok(Found {
        backend: super::Backend::Local(opened.store),
        created: opened.created,
        migrated_from: opened.migrated_from,
        kept: opened.kept,
    })
}

/// Opens the store in a file that must be there already.
///
/// # Errors
/// As the store says, with the matching exit code.
pub(crate) async fn open_existing(path: &Path) -> Result<LocalStore, Failure> {
    LocalStore::open_existing(LocalConfig::new(path)).await.map_err(cannot_open)
}

/// The store behind its port.
pub(super) fn port(store: &LocalStore) -> Arc<dyn StorageBackendPort> {
    Arc::new(store.clone())
}

/// The store in this file, to be copied from.
///
/// # Errors
/// As the store says; a server that has the file is one reason.
pub(super) async fn copy_source(path: &Path) -> Result<Box<dyn CopySourcePort>, Failure> {
    let opened = LocalCopy::source(LocalConfig::new(path)).await;
    Ok(Box::new(opened.map_err(cannot_open)?))
}

/// A store to be made in this file.
///
/// # Errors
/// As the store says; one that has something in it is one reason.
pub(super) async fn copy_target(path: &Path) -> Result<Box<dyn CopyTargetPort>, Failure> {
    let opened = LocalCopy::target(LocalConfig::new(path)).await;
    Ok(Box::new(opened.map_err(cannot_open)?))
}

/// What is wrong with a file that does not open.
fn cannot_open(error: OpenError) -> Failure {
    let help = "keep a copy of the file, and restore a backup with `wf-cli restore FILE`";
    super::cannot_open(error, help)
}

/// Writes a consistent copy of the database at `path` to `file`, which must not exist; its size in bytes.
///
/// # Errors
/// As the store says.
pub(crate) async fn backup(path: &Path, file: &Path) -> Result<u64, Failure> {
    let store = open_existing(path).await?;
    let made = store.backup(file).await;
    store.close().await;
    Ok(made.map_err(cannot_copy)?.bytes)
}

fn cannot_copy(error: BackupError) -> Failure {
    match error {
        BackupError::Exists { .. } => Failure::failed(error.to_string()),
        BackupError::Target { .. } => Failure::failed("the backup was not written").because(error),
        BackupError::Copy(_) => Failure::unavailable("the backup was not written").because(error),
    }
}

/// Brings the store to the schema of this build, making it when it is not there.
///
/// # Errors
/// As the store says.
pub(crate) async fn migrate(path: &Path) -> Result<MigrateReport, Failure> {
    wf_backend_local::migrate(LocalConfig::new(path)).await.map_err(cannot_open)
}

/// Puts a backup in the place of the database; what was there stays beside it.
///
/// # Errors
/// As the store says; a server that has the database is one reason.
pub(crate) async fn restore(from: &Path, path: &Path) -> Result<RestoreReport, Failure> {
    wf_backend_local::restore(from, &LocalConfig::new(path)).await.map_err(|error| match error {
        RestoreError::NotABackup { .. } => Failure::failed(error.to_string()),
        RestoreError::Damaged { .. } => Failure::new(Exit::Damage, error.to_string()),
        RestoreError::Place(error) => cannot_open(error),
        RestoreError::Copy(_) | RestoreError::Move { .. } => {
            Failure::failed("nothing was restored, the database is as it was").because(error)
        }
    })
}

/// Gives a recovered database a new store id and new fences; the new id.
///
/// # Errors
/// As the store says; a server that has the database is one reason.
pub(crate) async fn restamp(path: &Path) -> Result<String, Failure> {
    wf_backend_local::restamp(LocalConfig::new(path)).await.map_err(cannot_open)
}

/// What an examination found.
#[derive(Debug)]
pub(crate) struct Examined {
    /// Size of the database file, in bytes.
    pub(crate) bytes: u64,
    /// Size of the write-ahead log, in bytes.
    pub(crate) wal_bytes: u64,
    /// What was read and recomputed, if it was.
    pub(crate) report: Option<VerifyReport>,
}

/// Opens a database that is there, as commands do, reads all of it unless `quick`, and changes nothing.
///
/// # Errors
/// When it does not open or cannot be read.
pub(crate) async fn examine(
    path: &Path,
    quick: bool,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<Examined, Failure> {
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |found| found.len());
    let store = open_existing(path).await?;
    let config = store.config();
    let (bytes, wal_bytes) = (size(&config.path), size(&config.wal_path()));
    let report = if quick { None } else { Some(verify(&store, None, progress).await) };
    store.close().await;
    Ok(Examined { bytes, wal_bytes, report: report.transpose()? })
}
