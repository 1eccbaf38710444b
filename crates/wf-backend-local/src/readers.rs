//! The threads that read, each with a connection of its own, fed by one queue.
//!
//! A read is one statement, so one snapshot, and all its rows are in memory before anything is answered: a slow caller
//! can never hold the write-ahead log back. It is stopped when it takes longer than it may, so a caller that gave up
//! leaves no thread at work for nobody.

mod queue;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, Params};
use tokio::sync::oneshot;
use wf_core::ports::ReadError;

use crate::codec::decode::{Columns, Read};
use crate::connection;
use crate::fault::{Cause, Failure, Trouble, is_interrupted};
use crate::shared::Shared;
use crate::threads::{self, Ended};
use queue::{Queue, Refused, Taken};

/// Reads that may wait for a thread; more are refused at once.
const WAITING_MAX: usize = 4_096;

/// After how many of its own instructions SQLite looks whether a read takes too long: well under a millisecond.
const INSTRUCTIONS: i32 = 10_000;

/// How long a thread that has read waits for another read before it gives its pages back.
const REST: Duration = Duration::from_millis(500);

/// A read, with the one who waits for it. Gets a connection, or why there is none; answers whether the connection may
/// be used again.
type Work = Box<dyn FnOnce(Result<&Connection, Failure>) -> bool + Send>;

/// The connections that read.
pub(crate) struct Readers {
    shared: Arc<Shared>,
    queue: Arc<Queue<Work>>,
    threads: Mutex<Vec<Ended>>,
}

impl std::fmt::Debug for Readers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Readers").finish_non_exhaustive()
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl Readers {
    /// Starts the threads. Opens the first connection, to find out whether that works; the others are opened when they
    /// are needed.
    pub(crate) fn start(shared: &Arc<Shared>) -> Result<Self, Cause> {
        let readers = Self {
            shared: Arc::clone(shared),
            queue: Arc::new(Queue::new(WAITING_MAX)),
            threads: Mutex::default(),
        };
        let mut first = Some(connection::reading(&shared.config)?);
        for number in 0..shared.config.readers.max(1) {
            let (shared, queue, conn) =
                (Arc::clone(shared), Arc::clone(&readers.queue), first.take());
            let ended =
                threads::spawn(&format!("wf-read-{number}"), move || work(&shared, &queue, conn))?;
            readers.threads().push(ended);
        }
        Ok(readers)
    }

    fn threads(&self) -> std::sync::MutexGuard<'_, Vec<Ended>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All rows that the statement answers, each read by `decode` on the reader's thread.
    pub(crate) async fn rows<T: Send + 'static>(
        &self,
        sql: &'static str,
        arguments: impl Params + Send + 'static,
        decode: impl Fn(&mut Columns<'_>) -> Read<T> + Send + 'static,
    ) -> Result<Vec<T>, ReadError> {
        self.rows_up_to(sql, arguments, decode, |_| false).await
    }

    /// The same, up to the first that is enough.
    pub(crate) async fn rows_up_to<T: Send + 'static>(
        &self,
        sql: &'static str,
        arguments: impl Params + Send + 'static,
        decode: impl Fn(&mut Columns<'_>) -> Read<T> + Send + 'static,
        is_enough: impl Fn(&T) -> bool + Send + 'static,
    ) -> Result<Vec<T>, ReadError> {
        let trouble = |trouble| Failure::NotApplied(trouble).into_read_error();
        let ms = self.shared.config.read_timeout_ms;
        let deadline = Instant::now() + Duration::from_millis(ms);
        let (reply, answer) = oneshot::channel();
        let work = Box::new(move |conn: Result<&Connection, Failure>| {
            let conn = match conn {
                Ok(_) if reply.is_closed() => return true,
                Ok(conn) => conn,
                Err(failure) => {
                    // Who asked may have given up, here and below.
                    let _ = reply.send(Err(failure));
                    return false;
                }
            };
            let rows = until(deadline, conn)
                .and_then(|()| connection::rows_up_to(conn, sql, arguments, decode, is_enough));
            let is_sound = !matches!(rows, Err(Cause::Sqlite(_)));
            let _ = reply.send(rows.map_err(|cause| {
                if is_interrupted(&cause) {
                    Failure::NotApplied(Trouble::Slow { ms })
                } else {
                    Failure::before_commit(cause)
                }
            }));
            is_sound
        });
        self.queue.push(work).map_err(|refused| {
            trouble(match refused {
                Refused::Full => Trouble::QueueFull,
                Refused::Closed => Trouble::Closed,
            })
        })?;
        match tokio::time::timeout_at(deadline.into(), answer).await {
            Ok(Ok(rows)) => rows.map_err(Failure::into_read_error),
            Ok(Err(_)) => Err(trouble(Trouble::ReaderLost)),
            Err(_) => Err(trouble(Trouble::Slow { ms })),
        }
    }

    /// Finishes what waits, then closes.
    pub(crate) async fn close(&self) {
        self.queue.close();
        let threads = std::mem::take(&mut *self.threads());
        for thread in threads {
            thread.wait().await;
        }
    }
}

/// Makes SQLite stop what it does on the connection after `deadline`.
fn until(deadline: Instant, conn: &Connection) -> Result<(), Cause> {
    Ok(conn.progress_handler(INSTRUCTIONS, Some(move || Instant::now() >= deadline))?)
}

/// What a thread does: one read after the other, on one connection for as long as nothing happens to it.
fn work(shared: &Shared, queue: &Queue<Work>, mut conn: Option<Connection>) {
    threads::until_it_returns(
        || {
            let mut rest = None;
            while let Some(taken) = queue.next(rest) {
                let work = match taken {
                    Taken::Thing(work) => work,
                    Taken::Nothing => {
                        // Nobody calls. Without success the pages only stay.
                        let _ = conn.as_ref().map(connection::forget_pages);
                        rest = None;
                        continue;
                    }
                };
                rest = Some(REST);
                let ready = match conn.take() {
                    Some(conn) if shared.footprint.was_unchanged_lately() => Ok(conn),
                    Some(_) | None => open(shared),
                };
                match ready {
                    Ok(ready) => conn = work(Ok(&ready)).then_some(ready),
                    Err(failure) => {
                        work(Err(failure));
                    }
                }
            }
        },
        |what| {
            tracing::error!(
                what,
                "a reader of the store panicked; it goes on with another connection"
            );
        },
    );
}

/// Another connection. To files that were replaced it would be one to another store: they are not touched, and if that
/// happened just now it is not used.
fn open(shared: &Shared) -> Result<Connection, Failure> {
    let replaced = Failure::NotApplied(Trouble::Replaced);
    if !shared.footprint.is_unchanged() {
        return Err(replaced);
    }
    let conn = connection::reading(&shared.config).map_err(Failure::before_commit)?;
    if shared.footprint.is_unchanged() { Ok(conn) } else { Err(replaced) }
}
