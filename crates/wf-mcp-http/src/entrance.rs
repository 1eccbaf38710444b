//! The paths that MCP is served at, and what each tells a client that has no credentials, or too few.
//!
//! `config` holds a [`Protection`]; `server` makes `Entrances` of it once the address is known; `routes` serves their
//! documents, `layers::identity` and `access` their refusals. Sources: RFC 9728 (metadata of a protected resource),
//! RFC 6750 section 3 (challenges), MCP, Authorization.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;
use serde_json::{Map, Value};

use crate::auth::JwtAuthenticator;
use crate::fault::Denied;
use crate::routes::{MCP, METADATA, Route, STANDARD};
use crate::server::ServeError;

/// What clients are told about credentials by a server that asks for them. Whom they prove is the business of the
/// [`Authenticator`](crate::Authenticator).
#[derive(Debug, Clone)]
pub struct Protection {
    /// The origin that clients know the server by, such as `https://wf.example.com`: no path, no slash at the end.
    /// Without one it is `http://` and the first address that is listened on.
    pub public_url: Option<String>,
    /// Issuers of the tokens (RFC 9728 section 2, `authorization_servers`); none names the server's own origin.
    pub authorization_servers: Vec<String>,
    /// How a 401 looks.
    pub challenge: Challenge,
    /// What a service caller sees of the tools.
    pub service_lists: ServiceLists,
    /// A page for developers of clients (RFC 9728 section 2, `resource_documentation`).
    pub documentation_url: Option<String>,
    /// The metadata of the authorization server (RFC 8414), served at this origin too, for clients that look for it
    /// here (MCP 2025-03-26).
    pub mirror: Option<Arc<dyn Mirror>>,
}

impl Protection {
    /// A server that answers 401 without a challenge and takes tokens of one issuer.
    #[must_use]
    pub fn new(public_url: Option<String>, authorization_servers: Vec<String>) -> Self {
        Self {
            public_url,
            authorization_servers,
            challenge: Challenge::default(),
            service_lists: ServiceLists::default(),
            documentation_url: None,
            mirror: None,
        }
    }
}

/// How a 401 looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Challenge {
    /// No `WWW-Authenticate`: the client looks at the well-known document by itself.
    #[default]
    Headerless,
    /// `WWW-Authenticate` names the well-known document (RFC 9728 section 5.1).
    Rfc9728,
    /// Both from one process: `/mcp` is headerless, `/mcp-std` names its document.
    ByPath,
}

/// What a service caller sees of the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServiceLists {
    /// What a technician may call.
    #[default]
    Technician,
    /// All of them.
    All,
}

/// The authorization server's metadata, as whoever fetches it has it now.
///
/// Law: never waits.
pub trait Mirror: std::fmt::Debug + Send + Sync {
    /// The document (RFC 8414 section 3.2), or `None` while there is none.
    fn document(&self) -> Option<Bytes>;
}

impl Mirror for JwtAuthenticator {
    fn document(&self) -> Option<Bytes> {
        self.metadata()
    }
}

/// The scopes that clients are told of. Clients without a challenge ask for all of them, so supervision is not here.
const SCOPES: &str = "workflow:read workflow:write";

/// One path that MCP is served at.
#[derive(Debug)]
pub(crate) struct Entrance {
    /// The document for this path; none where no credentials are asked for.
    pub(crate) document: Option<Bytes>,
    pub(crate) service_lists: ServiceLists,
    /// Where the document is, for challenges; none on a headerless path.
    named: Option<Box<str>>,
}

impl Entrance {
    /// Where no credentials are asked for.
    pub(crate) fn open() -> Self {
        Self { document: None, service_lists: ServiceLists::All, named: None }
    }

    fn of(protection: &Protection, origin: &str, path: &str, challenges: bool) -> Self {
        let issuers = match protection.authorization_servers.as_slice() {
            [] => vec![Value::from(origin)],
            issuers => issuers.iter().map(|issuer| Value::from(issuer.as_str())).collect(),
        };
        let scopes: Vec<Value> = SCOPES.split(' ').map(Value::from).collect();
        let mut document = Map::new();
        document.insert("resource".to_owned(), format!("{origin}{path}").into());
        document.insert("authorization_servers".to_owned(), issuers.into());
        document.insert("scopes_supported".to_owned(), scopes.into());
        document.insert("bearer_methods_supported".to_owned(), vec!["header"].into());
        document.insert("resource_name".to_owned(), "Checkpoint".into());
        if let Some(page) = &protection.documentation_url {
            document.insert("resource_documentation".to_owned(), page.as_str().into());
        }
        Self {
            document: Some(Value::Object(document).to_string().into()),
            service_lists: protection.service_lists,
            named: challenges.then(|| format!("{origin}{METADATA}{path}").into()),
        }
    }

    /// Refusals on this path carry a challenge.
    pub(crate) fn challenges(&self) -> bool {
        self.named.is_some()
    }

    /// The answer to a request without valid credentials: the same for every reason.
    pub(crate) fn unauthorized(&self) -> Denied {
        let challenge = self
            .named
            .as_deref()
            .map(|named| format!("Bearer resource_metadata=\"{named}\", scope=\"{SCOPES}\""));
        Denied::Unauthorized { challenge: challenge.as_deref().and_then(header) }
    }

    /// The answer to valid credentials that do not reach: `scopes` would.
    pub(crate) fn insufficient(&self, scopes: &str) -> Denied {
        let challenge = self.named.as_deref().map(|named| {
            format!(
                "Bearer error=\"insufficient_scope\", scope=\"{scopes}\", resource_metadata=\"{named}\""
            )
        });
        Denied::InsufficientScope { challenge: challenge.as_deref().and_then(header) }
    }
}

