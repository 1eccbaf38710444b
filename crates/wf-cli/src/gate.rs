//! Who is let in: makes the authenticator, and what clients are told about it, of the configuration.
//!
//! `cmd::serve` uses it, `cmd::token` signs for it, `cmd::doctor` looks at what it needs. `dev_key` has the file.

use std::sync::Arc;

use wf_core::ports::ClockPort;
use wf_mcp_http::auth::{
    Audience, JwtAuthenticator, JwtConfig, JwtError, Nobody, SigningAlgorithm,
};
use wf_mcp_http::{Authenticator, Mirror, Protection};

use crate::ambient::SystemClock;
use crate::config::Config;
use crate::config::auth::AuthMode;
use crate::dev_key;
use crate::exit::{Failure, chain};
use crate::failpoint;

/// The issuer of development tokens; nobody fetches anything from there.
const DEV_ISSUER: &str = "http://localhost/checkpoint-dev";
/// What they are for. The key makes them good for one data folder, so the address of the server may change.
const DEV_AUDIENCE: &str = "checkpoint-dev";

/// Who is asked, and what clients are told.
#[derive(Debug)]
pub(crate) struct Gate {
    /// Says who sends a request.
    pub(crate) authenticator: Arc<dyn Authenticator>,
    /// What clients are told; none where nobody is asked.
    pub(crate) protection: Option<Protection>,
}

/// Makes the gate. With an authorization server its keys are fetched now; when that fails the server begins without
/// them, answers 503, and asks again.
///
/// # Errors
/// When the development key cannot be had, or a setting cannot be.
pub(crate) async fn open(config: &Config) -> Result<Gate, Failure> {
    let clock: Arc<dyn ClockPort> = Arc::new(SystemClock);
    match config.auth.mode {
        AuthMode::None => Ok(Gate { authenticator: Arc::new(Nobody), protection: None }),
        AuthMode::Dev => {
            let key = dev_key::load_or_make(config)?;
            let known =
                JwtAuthenticator::local(dev_tokens(config), &key, clock).map_err(unusable)?;
            Ok(Gate { authenticator: Arc::new(known), protection: Some(told(config, None)) })
        }
        AuthMode::Jwt => {
            let known =
                Arc::new(JwtAuthenticator::remote(tokens(config), clock).map_err(unusable)?);
            if let Err(error) = known.load().await {
                let reason = chain(&error);
                tracing::warn!(reason, "the issuer's keys cannot be fetched yet: answering 503");
            }
            let mirror = config.auth.mirror.then(|| Arc::clone(&known) as Arc<dyn Mirror>);
            Ok(Gate { authenticator: known, protection: Some(told(config, mirror)) })
        }
    }
}

fn unusable(error: JwtError) -> Failure {
    Failure::usage("tokens cannot be checked with this configuration").because(error)
}

/// What clients are told.
fn told(config: &Config, mirror: Option<Arc<dyn Mirror>>) -> Protection {
    let auth = &config.auth;
    Protection {
        challenge: auth.challenge,
        service_lists: auth.service_lists,
        documentation_url: auth.documentation_url.clone(),
        mirror,
        ..Protection::new(config.server.public_url.clone(), auth.issuer.iter().cloned().collect())
    }
}

/// Which tokens of the authorization server count.
pub(crate) fn tokens(config: &Config) -> JwtConfig {
    let auth = &config.auth;
    let issuer = auth.issuer.clone().unwrap_or_default();
    JwtConfig {
        audience: audience(config),
        jwks_url: auth.jwks_url.clone(),
        tenant_claim: auth.tenant_claim.clone(),
        roles_claim: auth.roles_claim.clone(),
        key_times: failpoint::key_times(),
        ..claims(config, issuer)
    }
}

/// Which development tokens count: they name a tenant and roles even where the configuration has no claims for them.
pub(crate) fn dev_tokens(config: &Config) -> JwtConfig {
    let auth = &config.auth;
    let claim =
        |claim: &Option<String>, name: &str| claim.clone().or_else(|| Some(name.to_owned()));
    JwtConfig {
        tenant_claim: claim(&auth.tenant_claim, "tenant"),
        roles_claim: claim(&auth.roles_claim, "roles"),
        algorithms: vec![SigningAlgorithm::EdDsa],
        ..claims(config, DEV_ISSUER.to_owned())
    }
}

fn claims(config: &Config, issuer: String) -> JwtConfig {
    let auth = &config.auth;
    let set = |items: &[String]| items.iter().cloned().collect();
    JwtConfig {
        algorithms: auth.algorithms.clone(),
        scope_claim: auth.scope_claim.clone(),
        name_claim: auth.name_claim.clone(),
        supervisor_roles: set(&auth.supervisor_roles),
        service_scopes: set(&auth.service_scopes),
        service_clients: set(&auth.service_clients),
        clock_skew: auth.clock_skew,
        ..JwtConfig::new(issuer, DEV_AUDIENCE)
    }
}

/// What tokens must be for: what the authorization server calls this server, or else the path that is called.
fn audience(config: &Config) -> Audience {
    match &config.auth.audience {
        Some(name) => Audience::Named(name.clone()),
        None => Audience::Called { origin: config.server.public_url.clone().unwrap_or_default() },
    }
}
