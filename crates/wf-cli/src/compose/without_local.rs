//! The double of `local` in builds without the feature: no file can be opened, so no value of its store can be made.
//!
//! The configuration refuses such a store before (`config::backend`); this is what keeps `compose` whole.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wf_core::engine::verify::VerifyReport;
use wf_core::ports::{CopySourcePort, CopyTargetPort, ReadError, StorageBackendPort};

use super::Found;
use crate::config::backend::HOW_TO_GET_LOCAL;
use crate::exit::Failure;

/// A store that cannot be.
#[derive(Debug, Clone)]
pub(crate) struct LocalStore(Infallible);

impl LocalStore {
    /// Why commits cannot be taken now, if they cannot.
    pub(super) fn refusal(&self) -> Option<String> {
        match self.0 {}
    }

    /// Rows that belong to nothing, and columns that differ from states.
    pub(super) async fn strays(&self) -> Result<Vec<String>, ReadError> {
        match self.0 {}
    }

    /// Overwrites what an erasure left.
    pub(super) async fn forget(&self, _compact: bool) -> Result<bool, ReadError> {
        match self.0 {}
    }

    /// Closes the files.
    pub(super) async fn close(self) {
        match self.0 {}
    }
}

/// What a migration did.
#[derive(Debug)]
pub(crate) struct MigrateReport {
    /// The schema version before.
    pub(crate) from: u64,
    /// The schema version now.
    pub(crate) to: u64,
    /// The copy of the file as it was before.
    pub(crate) backup: Option<PathBuf>,
}

/// What a restore did.
#[derive(Debug)]
pub(crate) struct RestoreReport {
    /// The new id of the store.
    pub(crate) store_id: String,
    /// The schema version of the backup, when it was migrated.
    pub(crate) migrated_from: Option<u64>,
    /// Where the database that was there before is kept.
    pub(crate) kept: Option<PathBuf>,
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

/// The store behind its port.
pub(super) fn port(store: &LocalStore) -> Arc<dyn StorageBackendPort> {
    match store.0 {}
}

fn lacking(path: &Path) -> Failure {
    Failure::usage(format!("this build has no backend for the file {}", path.display()))
        .help(HOW_TO_GET_LOCAL)
}

/// Refuses.
///
/// # Errors
/// Always.
pub(super) async fn open(path: &Path) -> Result<Found, Failure> {
    Err(lacking(path))
}

/// Refuses.
///
/// # Errors
/// Always.
pub(crate) async fn open_existing(path: &Path) -> Result<LocalStore, Failure> {
    Err(lacking(path))
}

/// Refuses.
///
/// # Errors
/// Always.
pub(super) async fn copy_source(path: &Path) -> Result<Box<dyn CopySourcePort>, Failure> {
    Err(lacking(path))
}

/// Refuses.
///
/// # Errors
/// Always.
pub(super) async fn copy_target(path: &Path) -> Result<Box<dyn CopyTargetPort>, Failure> {
    Err(lacking(path))
}

/// Refuses.
///
/// # Errors
/// Always.
pub(crate) async fn backup(path: &Path, _file: &Path) -> Result<u64, Failure> {
    Err(lacking(path))
}

/// Refuses.
///
/// # Errors
/// Always.
pub(crate) async fn migrate(path: &Path) -> Result<MigrateReport, Failure> {
    Err(lacking(path))
}

/// Refuses.
///
/// # Errors
/// Always.
pub(crate) async fn restore(_from: &Path, path: &Path) -> Result<RestoreReport, Failure> {
    Err(lacking(path))
}

/// Refuses.
///
/// # Errors
/// Always.
pub(crate) async fn restamp(path: &Path) -> Result<String, Failure> {
    Err(lacking(path))
}

/// Refuses.
///
/// # Errors
/// Always.
pub(crate) async fn examine(
    path: &Path,
    _quick: bool,
    _progress: &mut (dyn FnMut(u64) + Send),
) -> Result<Examined, Failure> {
    Err(lacking(path))
}
