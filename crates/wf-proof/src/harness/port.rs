//! A port that a server keeps over restarts.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use crate::fault::Fault;

/// First port that is tried; below it are those of other services.
const FIRST: u16 = 15_000;
/// Where the system takes the ports of outgoing connections from, when it does not say.
const OUTGOING: u16 = 32_768;

/// A free loopback address that no outgoing connection gets while the server is down: a caller that connects to such a
/// port could meet itself.
///
/// # Errors
/// When no port is free.
pub fn lasting_address() -> Result<String, Fault> {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let outgoing = range.ok().and_then(|text| text.split_whitespace().next()?.parse().ok());
    let end = outgoing.filter(|first| *first > FIRST).unwrap_or(OUTGOING);
    let width = u64::from(end - FIRST);
    let start = getrandom::u64().map_err(|e| Fault::Run(format!("no randomness: {e}")))? % width;
    (0..width)
        .filter_map(|step| u16::try_from(u64::from(FIRST) + (start + step) % width).ok())
        .map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
        .find(|address| TcpListener::bind(address).is_ok())
        .map(|address| address.to_string())
        .ok_or_else(|| Fault::Run("no port is free".to_owned()))
}
