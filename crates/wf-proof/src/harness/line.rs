//! The way from one caller to a server: over HTTP, through the gate of a bench that ends and starts servers. The simulator
//! has another, into engines of its own process.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use async_trait::async_trait;
use wf_testkit::audit::history::Outcome;

use super::client::Client;
use super::gate::{Gate, Pass};
use super::record::Call;

/// The way to a server.
#[async_trait]
pub trait Line: fmt::Debug + Send {
    /// Waits until there is somebody to call.
    async fn ready(&mut self);

    /// One attempt. Dropped half-way, nobody knows what became of it.
    async fn call(&mut self, call: &Call) -> Outcome;

    /// What the attempt came to was written down.
    fn over(&mut self);
}

/// Over HTTP.
#[derive(Debug)]
pub struct Http {
    gate: Gate,
    token: Option<String>,
    patience: Option<Duration>,
    pass: Option<Pass>,
    connection: Option<(SocketAddr, Client)>,
}

impl Http {
    /// To whatever server the gate is open for, with this token.
    #[must_use]
    pub fn new(gate: Gate, token: Option<String>) -> Self {
        Self { gate, token, patience: None, pass: None, connection: None }
    }

    /// The same for a caller that hangs up when no answer came for so long.
    #[must_use]
    pub fn impatient(self, patience: Duration) -> Self {
        Self { patience: Some(patience), ..self }
    }
}

#[async_trait]
impl Line for Http {
    async fn ready(&mut self) {
        self.pass = Some(self.gate.pass().await);
    }

    async fn call(&mut self, call: &Call) -> Outcome {
        let Some(address) = self.pass.as_ref().map(|pass| pass.address) else {
            return Outcome::NotSent;
        };
        let mut client = match self.connection.take() {
            Some((at, client)) if at == address => client,
            Some(_) | None => Client::bearing(address, self.token.as_deref()),
        };
        let calling = client.call(call.tool, &call.arguments);
        let outcome = match self.patience {
            None => calling.await,
            Some(patience) => match tokio::time::timeout(patience, calling).await {
                Ok(outcome) => outcome,
                Err(_) => return Outcome::Unknown { why: "the caller hung up".to_owned() },
            },
        };
        self.connection = Some((address, client));
        outcome
    }

    fn over(&mut self) {
        self.pass = None;
    }
}
