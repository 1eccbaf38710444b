//! What is asked: the path, the query, the form, the cookie, and whether a page of ours sent it.

use std::borrow::Cow;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, COOKIE, HOST, ORIGIN};
use http::uri::{Authority, Uri};
use http::{HeaderMap, Request};
use wf_core::models::WorkflowId;

/// Where the console is.
pub(crate) const ROOT: &str = "/console";
/// The cookie with the id of a session.
pub(crate) const SESSION: &str = "checkpoint_console";
/// Fields of one query or form that are read.
const FIELDS_MAX: usize = 16;
/// Longest field, in bytes: an access token of 8 KiB, and the longest comment with four bytes a character, fit.
const FIELD_BYTES_MAX: usize = 16 * 1024;

/// What there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// Nothing but the way to the first page.
    Entry,
    Style,
    SignIn,
    SignOut,
    Overview,
    Assets,
    Messages,
    Workflow(WorkflowId),
    Evidence(WorkflowId),
    Resolve(WorkflowId),
    Release(WorkflowId),
}

impl Route {
    /// The route of a path.
    pub(crate) fn of(path: &str) -> Option<Self> {
        if path == "/" {
            return Some(Self::Entry);
        }
        let mut parts = path.strip_prefix(ROOT)?.split('/');
        if parts.next() != Some("") {
            return None;
        }
        let parts: Vec<&str> = parts.take(4).collect();
        match parts.as_slice() {
            [] => Some(Self::Overview),
            [""] => Some(Self::Entry),
            ["style.css"] => Some(Self::Style),
            ["sign-in"] => Some(Self::SignIn),
            ["sign-out"] => Some(Self::SignOut),
            ["assets"] => Some(Self::Assets),
            ["messages"] => Some(Self::Messages),
            ["workflows", id] => Some(Self::Workflow(WorkflowId::parse(id).ok()?)),
            ["workflows", id, what] => {
                let id = WorkflowId::parse(id).ok()?;
                match *what {
                    "evidence" => Some(Self::Evidence(id)),
                    "resolve" => Some(Self::Resolve(id)),
                    "release" => Some(Self::Release(id)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The methods that it answers, and whether it acts on them.
    pub(crate) const fn allow(&self) -> &'static str {
        match self {
            Self::SignIn => "GET, HEAD, POST",
            Self::SignOut | Self::Resolve(_) | Self::Release(_) => "POST",
            Self::Entry
            | Self::Style
            | Self::Overview
            | Self::Assets
            | Self::Messages
            | Self::Workflow(_)
            | Self::Evidence(_) => "GET, HEAD",
        }
    }
}

/// Fields of a query or a form, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    /// Reads `application/x-www-form-urlencoded`; what is too much is left out.
    pub(crate) fn read(text: &[u8]) -> Self {
        let fields = form_urlencoded::parse(text).take(FIELDS_MAX);
        let fits = |(name, value): &(Cow<'_, str>, Cow<'_, str>)| {
            name.len() <= 64 && value.len() <= FIELD_BYTES_MAX
        };
        Self(fields.filter(fits).map(|(n, v)| (n.into_owned(), v.into_owned())).collect())
    }

    /// The first field of this name that says something.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.trim().is_empty())
    }
}

/// The fields of the query.
pub(crate) fn query(uri: &Uri) -> Fields {
    Fields::read(uri.query().unwrap_or_default().as_bytes())
}

/// The fields of a form; nothing where the body is something else.
pub(crate) fn form(request: &Request<Bytes>) -> Fields {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        Fields::read(request.body())
    } else {
        Fields::default()
    }
}

/// The session that the cookie names (RFC 6265 section 5.4).
pub(crate) fn session(headers: &HeaderMap) -> Option<&str> {
    let pairs = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        pairs.flat_map(|value| value.split(';')).filter_map(|p| p.trim().split_once('='));
    pairs.find(|(name, _)| *name == SESSION).map(|(_, value)| value)
}

/// Whose page sent a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sender {
    /// A page of this console, reached over TLS or not.
    Own { tls: bool },
    /// Another page, or none that says so.
    Other,
}

/// Whose page sent the request: every browser names the origin of a page that sends a form (Fetch standard, 3.2), and newer
/// ones say besides how it stands to the address (Fetch Metadata Request Headers, 2.4).
pub(crate) fn sender(headers: &HeaderMap) -> Sender {
    let one = |name: http::HeaderName| {
        let mut all = headers.get_all(name).iter();
        let first = all.next()?.to_str().ok()?;
        all.next().is_none().then_some(first)
    };
    if headers.get("sec-fetch-site").is_some_and(|site| site != "same-origin") {
        return Sender::Other;
    }
    let (Some(host), Some(origin)) = (one(HOST), one(ORIGIN)) else { return Sender::Other };
    let (tls, place) = match origin.split_once("://") {
        Some(("http", place)) => (false, place),
        Some(("https", place)) => (true, place),
        Some(_) | None => return Sender::Other,
    };
    let port = if tls { 443 } else { 80 };
    let read = |text: &str| {
        let place = text.parse::<Authority>().ok().filter(|place| !place.as_str().contains('@'))?;
        Some((place.host().to_ascii_lowercase(), place.port_u16().unwrap_or(port)))
    };
    match (read(host), read(place)) {
        (Some(host), Some(place)) if host == place => Sender::Own { tls },
        _ => Sender::Other,
    }
}

