//! Whom a request is addressed to and which page sent it: the defence against DNS rebinding and foreign pages, and the
//! headers that let allowed pages read the answer (Fetch standard, CORS).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, HOST, HeaderValue, ORIGIN, VARY,
};
use http::uri::Authority;
use http::{HeaderMap, Method};

use super::{Around, Inner, proceed};
use crate::exchange::{Request, Response};
use crate::fault::{self, Fault};
use crate::guard::Wire;
use crate::routes::Route;
use crate::server::ServeError;

/// An address of this server or of a page: a lower-case name or address, and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    host: String,
    port: Option<u16>,
}

impl Place {
    fn parse(text: &str) -> Option<Self> {
        let authority: Authority = text.parse().ok()?;
        // An authority with user information is no host; one that ends with a bare colon has no port.
        if text.contains('@') || text.ends_with(':') || authority.host().is_empty() {
            return None;
        }
        let port = match text.strip_prefix(authority.host()) {
            Some("") => None,
            _ => Some(authority.port_u16()?),
        };
        Some(Self { host: authority.host().to_ascii_lowercase(), port })
    }

    fn address(&self) -> Option<IpAddr> {
        self.host.trim_matches(['[', ']']).parse().ok()
    }

    fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.address().is_some_and(|address| address.is_loopback())
    }
}

/// A page's origin, or a pattern for one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Page {
    scheme: String,
    place: Place,
    any_port: bool,
}

impl Page {
    fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let default_port = match scheme.as_str() {
            "http" => 80,
            "https" => 443,
            _ => return None,
        };
        let (rest, any_port) = rest.strip_suffix(":*").map_or((rest, false), |r| (r, true));
        let mut place = Place::parse(rest)?;
        place.port.get_or_insert(default_port);
        Some(Self { scheme, place, any_port })
    }

    fn matches(&self, origin: &Self) -> bool {
        self.scheme == origin.scheme
            && self.place.host == origin.place.host
            && (self.any_port || self.place.port == origin.place.port)
    }
}

/// Which hosts and origins are let in.
#[derive(Debug, Clone)]
pub(crate) struct Hosts(Arc<Allowed>);

#[derive(Debug)]
struct Allowed {
    hosts: Vec<Place>,
    pages: Vec<Page>,
    /// Every host is let in: a listener for machines that know only its address.
    any_host: bool,
}

impl Hosts {
    /// Reads the lists.
    pub(crate) fn new(
        hosts: &[String],
        origins: &[String],
        listen: &[SocketAddr],
        any_host: bool,
    ) -> Result<Self, ServeError> {
        let mut places = Vec::new();
        for text in hosts {
            places.push(Place::parse(text).ok_or_else(|| ServeError::Allowed {
                setting: "allowed_hosts",
                entry: text.clone(),
                expected: "a host name with or without a port",
            })?);
        }
        places.extend(
            listen
                .iter()
                .filter(|a| !a.ip().is_unspecified())
                .filter_map(|a| Place::parse(&a.to_string())),
        );
        let mut pages = Vec::new();
        for text in origins {
            pages.push(Page::parse(text).ok_or_else(|| ServeError::Allowed {
                setting: "allowed_origins",
                entry: text.clone(),
                expected: "an origin such as https://app.example.com or http://localhost:*",
            })?);
        }
        Ok(Self(Arc::new(Allowed { hosts: places, pages, any_host })))
    }

    /// The origin to let read the answer, if the request names one.
    fn check(&self, request: &Request) -> Result<Option<HeaderValue>, Fault> {
        let wire = request.extensions().get::<Wire>();
        if wire.is_some_and(Wire::had_bare_line_feed) {
            return Err(Fault::BareLineFeed);
        }
        let host = one_host(request)?;
        let route = Route::of(request.uri().path());
        // Machines ask the operator's address by any name; a person's browser can be made to by a name that was rebound.
        let allowed = (self.0.any_host && route != Route::Page)
            // Health tells nothing, and is asked by machines that know only an address.
            || route == Route::Health
            || host.is_loopback()
            || self.0.hosts.iter().any(|place| {
                place.host == host.host && (place.port.is_none() || place.port == host.port)
            })
            // An address is not a name that could be rebound.
            || wire.is_some_and(|wire| host.address() == Some(wire.ends().local.ip()));
        if !allowed {
            return Err(Fault::HostForbidden);
        }
        // The link is its own credential: a page that has it needs no browser to act for it. A browser that sends no
        // referrer sends the origin `null`.
        if route == Route::Ack {
            return Ok(None);
        }
        // A console lets no other page read it, and knows its own forms by their origin.
        if route == Route::Page {
            return Ok(None);
        }
        if route.is_public() {
            return Ok(Some(HeaderValue::from_static("*")));
        }
        self.page(request.headers(), &host)
    }

