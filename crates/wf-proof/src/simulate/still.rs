//! A process that stands still: everything in it waits, and everybody else goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Whether a process stands still. Clones are of one process.
///
/// No `watch` channel: that wakes those who wait in an order of chance, which no seed can repeat.
#[derive(Debug, Clone, Default)]
pub(super) struct Still {
    stands: Arc<AtomicBool>,
    goes_on: Arc<Notify>,
}

impl Still {
    pub(super) fn set(&self, stands: bool) {
        self.stands.store(stands, Ordering::Relaxed);
        if !stands {
            self.goes_on.notify_waiters();
        }
    }

    /// Waits until it goes on.
    pub(super) async fn over(&self) {
        loop {
            let goes_on = self.goes_on.notified();
            if !self.stands.load(Ordering::Relaxed) {
                return;
            }
            goes_on.await;
        }
    }
}
