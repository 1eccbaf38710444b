//! The server as `wf-cli` sees it: bind, run, shut down.
//!
//! Shutting down: readiness turns false, listeners close (what they have accepted is served), idle connections close, requests in flight and calls whose
//! connection is gone are waited for up to the grace period, then everything left is closed. The operator's listener
//! is the last to go, so that probes see the truth meanwhile.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use wf_core::engine::Engine;

use crate::accept::Acceptor;
use crate::builder::Builder;
use crate::clients::Clients;
use crate::config::HttpConfig;
use crate::entrance::Entrances;
use crate::failpoint;
use crate::front::Front;
use crate::guest::Guest;
use crate::joined::Joined;
use crate::layers::hosts::Hosts;
use crate::layers::rate::Rate;
use crate::layers::trace::RequestIds;
use crate::routes::Answers;
use crate::stack::{self, Parts};

/// A server that cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// There is nothing to listen on.
    #[error("no address to listen on")]
    NoAddress,
    /// There is neither an engine nor a guest.
    #[error("nothing to serve: give the builder an engine, a guest, or both")]
    Nothing,
    /// A guest has a tool that is called like one of ours.
    #[error("the guest's tool {tool} is called like one of this server's own")]
    ToolTaken {
        /// The name.
        tool: &'static str,
    },
    /// Something was said of a tool that the guest does not have.
    #[error("the guest has no tool {tool}, of which it is said what it needs")]
    NoSuchTool {
        /// The name.
        tool: String,
    },
    /// An address cannot be listened on.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// An entry of `allowed_hosts`, `allowed_origins` or the like is none.
    #[error("{setting}: {entry:?} is not {expected}")]
    Allowed {
        /// The setting.
        setting: &'static str,
        /// The entry.
        entry: String,
        /// What it should be.
        expected: &'static str,
    },
}

/// How a shutdown went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// MCP requests that were not over when the grace period was; 0 after a clean shutdown. What they committed stays.
    pub in_flight_abandoned: usize,
}

/// A server that listens but does not answer yet.
#[derive(Debug)]
pub struct Server {
    parts: Parts,
    front: Front,
    main: Vec<TcpListener>,
    admin: Option<TcpListener>,
    local: SocketAddr,
}

impl Server {
    /// Begins to put a server together.
    pub fn builder(config: HttpConfig) -> Builder {
        Builder::new(config)
    }

    /// Listens, and keeps what the builder was given.
    pub(crate) async fn listening(builder: Builder) -> Result<Self, ServeError> {
        let Builder { config, engine, guest, probes, authenticator, pages } = builder;
        let served = served(engine.clone(), guest)?;
        // Checked before a port is taken.
        hosts(&config, &config.listen, false)?;
        let clients = Clients::new(&config.trusted_proxies)?;
        let mut main = Vec::new();
        for address in &config.listen {
            main.push(listen(*address).await?);
        }
        let admin = match config.admin_listen {
            Some(address) => Some(listen(address).await?),
            None => None,
        };
        let local = match main.first() {
            Some(listener) => address_of(listener)?,
            None => return Err(ServeError::NoAddress),
        };
        let scheme = if config.tls.is_some() { "https" } else { "http" };
        let origin = format!("{scheme}://{local}");
        let entrances = Entrances::new(config.protection.as_ref(), &origin)?;
        let config = Arc::new(config);
        let front = Front::new(served, &config);
        let parts = Parts {
            engine,
            ids: RequestIds::new(&config.instance),
            places: Arc::new(Semaphore::new(config.max_in_flight)),
            answers: Answers { probes, draining: Arc::new(AtomicBool::new(false)) },
            pages,
            authenticator,
            entrances,
            clients,
            rate: Rate::new(config.rate_limit),
            config,
        };
        Ok(Self { parts, front, main, admin, local })
    }

    /// The first address that MCP is served at, with the port that was taken.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The operator's address, if there is a separate one.
    #[must_use]
    pub fn admin_addr(&self) -> Option<SocketAddr> {
        self.admin.as_ref().and_then(|l| l.local_addr().ok())
    }