    fn page(&self, headers: &HeaderMap, host: &Place) -> Result<Option<HeaderValue>, Fault> {
        let mut sent = headers.get_all(ORIGIN).iter();
        let Some(value) = sent.next() else {
            return Ok(None);
        };
        let page = value.to_str().ok().and_then(Page::parse);
        let allowed = sent.next().is_none()
            && page.is_some_and(|page| {
                let local = host.is_loopback() && page.place.is_loopback();
                local || self.0.pages.iter().any(|allowed| allowed.matches(&page))
            });
        if allowed { Ok(Some(value.clone())) } else { Err(Fault::OriginForbidden) }
    }
}

/// The one host that a request is addressed to (RFC 9112 section 3.2).
fn one_host(request: &Request) -> Result<Place, Fault> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return Err(Fault::Host);
    };
    let host = host.to_str().ok().and_then(Place::parse);
    let host = host.ok_or(Fault::Host)?;
    // A target in absolute form names the host too; two different ones are a trick.
    match request.uri().authority() {
        Some(authority) if Place::parse(authority.as_str()).as_ref() != Some(&host) => {
            Err(Fault::Host)
        }
        _ => Ok(host),
    }
}

impl Around for Hosts {
    async fn around<S: Inner>(self, request: Request, next: S) -> Response {
        let asks = request.method() == Method::OPTIONS;
        match self.check(&request) {
            Ok(None) => proceed(next, request).await,
            Ok(Some(origin)) => {
                let mut response = proceed(next, request).await;
                let headers = response.headers_mut();
                headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
                headers.insert(VARY, HeaderValue::from_static("origin"));
                fault::set(
                    &mut response,
                    ACCESS_CONTROL_EXPOSE_HEADERS,
                    "mcp-protocol-version, retry-after, www-authenticate, x-request-id",
                );
                if asks {
                    fault::set(&mut response, ACCESS_CONTROL_ALLOW_METHODS, "POST, GET");
                    fault::set(
                        &mut response,
                        ACCESS_CONTROL_ALLOW_HEADERS,
                        "accept, authorization, content-type, last-event-id, mcp-method, mcp-name, \
                         mcp-protocol-version, mcp-session-id, traceparent, x-request-id",
                    );
                    fault::set(&mut response, ACCESS_CONTROL_MAX_AGE, "600");
                }
                response
            }
            Err(fault) => fault.into_response(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_strictly() {
        let read = |text: &str| Place::parse(text).map(|p| (p.host, p.port));
        assert_eq!(read("Example.COM"), Some(("example.com".into(), None)));
        assert_eq!(read("localhost:80"), Some(("localhost".into(), Some(80))));
        assert_eq!(read("[::1]:8080"), Some(("[::1]".into(), Some(8080))));
        for bad in ["", "a b", "user@host", "host:", "host:99999", "host:x", "http://a", "a/b"] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn loopback_is_recognised_by_name_and_address() {
        let loopback = |text: &str| Place::parse(text).unwrap().is_loopback();
        assert!(loopback("localhost") && loopback("127.8.9.1:1") && loopback("[::1]"));
        assert!(!loopback("localhost.example") && !loopback("128.0.0.1") && !loopback("[::2]"));
    }

    #[test]
    fn origins_match_scheme_host_and_port() {
        let page = |text: &str| Page::parse(text);
        let allowed = page("https://app.example").unwrap();
        assert!(allowed.matches(&page("https://APP.example:443").unwrap()));
        for other in ["http://app.example", "https://app.example:8443", "https://x.app.example"] {
            assert!(!allowed.matches(&page(other).unwrap()), "{other}");
        }
        let any = page("http://tool.example:*").unwrap();
        assert!(any.matches(&page("http://tool.example:6274").unwrap()));
        for none in ["null", "app.example", "file:///x", "https://", "https://a/b"] {
            assert_eq!(page(none), None, "{none}");
        }
    }
}
