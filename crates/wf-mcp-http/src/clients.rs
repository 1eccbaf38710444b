//! Where a request comes from: the peer of the connection, or what a trusted proxy in front says about its own peer.
//!
//! `layers::trace` shows it in the log. Nothing is let in or kept out by it. Only `X-Forwarded-For` is read, which every
//! load balancer sets: one that a proxy does not know (`Forwarded`, RFC 7239) would pass through it as the client wrote it.

use std::net::IpAddr;
use std::sync::Arc;

use http::HeaderMap;
use ipnet::IpNet;

use crate::server::ServeError;

/// Most addresses of one header that are looked at; a chain of proxies is far shorter.
const HOPS_MAX: usize = 16;

/// The proxies that are believed.
#[derive(Debug, Clone)]
pub(crate) struct Clients(Arc<[IpNet]>);

impl Clients {
    /// Reads the list: networks (`10.0.0.0/8`) and addresses.
    pub(crate) fn new(proxies: &[String]) -> Result<Self, ServeError> {
        let network = |text: &String| {
            let network = text.parse::<IpNet>().ok();
            network.or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from)).ok_or_else(|| {
                ServeError::Allowed {
                    setting: "trusted_proxies",
                    entry: text.clone(),
                    expected: "a network such as 10.0.0.0/8 or an address",
                }
            })
        };
        Ok(Self(proxies.iter().map(network).collect::<Result<_, _>>()?))
    }

    /// The client: the last address on the way here that no trusted proxy has.
    pub(crate) fn of(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        if self.0.is_empty() {
            return client;
        }
        // Each proxy adds its peer at the end, so the end is what the nearest one saw.
        let lines = headers.get_all("x-forwarded-for").iter().rev();
        let hops = lines.filter_map(|line| line.to_str().ok()).flat_map(|line| line.rsplit(','));
        for hop in hops.take(HOPS_MAX) {
            if !self.0.iter().any(|network| network.contains(&client)) {
                break;
            }
            match address(hop.trim()) {
                Some(address) => client = address.to_canonical(),
                None => break,
            }
        }
        client
    }
}

/// An address, or one with a port, as some proxies write it.
fn address(text: &str) -> Option<IpAddr> {
    let with_port = || text.parse::<std::net::SocketAddr>().ok().map(|address| address.ip());
    text.parse().ok().or_else(with_port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(proxies: &[&str], peer: &str, lines: &[&str]) -> String {
        let proxies: Vec<String> = proxies.iter().map(ToString::to_string).collect();
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append("x-forwarded-for", line.parse().unwrap());
        }
        Clients::new(&proxies).unwrap().of(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn a_peer_that_is_no_trusted_proxy_is_the_client_whatever_it_says() {
        assert_eq!(of(&[], "192.0.2.1", &["10.9.9.9"]), "192.0.2.1");
        assert_eq!(of(&["10.0.0.0/8"], "192.0.2.1", &["10.9.9.9"]), "192.0.2.1");
        assert_eq!(of(&["10.0.0.0/8"], "::ffff:192.0.2.1", &["10.9.9.9"]), "192.0.2.1");
    }

    #[test]
    fn the_last_address_that_is_no_proxy_is_the_client() {
        let proxies = ["10.0.0.0/8", "2001:db8::7"];
        assert_eq!(of(&proxies, "10.0.0.1", &["192.0.2.1"]), "192.0.2.1");
        // What stands before it, anybody may have written.
        assert_eq!(of(&proxies, "10.0.0.1", &["203.0.113.9, 192.0.2.1"]), "192.0.2.1");
        assert_eq!(of(&proxies, "10.0.0.1", &["203.0.113.9, 192.0.2.1", "10.0.0.2"]), "192.0.2.1");
        assert_eq!(of(&proxies, "2001:db8::7", &["192.0.2.1:55000, 10.1.1.1"]), "192.0.2.1");
        // Nonsense ends the way: the nearest one that is known counts.
        assert_eq!(of(&proxies, "10.0.0.1", &["192.0.2.1, unknown"]), "10.0.0.1");
        assert_eq!(of(&proxies, "10.0.0.1", &[]), "10.0.0.1");
    }

    #[test]
    fn a_list_that_is_none_is_refused() {
        let error = Clients::new(&["10.0.0.0/99".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("trusted_proxies") && error.contains("10.0.0.0/99"), "{error}");
    }
}
