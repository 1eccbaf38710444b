//! The copy of a database beside it, from before its schema changes: what an operator goes back to.
//!
//! `checkpoint.db.schema-1.20261130T113409.123Z.backup` is the database at version 1 as it was then. It is complete, on the
//! disk and has its name before the first statement of a migration runs; where it cannot be made, nothing is migrated. Only
//! made by whoever has the database alone, so what an interrupted one left behind is nobody's and is removed.

use std::path::{Path, PathBuf};

use wf_core::ports::OpenError;

use crate::backup::{self, BackupError};
use crate::config::LocalConfig;
use crate::connection::{self, close};
use crate::failpoint;
use crate::fault::Cause;
use crate::open::chain;
use crate::place;

/// Copies of one schema version that are kept. A migration that is killed again and again makes one each time; the oldest
/// go when a newer one is complete.
const KEPT_MAX: usize = 3;

/// SQLite's clock, to the millisecond, in UTC. It sorts as time does.
const TIME: &str = "SELECT strftime('%Y%m%dT%H%M%fZ', 'now')";

/// Copies the database of `config`, which has this schema version. The caller has it alone.
///
/// # Errors
/// When there is no copy; then nothing must be migrated.
pub(crate) fn keep(config: &LocalConfig, version: u64) -> Result<PathBuf, OpenError> {
    let Some(name) = config.path.file_name().and_then(|name| name.to_str()) else {
        return Err(refused("its name is not UTF-8".to_owned()));
    };
    let prefix = format!("{name}.schema-{version}.");
    clear(&config.path, |found| found.starts_with(&prefix) && found.ends_with(".partial"));
    let time = time(config).map_err(|e| refused(chain(&e)))?;
    let path = config.path.with_file_name(format!("{prefix}{time}.backup"));
    failpoint::hit(failpoint::MIGRATION_COPY).map_err(|e| refused(chain(&e)))?;
    match backup::copy(config, &path) {
        Ok(_) => {}
        Err(error @ BackupError::Exists { .. }) => return Err(refused(error.to_string())),
        Err(error @ (BackupError::Target { .. } | BackupError::Copy(_))) => {
            return Err(refused(format!("{}; free some space", chain(&error))));
        }
    }
    let mut kept =
        beside(&config.path, |found| found.starts_with(&prefix) && found.ends_with("Z.backup"));
    kept.sort_unstable();
    let too_many = kept.len().saturating_sub(KEPT_MAX);
    for old in kept.into_iter().take(too_many) {
        remove(&config.path.with_file_name(old));
    }
    Ok(path)
}

fn refused(why: impl std::fmt::Display) -> OpenError {
    let message = format!(
        "the database was not migrated and is as it was, because the copy of it could not be made before ({why})"
    );
    OpenError::Refused { message }
}

fn time(config: &LocalConfig) -> Result<String, Cause> {
    let conn = connection::looking(config)?;
    let time = conn.query_row(TIME, (), |row| row.get(0))?;
    close(conn);
    Ok(time)
}

/// Names in the folder of the database.
fn beside(path: &Path, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(place::directory(path)) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| is_wanted(name)).collect()
}

fn clear(path: &Path, is_left_over: impl Fn(&str) -> bool) {
    for name in beside(path, is_left_over) {
        remove(&path.with_file_name(name));
    }
}

/// A copy too many takes space and nothing else: not worth refusing to start.
fn remove(path: &Path) {
    if let Err(error) = std::fs::remove_file(path) {
        tracing::warn!(path = %path.display(), %error, "an old copy of the database stays");
    }
}
