//! Which IP addresses a message may be sent to. `target` asks for those written in a URL, `connect` for all others.
//!
//! The ranges are those of the IANA special-purpose registries (RFC 6890) and the addresses at which clouds answer
//! questions about a machine and its keys.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

/// Where an address leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Into the internet.
    Public,
    /// Into this machine or its own networks.
    Private,
    /// Nowhere that a receiver could be: link-local, metadata, multicast, reserved, tunnels.
    Nowhere,
}

/// An address that is not connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressRefused {
    /// A loopback or private address, and the route does not allow them.
    #[error("{0} is a private address, and the route does not have allow_private")]
    Private(IpAddr),
    /// Plain HTTP to a public address.
    #[error("{0} is a public address: the URL must be https")]
    Clear(IpAddr),
    /// An address at which no receiver can be.
    #[error("{0} is a link-local, metadata, multicast or reserved address")]
    Nowhere(IpAddr),
}

/// What a route allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allowed {
    /// Loopback and private addresses too, and plain HTTP to them.
    pub(crate) private: bool,
}

impl Allowed {
    /// Says yes or no to an address; `secure` is whether the way there is encrypted.
    pub(crate) fn vet(self, ip: IpAddr, secure: bool) -> Result<(), AddressRefused> {
        match reach(ip) {
            Reach::Public if secure => Ok(()),
            Reach::Public => Err(AddressRefused::Clear(ip)),
            Reach::Private if self.private => Ok(()),
            Reach::Private => Err(AddressRefused::Private(ip)),
            Reach::Nowhere => Err(AddressRefused::Nowhere(ip)),
        }
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(a: u16, b: u16, c: u16, prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), prefix)
}

const NOWHERE_V4: [Ipv4Net; 13] = [
    v4(0, 0, 0, 0, 8),
    v4(100, 100, 100, 200, 32), // metadata of Alibaba Cloud
    v4(168, 63, 129, 16, 32),   // the host's own services on Azure
    v4(169, 254, 0, 0, 16),     // link-local, and the metadata of most clouds
    v4(192, 0, 0, 0, 24),       // protocol assignments, and the metadata of Oracle Cloud
    v4(192, 0, 2, 0, 24),
    v4(192, 88, 99, 0, 24),
    v4(198, 18, 0, 0, 15),
    v4(198, 51, 100, 0, 24),
    v4(203, 0, 113, 0, 24),
    v4(224, 0, 0, 0, 4),
    v4(240, 0, 0, 0, 4),
    v4(255, 255, 255, 255, 32),
];

const PRIVATE_V4: [Ipv4Net; 5] = [
    v4(10, 0, 0, 0, 8),
    v4(100, 64, 0, 0, 10),
    v4(127, 0, 0, 0, 8),
    v4(172, 16, 0, 0, 12),
    v4(192, 168, 0, 0, 16),
];

/// Metadata of AWS and of Google Cloud; both are in the private range.
const METADATA_V6: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254),
    Ipv6Addr::new(0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x0254),
];
const UNIQUE_LOCAL: Ipv6Net = v6(0xfc00, 0, 0, 7);
const GLOBAL_UNICAST: Ipv6Net = v6(0x2000, 0, 0, 3);
/// Inside of global unicast: protocol assignments with Teredo, documentation, 6to4.
const NOT_GLOBAL: [Ipv6Net; 4] =
    [v6(0x2001, 0, 0, 23), v6(0x2001, 0x0db8, 0, 32), v6(0x2002, 0, 0, 16), v6(0x3fff, 0, 0, 20)];
/// An IPv4 address behind a translator (RFC 6052 section 2.1).
const TRANSLATED: Ipv6Net = v6(0x0064, 0xff9b, 0, 96);

fn reach(ip: IpAddr) -> Reach {
    match ip {
        IpAddr::V4(ip) => reach_v4(ip),
        IpAddr::V6(ip) => reach_v6(ip),
    }
}

fn reach_v4(ip: Ipv4Addr) -> Reach {
    if NOWHERE_V4.iter().any(|net| net.contains(&ip)) {
        Reach::Nowhere
    } else if PRIVATE_V4.iter().any(|net| net.contains(&ip)) {
        Reach::Private
    } else {
        Reach::Public
    }
}

fn reach_v6(ip: Ipv6Addr) -> Reach {
    if let Some(inner) = ip.to_ipv4_mapped() {
        return reach_v4(inner);
    }
    if TRANSLATED.contains(&ip) {
        let [.., a, b, c, d] = ip.octets();
        return reach_v4(Ipv4Addr::new(a, b, c, d));
    }
    if METADATA_V6.contains(&ip) {
        Reach::Nowhere
    } else if ip.is_loopback() || UNIQUE_LOCAL.contains(&ip) {
        Reach::Private
    } else if GLOBAL_UNICAST.contains(&ip) && !NOT_GLOBAL.iter().any(|net| net.contains(&ip)) {
        Reach::Public
    } else {
        Reach::Nowhere
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach_of(text: &str) -> Reach {
        reach(text.parse().expect("an address"))
    }

    #[test]
    fn addresses_are_told_apart() {
        for public in [
            "1.1.1.1",
            "93.184.216.34",
            "172.15.255.255",
            "172.32.0.1",
            "100.63.255.255",
            "100.128.0.1",
            "192.167.255.255",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450:4001::1",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
        ] {
            assert_eq!(reach_of(public), Reach::Public, "{public}");
        }
        for private in [
            "127.0.0.1",
            "127.255.255.254",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "::1",
            "fc00::1",
            "fd12:3456::1",
            "::ffff:127.0.0.1",
            "::ffff:10.1.2.3",
            "64:ff9b::7f00:1",
        ] {
            assert_eq!(reach_of(private), Reach::Private, "{private}");
        }
        for nowhere in [
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "169.254.0.1",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "192.0.2.1",
            "198.18.0.1",
            "198.19.255.255",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.250",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::127.0.0.1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "fd00:ec2::254",
            "fd20:ce::254",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "3fff::1",
            "100::1",
            "64:ff9b:1::1",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
        ] {
            assert_eq!(reach_of(nowhere), Reach::Nowhere, "{nowhere}");
        }
    }

    #[test]
    fn a_route_allows_private_addresses_or_not_and_clear_text_to_them_only() {
        let (strict, lenient) = (Allowed { private: false }, Allowed { private: true });
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        let (public, private, metadata) = (ip("1.1.1.1"), ip("10.0.0.1"), ip("169.254.169.254"));
        assert_eq!(strict.vet(public, true), Ok(()));
        assert_eq!(strict.vet(public, false), Err(AddressRefused::Clear(public)));
        assert_eq!(strict.vet(private, true), Err(AddressRefused::Private(private)));
        assert_eq!(lenient.vet(private, true), Ok(()));
        assert_eq!(lenient.vet(private, false), Ok(()));
        assert_eq!(lenient.vet(public, false), Err(AddressRefused::Clear(public)));
        for allowed in [strict, lenient] {
            assert_eq!(allowed.vet(metadata, true), Err(AddressRefused::Nowhere(metadata)));
        }
    }
}