/// A place of the console to go on at after signing in, or its first page for everything that is none.
pub(crate) fn onward(place: Option<&str>) -> String {
    let harmless = |b: u8| b.is_ascii_alphanumeric() || b"/_.:?&=%+-|".contains(&b);
    let ours = |place: &&str| {
        place.len() <= 1_024
            && place.bytes().all(harmless)
            && Route::of(place.split('?').next().unwrap_or_default()).is_some_and(|route| {
                route != Route::Entry && route.allow().starts_with("GET, HEAD")
            })
    };
    place.filter(ours).unwrap_or(ROOT).to_owned()
}

/// A path of the console with a query; fields without a value are left out.
pub(crate) fn link(path: &str, fields: &[(&str, &str)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(fields.iter().filter(|(_, value)| !value.is_empty()));
    match query.finish() {
        query if query.is_empty() => path.to_owned(),
        query => format!("{path}?{query}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, value.parse().unwrap());
        }
        map
    }

    #[test]
    fn paths_are_read_strictly() {
        let id = WorkflowId::parse("w-1").unwrap();
        assert_eq!(Route::of("/console"), Some(Route::Overview));
        assert_eq!(Route::of("/console/workflows/w-1/evidence"), Some(Route::Evidence(id)));
        for none in [
            "",
            "/consoles",
            "/console/x",
            "/console//",
            "/console/workflows",
            "/console/workflows/",
            "/console/workflows/a%2Fb",
            "/console/workflows/w-1/",
            "/console/workflows/w-1/evidence/x/y",
            "/metrics",
        ] {
            assert_eq!(Route::of(none), None, "{none}");
        }
    }

    #[test]
    fn a_form_counts_only_from_a_page_of_the_same_address() {
        let of = |host: &str, origin: &str| sender(&headers(&[("host", host), ("origin", origin)]));
        let own = Sender::Own { tls: false };
        assert_eq!(of("127.0.0.1:9000", "http://127.0.0.1:9000"), own);
        assert_eq!(of("ops.example", "https://OPS.example:443"), Sender::Own { tls: true });
        for other in [
            "null",
            "http://127.0.0.1:9001",
            "http://127.0.0.1",
            "http://localhost:9000",
            "http://127.0.0.1:9000.evil.example",
            "http://evil@127.0.0.1:9000",
            "file://127.0.0.1:9000",
            "",
        ] {
            assert_eq!(of("127.0.0.1:9000", other), Sender::Other, "{other}");
        }
        assert_eq!(sender(&headers(&[("host", "a")])), Sender::Other, "no origin");
        let pairs = [("host", "a"), ("origin", "http://a")];
        assert_eq!(sender(&headers(&pairs)), own);
        for site in ["cross-site", "same-site", "none"] {
            let sent = [pairs[0], pairs[1], ("sec-fetch-site", site)];
            assert_eq!(sender(&headers(&sent)), Sender::Other, "{site}");
        }
        let two = [pairs[0], pairs[1], ("origin", "http://a")];
        assert_eq!(sender(&headers(&two)), Sender::Other, "two origins");
    }

    #[test]
    fn signing_in_leads_nowhere_else() {
        assert_eq!(onward(Some("/console/assets?after=a%0Ab")), "/console/assets?after=a%0Ab");
        for elsewhere in [
            "https://evil.example",
            "//evil.example",
            "/\\evil.example",
            "/console/../metrics",
            "/console/sign-out",
            "/console@evil",
            "/console/assets\r\nset-cookie: a=b",
            "/",
        ] {
            assert_eq!(onward(Some(elsewhere)), ROOT, "{elsewhere}");
        }
        assert_eq!(onward(None), ROOT);
    }

    #[test]
    fn fields_and_cookies_are_read_and_bounded() {
        let fields = Fields::read(b"a=1&a=2&b=%20&c=x%26y&d");
        assert_eq!(
            (fields.get("a"), fields.get("b"), fields.get("c")),
            (Some("1"), None, Some("x&y"))
        );
        let many = (0..100).map(|n| format!("f{n}=x")).collect::<Vec<_>>().join("&");
        assert_eq!(Fields::read(many.as_bytes()).0.len(), FIELDS_MAX);
        let long = format!("a={}", "x".repeat(FIELD_BYTES_MAX + 1));
        assert_eq!(Fields::read(long.as_bytes()).get("a"), None);
        let sent = headers(&[("cookie", "other=1; checkpoint_console=abc")]);
        assert_eq!(session(&sent), Some("abc"));
        assert_eq!(session(&headers(&[("cookie", "xcheckpoint_console=abc")])), None);
    }

    #[test]
    fn links_carry_what_they_are_given() {
        let made = link("/console", &[("q", "a b&c"), ("show", ""), ("after", "x|y\n")]);
        assert_eq!(made, "/console?q=a+b%26c&after=x%7Cy%0A");
    }
}
