//! A process other than the product that serves the same load: the echo and the peer. It prints its address as
//! `http://ADDRESS/mcp` once it serves.

use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::fault::Fault;
use crate::harness::server::{PATIENCE, address_in};

/// Such a process. Killed when dropped.
#[derive(Debug)]
pub struct Other {
    child: Child,
    address: SocketAddr,
}

impl Other {
    /// Starts it, its output in `folder`, and waits until it says where it serves.
    ///
    /// # Errors
    /// When it cannot be started, ends by itself or stays silent.
    pub fn start(name: &str, mut command: Command, folder: &Path) -> Result<Self, Fault> {
        let path = folder.join(format!("{name}.log"));
        let output = File::create(&path).map_err(Fault::io(format!("the log of {name}")))?;
        let errors = output.try_clone().map_err(Fault::io(format!("the log of {name}")))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::from(output))
            .stderr(Stdio::from(errors))
            .spawn()
            .map_err(Fault::io(format!("starting {name}")))?;
        // From here on it is ended when this ends early.
        let mut other = Self { child, address: SocketAddr::from(([127, 0, 0, 1], 0)) };
        let end = Instant::now() + PATIENCE;
        loop {
            let said = std::fs::read_to_string(&path).unwrap_or_default();
            if let Some(address) = address_in(&said) {
                other.address = address;
                return Ok(other);
            }
            let ended = other.child.try_wait().map_err(Fault::io(format!("waiting for {name}")))?;
            if ended.is_some() || Instant::now() > end {
                let what = format!("{name} does not serve");
                return Err(Fault::Server { what, log: said });
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Where it serves.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
