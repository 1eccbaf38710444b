//! A gate at which calls wait until the test opens it: a delay without a clock.

use std::sync::Arc;

use tokio::sync::watch;

/// A gate, closed at first. Clones are the same gate.
#[derive(Debug, Clone)]
pub struct Gate {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    open: watch::Sender<bool>,
    arrived: watch::Sender<usize>,
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

impl Gate {
    /// A closed gate.
    #[must_use]
    pub fn new() -> Self {
        let inner = Inner { open: watch::Sender::new(false), arrived: watch::Sender::new(0) };
        Self { inner: Arc::new(inner) }
    }

    /// Opens it, for everybody who waits and who comes later.
    pub fn open(&self) {
        self.inner.open.send_replace(true);
    }

    /// Closes it for who comes from now on.
    pub fn close(&self) {
        self.inner.open.send_replace(false);
    }

    /// Ready when at least `count` calls have come to the gate so far.
    pub async fn arrived(&self, count: usize) {
        let mut arrived = self.inner.arrived.subscribe();
        // The sender lives in this gate, so waiting cannot fail.
        let _ = arrived.wait_for(|so_far| *so_far >= count).await;
    }

    /// Comes to the gate and waits until it is open.
    pub async fn pass(&self) {
        let mut open = self.inner.open.subscribe();
        self.inner.arrived.send_modify(|count| *count += 1);
        let _ = open.wait_for(|open| *open).await;
    }
}