/// An origin that fits a header was checked when the server was bound.
fn header(text: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(text).ok()
}

/// Every path of a server.
#[derive(Debug, Clone)]
pub(crate) struct Entrances {
    mcp: Arc<Entrance>,
    standard: Option<Arc<Entrance>>,
    mirror: Option<Arc<dyn Mirror>>,
}

impl Entrances {
    /// `local` is the origin where nobody named a public one.
    pub(crate) fn new(protection: Option<&Protection>, local: &str) -> Result<Self, ServeError> {
        let Some(protection) = protection else {
            return Ok(Self { mcp: Arc::new(Entrance::open()), standard: None, mirror: None });
        };
        let origin = match protection.public_url.as_deref() {
            Some(url) if is_origin(url) => url,
            Some(url) => {
                return Err(ServeError::Allowed {
                    setting: "public_url",
                    entry: url.to_owned(),
                    expected: "an origin such as https://wf.example.com, without a path",
                });
            }
            None => local,
        };
        let named = protection.challenge == Challenge::Rfc9728;
        let standard = protection.challenge == Challenge::ByPath;
        Ok(Self {
            mcp: Arc::new(Entrance::of(protection, origin, MCP, named)),
            standard: standard.then(|| Arc::new(Entrance::of(protection, origin, STANDARD, true))),
            mirror: protection.mirror.clone(),
        })
    }

    /// The entrance that a route is, or is about.
    pub(crate) fn at(&self, route: Route) -> Option<&Arc<Entrance>> {
        match route {
            Route::Mcp | Route::Metadata => Some(&self.mcp),
            Route::Standard | Route::StandardMetadata => self.standard.as_ref(),
            Route::ServerMetadata
            | Route::Ack
            | Route::Health
            | Route::Ready
            | Route::Metrics
            | Route::Page
            | Route::Unknown => None,
        }
    }

    /// What a metadata route answers; `None` where there is no such route.
    pub(crate) fn document(&self, route: Route) -> Option<Bytes> {
        match route {
            Route::Metadata | Route::StandardMetadata => self.at(route)?.document.clone(),
            Route::ServerMetadata => self.mirror.as_ref()?.document(),
            Route::Mcp
            | Route::Standard
            | Route::Ack
            | Route::Health
            | Route::Ready
            | Route::Metrics
            | Route::Page
            | Route::Unknown => None,
        }
    }
}

/// A scheme, a host, perhaps a port, and nothing else. Lower case, as clients compare it byte for byte.
#[must_use]
pub fn is_origin(text: &str) -> bool {
    text.parse::<http::Uri>().is_ok_and(|url| {
        matches!(url.scheme_str(), Some("http" | "https"))
            && url.authority().is_some_and(|authority| {
                let authority = authority.as_str();
                !authority.contains('@')
                    && text.split_once("://").is_some_and(|(_, rest)| rest == authority)
            })
            && text.bytes().all(|b| !b.is_ascii_uppercase())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entrances(challenge: Challenge) -> Entrances {
        let issuer = "https://auth.example.com".to_owned();
        let url = "https://wf.example.com".to_owned();
        let protection = Protection { challenge, ..Protection::new(Some(url), vec![issuer]) };
        Entrances::new(Some(&protection), "http://127.0.0.1:1").expect("an origin")
    }

    fn challenge(denied: &Denied) -> Option<String> {
        match denied {
            Denied::Unauthorized { challenge } | Denied::InsufficientScope { challenge } => {
                challenge.as_ref().map(|value| value.to_str().expect("text").to_owned())
            }
            other @ (Denied::KeysUnavailable { .. }
            | Denied::Credentials(_)
            | Denied::RateLimited { .. }) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_challenge_names_the_document_of_its_own_path() {
        let by_path = entrances(Challenge::ByPath);
        assert_eq!(challenge(&by_path.at(Route::Mcp).expect("one").unauthorized()), None);
        let standard = by_path.at(Route::Standard).expect("one");
        assert_eq!(
            challenge(&standard.unauthorized()).as_deref(),
            Some(
                "Bearer resource_metadata=\"https://wf.example.com/.well-known/oauth-protected-resource/mcp-std\", \
                 scope=\"workflow:read workflow:write\""
            )
        );
        assert_eq!(
            challenge(&standard.insufficient("workflow:read")).as_deref(),
            Some(
                "Bearer error=\"insufficient_scope\", scope=\"workflow:read\", \
                 resource_metadata=\"https://wf.example.com/.well-known/oauth-protected-resource/mcp-std\""
            )
        );
        let one = entrances(Challenge::Rfc9728);
        assert!(one.at(Route::Mcp).expect("one").challenges());
        assert!(one.at(Route::Standard).is_none());
        assert!(!entrances(Challenge::Headerless).at(Route::Mcp).expect("one").challenges());
    }

    #[test]
    fn only_an_origin_is_a_public_url() {
        for good in ["https://wf.example.com", "http://127.0.0.1:8080", "https://[::1]:1"] {
            assert!(is_origin(good), "{good}");
        }
        for bad in [
            "https://wf.example.com/",
            "https://wf.example.com/base",
            "https://wf.example.com?x",
            "https://u@wf.example.com",
            "https://WF.example.com",
            "ftp://wf.example.com",
            "wf.example.com",
            "",
        ] {
            assert!(!is_origin(bad), "{bad}");
        }
    }
}
