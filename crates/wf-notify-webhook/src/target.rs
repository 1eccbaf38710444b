//! Which URLs a message may be sent to, as far as a URL tells. What stands behind a name, `connect` vets each time.

use std::fmt;
use std::net::IpAddr;

use http::Uri;

use crate::address::{AddressRefused, Allowed};

const URL_BYTES_MAX: usize = 2048;
/// Ports below are those of other protocols, 443 apart.
const FREE_PORTS: u16 = 1024;
const HTTPS: u16 = 443;

/// A URL that nothing is sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// No absolute URL with a host, or longer than 2048 bytes.
    #[error("it is not an absolute URL")]
    NotUrl,
    /// Another scheme than the route allows.
    #[error("it must be https (http only to private addresses, with allow_private)")]
    NotSecure,
    /// Credentials in a URL end up in logs; the signature says who sends.
    #[error("it must not contain a user or a password")]
    Credentials,
    /// A fragment is never sent.
    #[error("it must not have a fragment")]
    Fragment,
    /// A port of another protocol.
    #[error("port {0} is not one for https: 443, or 1024 and above")]
    Port(u16),
    /// An address or a name of this machine or its networks.
    #[error("it leads to this machine, and the route does not have allow_private")]
    Local,
    /// It names an address that is not connected to.
    #[error(transparent)]
    Address(#[from] AddressRefused),
}

/// Where messages go.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Target {
    uri: Uri,
}

impl Target {
    /// Reads a URL.
    pub(crate) fn parse(text: &str, allowed: Allowed) -> Result<Self, TargetError> {
        if text.len() > URL_BYTES_MAX {
            return Err(TargetError::NotUrl);
        }
        if text.contains('#') {
            return Err(TargetError::Fragment);
        }
        let uri: Uri = text.parse().map_err(|_| TargetError::NotUrl)?;
        let authority = uri.authority().ok_or(TargetError::NotUrl)?;
        if authority.as_str().contains('@') {
            return Err(TargetError::Credentials);
        }
        let secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") if allowed.private => false,
            Some("http") => return Err(TargetError::NotSecure),
            Some(_) | None => return Err(TargetError::NotUrl),
        };
        let host = bare(authority.host());
        if host.is_empty() {
            return Err(TargetError::NotUrl);
        }
        if let Ok(ip) = host.parse::<IpAddr>() {
            allowed.vet(ip, secure)?;
        }
        if !allowed.private {
            let name = host.trim_end_matches('.').to_ascii_lowercase();
            if name == "localhost" || name.ends_with(".localhost") {
                return Err(TargetError::Local);
            }
            if let Some(port) = authority.port_u16().filter(|p| *p != HTTPS && *p < FREE_PORTS) {
                return Err(TargetError::Port(port));
            }
        }
        Ok(Self { uri })
    }

    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Whether the way there is encrypted.
    pub(crate) fn is_secure(&self) -> bool {
        self.uri.scheme_str() == Some("https")
    }

    /// Scheme, host and port: what may be shown. The rest of the URL of a webhook often is its password.
    pub(crate) fn origin(&self) -> String {
        let authority = self.uri.authority().map_or("", http::uri::Authority::as_str);
        format!("{}://{authority}", self.uri.scheme_str().unwrap_or("https"))
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Target").field(&self.origin()).finish()
    }
}

/// A host without the brackets of an IPv6 address.
pub(crate) fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRICT: Allowed = Allowed { private: false };
    const LENIENT: Allowed = Allowed { private: true };

    #[test]
    fn by_itself_a_route_takes_https_to_somewhere_else_only() {
        for good in [
            "https://hooks.example.com",
            "https://hooks.example.com/services/T0?x=1",
            "https://hooks.example.com:8443/",
            "https://1.1.1.1/",
            "https://[2606:4700::1111]/",
        ] {
            assert!(Target::parse(good, STRICT).is_ok(), "{good}");
        }
        use TargetError as E;
        let refused = |text: &str| Target::parse(text, STRICT).expect_err(text);
        for (bad, why) in [
            ("http://hooks.example.com", E::NotSecure),
            ("http://127.0.0.1:9", E::NotSecure),
            ("ftp://hooks.example.com", E::NotUrl),
            ("/hook", E::NotUrl),
            ("hooks.example.com", E::NotUrl),
            ("", E::NotUrl),
            ("https://user:pw@hooks.example.com/", E::Credentials),
            ("https://169.254.169.254@hooks.example.com/", E::Credentials),
            ("https://hooks.example.com/#x", E::Fragment),
            ("https://hooks.example.com:25/", E::Port(25)),
            ("https://localhost/", E::Local),
            ("https://LOCALHOST./", E::Local),
            ("https://a.localhost:8443/", E::Local),
        ] {
            assert_eq!(refused(bad), why, "{bad}");
        }
        for bad in [
            "https://127.0.0.1/",
            "https://10.0.0.1/",
            "https://169.254.169.254/latest",
            "https://[::1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://[fe80::1]/",
        ] {
            assert!(matches!(refused(bad), E::Address(_)), "{bad}");
        }
    }

    #[test]
    fn a_private_route_takes_clear_text_inside_and_still_no_metadata() {
        for good in
            ["http://127.0.0.1:9400/hook", "http://localhost:9400", "http://relay.internal:25/"]
        {
            assert!(Target::parse(good, LENIENT).is_ok(), "{good}");
        }
        for bad in ["http://169.254.169.254/latest", "http://1.1.1.1/", "http://0.0.0.0/"] {
            assert!(matches!(Target::parse(bad, LENIENT), Err(TargetError::Address(_))), "{bad}");
        }
    }

    #[test]
    fn what_may_be_a_password_is_not_shown() {
        let target = Target::parse("https://hooks.example.com/T0/SECRET?k=SECRET", STRICT);
        let shown = format!("{:?}", target.expect("a target"));
        assert!(shown.contains("hooks.example.com") && !shown.contains("SECRET"), "{shown}");
    }
}
