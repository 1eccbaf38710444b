//! Connections: the options every one gets, and the checks that they took. Used by `open`, the writer, the checkpointer.
//!
//! The settings are those of SQLite's own advice for a durable write-ahead log; none of them is left to a default.

use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteRow, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Row as _, SqliteConnection};

use crate::config::LocalConfig;
#[cfg(feature = "failpoints")]
use crate::failpoint;

/// The oldest SQLite without the WAL-reset bug (<https://sqlite.org/wal.html#walresetbug>).
pub(crate) const SQLITE_VERSION_MIN: (u32, u32, u32) = (3, 51, 3);

/// SQLite's code for `synchronous=FULL`.
const SYNCHRONOUS_FULL: i64 = 2;

/// Options that change nothing in the file: to look at it, or to copy it.
pub(crate) fn looking(config: &LocalConfig) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(&config.path)
        .create_if_missing(false)
        .busy_timeout(Duration::from_millis(config.busy_timeout_ms))
        .foreign_keys(true)
        .pragma("trusted_schema", "OFF")
        .pragma("cell_size_check", "ON")
        .pragma("temp_store", "MEMORY")
        .pragma("mmap_size", "0")
        // Many rows at once are the rule, one by one the exception.
        .row_buffer_size(256)
        .disable_statement_logging()
}

/// Options for writing: write-ahead log, an fsync per commit.
pub(crate) fn writing(config: &LocalConfig) -> SqliteConnectOptions {
    looking(config)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        // macOS: fsync alone does not reach the medium there.
        .pragma("fullfsync", "1")
        .pragma("journal_size_limit", config.wal_bytes_max.to_string())
        // The checkpointer does the work; this is what bounds the log while commits leave it no pause.
        .pragma("wal_autocheckpoint", "4000")
        .pragma("cache_size", "-8192")
        .statement_cache_capacity(256)
        .thread_name(|n| format!("wf-write-{n}"))
}

/// Options for reading.
pub(crate) fn reading(config: &LocalConfig) -> SqliteConnectOptions {
    looking(config)
        .pragma("query_only", "ON")
        .pragma("cache_size", "-2048")
        .thread_name(|n| format!("wf-read-{n}"))
}

/// Opens a connection for writing and makes sure that its commits will be durable.
pub(crate) async fn open_writing(config: &LocalConfig) -> Result<SqliteConnection, sqlx::Error> {
    let mut conn = writing(config).connect().await?;
    #[cfg(feature = "failpoints")]
    if failpoint::is_asked(failpoint::OPEN_SYNCHRONOUS) {
        sqlx::query("PRAGMA synchronous = NORMAL").execute(&mut conn).await?;
        return Ok(conn);
    }
    check_durable(&mut conn).await?;
    Ok(conn)
}

/// Opens a connection that is never used and keeps the log and its index in being: both go with the last connection of
/// all processes. While this one is open their names stand for the same files, or somebody meddled.
pub(crate) async fn anchor(config: &LocalConfig) -> Result<SqliteConnection, sqlx::Error> {
    let mut conn = open_writing(config).await?;
    // Reading makes SQLite open the log and its index, which have names only then.
    int(&mut conn, "PRAGMA user_version").await?;
    Ok(conn)
}

async fn check_durable(conn: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let synchronous = int(conn, "PRAGMA synchronous").await?;
    let journal: String = one(conn, "PRAGMA journal_mode").await?;
    if synchronous != SYNCHRONOUS_FULL || !journal.eq_ignore_ascii_case("wal") {
        return Err(sqlx::Error::Configuration(
            format!(
                "SQLite did not take synchronous=FULL and journal_mode=WAL (it has {synchronous} and {journal})"
            )
            .into(),
        ));
    }
    Ok(())
}

/// The version of the SQLite that is linked in, when it is new enough; else what was found.
pub(crate) async fn check_version(
    conn: &mut SqliteConnection,
) -> Result<Result<(), String>, sqlx::Error> {
    let version: String = one(conn, "SELECT sqlite_version()").await?;
    Ok(if version_is_enough(&version) { Ok(()) } else { Err(version) })
}

fn version_is_enough(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
    let mut next = || parts.next().flatten().unwrap_or(0);
    (next(), next(), next()) >= SQLITE_VERSION_MIN
}

/// The one number that `sql` answers.
pub(crate) async fn int(
    conn: &mut SqliteConnection,
    sql: &'static str,
) -> Result<i64, sqlx::Error> {
    one(conn, sql).await
}

async fn one<T>(conn: &mut SqliteConnection, sql: &'static str) -> Result<T, sqlx::Error>
where
    T: for<'r> sqlx::Decode<'r, sqlx::Sqlite> + sqlx::Type<sqlx::Sqlite>,
{
    let row: SqliteRow = sqlx::query(sql).fetch_one(conn).await?;
    row.try_get(0)
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
