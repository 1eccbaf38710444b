//! Putting a backup in the place of the store, and marking a store as a continuation of an older state.
//!
//! A restored store goes back in time: what was acknowledged after the backup is gone, but the world remembers it.
//! So the copy gets
//!
//! - a new id and a new signing key, so that nothing that was derived from the old id is taken for this store's;
//! - fences above all of the lost time. A *free* lock row gets its fence raised by [`FENCES_RAISED_BY`]. A *held* row
//!   keeps its fence, which its workflow's state and history name (they must go on matching it, or every open workflow
//!   would have lost its lock, and a state that no event explains would break the fold of the events): it gets a floor
//!   instead, and takes it when it is freed. An asset without a row counts as free with the store's base fence. Either
//!   way whoever acquires an asset next has a fence above any that was given out before;
//! - no leases: nobody who held one is there any more.
//!
//! Nothing of the store that is replaced is deleted; it stays beside, under another name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use thiserror::Error;
use wf_core::ports::OpenError;

use crate::backup::{self, rename_new};
use crate::codec::decode;
use crate::config::{LocalConfig, beside};
use crate::connection::{self, close, immediate, rows, run};
use crate::fault::Cause;
use crate::open::version_of;
use crate::place::{self, FileId, InUse};
use crate::schema::{self, MIGRATIONS};
use crate::threads::blocking;

/// By how much a restore raises fences: more than an asset changes hands in the time that a backup may miss.
pub const FENCES_RAISED_BY: u64 = 1_000_000;

/// A finished restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreReport {
    /// The new id of the store.
    pub store_id: String,
    /// The schema version of the backup, when it was migrated.
    pub migrated_from: Option<u64>,
    /// Where the database that was there before is kept, if there was one.
    pub kept: Option<PathBuf>,
}

