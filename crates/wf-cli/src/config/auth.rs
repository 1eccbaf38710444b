//! Section `[auth]`: its values by type, and what of it contradicts itself.

use std::time::Duration;

use wf_core::access::Visibility;
use wf_mcp_http::auth::SigningAlgorithm;
use wf_mcp_http::entrance::is_origin;
use wf_mcp_http::{Challenge, RateLimit, ServiceLists};

use super::check::Typed;
use super::layers::{Layers, Origin};
use super::value::Value;

/// Whether callers must prove who they are, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuthMode {
    /// They need not.
    None,
    /// By tokens that `wf-cli token issue` signs; on this machine only.
    Dev,
    /// By tokens of an authorization server.
    Jwt,
}

impl AuthMode {
    /// As in the configuration.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Dev => "dev",
            Self::Jwt => "jwt",
        }
    }
}

/// Section `[auth]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AuthConfig {
    /// Whether callers must prove who they are.
    pub(crate) mode: AuthMode,
    /// The authorization server.
    pub(crate) issuer: Option<String>,
    /// What tokens must be for; the public URL of `/mcp` when absent.
    pub(crate) audience: Option<String>,
    /// Where the keys are; from the issuer's metadata when absent.
    pub(crate) jwks_url: Option<String>,
    /// Signatures that are accepted.
    pub(crate) algorithms: Vec<SigningAlgorithm>,
    /// How a 401 looks.
    pub(crate) challenge: Challenge,
    /// Claim that names the tenant; everybody is of one tenant when absent.
    pub(crate) tenant_claim: Option<String>,
    /// Claim that names the scopes.
    pub(crate) scope_claim: String,
    /// Claim that names the person.
    pub(crate) name_claim: String,
    /// Claim that names roles.
    pub(crate) roles_claim: Option<String>,
    /// Roles that may supervise.
    pub(crate) supervisor_roles: Vec<String>,
    /// Scopes of a service token.
    pub(crate) service_scopes: Vec<String>,
    /// Clients whose service tokens need not be for this server.
    pub(crate) service_clients: Vec<String>,
    /// Tools that a service token lists.
    pub(crate) service_lists: ServiceLists,
    /// Whose workflows a reader sees.
    pub(crate) visibility: Visibility,
    /// How far clocks may differ.
    pub(crate) clock_skew: Duration,
    /// Requests that one caller may send.
    pub(crate) rate_limit: Option<RateLimit>,
    /// The authorization server's metadata is served here, too.
    pub(crate) mirror: bool,
    /// A page for developers of clients.
    pub(crate) documentation_url: Option<String>,
}

/// The typed section.
pub(super) fn typed(settings: Typed<'_>) -> AuthConfig {
    let text = |path: &str| settings.text(path).map(str::to_owned);
    AuthConfig {
        mode: mode(settings),
        issuer: text("auth.issuer"),
        audience: text("auth.audience"),
        jwks_url: text("auth.jwks_url"),
        algorithms: algorithms(settings).unwrap_or_default(),
        challenge: match settings.text("auth.challenge") {
            Some("rfc9728") => Challenge::Rfc9728,
            Some("by_path") => Challenge::ByPath,
            _ => Challenge::Headerless,
        },
        tenant_claim: text("auth.tenant_claim"),
        scope_claim: text("auth.scope_claim").unwrap_or_default(),
        name_claim: text("auth.name_claim").unwrap_or_default(),
        roles_claim: text("auth.roles_claim"),
        supervisor_roles: settings.list("auth.supervisor_roles"),
        service_scopes: settings.list("auth.service_scopes"),
        service_clients: settings.list("auth.service_clients"),
        service_lists: match settings.text("auth.service_lists") {
            Some("all") => ServiceLists::All,
            _ => ServiceLists::Technician,
        },
        visibility: match settings.text("auth.visibility") {
            Some("own") => Visibility::Own,
            _ => Visibility::Tenant,
        },
        clock_skew: settings.duration("auth.clock_skew"),
        rate_limit: settings.text("auth.rate_limit").and_then(|text| text.parse().ok()),
        mirror: settings.switch("auth.mirror"),
        documentation_url: text("auth.documentation_url"),
    }
}

fn mode(settings: Typed<'_>) -> AuthMode {
    match settings.text("auth.mode") {
        Some("dev") => AuthMode::Dev,
        Some("jwt") => AuthMode::Jwt,
        _ => AuthMode::None,
    }
}

/// The list, when there is one and all of it is known.
fn algorithms(settings: Typed<'_>) -> Option<Vec<SigningAlgorithm>> {
    let names = settings.list("auth.algorithms");
    let known: Result<Vec<_>, _> = names.iter().map(|name| name.parse()).collect();
    known.ok().filter(|known| !known.is_empty())
}

/// The most that clocks may differ.
const SKEW_MAX: Duration = Duration::from_secs(5 * 60);

