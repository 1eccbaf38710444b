//! Who is let in: the authorization server and its metadata (RFC 8414), its keys, the certificate.
//!
//! What only some clients need is a warning, since the server itself works without it.

use std::sync::Arc;

use serde_json::Value;
use wf_mcp_http::auth::{Issuer, JwtAuthenticator, Metadata, WellKnown};

use super::{Check, State};
use crate::ambient::SystemClock;
use crate::cmd::serve::certificate::Files;
use crate::config::Config;
use crate::config::auth::AuthMode;
use crate::exit::chain;
use crate::gate;

/// Looks at everything that `[auth]` and TLS ask for.
pub(super) async fn checks(config: &Config) -> Vec<Check> {
    let mut all = match config.auth.mode {
        AuthMode::None => vec![Check::ok("callers", "no authentication: everybody is `local`")],
        AuthMode::Dev => vec![Check::ok("callers", "tokens of `wf-cli token issue`")],
        AuthMode::Jwt => {
            let issuer = config.auth.issuer.as_deref().unwrap_or_default();
            let mut all = vec![Check::ok("callers", format!("tokens of {issuer}"))];
            all.extend(authorization_server(issuer).await);
            all.push(keys(config).await);
            all.extend(audience(config));
            all
        }
    };
    all.extend(certificate(config));
    all
}

async fn authorization_server(issuer: &str) -> Vec<Check> {
    const NAME: &str = "issuer";
    let metadata = match Issuer::new(issuer) {
        Ok(issuer) => issuer.metadata().await,
        Err(error) => Err(error),
    };
    match metadata {
        Ok(metadata) => described(&metadata),
        Err(error) => vec![Check::new(NAME, State::Fail, chain(&error)).advise(
            "auth.issuer must be, byte for byte, what the server's metadata and tokens name as issuer; clients look for \
             the metadata at its /.well-known/oauth-authorization-server",
        )],
    }
}

/// What the metadata must say for clients to get tokens.
fn described(metadata: &Metadata) -> Vec<Check> {
    const NAME: &str = "issuer";
    let mut all = vec![match metadata.at {
        WellKnown::OAuth => Check::ok(NAME, "serves its metadata, and is the issuer it says"),
        WellKnown::OpenId => Check::new(
            NAME,
            State::Warn,
            "serves its metadata at /.well-known/openid-configuration only",
        )
        .advise("Alexa+ looks at /.well-known/oauth-authorization-server (RFC 8414) only"),
    }];
    all.push(if metadata.lists("code_challenge_methods_supported", "S256") {
        Check::ok(NAME, "offers PKCE with S256")
    } else {
        Check::new(NAME, State::Fail, "does not list S256 in code_challenge_methods_supported")
            .advise("MCP clients refuse an authorization server without it: switch PKCE on")
    });
    all.push(if metadata.lists("grant_types_supported", "client_credentials") {
        Check::ok(NAME, "offers client_credentials")
    } else {
        Check::new(NAME, State::Warn, "does not list client_credentials in grant_types_supported")
            .advise("Alexa+ gets its service token that way; other clients do without")
    });
    let endpoints = ["authorization_endpoint", "token_endpoint"];
    let missing = endpoints
        .iter()
        .filter(|name| !metadata.document.get(**name).is_some_and(Value::is_string));
    all.extend(missing.map(|name| {
        Check::new(NAME, State::Fail, format!("has no {name} in its metadata"))
            .advise("clients cannot get tokens of it")
    }));
    all
}

/// Whether a server could check tokens now.
async fn keys(config: &Config) -> Check {
    const NAME: &str = "issuer keys";
    let authenticator = JwtAuthenticator::remote(gate::tokens(config), Arc::new(SystemClock));
    let problem = match authenticator {
        Ok(authenticator) => match authenticator.load().await {
            Ok(()) => return Check::ok(NAME, "were fetched"),
            Err(error) => chain(&error),
        },
        Err(error) => chain(&error),
    };
    Check::new(NAME, State::Fail, problem)
        .advise("a server answers 503 until it has them; auth.jwks_url names another place")
}

/// Clients ask for tokens about the URL that they call.
fn audience(config: &Config) -> Option<Check> {
    let url = format!("{}/mcp", config.server.public_url.as_deref().unwrap_or_default());
    let audience = config.auth.audience.as_deref().filter(|audience| *audience != url)?;
    let says = format!("tokens must be for {audience}, and clients ask for tokens for {url}");
    Some(Check::new("audience", State::Warn, says).advise(
        "fine when the authorization server maps one to the other; otherwise unset auth.audience",
    ))
}

fn certificate(config: &Config) -> Option<Check> {
    const NAME: &str = "TLS";
    match &config.server.tls {
        Some(files) => Some(match Files::new(files).load() {
            Ok(_) => Check::ok(NAME, "the certificate and its key fit together"),
            Err(failure) => Check::new(NAME, State::Fail, failure.text()),
        }),
        None if config.server.listen.ip().is_loopback() => None,
        None => Some(
            Check::new(NAME, State::Warn, "other machines are served in plain HTTP")
                .advise("fine behind a load balancer that ends TLS; otherwise set server.tls_cert and server.tls_key"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

    use super::*;

    fn states(at: WellKnown, document: Value) -> Vec<State> {
        let Value::Object(document) = document else { panic!("an object") };
        let checks = described(&Metadata { at, bytes: Bytes::new(), document });
        checks.iter().map(|check| check.state).collect()
    }

    #[test]
    fn each_thing_that_clients_need_is_looked_for() {
        let whole = json!({
            "code_challenge_methods_supported": ["plain", "S256"],
            "grant_types_supported": ["authorization_code", "client_credentials"],
            "authorization_endpoint": "https://a.example/auth",
            "token_endpoint": "https://a.example/token",
        });
        use State::{Fail, Ok, Warn};
        assert_eq!(states(WellKnown::OAuth, whole.clone()), [Ok, Ok, Ok]);
        assert_eq!(states(WellKnown::OpenId, whole.clone()), [Warn, Ok, Ok]);
        for (key, value, expected) in [
            ("code_challenge_methods_supported", json!(["plain"]), vec![Ok, Fail, Ok]),
            ("grant_types_supported", json!(["authorization_code"]), vec![Ok, Ok, Warn]),
            ("token_endpoint", json!(null), vec![Ok, Ok, Ok, Fail]),
        ] {
            let mut document = whole.clone();
            document[key] = value;
            assert_eq!(states(WellKnown::OAuth, document), expected, "{key}");
        }
    }
}
