//! Whether there is a server to call, and where: set by a bench that ends and starts it, waited on by its callers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;

/// Clones share one state. Closed at first.
#[derive(Debug, Clone)]
pub struct Gate {
    address: watch::Sender<Option<SocketAddr>>,
    inside: Arc<AtomicUsize>,
}

impl Default for Gate {
    fn default() -> Self {
        Self { address: watch::Sender::new(None), inside: Arc::default() }
    }
}

impl Gate {
    /// The server is up at this address.
    pub fn open(&self, address: SocketAddr) {
        self.address.send_replace(Some(address));
    }

    /// The server is, or is about to be, down. Calls in flight are not disturbed.
    pub fn close(&self) {
        self.address.send_replace(None);
    }

    /// After [`Gate::close`]: waits until no attempt is in flight and each is written down. True if that came in time.
    #[must_use]
    pub fn is_quiet_within(&self, patience: Duration) -> bool {
        let end = Instant::now() + patience;
        while self.inside.load(Ordering::SeqCst) > 0 {
            if Instant::now() > end {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }

    /// Waits until the server is up.
    pub async fn pass(&self) -> Pass {
        loop {
            let address = self.up().await;
            let pass = Pass { address, inside: Arc::clone(&self.inside) };
            pass.inside.fetch_add(1, Ordering::SeqCst);
            // Whoever closed the gate in the meantime may have counted before this one was inside.
            if *self.address.borrow() == Some(address) {
                return pass;
            }
        }
    }

    async fn up(&self) -> SocketAddr {
        let mut changes = self.address.subscribe();
        loop {
            if let Some(address) = *changes.borrow_and_update() {
                return address;
            }
            if changes.changed().await.is_err() {
                // Cannot be: this gate holds the sender.
                std::future::pending::<()>().await;
            }
        }
    }
}

/// An attempt may be made; in flight until this is dropped.
#[derive(Debug)]
pub struct Pass {
    /// Where the server is.
    pub address: SocketAddr,
    inside: Arc<AtomicUsize>,
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Gate;

    #[tokio::test]
    async fn closed_gate_lets_nobody_in_and_counts_who_is_inside() {
        let gate = Gate::default();
        let patience = Duration::from_millis(20);
        assert!(tokio::time::timeout(patience, gate.pass()).await.is_err());
        gate.open(([127, 0, 0, 1], 1).into());
        let pass = gate.pass().await;
        gate.close();
        assert!(!gate.is_quiet_within(patience), "one is inside");
        assert!(tokio::time::timeout(patience, gate.pass()).await.is_err());
        drop(pass);
        assert!(gate.is_quiet_within(patience));
    }
}