/// A restore that did not happen; the store is as it was.
#[derive(Debug, Error)]
pub enum RestoreError {
    /// The file is no backup of a store that this build can read.
    #[error("{path} cannot be restored: {message}", path = .path.display())]
    NotABackup {
        /// The file.
        path: PathBuf,
        /// Why, and what to do.
        message: String,
    },
    /// The backup is damaged.
    #[error("{path} is damaged: {what}; restore another backup", path = .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What SQLite found first.
        what: String,
    },
    /// The place of the store cannot be used, or is in use.
    #[error("the place of the store cannot be used")]
    Place(#[source] OpenError),
    /// SQLite could not copy or change the copy.
    #[error("the backup could not be copied")]
    Copy(#[source] Arc<Cause>),
    /// A file could not be moved.
    #[error("{path} could not be put in its place", path = .path.display())]
    Move {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

fn copy_failed(error: Cause) -> RestoreError {
    RestoreError::Copy(Arc::new(error))
}

/// Puts the backup `from` in the place of the store at `config.path`; what is there stays beside it.
///
/// # Errors
/// [`RestoreError`]; also while anybody has the store open.
pub async fn restore(from: &Path, config: &LocalConfig) -> Result<RestoreReport, RestoreError> {
    let (from, config) = (from.to_owned(), config.clone());
    blocking(move || replace(&from, &config)).await
}

fn replace(from: &Path, config: &LocalConfig) -> Result<RestoreReport, RestoreError> {
    let config = place::absolute(config).map_err(RestoreError::Place)?;
    place::check(&config).map_err(RestoreError::Place)?;
    let _alone = InUse::exclusive(&config).map_err(RestoreError::Place)?;
    let version = verify(from, &config)?;
    let suffix = schema::fresh_id().map_err(copy_failed)?;
    let made =
        LocalConfig { path: beside(&config.path, &format!(".{suffix}.partial")), ..config.clone() };
    let restored = make(from, &made).and_then(|store_id| Ok((store_id, swap(&made, &config)?)));
    let (store_id, kept) = match restored {
        Ok(done) => done,
        Err(error) => {
            for leftover in [made.path.clone(), made.wal_path(), made.shm_path()] {
                // It may never have come into being.
                let _ = std::fs::remove_file(leftover);
            }
            return Err(error);
        }
    };
    Ok(RestoreReport {
        store_id,
        migrated_from: (version < schema::known()).then_some(version),
        kept,
    })
}

/// Marks the store as one that went back in time, after its file was put back by other means (a snapshot of the disk,
/// for example): a new id, a new key, fences raised, no leases. Answers the new id.
///
/// # Errors
/// [`OpenError`]; also while anybody has the store open.
pub async fn restamp(config: LocalConfig) -> Result<String, OpenError> {
    blocking(move || stamp_in_place(&place::absolute(&config)?)).await
}

fn stamp_in_place(config: &LocalConfig) -> Result<String, OpenError> {
    let found = place::check(config)?;
    let alone = InUse::exclusive(config)?;
    if found.is_none_or(|found| found.len() == 0) {
        return Err(OpenError::Refused {
            message: format!("there is no database at {}", config.path.display()),
        });
    }
    let failed = |e| crate::fault::open_error(&config.path, e);
    let conn = connection::looking(config).map_err(failed)?;
    let marks = schema::marks(&conn);
    close(conn);
    let marks = marks.map_err(failed)?;
    let version = version_of(config, marks, MIGRATIONS)?;
    if version != schema::known() {
        return Err(OpenError::Refused {
            message: format!(
                "{} has schema version {version}: migrate it first",
                config.path.display()
            ),
        });
    }
    let mut conn = connection::open_writing(config).map_err(failed)?;
    let id = stamp(&mut conn).map_err(failed)?;
    close(conn);
    drop(alone);
    Ok(id)
}

/// Looks at the whole backup. Answers its schema version.
fn verify(from: &Path, config: &LocalConfig) -> Result<u64, RestoreError> {
    let refuse = |message: String| RestoreError::NotABackup { path: from.to_owned(), message };
    match std::fs::metadata(from) {
        Ok(found) if found.is_file() && found.len() > 0 => {}
        Ok(_) => return Err(refuse("it is empty or not a regular file".to_owned())),
        Err(e) => return Err(refuse(e.to_string())),
    }
    if FileId::of(from) == FileId::of(&config.path) {
        return Err(refuse("it is the store itself".to_owned()));
    }
    let source = LocalConfig {
        path: std::path::absolute(from).map_err(|e| refuse(e.to_string()))?,
        ..config.clone()
    };
    let damaged = |what: String| RestoreError::Damaged { path: from.to_owned(), what };
    let unreadable = |e: Cause| {
        let error = crate::fault::open_error(from, e);
        if matches!(error, OpenError::Corrupt { .. }) {
            damaged("it is no SQLite database any more".to_owned())
        } else {
            refuse(crate::open::chain(&error))
        }
    };
    let conn = connection::read_only(&source).map_err(unreadable)?;
    let marks = schema::marks(&conn).map_err(unreadable)?;
    let version =
        version_of(&source, marks, MIGRATIONS).map_err(|e| refuse(crate::open::chain(&e)))?;
    if version == 0 {
        return Err(refuse("there is nothing in it".to_owned()));
    }
    let faults = integrity(&conn).map_err(unreadable)?;
    close(conn);
    match faults.into_iter().next() {
        Some(what) => Err(damaged(what)),
        None => Ok(version),
    }
}

/// What SQLite finds wrong in a file, page by page and reference by reference. Reads all of it.
pub(crate) fn integrity(conn: &Connection) -> Result<Vec<String>, Cause> {
    let found = rows(conn, "PRAGMA integrity_check(20)", (), decode::one::<String>)?;
    let mut faults: Vec<String> = found.into_iter().filter(|line| line != "ok").collect();
    let strays = rows(conn, "PRAGMA foreign_key_check", (), |_| Ok(()))?;
    if !strays.is_empty() {
        faults.push(format!("{} rows refer to rows that are not there", strays.len()));
    }
    Ok(faults)
}

/// Makes the file that will be the store, complete and durable. Answers its id.
fn make(from: &Path, made: &LocalConfig) -> Result<String, RestoreError> {
    let source = LocalConfig {
        path: std::path::absolute(from).map_err(|e| moved(from, e))?,
        ..made.clone()
    };
    backup::vacuum(&source, &made.path).map_err(|error| match error {
        backup::BackupError::Copy(source) => RestoreError::Copy(source),
        backup::BackupError::Exists { path } => {
            moved(&path, std::io::ErrorKind::AlreadyExists.into())
        }
        backup::BackupError::Target { path, source } => moved(&path, source),
    })?;
    let mut conn = connection::open_writing(made).map_err(copy_failed)?;
    schema::apply(&mut conn, MIGRATIONS).map_err(copy_failed)?;
    let id = stamp(&mut conn).map_err(copy_failed)?;
    fold(conn, made)?;
    Ok(id)
}

/// Closes the only connection to a file, so that all of it is in the one file, durably.
fn fold(conn: Connection, config: &LocalConfig) -> Result<(), RestoreError> {
    crate::checkpoint::truncate(&conn).map_err(copy_failed)?;
    conn.close().map_err(|(_, error)| copy_failed(error.into()))?;
    if place::size(&config.wal_path()) > 0 {
        return Err(moved(
            &config.wal_path(),
            std::io::Error::other("the log could not be carried over into the database"),
        ));
    }
    // Nobody has the file open now, so opening it takes no lock away.
    std::fs::File::options()
        .read(true)
        .write(true)
        .open(&config.path)
        .and_then(|file| file.sync_all())
        .map_err(|e| moved(&config.path, e))
}

/// Marks a store that went back in time. One transaction. Answers the new id.
fn stamp(conn: &mut Connection) -> Result<String, Cause> {
    let raise = i64::try_from(FENCES_RAISED_BY).unwrap_or(i64::MAX);
    let id = schema::fresh_id()?;
    let tx = immediate(conn)?;
    run(&tx, "UPDATE store SET id = ?1, fence_base = fence_base + ?2 WHERE one = 1", (&id, raise))?;
    schema::add_secret(&tx)?;
    for sql in [
        "UPDATE locks SET fence = max(fence, floor) + ?1 WHERE holder IS NULL",
        "UPDATE locks SET floor = max(fence, floor) + ?1 WHERE holder IS NOT NULL",
    ] {
        run(&tx, sql, [raise])?;
    }
    for sql in [
        "UPDATE streams SET lease_token = NULL, lease_until = NULL WHERE lease_token IS NOT NULL",
        "UPDATE deadlines SET lease_token = NULL, lease_until = NULL WHERE lease_token IS NOT NULL",
    ] {
        run(&tx, sql, ())?;
    }
    tx.commit()?;
    Ok(id)
}

fn moved(path: &Path, source: std::io::Error) -> RestoreError {
    RestoreError::Move { path: path.to_owned(), source }
}

/// What SQLite may have left beside a database: its log, the index of that, and the journal of a time before it had a
/// log, which is when it was created.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Puts `made` in the place of the store. Answers where the old one is kept.
fn swap(made: &LocalConfig, config: &LocalConfig) -> Result<Option<PathBuf>, RestoreError> {
    let here = &config.path;
    let kept = match std::fs::symlink_metadata(here) {
        Ok(_) => Some(set_aside(config)?),
        Err(_) => None,
    };
    // A log or a journal of another database must never lie beside this one: SQLite would play it back.
    for stray in BESIDE.map(|suffix| beside(here, suffix)) {
        match std::fs::remove_file(&stray) {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(moved(&stray, e)),
        }
    }
    std::fs::rename(&made.path, here).map_err(|e| moved(here, e))?;
    // Its own index of the log, empty by now.
    let _ = std::fs::remove_file(made.shm_path());
    let _ = std::fs::remove_file(made.wal_path());
    place::sync_directory(here).map_err(|e| moved(here, e))?;
    Ok(kept)
}

/// Gives the old database a second name, so that the new one can take its place in one step.
///
/// If its log cannot be carried over into it (it may be damaged; that may be why there is a restore), all of its files
/// get other names, the database first: a crash in between leaves no database, never one without its log.
fn set_aside(config: &LocalConfig) -> Result<PathBuf, RestoreError> {
    let kept = free_name(&config.path);
    let whole = connection::open_writing(config).is_ok_and(|conn| fold(conn, config).is_ok());
    if whole && std::fs::hard_link(&config.path, &kept).is_ok() {
        return Ok(kept);
    }
    for suffix in [""].into_iter().chain(BESIDE) {
        let old = beside(&config.path, suffix);
        match rename_new(&old, &beside(&kept, suffix)) {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(moved(&old, e)),
        }
    }
    Ok(kept)
}

fn free_name(path: &Path) -> PathBuf {
    let mut number = 1_u32;
    loop {
        let name = beside(path, &format!(".before-restore.{number}"));
        if std::fs::symlink_metadata(&name).is_err() {
            return name;
        }
        number += 1;
    }
}
