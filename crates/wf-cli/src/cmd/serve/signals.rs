//! Signals: SIGTERM and SIGINT end the server politely, SIGHUP reads procedures and secrets again, SIGXFSZ ends nothing.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::reload::Reload;
use crate::exit::{Exit, Failure};

/// The signals of this process, caught but not yet acted on.
#[derive(Debug)]
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    /// One of them asked to end already.
    asked: bool,
}

impl Signals {
    /// Catches them from now on.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub(super) fn listen() -> Result<Self, Failure> {
        let catch = |kind| {
            signal(kind).map_err(|error| Failure::failed("signals cannot be caught").because(error))
        };
        // A file that may not grow beyond a limit of the process is a full disk, which callers are told; the default is
        // to die of it. Once caught, it stays caught.
        drop(catch(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?);
        Ok(Self {
            terminate: catch(SignalKind::terminate())?,
            interrupt: catch(SignalKind::interrupt())?,
            hangup: catch(SignalKind::hangup())?,
            asked: false,
        })
    }

    /// Acts on them in the background: `stop` turns true when the server is to end.
    pub(super) fn watch(mut self, reload: Reload, stop: watch::Sender<bool>) -> JoinHandle<()> {
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    Some(()) = self.terminate.recv() => self.end("SIGTERM", &stop),
                    Some(()) = self.interrupt.recv() => self.end("SIGINT", &stop),
                    Some(()) = self.hangup.recv() => reload.now().await,
                    else => break,
                }
            }
        })
    }

    fn end(&mut self, name: &str, stop: &watch::Sender<bool>) {
        stop.send_replace(true);
        if std::mem::replace(&mut self.asked, true) {
            // Whoever asks twice does not want to wait. What was acknowledged is on disk.
            tracing::warn!(signal = name, "asked again: stopping at once");
            std::process::exit(i32::from(Exit::Failed.code()));
        }
        tracing::info!(signal = name, "stopping: finishing what is in flight");
    }
}

/// Ready when the server is to end.
pub(super) async fn stopped(mut stop: watch::Receiver<bool>) {
    // A closed channel means that nobody can ask any more; going on would be for ever.
    let _ = stop.wait_for(|stop| *stop).await;
}
