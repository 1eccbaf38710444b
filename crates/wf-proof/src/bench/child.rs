//! A process other than the product that serves the same load: the echo and the peers. It prints its address as
//! `http://ADDRESS/mcp` once it serves.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::fault::Fault;
use crate::harness::server::{PATIENCE, until_it_serves};

/// Such a process. Killed when dropped.
#[derive(Debug)]
pub struct Other {
    child: Child,
    address: SocketAddr,
    log: PathBuf,
}

impl Other {
    /// Starts it, its output in `folder`, and waits until it says where it serves.
    ///
    /// # Errors
    /// When it cannot be started, ends by itself or stays silent.
    pub fn start(name: &str, command: Command, folder: &Path) -> Result<Self, Fault> {
        // From here on it is ended when this ends early.
        let mut other = Self::begin(name, command, folder)?;
        match until_it_serves(&mut other.child, &other.log, Instant::now() + PATIENCE)? {
            Ok(address) => other.address = address,
            Err(_) => {
                let what = format!("{name} does not serve");
                return Err(Fault::Server { what, log: other.log() });
            }
        }
        Ok(other)
    }

    /// Starts one that does not say where it serves: [`Other::address`] is of no use then.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn begin(name: &str, mut command: Command, folder: &Path) -> Result<Self, Fault> {
        let log = folder.join(format!("{name}.log"));
        let output = File::create(&log).map_err(Fault::io(format!("the log of {name}")))?;
        let errors = output.try_clone().map_err(Fault::io(format!("the log of {name}")))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::from(output))
            .stderr(Stdio::from(errors))
            .spawn()
            .map_err(Fault::io(format!("starting {name}")))?;
        Ok(Self { child, address: SocketAddr::from(([127, 0, 0, 1], 0)), log })
    }

    /// What it wrote so far.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
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
