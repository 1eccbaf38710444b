//! What a verified token says (RFC 9068 section 2.2), judged, and made a [`Caller`]. `jwt` calls it last.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};
use wf_core::models::{Actor, Principal, Scopes, TenantId};

use super::check::{Check, Checks};
use super::settings::JwtConfig;
use super::{Caller, Refusal, SCOPE_READ, SCOPE_SUPERVISE, SCOPE_WRITE, ServiceCaller};

/// Longest name to speak, in characters; a longer one is not spoken.
const NAME_CHARS_MAX: usize = 120;
/// Most scopes or roles of one token, and the longest of either, in bytes.
const LIST_MAX: usize = 128;
const ITEM_BYTES_MAX: usize = 256;

/// A caller, and until when the token says so.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) caller: Caller,
    /// Milliseconds since the epoch, the skew included.
    pub(super) until_ms: i64,
}

/// The claims of one token beside the rules for them.
struct Claims<'a> {
    claims: &'a Map<String, Value>,
    config: &'a JwtConfig,
    path: &'a str,
    checks: Checks,
}

/// Judges claims that were sent to `path` at the time `now_ms`.
pub(super) fn judge(
    claims: &Map<String, Value>,
    config: &JwtConfig,
    path: &str,
    now_ms: i64,
    checks: Checks,
) -> Result<Judged, Refusal> {
    let claims = Claims { claims, config, path, checks };
    checks.hold(Check::Issuer, claims.text("iss") == Some(config.issuer.as_str()))?;
    let until_ms = claims.times(now_ms)?;
    checks.hold(Check::AccessToken, claims.is_access_token())?;
    let subject = claims.subject()?;
    let client = claims.client()?;
    let scopes = claims.list(Some(&config.scope_claim), true)?;
    // Nobody is behind a token that a client got for itself (RFC 9068 section 5).
    let service = scopes.iter().any(|scope| config.service_scopes.contains(*scope))
        || client == Some(subject);
    checks.hold(Check::Audience, claims.is_for_us(service, client))?;
    let tenant = claims.tenant()?;
    if service {
        let client_id = client.unwrap_or(subject).into();
        return Ok(Judged {
            caller: Caller::Service(ServiceCaller { tenant, client_id }),
            until_ms,
        });
    }
    let roles = claims.list(config.roles_claim.as_deref(), false)?;
    let supervises = roles.iter().any(|role| config.supervisor_roles.contains(*role));
    let principal = Principal {
        tenant,
        actor: Actor::User(subject.to_owned()),
        name: claims.name(),
        client_id: client.map(str::to_owned),
        scopes: Scopes {
            read: scopes.contains(SCOPE_READ),
            write: scopes.contains(SCOPE_WRITE),
            supervise: supervises || scopes.contains(SCOPE_SUPERVISE),
        },
        roles: roles.into_iter().map(str::to_owned).collect(),
    };
    Ok(Judged { caller: Caller::User(Arc::new(principal)), until_ms })
}

