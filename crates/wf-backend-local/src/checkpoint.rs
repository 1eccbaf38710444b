//! Carries the write-ahead log over into the database file, on a connection of its own, beside the writer.
//!
//! Each period: `PASSIVE` after commits, which waits for nobody and takes the bulk of the work off the writer;
//! `TRUNCATE` when commits pause, or when the log is larger than its bound. Reads are single statements with a time
//! limit, so readers of this process cannot hold it back for long. Also notices when writing works again after a fault,
//! by a small write.

use std::sync::Arc;
use std::time::Duration;

use sqlx::{Connection as _, SqliteConnection};
use tokio::sync::{mpsc, oneshot, watch};

use crate::connection::{int, open_writing};
use crate::failpoint;
use crate::fault::Trouble;
use crate::place::size;
use crate::shared::Shared;
use crate::writer::job::{Job, Task};

/// How long `TRUNCATE` waits for readers and the writer, in milliseconds. The writer waits for it meanwhile.
const TRUNCATE_WAIT: &str = "PRAGMA busy_timeout = 250";

/// Cuts the log back to nothing, if nobody reads from it.
pub(crate) async fn truncate(conn: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    failpoint::hit(failpoint::CHECKPOINT)?;
    // Answers (busy, frames, frames carried over); being busy is no error.
    int(conn, "PRAGMA wal_checkpoint(TRUNCATE)").await?;
    Ok(())
}

async fn passive(conn: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    failpoint::hit(failpoint::CHECKPOINT)?;
    int(conn, "PRAGMA wal_checkpoint(PASSIVE)").await?;
    Ok(())
}

/// What the checkpointer knows between its periods.
#[derive(Debug)]
struct Checkpointer {
    shared: Arc<Shared>,
    writer: mpsc::WeakSender<Job>,
    conn: Option<SqliteConnection>,
    seen: u64,
    to_truncate: bool,
}

/// Runs until the other end of `stop` is dropped.
pub(crate) async fn run(
    shared: Arc<Shared>,
    writer: mpsc::WeakSender<Job>,
    stop: watch::Receiver<()>,
) {
    loop {
        let periods = periods(Arc::clone(&shared), writer.clone(), stop.clone());
        match tokio::spawn(periods).await {
            // A panic is a bug; without a checkpointer the log would grow for as long as the process lives.
            Err(error) if error.is_panic() => {
                tracing::error!(%error, "the checkpointer of the store panicked; starting another");
            }
            Ok(()) | Err(_) => return,
        }
    }
}

async fn periods(
    shared: Arc<Shared>,
    writer: mpsc::WeakSender<Job>,
    mut stop: watch::Receiver<()>,
) {
    let period = Duration::from_millis(shared.config.checkpoint_every_ms.max(10));
    let mut state = Checkpointer { shared, writer, conn: None, seen: 0, to_truncate: true };
    let mut ours = true;
    while tokio::time::timeout(period, stop.changed()).await.is_err() {
        let was_ours = std::mem::replace(&mut ours, state.shared.footprint.is_unchanged());
        if !ours {
            // Callers hear that the store is unavailable; only here, once, does an operator hear why.
            if was_ours {
                tracing::error!("{}", Trouble::Replaced);
            }
            state.conn = None;
        } else if let Err(error) = state.period().await {
            tracing::warn!(%error, "a checkpoint did not succeed");
            state.conn = None;
        }
        state.probe();
    }
    if let Some(conn) = state.conn
        && let Err(error) = conn.close().await
    {
        tracing::warn!(%error, "the connection that carries the log over did not close");
    }
}

impl Checkpointer {
    async fn period(&mut self) -> Result<(), sqlx::Error> {
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
        let mut conn = match self.conn.take() {
            Some(conn) => conn,
            None => {
                let mut conn = open_writing(&self.shared.config).await?;
                sqlx::query(TRUNCATE_WAIT).execute(&mut conn).await?;
                conn
            }
        };
        passive(&mut conn).await?;
        if !busy || too_large {
            truncate(&mut conn).await?;
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
