//! The migrations and what marks a file as ours. Applied by `open`; the files themselves are in `migrations/`.
//!
//! The schema version is SQLite's `user_version`. Migrations and their version are written in one `BEGIN IMMEDIATE`
//! transaction, so a killed migration leaves the version before it.

use rusqlite::Connection;

use crate::connection::{immediate, int, run};
use crate::failpoint;
use crate::fault::Cause;

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
pub(crate) const MIGRATIONS: &[Migration] = &[
    Migration { version: 1, sql: include_str!("../migrations/0001_init.sql") },
    Migration { version: 2, sql: include_str!("../migrations/0002_people.sql") },
    Migration { version: 3, sql: include_str!("../migrations/0003_purged.sql") },
];

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

/// All marks in one statement, so as they are at one time: another process may be making the file a store.
const MARKS: &str = "
SELECT a.application_id, v.user_version, (SELECT count(*) FROM sqlite_schema)
  FROM pragma_application_id a, pragma_user_version v";

/// Reads the marks. The first thing that touches the file, so it finds out whether it is a database at all.
pub(crate) fn marks(conn: &Connection) -> Result<Marks, Cause> {
    let marks = conn.query_row(MARKS, (), |row| {
        Ok(Marks { application_id: row.get(0)?, version: row.get(1)?, objects: row.get(2)? })
    });
    Ok(marks?)
}

/// Applies those of `migrations` that the file does not have yet, all in one transaction: nobody sees a new file that is
/// half made. Several processes may do so at once: the version is read again under the write lock.
pub(crate) fn apply(conn: &mut Connection, migrations: &[Migration]) -> Result<(), Cause> {
    let tx = immediate(conn)?;
    let before = int(&tx, "PRAGMA user_version")?;
    let is_there = |m: &&Migration| u64::try_from(before).is_ok_and(|has| has >= m.version);
    for migration in migrations.iter().skip_while(is_there) {
        tx.execute_batch(migration.sql)?;
        failpoint::hit(failpoint::MIGRATION)?;
        tx.execute_batch(&format!(
            "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {};",
            migration.version
        ))?;
    }
    if before == 0 {
        run(&tx, "INSERT INTO store (one, id) VALUES (1, ?1)", [fresh_id()?])?;
        add_secret(&tx)?;
    }
    tx.commit()?;
    Ok(())
}

/// A fresh store id: 32 lowercase hexadecimal digits from the operating system's randomness.
pub(crate) fn fresh_id() -> Result<String, Cause> {
    let mut bytes = [0_u8; 16];
    fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Adds a fresh key in front of the others.
pub(crate) fn add_secret(conn: &Connection) -> Result<(), Cause> {
    let mut secret = vec![0_u8; 32];
    fill(&mut secret)?;
    run(conn, "INSERT INTO secrets (secret) VALUES (?1)", [secret])?;
    Ok(())
}

fn fill(bytes: &mut [u8]) -> Result<(), Cause> {
    getrandom::fill(bytes).map_err(|e| std::io::Error::other(e).into())
}
