//! Threads. SQLite blocks, so nothing of it runs on a thread of the async runtime: the writer, the readers and the
//! checkpointer have threads of their own, and what happens once (opening, a backup) goes through [`blocking`].

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::{io, thread};

use tokio::sync::oneshot;

/// Says when a thread has ended and everything it owned is gone.
#[derive(Debug)]
pub(crate) struct Ended(oneshot::Receiver<()>);

impl Ended {
    /// Waits for it.
    pub(crate) async fn wait(self) {
        // Nothing is ever sent: the other end is dropped.
        let _ = self.0.await;
    }
}

/// Starts a thread.
pub(crate) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<Ended> {
    let (ends, ended) = oneshot::channel::<()>();
    thread::Builder::new().name(name.to_owned()).spawn(move || {
        body();
        drop(ends);
    })?;
    Ok(Ended(ended))
}

/// Calls `body` until it returns. A panic in it is a bug; it is told to `panicked`, and `body` starts anew.
pub(crate) fn until_it_returns<T>(
    mut body: impl FnMut() -> T,
    mut panicked: impl FnMut(&str),
) -> T {
    loop {
        // What `body` shares with others survives a panic: the queues of jobs, atomics, the connection's file.
        match catch_unwind(AssertUnwindSafe(&mut body)) {
            Ok(done) => return done,
            Err(panic) => panicked(message(&*panic)),
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a word")
}

/// Runs `work` on a thread that may block, and waits for it.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime is being shut down, and this future with it.
            Err(_) => std::future::pending().await,
        },
    }
}