impl<'a> Claims<'a> {
    /// A claim by its name, or by a JSON Pointer to it.
    fn get(&self, name: &str) -> Option<&'a Value> {
        if !name.starts_with('/') {
            return self.claims.get(name);
        }
        let mut steps = name.split('/').skip(1).map(|s| s.replace("~1", "/").replace("~0", "~"));
        let first = self.claims.get(&steps.next()?)?;
        steps.try_fold(first, |value, step| value.get(&step))
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        self.get(name)?.as_str()
    }

    /// Seconds since the epoch: `Ok(None)` when there are none, `Err` when they are no whole number of them.
    fn seconds(&self, name: &str) -> Result<Option<u64>, ()> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => value.as_u64().map(Some).ok_or(()),
        }
    }

    /// Judges the three times; returns until when the token counts.
    fn times(&self, now_ms: i64) -> Result<i64, Refusal> {
        let skew = i64::try_from(self.config.clock_skew.as_millis()).unwrap_or(i64::MAX);
        let ms = |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000);
        let until = match self.seconds("exp") {
            Ok(Some(seconds)) => Some(ms(seconds).saturating_add(skew)),
            Ok(None) | Err(()) => None,
        };
        self.checks.hold(Check::Expiry, until.is_some_and(|until| now_ms < until))?;
        let past = |seconds: u64| ms(seconds) <= now_ms.saturating_add(skew);
        let begun = self.seconds("nbf").is_ok_and(|seconds| seconds.is_none_or(past));
        self.checks.hold(Check::NotBefore, begun)?;
        let issued = self.seconds("iat").is_ok_and(|seconds| seconds.is_some_and(past));
        self.checks.hold(Check::IssuedAt, issued)?;
        Ok(until.unwrap_or(i64::MAX))
    }

    /// Members of ID tokens (OpenID Connect Core 1.0 sections 2 and 3.3.2.11), of logout tokens, and the words of
    /// issuers that say what a token is for.
    fn is_access_token(&self) -> bool {
        let foreign = ["nonce", "at_hash", "c_hash", "s_hash", "events"];
        !foreign.iter().any(|name| self.claims.contains_key(*name))
            && self.claims.get("token_use").is_none_or(|usage| usage == "access")
            && self.claims.get("typ").is_none_or(|kind| kind == "Bearer")
    }

    fn subject(&self) -> Result<&'a str, Refusal> {
        match self.text("sub") {
            Some(subject) if is_name(subject, Actor::SUBJECT_BYTES_MAX) => Ok(subject),
            #[cfg(test)]
            _ if !self.checks.on(Check::Subject) => Ok("anybody"),
            _ => Err(self.checks.refuse(Check::Subject)),
        }
    }

    /// The client (RFC 9068 section 2.2), or who the token was issued to by issuers that call it `azp`.
    fn client(&self) -> Result<Option<&'a str>, Refusal> {
        match self.get("client_id").or_else(|| self.get("azp")) {
            None => Ok(None),
            Some(Value::String(id)) if is_name(id, ITEM_BYTES_MAX) => Ok(Some(id)),
            #[cfg(test)]
            Some(_) if !self.checks.on(Check::Claims) => Ok(None),
            Some(_) => Err(self.checks.refuse(Check::Claims)),
        }
    }

    /// Whether the token is about this resource and no other. One that others take too could have been stolen there,
    /// so a list counts only if it has one entry.
    fn is_for_us(&self, service: bool, client: Option<&str>) -> bool {
        let audience = match self.claims.get("aud") {
            None => {
                let exceptions = &self.config.service_clients;
                return service && client.is_some_and(|client| exceptions.contains(client));
            }
            Some(Value::Array(list)) => match list.as_slice() {
                [only] => only,
                _ => return false,
            },
            Some(single) => single,
        };
        audience.as_str().is_some_and(|name| self.config.audience.is(name, self.path))
    }

    fn tenant(&self) -> Result<TenantId, Refusal> {
        let Some(name) = &self.config.tenant_claim else { return Ok(TenantId::default_tenant()) };
        match self.text(name).map(TenantId::parse) {
            Some(Ok(tenant)) => Ok(tenant),
            #[cfg(test)]
            _ if !self.checks.on(Check::Claims) => Ok(TenantId::default_tenant()),
            _ => Err(self.checks.refuse(Check::Claims)),
        }
    }

    /// A list of texts; a single text is one entry, or several when `spaced`.
    fn list(&self, name: Option<&str>, spaced: bool) -> Result<BTreeSet<&'a str>, Refusal> {
        let items: Option<BTreeSet<&str>> = match name.and_then(|name| self.get(name)) {
            None => return Ok(BTreeSet::new()),
            Some(Value::String(text)) if spaced => {
                Some(text.split(' ').filter(|item| !item.is_empty()).collect())
            }
            Some(Value::String(text)) => Some(BTreeSet::from([text.as_str()])),
            Some(Value::Array(list)) => list.iter().map(Value::as_str).collect(),
            Some(_) => None,
        };
        match items {
            Some(items)
                if items.len() <= LIST_MAX
                    && items.iter().all(|item| item.len() <= ITEM_BYTES_MAX) =>
            {
                Ok(items)
            }
            #[cfg(test)]
            _ if !self.checks.on(Check::Claims) => Ok(BTreeSet::new()),
            _ => Err(self.checks.refuse(Check::Claims)),
        }
    }

    /// The name to speak. One that cannot be spoken is left out; it decides nothing.
    fn name(&self) -> Option<String> {
        let name = self.text(&self.config.name_claim)?.trim();
        (is_name(name, NAME_CHARS_MAX * 4) && name.chars().count() <= NAME_CHARS_MAX)
            .then(|| name.to_owned())
    }
}

fn is_name(text: &str, bytes_max: usize) -> bool {
    !text.is_empty() && text.len() <= bytes_max && !text.chars().any(char::is_control)
}
