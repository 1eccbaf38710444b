//! A token in parts (RFC 7515 section 7.1), read so that nothing in it can be understood in two ways. `jwt` reads it,
//! finds its key and verifies it; only then `claims` looks at what it says.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::Algorithm;
use serde_json::{Map, Value};
use wf_core::idempotency::{StrictLimits, parse_strict};

use super::Refusal;
use super::bearer::TOKEN_BYTES_MAX;
use super::check::{Check, Checks};
use super::key::{KEY_ID_BYTES_MAX, Key};
use super::settings::JwtConfig;

/// Deepest JSON in a token.
const DEPTH_MAX: usize = 8;

/// A token that is not verified yet. No `Debug`: it could be used.
pub(super) struct Token<'a> {
    header: Map<String, Value>,
    pub(super) claims: Map<String, Value>,
    message: &'a str,
    signature: Cow<'a, str>,
}

/// What the header of a token says.
pub(super) struct Header<'a> {
    /// The algorithm; always one of the list, where that is checked.
    pub(super) algorithm: Option<Algorithm>,
    pub(super) key_id: Option<&'a str>,
}

impl<'a> Token<'a> {
    /// Takes a token apart.
    pub(super) fn read(token: &'a str, checks: Checks) -> Result<Self, Refusal> {
        let shape = || checks.refuse(Check::Shape);
        let (message, signature) = token.rsplit_once('.').ok_or_else(shape)?;
        let (header, claims) = message.split_once('.').ok_or_else(shape)?;
        Ok(Self {
            header: object(header, checks)?,
            claims: object(claims, checks)?,
            message,
            signature: canonical(signature, checks)?,
        })
    }

    /// Judges the header. Members that would bring a key along (`jku`, `jwk`, `x5u`, `x5c`) are never looked at.
    pub(super) fn header(&self, config: &JwtConfig, checks: Checks) -> Result<Header<'_>, Refusal> {
        checks.hold(Check::Type, self.is_access_token_type())?;
        checks.hold(Check::Critical, !self.header.contains_key("crit"))?;
        let name = self.header.get("alg").and_then(Value::as_str);
        let algorithm = name.and_then(|name| name.parse::<Algorithm>().ok());
        let listed = |algorithm| config.algorithms.iter().any(|one| one.of_library() == algorithm);
        checks.hold(Check::Algorithm, algorithm.is_some_and(listed))?;
        let key_id = self.header.get("kid");
        let sensible = key_id.is_none_or(|id| {
            id.as_str().is_some_and(|id| !id.is_empty() && id.len() <= KEY_ID_BYTES_MAX)
        });
        checks.hold(Check::KeyId, sensible)?;
        Ok(Header { algorithm, key_id: key_id.and_then(Value::as_str) })
    }

    /// `at+jwt` (RFC 9068 section 2.1), or the `JWT` of issuers from before it, or with the word of an issuer that
    /// writes none (`token_use`). With those two, [`Check::AccessToken`] and the audience tell tokens apart.
    fn is_access_token_type(&self) -> bool {
        match self.header.get("typ") {
            Some(Value::String(name)) => {
                let known = ["at+jwt", "application/at+jwt", "jwt"];
                known.iter().any(|known| name.eq_ignore_ascii_case(known))
            }
            Some(_) => false,
            None => self.claims.get("token_use").is_some_and(|usage| usage == "access"),
        }
    }

    /// Judges the signature by `key`.
    pub(super) fn verify(
        &self,
        key: &Key,
        algorithm: Option<Algorithm>,
        checks: Checks,
    ) -> Result<(), Refusal> {
        let fits = algorithm.is_some_and(|algorithm| key.is_for(algorithm));
        checks.hold(Check::KeyAlgorithm, fits)?;
        let good = algorithm.is_some_and(|alg| key.verifies(self.message, &self.signature, alg));
        checks.hold(Check::Signature, good)
    }
}

fn object(part: &str, checks: Checks) -> Result<Map<String, Value>, Refusal> {
    let bytes = URL_SAFE_NO_PAD.decode(part).map_err(|_| checks.refuse(Check::Shape))?;
    let limits = StrictLimits { max_bytes: TOKEN_BYTES_MAX, max_depth: DEPTH_MAX };
    let value = match parse_strict(&bytes, limits) {
        Ok(value) => value,
        #[cfg(test)]
        Err(_) if !checks.on(Check::StrictJson) => {
            serde_json::from_slice(&bytes).map_err(|_| checks.refuse(Check::Shape))?
        }
        Err(_) => return Err(checks.refuse(Check::StrictJson)),
    };
    if let Value::Object(object) = value { Ok(object) } else { Err(checks.refuse(Check::Shape)) }
}

/// The signature, if it is written in the one way that it can be written. Otherwise one signature would have many
/// tokens, and what knows a token by its bytes would take them for different ones.
fn canonical(signature: &str, checks: Checks) -> Result<Cow<'_, str>, Refusal> {
    if URL_SAFE_NO_PAD.decode(signature).is_ok() {
        return Ok(Cow::Borrowed(signature));
    }
    #[cfg(test)]
    if !checks.on(Check::CanonicalBase64) {
        return Ok(Cow::Owned(super::tests::lenient_base64(signature)));
    }
    Err(checks.refuse(Check::CanonicalBase64))
}
