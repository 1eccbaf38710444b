//! Carries the write-ahead log over into the database file, on a thread and a connection of its own, beside the writer.
//!
//! Each period: `PASSIVE` after commits, which waits for nobody and takes the bulk of the work off the writer;
//! `TRUNCATE` when commits pause, or when the log is larger than its bound. Reads are single statements with a time
//! limit, so readers of this process cannot hold it back for long. Also notices when writing works again after a fault,
//! by a small write.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::mpsc::WeakSender;
use tokio::sync::oneshot;

use crate::connection::{close, int, open_writing};
use crate::failpoint;
use crate::fault::{Cause, Trouble};
use crate::place::size;
use crate::shared::Shared;
use crate::threads::{self, Ended};
use crate::writer::job::{Job, Task};

/// How long `TRUNCATE` waits for readers and the writer. The writer waits for it meanwhile.
const TRUNCATE_WAIT: Duration = Duration::from_millis(250);

/// Cuts the log back to nothing, if nobody reads from it.
pub(crate) fn truncate(conn: &Connection) -> Result<(), Cause> {
    failpoint::hit(failpoint::CHECKPOINT)?;
    // Answers (busy, frames, frames carried over); being busy is no error.
    int(conn, "PRAGMA wal_checkpoint(TRUNCATE)")?;
    Ok(())
}

fn passive(conn: &Connection) -> Result<(), Cause> {
    failpoint::hit(failpoint::CHECKPOINT)?;
    int(conn, "PRAGMA wal_checkpoint(PASSIVE)")?;
    Ok(())
}

/// What the checkpointer knows between its periods.
#[derive(Debug)]
struct Checkpointer {
    shared: Arc<Shared>,
    writer: WeakSender<Job>,
    conn: Option<Connection>,
    seen: u64,
    to_truncate: bool,
}

/// Starts the checkpointer. It ends soon after the other end of `stop` is dropped.
pub(crate) fn spawn(
    shared: Arc<Shared>,
    writer: WeakSender<Job>,
    stop: Receiver<Infallible>,
) -> io::Result<Ended> {
    threads::spawn("wf-checkpoint", move || {
        threads::until_it_returns(
            || periods(&shared, &writer, &stop),
            // Without a checkpointer the log would grow for as long as the process lives.
            |what| {
                tracing::error!(what, "the checkpointer of the store panicked; starting another");
            },
        );
    })
}

fn periods(shared: &Arc<Shared>, writer: &WeakSender<Job>, stop: &Receiver<Infallible>) {
    let period = Duration::from_millis(shared.config.checkpoint_every_ms.max(10));
    let (shared, writer) = (Arc::clone(shared), writer.clone());
    let mut state = Checkpointer { shared, writer, conn: None, seen: 0, to_truncate: true };
    let mut ours = true;
    while stop.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
        let was_ours = std::mem::replace(&mut ours, state.shared.footprint.is_unchanged());
        if !ours {
            // Callers hear that the store is unavailable; only here, once, does an operator hear why.
            if was_ours {
                tracing::error!(why = %Trouble::Replaced, "the database is not the file that was opened");
            }
            state.conn = None;
        } else if let Err(error) = state.period() {
            tracing::warn!(%error, "a checkpoint did not succeed");
            state.conn = None;
            state.shared.forget_pages();
        }
        state.probe();
    }
    if let Some(conn) = state.conn {
        close(conn);
    }
}

impl Checkpointer {
    fn period(&mut self) -> Result<(), Cause> {
        let batches = self.shared.health.batches();
        let busy = batches != self.seen;
        self.seen = batches;
        self.to_truncate |= busy;
        let wal = size(&self.shared.config.wal_path());
        self.shared.health.saw_wal(wal);
        let too_large = wal > self.shared.config.wal_bytes_max;
        if !self.to_truncate || wal == 0 {
            return Ok(());
        }
        let conn = match self.conn.take() {
            Some(conn) => conn,
            None => {
                let conn = open_writing(&self.shared.config)?;
                conn.busy_timeout(TRUNCATE_WAIT)?;
                conn
            }
        };
        passive(&conn)?;
        if !busy || too_large {
            truncate(&conn)?;
            let left = size(&self.shared.config.wal_path());
            self.shared.health.saw_wal(left);
            self.to_truncate = left > 0;
        }
        self.conn = Some(conn);
        Ok(())
    }

    /// After a failed write nobody may be sent here any more, so nobody would find out that writing works again.
    fn probe(&self) {
        if self.shared.health.is_writable() {
            return;
        }
        if let Some(writer) = self.writer.upgrade() {
            let (reply, _) = oneshot::channel();
            // A full queue will find out by itself.
            let _ = writer.try_send(Job::Task(Box::new(Task::Probe), reply));
        }
    }
}
