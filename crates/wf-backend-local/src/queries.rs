//! Reads: each is one statement, so one snapshot, read with a limit into memory before anything is answered.
//!
//! A read never opens a transaction, so a connection of the pool can never be left inside one, and a slow caller can
//! never hold the write-ahead log back. One file per subject; SQL that runs in a call of a tool is listed in [`HOT`],
//! whose plans a test looks at.

pub(crate) mod catalogue;
pub(crate) mod events;
pub(crate) mod load;
pub(crate) mod locks;
pub(crate) mod outbox;
pub(crate) mod workflows;

use std::time::Duration;

use sqlx::pool::PoolOptions;
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Connection as _, Sqlite, SqlitePool};
use wf_core::ports::{Cursor, ReadError};

use crate::config::LocalConfig;
use crate::connection;
use crate::fault::{Failure, Trouble, read_error};
use crate::place::Footprint;

/// Statements of reads whose cost must not grow with the store: name and SQL.
#[cfg(test)]
pub(crate) const HOT: &[(&str, &str)] = &[
    ("load", load::LOAD),
    ("events", events::EVENTS),
    ("open_of", workflows::OPEN_OF),
    ("offered_to", workflows::OFFERED_TO),
    ("blocked", workflows::BLOCKED),
    ("last completed of", workflows::LAST_COMPLETED_OF),
    ("last completed with", workflows::LAST_COMPLETED_WITH),
    ("definition", catalogue::DEFINITION),
    ("list in tenant", workflows::LIST_IN_TENANT),
    ("list", workflows::LIST),
    ("list locks in tenant", locks::LIST_IN_TENANT),
    ("list locks", locks::LIST),
    ("list outbox by state", outbox::LIST_BY_STATE),
    ("list outbox", outbox::LIST),
];

/// The connections that read.
#[derive(Debug)]
pub(crate) struct Readers {
    pool: SqlitePool,
    timeout: Duration,
    footprint: Footprint,
}

/// A read statement with its arguments.
pub(crate) type Ask<'q> = Query<'q, Sqlite, SqliteArguments>;

impl Readers {
    /// Opens the first connection; the others are opened when they are needed.
    pub(crate) async fn open(
        config: &LocalConfig,
        footprint: Footprint,
    ) -> Result<Self, sqlx::Error> {
        let timeout = Duration::from_millis(config.read_timeout_ms);
        let pool = PoolOptions::<Sqlite>::new()
            .max_connections(config.readers.max(1))
            .min_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .acquire_timeout(timeout)
            .test_before_acquire(false)
            .after_release(|conn, _| Box::pin(async move { Ok(!conn.is_in_transaction()) }))
            .connect_with(connection::reading(config))
            .await?;
        Ok(Self { pool, timeout, footprint })
    }

    /// All rows that the statement answers.
    pub(crate) async fn rows(&self, ask: Ask<'_>) -> Result<Vec<SqliteRow>, ReadError> {
        if !self.footprint.is_unchanged() {
            return Err(Failure::NotApplied(Trouble::Replaced).into_read_error());
        }
        let reading = async {
            let mut conn = self.pool.acquire().await?;
            let rows = ask.fetch_all(&mut *conn).await;
            if rows.is_err() {
                conn.close_on_drop();
            }
            rows
        };
        match tokio::time::timeout(self.timeout, reading).await {
            Ok(rows) => rows.map_err(read_error),
            Err(_) => {
                let ms = u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX);
                Err(Failure::NotApplied(Trouble::Slow { ms }).into_read_error())
            }
        }
    }

    /// The rows, each read by `decode`.
    pub(crate) async fn decoded<T>(
        &self,
        ask: Ask<'_>,
        decode: impl Fn(&SqliteRow) -> Result<T, sqlx::Error>,
    ) -> Result<Vec<T>, ReadError> {
        self.rows(ask).await?.iter().map(|row| decode(row).map_err(read_error)).collect()
    }

    /// Waits for reads that are under way, then closes.
    pub(crate) async fn close(&self) {
        self.pool.close().await;
    }
}

/// A cursor of two texts without a newline.
pub(crate) fn cursor(first: &str, second: &str) -> Cursor {
    Cursor(format!("{first}\n{second}"))
}

/// The texts of a cursor that [`cursor`] made; the empty texts, before everything, when there is none.
pub(crate) fn after(cursor: Option<&Cursor>) -> Result<(&str, &str), ReadError> {
    let Some(cursor) = cursor else {
        return Ok(("", ""));
    };
    cursor
        .0
        .split_once('\n')
        .ok_or_else(|| Failure::NotApplied(Trouble::BadCursor).into_read_error())
}

/// Splits one row too many off, which says that there is another page.
pub(crate) fn cut<T>(mut rows: Vec<T>, limit: u32) -> (Vec<T>, bool) {
    let limit = usize::try_from(limit.max(1)).unwrap_or(usize::MAX);
    let more = rows.len() > limit;
    rows.truncate(limit);
    (rows, more)
}

/// The limit for a page of `limit` rows: one more, to know whether there is another page.
pub(crate) fn probe(limit: u32) -> i64 {
    i64::from(limit.max(1)) + 1
}
