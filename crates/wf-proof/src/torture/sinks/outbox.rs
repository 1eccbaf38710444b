//! What the store says of its messages, read beside the server.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::fault::Fault;

/// A message as the outbox has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) id: String,
    /// Which workflow and recipient: the unit of order.
    pub(super) stream: i64,
    pub(super) recipient: String,
    pub(super) seq: i64,
    pub(super) state: State,
    /// Failed attempts.
    pub(super) attempts: i64,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Pending,
    Delivered,
    Dead,
}

/// Deadlines that have not passed.
pub(super) fn deadlines(database: &Path) -> Result<i64, Fault> {
    let count = open(database)
        .and_then(|db| db.query_row("SELECT count(*) FROM deadlines", [], |row| row.get(0)));
    count.map_err(|error| Fault::Run(format!("counting deadlines: {error}")))
}

fn open(database: &Path) -> rusqlite::Result<Connection> {
    let db = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    db.busy_timeout(Duration::from_secs(10))?;
    Ok(db)
}

/// All messages, in the order of their streams.
pub(super) fn rows(database: &Path) -> Result<Vec<Row>, Fault> {
    let read = || -> rusqlite::Result<Vec<Row>> {
        let db = open(database)?;
        let mut query = db.prepare(
            "SELECT o.id, o.sid, s.recipient, o.seq, o.state, o.attempts FROM outbox o JOIN streams s ON s.sid = o.sid
             ORDER BY o.sid, o.seq, o.id",
        )?;
        let rows = query.query_map([], |row| {
            let state: String = row.get(4)?;
            Ok(Row {
                id: row.get(0)?,
                stream: row.get(1)?,
                recipient: row.get(2)?,
                seq: row.get(3)?,
                state: match state.as_str() {
                    "delivered" => State::Delivered,
                    "dead" => State::Dead,
                    _ => State::Pending,
                },
                attempts: row.get(5)?,
            })
        })?;
        rows.collect()
    };
    read().map_err(|error| Fault::Run(format!("reading the outbox: {error}")))
}
