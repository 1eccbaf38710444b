//! Connections: the settings every one gets, the checks that they took, and how statements are run on them.
//!
//! The settings are those of SQLite's own advice for a durable write-ahead log; none of them is left to a default.
//! [`immediate`] is the only way into a transaction, [`rows`] the only place that goes through rows.

use std::time::{Duration, Instant};

use rusqlite::{
    Connection, OpenFlags, OptionalExtension as _, Params, Transaction, TransactionBehavior,
};

use crate::codec::decode::{Columns, Read};
use crate::config::LocalConfig;
use crate::failpoint;
use crate::fault::{Cause, is_busy};

/// The oldest SQLite without the WAL-reset bug (<https://sqlite.org/wal.html#walresetbug>).
pub(crate) const SQLITE_VERSION_MIN: (u32, u32, u32) = (3, 51, 3);

/// SQLite's code for `synchronous=FULL`.
const SYNCHRONOUS_FULL: i64 = 2;

/// Compiled statements that a connection keeps: those of the writer in each of their sizes, or all of a reader.
const STATEMENTS_KEPT: usize = 256;

/// What every connection gets; changes nothing in the file.
const LOOKING: &str = "
PRAGMA foreign_keys = ON;
PRAGMA trusted_schema = OFF;
PRAGMA cell_size_check = ON;
PRAGMA temp_store = MEMORY;
PRAGMA mmap_size = 0;";

/// Write-ahead log, an fsync per commit. On macOS fsync alone does not reach the medium. The checkpointer carries the
/// log over; `wal_autocheckpoint` is what bounds it while commits leave that no pause.
const WRITING: &str = "
PRAGMA synchronous = FULL;
PRAGMA fullfsync = 1;
PRAGMA wal_autocheckpoint = 4000;
PRAGMA cache_size = -4096;";

const READING: &str = "
PRAGMA query_only = ON;
PRAGMA cache_size = -2048;";

