//! Somebody else who has the database open: a writer that does not let go, a reader that stays.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use crate::fault::Fault;

/// A connection of another process than the server.
#[derive(Debug)]
pub(super) struct Foreign(Connection);

fn wrong(what: &'static str) -> impl FnOnce(rusqlite::Error) -> Fault {
    move |error| Fault::Run(format!("{what}: {error}"))
}

impl Foreign {
    /// Opens the database, which must be there.
    pub(super) fn open(database: &Path) -> Result<Self, Fault> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
        Connection::open_with_flags(database, flags)
            .map(Self)
            .map_err(wrong("a foreign connection"))
    }

    /// Takes the write lock.
    pub(super) fn lock(&self) -> Result<(), Fault> {
        self.0.execute_batch("BEGIN IMMEDIATE").map_err(wrong("the foreign write lock"))
    }

    /// Begins to read and does not end.
    pub(super) fn read(&self) -> Result<(), Fault> {
        let read = "BEGIN; SELECT count(*) FROM events";
        self.0.execute_batch(read).map_err(wrong("the foreign reader"))
    }

    /// Lets go.
    pub(super) fn leave(self) -> Result<(), Fault> {
        self.0.execute_batch("ROLLBACK").map_err(wrong("the foreign end"))?;
        self.0.close().map_err(|(_, error)| wrong("closing a foreign connection")(error))
    }
}
