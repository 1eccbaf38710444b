//! What an operator may set about the server. `wf-cli` fills it from its `[server]` table; `server` uses it.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Settings of a [`Server`](crate::Server). The default is the documented default of `wf-cli serve`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpConfig {
    /// Where MCP is served; port 0 takes a free one. At least one.
    pub listen: Vec<SocketAddr>,
    /// Where `/readyz` and `/metrics` are served. The main listener serves them too while it is loopback.
    pub admin_listen: Option<SocketAddr>,
    /// Largest request body, in bytes; more is 413.
    pub max_body_bytes: usize,
    /// Largest request head, in bytes; more is 431.
    pub max_header_bytes: usize,
    /// Connections at once; more wait in the backlog of the operating system.
    pub max_connections: usize,
    /// MCP requests at once, over all connections; more get 503 with `Retry-After`.
    pub max_in_flight: usize,
    /// How long a call may take before the caller is told that its outcome is unknown. The call itself goes on.
    pub request_timeout: Duration,
    /// How long a request head may take from its first byte; then the connection is closed.
    pub header_timeout: Duration,
    /// How long a request body may take; then 408.
    pub body_timeout: Duration,
    /// How long a connection may sit idle between requests. Longer than the idle time of a load balancer in front.
    pub keep_alive: Duration,
    /// How long the peer may refuse to take bytes of an answer; then the connection is closed.
    pub write_timeout: Duration,
    /// How long a shutdown waits for what is in flight.
    pub shutdown_grace: Duration,
    /// Host names (`name` or `name:port`) that requests may be addressed to, besides loopback and the listen address.
    pub allowed_hosts: Vec<String>,
    /// Origins (`scheme://host[:port]`) that browsers may call from, besides loopback to loopback.
    pub allowed_origins: Vec<String>,
    /// Begins every request id of this process; a few random characters tell replicas and restarts apart.
    pub instance: String,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            listen: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 8080))],
            admin_listen: None,
            max_body_bytes: wf_core::limits::BODY_BYTES_MAX,
            max_header_bytes: 32 * 1024,
            max_connections: 4096,
            max_in_flight: 1024,
            request_timeout: Duration::from_secs(30),
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(10),
            keep_alive: Duration::from_secs(75),
            write_timeout: Duration::from_secs(30),
            shutdown_grace: Duration::from_secs(25),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            instance: "local".to_owned(),
        }
    }
}
