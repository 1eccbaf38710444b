//! `wf-cli doctor --alive`: asks the server that runs with this configuration on this machine whether it lives.
//!
//! For the health check of a container, where no other program speaks HTTP. It asks nothing else, on purpose: a store or an
//! authorization server that is away is no reason to end the process that waits for it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use http::StatusCode;
use serde_json::json;
use tokio::net::TcpStream;

use crate::client;
use crate::config::ServerConfig;
use crate::exit::Failure;
use crate::output::Output;

/// What is asked.
const PATH: &str = "/healthz";
/// How long an answer may take.
const WAIT: Duration = Duration::from_secs(5);

pub(super) async fn run(server: &ServerConfig, output: Output) -> Result<(), Failure> {
    let address = here(server.admin_listen.unwrap_or(server.listen));
    // The operator's address speaks plain HTTP always; the main one speaks TLS when it has a certificate, which names
    // another host than the loopback address. That it takes connections is what can be told then.
    let says = if server.tls.is_some() && server.admin_listen.is_none() {
        let connected = tokio::time::timeout(WAIT, TcpStream::connect(address)).await;
        let silent = || Failure::unavailable(format!("no server answers at {address}"));
        connected.map_err(|_| silent())?.map_err(|error| silent().because(error))?;
        "it takes connections; set server.admin_listen to ask more"
    } else {
        let (status, _) = client::get(address, PATH, WAIT).await?;
        if status != StatusCode::OK {
            return Err(Failure::failed(format!("http://{address}{PATH} answered {status}")));
        }
        "it lives"
    };
    if output.is_json() {
        output.document(&json!({ "ok": true, "address": address.to_string(), "says": says }))
    } else {
        output.line(&format!("{address}: {says}"))
    }
}

/// Where a server that listens there is reached from this machine.
pub(crate) fn here(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    SocketAddr::new(ip, listen.port())
}

#[cfg(test)]
mod tests {
    use super::here;

    #[test]
    fn every_address_is_reached_by_the_loopback_one() {
        let reached = |listen: &str| here(listen.parse().unwrap()).to_string();
        assert_eq!(reached("0.0.0.0:9090"), "127.0.0.1:9090");
        assert_eq!(reached("[::]:9090"), "[::1]:9090");
        assert_eq!(reached("192.0.2.7:9090"), "192.0.2.7:9090");
    }
}