/// What of `[auth]`, and of `[server]` for its sake, contradicts itself; one line each.
pub(super) fn problems(layers: &Layers) -> Vec<String> {
    let settings = Typed(&layers.settings);
    let mut found = Vec::new();
    let mut wrong = |path: &str, says: &str| {
        let origin = layers.settings.get(path).map_or(&Origin::Default, |s| &s.origin);
        found.push(format!("{origin}: {path} {says}"));
    };
    let mode = mode(settings);
    if mode != AuthMode::Jwt {
        // Somebody who names an issuer believes that tokens are asked for.
        for path in ["auth.issuer", "auth.audience", "auth.jwks_url", "auth.service_clients"] {
            if is_set(settings, path) {
                wrong(path, "counts with auth.mode = \"jwt\" only");
            }
        }
        if settings.switch("auth.mirror") {
            wrong("auth.mirror", "counts with auth.mode = \"jwt\" only");
        }
    } else {
        if settings.switch("auth.mirror") && settings.text("auth.jwks_url").is_some() {
            wrong(
                "auth.jwks_url",
                "and auth.mirror exclude each other: the metadata is not fetched",
            );
        }
        if settings.text("auth.issuer").is_none() {
            wrong("auth.issuer", "must be set when auth.mode is \"jwt\"");
        }
        if settings.text("server.public_url").is_none() {
            wrong("server.public_url", "must be set when auth.mode is \"jwt\": tokens are for it");
        }
        for path in ["auth.issuer", "auth.jwks_url", "server.public_url"] {
            if settings.text(path).is_some_and(|url| !is_private_on_the_way(url)) {
                wrong(path, "must begin with https:// unless it is on this machine");
            }
        }
    }
    if mode != AuthMode::None && settings.text("server.public_url").is_some_and(|u| !is_origin(u)) {
        wrong(
            "server.public_url",
            "must be an origin such as \"https://wf.example.com\": clients look for metadata at its root",
        );
    }
    if algorithms(settings).is_none() {
        let known: Vec<_> = SigningAlgorithm::ALL.iter().map(|known| known.as_str()).collect();
        wrong("auth.algorithms", &format!("must be some of {}", known.join(", ")));
    }
    if settings.duration("auth.clock_skew") > SKEW_MAX {
        wrong("auth.clock_skew", "must be at most \"5m\"");
    }
    if is_set(settings, "auth.supervisor_roles") && settings.text("auth.roles_claim").is_none() {
        wrong("auth.supervisor_roles", "needs auth.roles_claim, which names roles");
    }
    found
}

fn is_set(settings: Typed<'_>, path: &str) -> bool {
    match settings.get(path) {
        None => false,
        Some(Value::List(items)) => !items.is_empty(),
        Some(
            Value::Text(_)
            | Value::Path(_)
            | Value::Address(_)
            | Value::Count(_)
            | Value::Duration(_)
            | Value::Switch(_),
        ) => true,
    }
}

/// Nobody on the way can read or change what is fetched from there: https, or this machine itself.
pub(crate) fn is_private_on_the_way(url: &str) -> bool {
    url.parse::<http::Uri>().is_ok_and(|url| match url.scheme_str() {
        Some("https") => true,
        Some("http") => url.host().is_some_and(|host| {
            let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
            host == "localhost" || address.is_ok_and(|address| address.is_loopback())
        }),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::super::layers::Sources;
    use super::*;

    fn found(flags: &[(&str, &str)]) -> Vec<String> {
        let flag = |(path, value): &(&str, &str)| {
            ((*path).to_owned(), (*value).to_owned(), "--set".to_owned())
        };
        let flags = flags.iter().map(flag).collect();
        let layers = Layers::read(&Sources { flags, ..Sources::default() });
        assert_eq!(layers.problems, Vec::<String>::new());
        problems(&layers)
    }

    const JWT: [(&str, &str); 3] = [
        ("auth.mode", "jwt"),
        ("auth.issuer", "https://auth.example.com/realm"),
        ("server.public_url", "https://wf.example.com"),
    ];

    #[test]
    fn what_is_whole_is_accepted() {
        assert_eq!(found(&[]), Vec::<String>::new());
        assert_eq!(found(&[("auth.mode", "dev")]), Vec::<String>::new());
        assert_eq!(found(&JWT), Vec::<String>::new());
        let local =
            [("auth.issuer", "http://127.0.0.1:9"), ("server.public_url", "http://[::1]:8")];
        assert_eq!(found(&[JWT.as_slice(), &local].concat()), Vec::<String>::new());
    }

    #[test]
    fn what_contradicts_itself_is_named() {
        let with = |more: &[(&str, &str)]| found(&[JWT.as_slice(), more].concat());
        for (more, says) in [
            (("auth.issuer", "http://auth.example.com"), "auth.issuer must begin with https://"),
            (("auth.jwks_url", "http://10.0.0.1/k"), "auth.jwks_url must begin with https://"),
            (("server.public_url", "http://wf.example.com"), "server.public_url must begin with"),
            (("server.public_url", "https://wf.example.com/x"), "must be an origin"),
            (("server.public_url", "https://wf.example.com/"), "must be an origin"),
            (("auth.algorithms", "HS256"), "auth.algorithms must be some of RS256, PS256"),
            (("auth.algorithms", ""), "auth.algorithms must be some of"),
            (("auth.clock_skew", "6m"), "auth.clock_skew must be at most"),
            (("auth.supervisor_roles", "boss"), "needs auth.roles_claim"),
        ] {
            let found = with(&[more]);
            assert!(found.len() == 1 && found[0].contains(says), "{says}: {found:?}");
        }
        let bare = found(&[("auth.mode", "jwt")]);
        assert!(bare[0].contains("auth.issuer must be set"), "{bare:?}");
        assert!(bare[1].contains("server.public_url must be set"), "{bare:?}");
    }

    #[test]
    fn an_issuer_without_the_mode_does_not_go_unnoticed() {
        for (path, value) in [
            ("auth.issuer", "https://auth.example.com"),
            ("auth.audience", "x"),
            ("auth.service_clients", "alexa"),
            ("auth.mirror", "true"),
        ] {
            for mode in ["none", "dev"] {
                let found = found(&[("auth.mode", mode), (path, value)]);
                assert!(found.len() == 1 && found[0].contains("\"jwt\" only"), "{found:?}");
            }
        }
    }
}
