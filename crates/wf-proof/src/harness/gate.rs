//! Whether there is a server to call, and where: set by a bench that ends and starts it, waited on by its callers.

use std::net::SocketAddr;

use tokio::sync::watch;

/// Clones share one state. Closed at first.
#[derive(Debug, Clone)]
pub struct Gate {
    address: watch::Sender<Option<SocketAddr>>,
}

impl Default for Gate {
    fn default() -> Self {
        Self { address: watch::Sender::new(None) }
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

    /// Where the server is, once it is up.
    pub async fn wait(&self) -> SocketAddr {
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