    /// Serves until `shutdown` is ready, then drains.
    ///
    /// # Errors
    /// [`ServeError`] when a listener has no address.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<Drained, ServeError> {
        let (stop, stopped) = watch::channel(None);
        let (stop_admin, admin_stopped) = watch::channel(None);
        let parts = &self.parts;
        let config = &parts.config;
        let connections = Arc::new(Semaphore::new(config.max_connections));

        let mut addresses = Vec::new();
        for listener in &self.main {
            addresses.push(address_of(listener)?);
        }
        let mut acceptors = JoinSet::new();
        for (listener, address) in self.main.into_iter().zip(&addresses) {
            let admin = address.ip().is_loopback();
            let hosts = hosts(config, &addresses, false)?;
            let acceptor = Acceptor {
                listener,
                service: stack::build(parts, hosts, Some(self.front.clone()), admin),
                config: Arc::clone(config),
                tls: config.tls.clone(),
                connections: Arc::clone(&connections),
                stop: stopped.clone(),
            };
            acceptors.spawn(acceptor.run());
        }
        let mut admin = JoinSet::new();
        if let Some(listener) = self.admin {
            let address = address_of(&listener)?;
            let hosts = hosts(config, &[address], !address.ip().is_loopback())?;
            let acceptor = Acceptor {
                listener,
                service: stack::build(parts, hosts, None, true),
                config: Arc::clone(config),
                tls: None,
                // Its own places: probes must get through when the main listener is full.
                connections: Arc::new(Semaphore::new(ADMIN_CONNECTIONS_MAX)),
                stop: admin_stopped,
            };
            admin.spawn(acceptor.run());
        }

        shutdown.await;
        let deadline = Instant::now() + config.shutdown_grace;
        parts.answers.draining.store(true, Ordering::Release);
        self.front.stop_listening();
        tracing::info!(grace = ?config.shutdown_grace, "shutting down");
        failpoint::is_asked(failpoint::DRAIN);
        // A closed channel means that every acceptor is gone already.
        let _ = stop.send(Some(deadline));
        while acceptors.join_next().await.is_some() {}
        // Calls whose connection is gone.
        let abandoned = drain(&parts.places, config.max_in_flight, deadline).await;
        self.front.close();
        let _ = stop_admin.send(Some(Instant::now()));
        while admin.join_next().await.is_some() {}
        Ok(Drained { in_flight_abandoned: abandoned })
    }
}

fn served(engine: Option<Arc<Engine>>, guest: Option<Guest>) -> Result<Joined, ServeError> {
    if engine.is_none() && guest.is_none() {
        return Err(ServeError::Nothing);
    }
    if let Some(tool) = guest.as_ref().and_then(Guest::misnamed) {
        return Err(ServeError::NoSuchTool { tool: tool.to_owned() });
    }
    let served = Joined::new(engine, guest);
    match served.taken() {
        Some(tool) => Err(ServeError::ToolTaken { tool }),
        None => Ok(served),
    }
}

/// Connections of the operator's listener at once.
const ADMIN_CONNECTIONS_MAX: usize = 64;

/// Waits until nothing is in flight; returns how much still is at the deadline.
async fn drain(places: &Semaphore, all: usize, deadline: Instant) -> usize {
    let everything = u32::try_from(all).unwrap_or(u32::MAX);
    match timeout_at(deadline, places.acquire_many(everything)).await {
        Ok(_) => 0,
        Err(_) => all.saturating_sub(places.available_permits()),
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener, ServeError> {
    TcpListener::bind(address).await.map_err(|source| ServeError::Bind { address, source })
}

fn address_of(listener: &TcpListener) -> Result<SocketAddr, ServeError> {
    listener
        .local_addr()
        .map_err(|source| ServeError::Bind { address: SocketAddr::from(([0, 0, 0, 0], 0)), source })
}

fn hosts(config: &HttpConfig, listen: &[SocketAddr], any_host: bool) -> Result<Hosts, ServeError> {
    Hosts::new(&config.allowed_hosts, &config.allowed_origins, listen, any_host)
}
