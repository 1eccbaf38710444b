//! Addresses that this crate fetches from: the issuer's documents. `fetch` goes there and nowhere else.

use http::Uri;

/// An address that may be fetched: `https`, or `http` on this machine. It comes from the configuration, or from the
/// metadata of an issuer that the configuration names; never from a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    uri: Uri,
}

/// An address that is not fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// No absolute URL, or longer than 2048 bytes.
    #[error("it is not an absolute URL")]
    NotUrl,
    /// Keys that travel in the clear can be exchanged on the way.
    #[error("it must be https (http is for loopback addresses only)")]
    NotSecure,
    /// Credentials in a URL end up in logs.
    #[error("it must not contain a user or a password")]
    Credentials,
    /// A fragment, or a query where there must be none (RFC 8414 section 2).
    #[error("it must not have a query or a fragment")]
    Extra,
    /// Keys elsewhere than where an issuer's metadata may say.
    #[error("the metadata names a host inside of some network, other than the issuer's own")]
    Inside,
}

const URL_BYTES_MAX: usize = 2048;

impl Address {
    /// Reads an address.
    pub(super) fn parse(text: &str) -> Result<Self, AddressError> {
        if text.len() > URL_BYTES_MAX {
            return Err(AddressError::NotUrl);
        }
        if text.contains('#') {
            return Err(AddressError::Extra);
        }
        let uri: Uri = text.parse().map_err(|_| AddressError::NotUrl)?;
        let authority = uri.authority().ok_or(AddressError::NotUrl)?;
        if authority.as_str().contains('@') {
            return Err(AddressError::Credentials);
        }
        match uri.scheme_str() {
            Some("https") => {}
            Some("http") if is_loopback(authority.host()) => {}
            Some(_) | None => return Err(AddressError::NotSecure),
        }
        Ok(Self { uri })
    }

    /// Reads an issuer's identifier (RFC 8414 section 2).
    pub(super) fn issuer(text: &str) -> Result<Self, AddressError> {
        let address = Self::parse(text)?;
        if address.uri.query().is_some() { Err(AddressError::Extra) } else { Ok(address) }
    }

    /// Reads the address of keys in the metadata of the issuer at `self`: not less secure, and not an address of some
    /// inner network that only this server can reach.
    pub(super) fn leads_to(&self, text: &str) -> Result<Self, AddressError> {
        let target = Self::parse(text)?;
        if self.is_secure() && !target.is_secure() {
            return Err(AddressError::NotSecure);
        }
        let host = target.host();
        let by_number = host.starts_with('[') || host.parse::<std::net::Ipv4Addr>().is_ok();
        if host != self.host() && (by_number || is_loopback(host)) {
            return Err(AddressError::Inside);
        }
        Ok(target)
    }

    /// Where the metadata with this well-known name is: between host and path (RFC 8414 section 3.1).
    pub(super) fn well_known(&self, name: &str) -> Result<Self, AddressError> {
        self.with_path(&format!("/.well-known/{name}{}", self.own_path()))
    }

    /// Where OpenID Connect Discovery 1.0 section 4 puts the same: behind the path.
    pub(super) fn discovery(&self) -> Result<Self, AddressError> {
        self.with_path(&format!("{}/.well-known/openid-configuration", self.own_path()))
    }

    fn own_path(&self) -> &str {
        self.uri.path().trim_end_matches('/')
    }

    fn with_path(&self, path: &str) -> Result<Self, AddressError> {
        let mut parts = self.uri.clone().into_parts();
        parts.path_and_query = Some(path.parse().map_err(|_| AddressError::NotUrl)?);
        let uri = Uri::from_parts(parts).map_err(|_| AddressError::NotUrl)?;
        Ok(Self { uri })
    }

    fn host(&self) -> &str {
        self.uri.host().unwrap_or_default()
    }

    /// Whether the way there is encrypted.
    pub(super) fn is_secure(&self) -> bool {
        self.uri.scheme_str() == Some("https")
    }

    pub(super) fn uri(&self) -> &Uri {
        &self.uri
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.uri.fmt(f)
    }
}

fn is_loopback(host: &str) -> bool {
    let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_secure_addresses_and_loopback_are_fetched() {
        for good in [
            "https://as.example.com",
            "https://as.example.com/realms/a?x=1",
            "http://127.0.0.1:9400",
            "http://localhost:1/keys",
            "http://[::1]:8080/",
        ] {
            assert!(Address::parse(good).is_ok(), "{good}");
        }
        use AddressError as E;
        for (bad, why) in [
            ("http://as.example.com", E::NotSecure),
            ("http://10.0.0.1/keys", E::NotSecure),
            ("http://127.0.0.1.example.com/", E::NotSecure),
            ("http://localhost.example.com/", E::NotSecure),
            ("file:///etc/passwd", E::NotUrl),
            ("ftp://as.example.com/", E::NotSecure),
            ("/keys", E::NotUrl),
            ("as.example.com", E::NotSecure),
            ("", E::NotUrl),
            ("https://", E::NotUrl),
            ("https://user:pw@as.example.com/", E::Credentials),
            ("http://127.0.0.1@as.example.com/", E::Credentials),
            ("https://as.example.com/#x", E::Extra),
        ] {
            assert_eq!(Address::parse(bad), Err(why), "{bad}");
        }
        assert_eq!(Address::issuer("https://as.example.com/?x"), Err(E::Extra));
        assert_eq!(Address::parse(&format!("https://a/{}", "x".repeat(2048))), Err(E::NotUrl));
    }

    #[test]
    fn metadata_leads_to_no_inner_network() {
        let issuer = Address::issuer("https://as.example.com/a").expect("an issuer");
        for good in ["https://as.example.com/keys", "https://cdn.example.net/keys"] {
            assert!(issuer.leads_to(good).is_ok(), "{good}");
        }
        use AddressError as E;
        for (bad, why) in [
            ("http://127.0.0.1/keys", E::NotSecure),
            ("http://as.example.com/keys", E::NotSecure),
            ("https://169.254.169.254/latest", E::Inside),
            ("https://[fd00:ec2::254]/latest", E::Inside),
            ("https://localhost/keys", E::Inside),
        ] {
            assert_eq!(issuer.leads_to(bad), Err(why), "{bad}");
        }
        let local = Address::issuer("http://127.0.0.1:9400").expect("an issuer");
        assert!(local.leads_to("http://127.0.0.1:9400/jwks").is_ok());
    }

    #[test]
    fn metadata_is_between_host_and_path_or_behind_it() {
        let issuer = Address::issuer("https://as.example.com/realms/a/").expect("an issuer");
        assert_eq!(
            issuer.well_known("oauth-authorization-server").expect("one").to_string(),
            "https://as.example.com/.well-known/oauth-authorization-server/realms/a"
        );
        assert_eq!(
            issuer.discovery().expect("one").to_string(),
            "https://as.example.com/realms/a/.well-known/openid-configuration"
        );
        let plain = Address::issuer("https://as.example.com").expect("an issuer");
        assert_eq!(
            plain.well_known("oauth-authorization-server").expect("one").to_string(),
            "https://as.example.com/.well-known/oauth-authorization-server"
        );
    }
}
