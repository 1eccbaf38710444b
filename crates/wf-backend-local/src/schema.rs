//! The migrations and what marks a file as ours. Applied by `open`; the files themselves are in `migrations/`.
//!
//! The schema version is SQLite's `user_version`. A migration and its version are written in one `BEGIN IMMEDIATE`
//! transaction, so a killed migration leaves the version before it.

use sqlx::{Connection as _, SqliteConnection};

use crate::connection::int;
use crate::failpoint;

/// `application_id` of our files: `CHKP` in ASCII.
pub(crate) const APPLICATION_ID: i64 = 0x4348_4B50;

/// One step of the schema.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Migration {
    /// The version that the file has afterwards; 1, 2, 3 …
    pub(crate) version: u64,
    /// What to run.
    pub(crate) sql: &'static str,
}

/// Every migration, in order. Append only.
pub(crate) const MIGRATIONS: &[Migration] =
    &[Migration { version: 1, sql: include_str!("../migrations/0001_init.sql") }];

/// The version that this build reads and writes.
pub(crate) fn known() -> u64 {
    newest(MIGRATIONS)
}

/// The version after the last of `migrations`.
pub(crate) fn newest(migrations: &[Migration]) -> u64 {
    migrations.last().map_or(0, |m| m.version)
}

/// What a file says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marks {
    /// `application_id`.
    pub(crate) application_id: i64,
    /// `user_version`.
    pub(crate) version: i64,
    /// Tables, indexes, triggers and views.
    pub(crate) objects: i64,
}

impl Marks {
    /// Nothing was ever written to the file.
    pub(crate) fn is_blank(self) -> bool {
        self.application_id == 0 && self.version == 0 && self.objects == 0
    }
}

/// Reads the marks. The first thing that touches the file, so it finds out whether it is a database at all.
pub(crate) async fn marks(conn: &mut SqliteConnection) -> Result<Marks, sqlx::Error> {
    Ok(Marks {
        application_id: int(conn, "PRAGMA application_id").await?,
        version: int(conn, "PRAGMA user_version").await?,
        objects: int(conn, "SELECT count(*) FROM sqlite_schema").await?,
    })
}

/// Applies those of `migrations` that the file does not have yet, each in its own transaction. Several processes may
/// do so at once: the version is read again under the write lock.
pub(crate) async fn apply(
    conn: &mut SqliteConnection,
    migrations: &[Migration],
) -> Result<(), sqlx::Error> {
    for migration in migrations {
        let mut tx = conn.begin_with("BEGIN IMMEDIATE").await?;
        let version = int(&mut tx, "PRAGMA user_version").await?;
        if u64::try_from(version).is_ok_and(|v| v >= migration.version) {
            tx.rollback().await?;
            continue;
        }
        sqlx::raw_sql(migration.sql).execute(&mut *tx).await?;
        failpoint::hit(failpoint::MIGRATION)?;
        let marks = format!(
            "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {};",
            migration.version
        );
        sqlx::raw_sql(sqlx::AssertSqlSafe(marks)).execute(&mut *tx).await?;
        if version == 0 {
            sqlx::query("INSERT INTO store (one, id) VALUES (1, ?1)")
                .bind(fresh_id()?)
                .execute(&mut *tx)
                .await?;
            add_secret(&mut tx).await?;
        }
        tx.commit().await?;
    }
    Ok(())
}

/// A fresh store id: 32 lowercase hexadecimal digits from the operating system's randomness.
pub(crate) fn fresh_id() -> Result<String, sqlx::Error> {
    let mut bytes = [0_u8; 16];
    fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Adds a fresh key in front of the others.
pub(crate) async fn add_secret(conn: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let mut secret = vec![0_u8; 32];
    fill(&mut secret)?;
    sqlx::query("INSERT INTO secrets (secret) VALUES (?1)").bind(secret).execute(conn).await?;
    Ok(())
}

fn fill(bytes: &mut [u8]) -> Result<(), sqlx::Error> {
    getrandom::fill(bytes).map_err(|e| sqlx::Error::Io(std::io::Error::other(e)))
}
