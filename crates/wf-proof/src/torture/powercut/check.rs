//! Opens what a power cut left with the same SQLite, and holds it against what was acknowledged before the cut.
//!
//! The quick check of every image: the file is whole, every acknowledged call has its row with the acknowledged bytes,
//! nothing is there that nobody sent, no commit is there by half. The deep one, on a sample, is the audit.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::disk::Image;
use super::life::FILES;
use crate::fault::Fault;

/// What is wrong with an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wrong {
    /// SQLite, or the server, calls it damaged.
    Damaged(String),
    /// An acknowledged call is not in it, or not as it was acknowledged.
    Lost(String),
    /// Something is in it by half, or that nobody asked for.
    Half(String),
    /// What the audit says.
    Audit(String),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged(what) => write!(f, "damaged: {what}"),
            Self::Lost(what) => write!(f, "lost: {what}"),
            Self::Half(what) => write!(f, "by half: {what}"),
            Self::Audit(what) => write!(f, "audit: {what}"),
        }
    }
}

/// What must be in an image.
#[derive(Debug)]
pub(super) struct Expected<'a> {
    /// Key and bytes of every call that was acknowledged before the cut.
    pub(super) acknowledged: &'a BTreeMap<String, String>,
    /// Every key that was ever sent.
    pub(super) keys: &'a BTreeSet<String>,
}

/// Writes an image into a folder, in place of the one before.
pub(super) fn place(image: &Image, folder: &Path) -> Result<(), Fault> {
    let none = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
    for (name, _) in FILES {
        let path = folder.join(name);
        match image.get(name) {
            Some(bytes) => fs::write(path, bytes).map_err(Fault::io("writing an image"))?,
            None => match fs::remove_file(path) {
                Err(error) if !none(&error) => return Err(Fault::io("an image")(error)),
                Ok(()) | Err(_) => {}
            },
        }
    }
    match fs::remove_file(folder.join("checkpoint.db-shm")) {
        Err(error) if !none(&error) => Err(Fault::io("an image")(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The quick check of the image in a folder. Carries nothing over, but may roll a journal back.
pub(super) fn quick(folder: &Path, expected: &Expected<'_>) -> Vec<Wrong> {
    let path = folder.join("checkpoint.db");
    if !path.exists() {
        return lost(&BTreeMap::new(), expected);
    }
    match Checked::of(&path) {
        Ok(Checked { faults, rows, halves }) => {
            let mut wrong: Vec<Wrong> = faults.into_iter().map(Wrong::Damaged).collect();
            wrong.extend(halves.into_iter().map(Wrong::Half));
            let unsent = rows.keys().filter(|key| !expected.keys.contains(*key));
            wrong.extend(unsent.map(|key| Wrong::Half(format!("nobody sent {key}"))));
            wrong.extend(lost(&rows, expected));
            wrong
        }
        Err(error) => vec![Wrong::Damaged(error.to_string())],
    }
}

fn lost(rows: &BTreeMap<String, String>, expected: &Expected<'_>) -> Vec<Wrong> {
    let told = |(key, text): (&String, &String)| match rows.get(key) {
        None => Some(Wrong::Lost(format!("{key} was acknowledged and is not there"))),
        Some(row) if row != text => Some(Wrong::Lost(format!("{key} was acknowledged otherwise"))),
        Some(_) => None,
    };
    expected.acknowledged.iter().filter_map(told).collect()
}

/// What SQLite says about a file, and what is in it.
struct Checked {
    faults: Vec<String>,
    /// Results by key.
    rows: BTreeMap<String, String>,
    halves: Vec<String>,
}

/// What would be half a commit: a query that counts it, and its name.
const HALVES: [(&str, &str); 5] = [
    (
        "workflows whose revision is not that of their newest event",
        "SELECT count(*) FROM workflows w WHERE w.revision <> \
         (SELECT coalesce(max(seq), 0) FROM events e WHERE e.wid = w.wid)",
    ),
    (
        "histories with a gap",
        "SELECT count(*) FROM (SELECT 1 FROM events GROUP BY wid HAVING count(*) <> max(seq))",
    ),
    (
        "workflows whose newest event has no ledger row",
        "SELECT count(*) FROM workflows w WHERE NOT EXISTS \
         (SELECT 1 FROM ledger l WHERE l.wid = w.wid AND l.seq = w.revision)",
    ),
    (
        "locks that nobody open holds",
        "SELECT count(*) FROM locks l WHERE l.holder IS NOT NULL AND NOT EXISTS \
         (SELECT 1 FROM workflows w WHERE w.tenant = l.tenant AND w.id = l.holder AND w.phase <> 'COMPLETED')",
    ),
    (
        "open workflows without the lock of an asset",
        "SELECT count(*) FROM workflow_assets a JOIN workflows w USING (wid) WHERE w.phase <> 'COMPLETED' \
         AND NOT EXISTS (SELECT 1 FROM locks l WHERE l.tenant = a.tenant AND l.asset_id = a.asset_id AND l.holder = w.id)",
    ),
];

impl Checked {
    fn of(path: &Path) -> rusqlite::Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(path, flags)?;
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        // Nobody else is there; this keeps the index of the log in memory.
        db.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        let mut checked = Self {
            faults: texts(&db, "PRAGMA integrity_check(5)")?,
            rows: BTreeMap::new(),
            halves: Vec::new(),
        };
        checked.faults.retain(|said| said != "ok");
        let tables: i64 =
            db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        if tables == 0 {
            return Ok(checked);
        }
        checked.faults.extend(texts(&db, "PRAGMA foreign_key_check")?);
        let mut rows = db.prepare("SELECT key, result FROM ledger")?;
        let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        checked.rows = rows.collect::<rusqlite::Result<_>>()?;
        for (name, sql) in HALVES {
            let count: i64 = db.query_row(sql, [], |row| row.get(0))?;
            if count > 0 {
                checked.halves.push(format!("{count} {name}"));
            }
        }
        Ok(checked)
    }
}

/// The first column of every row.
fn texts(db: &Connection, sql: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = db.prepare(sql)?;
    let rows = statement.query_map([], |row| row.get(0))?;
    rows.collect()
}

#[cfg(test)]
mod tests;
