//! What to put on a server, and what the system says of all of its processes: the plan of a [`load`](super::load).

use std::net::SocketAddr;
use std::time::Duration;

use super::process::{processor_time, resident};
use super::work::Form;
use crate::fault::Fault;
use crate::harness::server::Server;

/// What to put on a server.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The server.
    pub address: SocketAddr,
    /// Its process.
    pub pid: u32,
    /// Another process that is part of it.
    pub beside: Option<u32>,
    /// How it wants its calls.
    pub form: Form,
    /// How many callers.
    pub callers: usize,
    /// How long steps are measured, in all phases together.
    pub time: Duration,
    /// Send all steps of each phase once more, and measure that apart.
    pub replays: bool,
}

impl Plan {
    /// Steps alone, on a server of ours.
    #[must_use]
    pub fn of(server: &Server, callers: usize, time: Duration) -> Self {
        Self::on(server.address(), server.id(), callers, time)
    }

    /// Steps alone, on a server of one process that speaks MCP.
    #[must_use]
    pub const fn on(address: SocketAddr, pid: u32, callers: usize, time: Duration) -> Self {
        Self { address, pid, beside: None, form: Form::Mcp, callers, time, replays: false }
    }

    /// Processor time of all its processes.
    ///
    /// # Errors
    /// When one is gone or the system does not say.
    pub(super) fn processor_time(&self) -> Result<Duration, Fault> {
        let beside = self.beside.map_or(Ok(Duration::ZERO), processor_time)?;
        Ok(processor_time(self.pid)? + beside)
    }

    /// Memory of all its processes, now and at most; the most of each, which may not have been at once.
    ///
    /// # Errors
    /// When one is gone or the system does not say.
    pub(super) fn resident(&self) -> Result<(u64, u64), Fault> {
        let (now, most) = resident(self.pid)?;
        let (also, also_most) = self.beside.map_or(Ok((0, 0)), resident)?;
        Ok((now + also, most + also_most))
    }
}
