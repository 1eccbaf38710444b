//! What an operator may set about the server. `wf-cli` fills it from its `[server]` table; `server` uses it.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use crate::entrance::Protection;
use crate::tls::Tls;
use crate::traces::Traces;

/// Settings of a [`Server`](crate::Server). The default is the documented default of `wf-cli serve`.
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// Where MCP is served; port 0 takes a free one. At least one.
    pub listen: Vec<SocketAddr>,
    /// Certificate and key of the main listener; `None` for plain HTTP, behind a proxy that ends TLS.
    pub tls: Option<Tls>,
    /// Where `/readyz`, `/metrics` and the pages of a console are served, in plain HTTP. The main listener serves the first two
    /// too while it is loopback.
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
    /// How long a request head may take from its first byte, and a TLS handshake; then the connection is closed.
    pub header_timeout: Duration,
    /// How long a request body may take; then 408.
    pub body_timeout: Duration,
    /// How long a connection may sit idle between requests. Longer than the idle time of a load balancer in front.
    pub keep_alive: Duration,
    /// How long the peer may take for an answer, from when it first takes no more; then the connection is closed.
    pub write_timeout: Duration,
    /// How long a shutdown waits for what is in flight.
    pub shutdown_grace: Duration,
    /// Host names (`name` or `name:port`) that requests may be addressed to, besides loopback and the listen address.
    pub allowed_hosts: Vec<String>,
    /// Origins (`scheme://host[:port]`) that browsers may call from, besides loopback to loopback.
    pub allowed_origins: Vec<String>,
    /// Networks (`10.0.0.0/8`) and addresses of proxies whose `X-Forwarded-For` says who their client is, for the log.
    pub trusted_proxies: Vec<String>,
    /// MCP requests that one caller may send; more get 429 with `Retry-After`. `None` for any number.
    pub rate_limit: Option<RateLimit>,
    /// What clients are told about credentials; `None` for a server that asks for none.
    pub protection: Option<Protection>,
    /// Begins every request id of this process; a few random characters tell replicas and restarts apart.
    pub instance: String,
    /// Told to which traces requests belong; `None` where nobody collects them.
    pub traces: Option<Arc<dyn Traces>>,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            listen: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 8080))],
            tls: None,
            admin_listen: None,
            max_body_bytes: wf_core::limits::BODY_BYTES_MAX,
            max_header_bytes: 32 * 1024,
            max_connections: 4096,
            max_in_flight: 1024,
            request_timeout: Duration::from_secs(30),
            header_timeout: Duration::from_secs(5),
            body_timeout: Duration::from_secs(10),
            keep_alive: Duration::from_secs(75),
            write_timeout: Duration::from_secs(30),
            shutdown_grace: Duration::from_secs(25),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            trusted_proxies: Vec::new(),
            rate_limit: None,
            protection: None,
            instance: "local".to_owned(),
            traces: None,
        }
    }
}

/// So many requests may be sent at once, and as many are earned back evenly in the time. Written `600/m`: a whole number,
/// a slash, and s, m or h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// How many.
    pub requests: NonZeroU32,
    /// In which time.
    pub per: Duration,
}

/// A text that is no [`RateLimit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a rate limit is a whole number above 0, a slash, and s, m or h, such as 600/m")]
pub struct RateLimitError;

impl FromStr for RateLimit {
    type Err = RateLimitError;

    fn from_str(text: &str) -> Result<Self, RateLimitError> {
        let (requests, unit) = text.split_once('/').ok_or(RateLimitError)?;
        let seconds = match unit.trim() {
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            _ => return Err(RateLimitError),
        };
        let requests = requests.trim().parse().map_err(|_| RateLimitError)?;
        Ok(Self { requests, per: Duration::from_secs(seconds) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_limit_is_a_number_and_a_unit() {
        let read =
            |text: &str| text.parse().map(|r: RateLimit| (r.requests.get(), r.per.as_secs()));
        assert_eq!(read("600/m"), Ok((600, 60)));
        assert_eq!(read("20 / s"), Ok((20, 1)));
        assert_eq!(read("1000/h"), Ok((1_000, 3_600)));
        for bad in ["", "600", "0/s", "-1/s", "1.5/s", "600/d", "/s", "600/", "99999999999/s"] {
            assert_eq!(read(bad), Err(RateLimitError), "{bad:?}");
        }
    }
}