fn open(config: &LocalConfig, access: OpenFlags) -> Result<Connection, Cause> {
    // Each connection is used by one thread at a time, so SQLite need not lock it.
    let conn = Connection::open_with_flags(&config.path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(Duration::from_millis(config.busy_timeout_ms))?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    conn.execute_batch(LOOKING)?;
    Ok(conn)
}

/// Gives back the memory of pages that were read and not changed.
pub(crate) fn forget_pages(conn: &Connection) -> Result<(), Cause> {
    Ok(conn.execute_batch("PRAGMA shrink_memory")?)
}

/// Opens a connection to look at the file, or to copy it. Creates nothing.
pub(crate) fn looking(config: &LocalConfig) -> Result<Connection, Cause> {
    open(config, OpenFlags::SQLITE_OPEN_READ_WRITE)
}

/// The same, for a file that must not change in any way.
pub(crate) fn read_only(config: &LocalConfig) -> Result<Connection, Cause> {
    open(config, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

/// Opens a connection that reads.
pub(crate) fn reading(config: &LocalConfig) -> Result<Connection, Cause> {
    let conn = looking(config)?;
    conn.execute_batch(READING)?;
    Ok(conn)
}

/// Opens a connection for writing and makes sure that its commits will be durable.
pub(crate) fn open_writing(config: &LocalConfig) -> Result<Connection, Cause> {
    let conn = looking(config)?;
    use_log(&conn, Duration::from_millis(config.busy_timeout_ms))?;
    conn.execute_batch(WRITING)?;
    conn.execute_batch(&format!("PRAGMA journal_size_limit = {}", config.wal_bytes_max))?;
    if failpoint::is_asked(failpoint::OPEN_SYNCHRONOUS) {
        conn.execute_batch("PRAGMA synchronous = NORMAL")?;
        return Ok(conn);
    }
    check_durable(&conn)?;
    Ok(conn)
}

/// Makes the file one with a write-ahead log. While another connection does the same to a new file SQLite answers that it
/// is busy at once, whatever the time to wait is: both hold a lock that the other must have gone. So it is asked again.
fn use_log(conn: &Connection, patience: Duration) -> Result<(), Cause> {
    let begun = Instant::now();
    loop {
        match conn.execute_batch("PRAGMA journal_mode = WAL").map_err(Cause::from) {
            Err(cause) if is_busy(&cause) && begun.elapsed() < patience => {
                std::thread::sleep(Duration::from_millis(5));
            }
            done => return done,
        }
    }
}

/// Opens a connection that is never used and keeps the log and its index in being: both go with the last connection of
/// all processes. While this one is open their names stand for the same files, or somebody meddled.
pub(crate) fn anchor(config: &LocalConfig) -> Result<Connection, Cause> {
    let conn = open_writing(config)?;
    // Reading makes SQLite open the log and its index, which have names only then.
    int(&conn, "PRAGMA user_version")?;
    Ok(conn)
}

/// Closes a connection, where nothing depends on whether that succeeds.
pub(crate) fn close(conn: Connection) {
    if let Err((_, error)) = conn.close() {
        tracing::warn!(%error, "a connection did not close");
    }
}

fn check_durable(conn: &Connection) -> Result<(), Cause> {
    let synchronous = int(conn, "PRAGMA synchronous")?;
    let journal: String = conn.query_row("PRAGMA journal_mode", (), |row| row.get(0))?;
    if synchronous != SYNCHRONOUS_FULL || !journal.eq_ignore_ascii_case("wal") {
        return Err(Cause::Unfit(format!(
            "SQLite did not take synchronous=FULL and journal_mode=WAL (it has {synchronous} and {journal})"
        )));
    }
    Ok(())
}

/// The version of the SQLite that is linked in, when it is new enough; else what was found.
pub(crate) fn check_version() -> Result<(), &'static str> {
    let version = rusqlite::version();
    if version_is_enough(version) { Ok(()) } else { Err(version) }
}

fn version_is_enough(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
    let mut next = || parts.next().flatten().unwrap_or(0);
    (next(), next(), next()) >= SQLITE_VERSION_MIN
}

/// Opens a transaction that has the write lock from its beginning, so that nothing in it can be refused for want of
/// the lock. Dropped without COMMIT it is rolled back.
pub(crate) fn immediate(conn: &mut Connection) -> Result<Transaction<'_>, Cause> {
    Ok(conn.transaction_with_behavior(TransactionBehavior::Immediate)?)
}

/// The one number that `sql` answers.
pub(crate) fn int(conn: &Connection, sql: &'static str) -> Result<i64, Cause> {
    Ok(conn.prepare_cached(sql)?.query_row((), |row| row.get(0))?)
}

/// The one number that `sql` answers, if it answers any.
pub(crate) fn int_of(
    conn: &Connection,
    sql: &'static str,
    arguments: impl Params,
) -> Result<Option<i64>, Cause> {
    let answer = conn.prepare_cached(sql)?.query_row(arguments, |row| row.get(0));
    Ok(answer.optional()?)
}

/// All rows that the statement answers, each read by `decode`. They are in memory, and the statement is over, before
/// anybody sees one: who is slow with them holds up nothing in the file.
pub(crate) fn rows<T>(
    conn: &Connection,
    sql: &str,
    arguments: impl Params,
    decode: impl FnMut(&mut Columns<'_>) -> Read<T>,
) -> Read<Vec<T>> {
    rows_up_to(conn, sql, arguments, decode, |_| false)
}

/// The same, up to the first that is enough: the statement does no more work after it.
pub(crate) fn rows_up_to<T>(
    conn: &Connection,
    sql: &str,
    arguments: impl Params,
    mut decode: impl FnMut(&mut Columns<'_>) -> Read<T>,
    is_enough: impl Fn(&T) -> bool,
) -> Read<Vec<T>> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut stepped = statement.query(arguments)?;
    let mut rows = Vec::new();
    while let Some(row) = stepped.next()? {
        let decoded = decode(&mut Columns::new(row))?;
        let enough = is_enough(&decoded);
        rows.push(decoded);
        if enough {
            break;
        }
    }
    Ok(rows)
}

/// Runs a statement that answers no rows. Answers how many it changed.
pub(crate) fn run(conn: &Connection, sql: &str, arguments: impl Params) -> Read<u64> {
    let changed = conn.prepare_cached(sql)?.execute(arguments)?;
    Ok(u64::try_from(changed).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::version_is_enough;

    #[test]
    fn sqlite_versions_with_the_wal_reset_bug_are_too_old() {
        for good in ["3.51.3", "3.51.10", "3.52.0", "4.0.0"] {
            assert!(version_is_enough(good), "{good}");
        }
        for bad in ["3.51.2", "3.50.7", "3.7.0", "2.99.99", "", "x"] {
            assert!(!version_is_enough(bad), "{bad}");
        }
    }
}
