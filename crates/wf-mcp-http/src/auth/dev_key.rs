//! The key of a developer's machine: made, read and written as text, and it signs tokens that [`JwtAuthenticator`]
//! takes (`super::jwt`). Files are the business of `wf-cli`.
//!
//! [`JwtAuthenticator`]: super::JwtAuthenticator

use std::fmt;
use std::time::Duration;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};
use wf_core::models::{TenantId, Timestamp};

use super::check::Checks;
use super::key::KeySet;
use super::masked::Masked;
use super::{JwtConfig, SCOPE_READ, SCOPE_WRITE};
use crate::routes::MCP;

/// Longest life of a development token.
const LIFE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// An Ed25519 key that signs development tokens.
pub struct DevKey {
    pair: Ed25519KeyPair,
    id: String,
}

impl fmt::Debug for DevKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DevKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A key that cannot be made, read or used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DevKeyError {
    /// The system gives no randomness, or the library fails.
    #[error("the system made no key")]
    Made,
    /// Not what [`DevKey::to_text`] writes.
    #[error("not a private Ed25519 key as a JWK (RFC 8037)")]
    Read,
    /// A token that nobody could use.
    #[error("a token needs a subject of 1 to 255 bytes and a life of one second to 24 hours")]
    Token,
    /// The library does not sign.
    #[error("the token was not signed")]
    Signed,
}

/// A token to be signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DevToken {
    /// Who the bearer is.
    pub subject: String,
    /// The tenant; put where [`JwtConfig::tenant_claim`] says.
    pub tenant: Option<TenantId>,
    /// The name to speak.
    pub name: Option<String>,
    /// Scopes.
    pub scopes: Vec<String>,
    /// Roles; put where [`JwtConfig::roles_claim`] says.
    pub roles: Vec<String>,
    /// How long it counts.
    pub life: Duration,
}

impl DevToken {
    /// A technician's token for an hour.
    #[must_use]
    pub fn new(subject: impl Into<String>) -> Self {
        Self {
            subject: subject.into(),
            tenant: None,
            name: None,
            scopes: vec![SCOPE_READ.to_owned(), SCOPE_WRITE.to_owned()],
            roles: Vec::new(),
            life: Duration::from_secs(60 * 60),
        }
    }
}

impl DevKey {
    /// A new key.
    ///
    /// # Errors
    /// [`DevKeyError::Made`].
    pub fn generate() -> Result<Self, DevKeyError> {
        let pair = Ed25519KeyPair::generate().map_err(|_| DevKeyError::Made)?;
        Ok(Self::of(pair))
    }

    fn of(pair: Ed25519KeyPair) -> Self {
        // The thumbprint of RFC 7638 would need no more than this: the name only has to be the same for the same key.
        let hash = wf_core::idempotency::sha256_hex(pair.public_key().as_ref());
        let id = format!("dev-{}", hash.chars().take(16).collect::<String>());
        Self { pair, id }
    }

    /// Reads what [`to_text`](Self::to_text) wrote.
    ///
    /// # Errors
    /// [`DevKeyError::Read`], which says nothing about the text.
    pub fn from_text(text: &str) -> Result<Self, DevKeyError> {
        let jwk: Value = serde_json::from_str(text).map_err(|_| DevKeyError::Read)?;
        let member = |name: &str| {
            let text = jwk.get(name).and_then(Value::as_str).ok_or(DevKeyError::Read)?;
            URL_SAFE_NO_PAD.decode(text).map_err(|_| DevKeyError::Read)
        };
        if jwk.get("kty") != Some(&json!("OKP")) || jwk.get("crv") != Some(&json!("Ed25519")) {
            return Err(DevKeyError::Read);
        }
        Ed25519KeyPair::from_seed_and_public_key(&member("d")?, &member("x")?)
            .map(Self::of)
            .map_err(|_| DevKeyError::Read)
    }

    /// The key as a private JWK (RFC 8037 section 2). A secret: whoever has it is everybody.
    ///
    /// # Errors
    /// [`DevKeyError::Made`].
    pub fn to_text(&self) -> Result<Masked<String>, DevKeyError> {
        let seed = self.pair.seed().map_err(|_| DevKeyError::Made)?;
        let seed = aws_lc_rs::encoding::AsBigEndian::<
            aws_lc_rs::encoding::Curve25519SeedBin<'_>,
        >::as_be_bytes(&seed)
        .map_err(|_| DevKeyError::Made)?;
        let mut jwk = self.public_jwk();
        jwk.insert("d".to_owned(), URL_SAFE_NO_PAD.encode(seed.as_ref()).into());
        Ok(Masked::new(format!("{}\n", Value::Object(jwk))))
    }

    fn public_jwk(&self) -> Map<String, Value> {
        let x = URL_SAFE_NO_PAD.encode(self.pair.public_key().as_ref());
        let members = [
            ("kty", "OKP"),
            ("crv", "Ed25519"),
            ("x", x.as_str()),
            ("kid", self.id.as_str()),
            ("use", "sig"),
            ("alg", "EdDSA"),
        ];
        members.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect()
    }

    /// The public half as a JSON Web Key Set (RFC 7517 section 5).
    #[must_use]
    pub fn jwks(&self) -> Value {
        json!({ "keys": [self.public_jwk()] })
    }

    pub(super) fn key_set(&self) -> KeySet {
        let document = Map::from_iter([("keys".to_owned(), json!([self.public_jwk()]))]);
        KeySet::read(&document, Checks::ALL).unwrap_or_default()
    }

    /// Signs a token that an authenticator with `config` takes from `now` on.
    ///
    /// # Errors
    /// [`DevKeyError::Token`] and [`DevKeyError::Signed`].
    pub fn sign(
        &self,
        token: &DevToken,
        config: &JwtConfig,
        now: Timestamp,
    ) -> Result<Masked<String>, DevKeyError> {
        let sensible = wf_core::models::Actor::parse(&format!("user:{}", token.subject)).is_ok();
        if !sensible || token.life < Duration::from_secs(1) || token.life > LIFE_MAX {
            return Err(DevKeyError::Token);
        }
        let issued = now.as_ms() / 1000;
        let life = i64::try_from(token.life.as_secs()).map_err(|_| DevKeyError::Token)?;
        let mut claims = json!({
            "iss": config.issuer,
            "aud": config.audience.at(MCP),
            "sub": token.subject,
            "client_id": CLIENT,
            "iat": issued,
            "exp": issued + life,
        });
        let mut set = |name: &str, value: Value| place(&mut claims, name, value);
        set(&config.scope_claim, token.scopes.join(" ").into());
        if let (Some(name), Some(tenant)) = (&config.tenant_claim, &token.tenant) {
            set(name, tenant.as_str().into());
        }
        if let Some(name) = &token.name {
            set(&config.name_claim, name.as_str().into());
        }
        if let Some(name) = &config.roles_claim {
            set(name, token.roles.clone().into());
        }
        self.signed(&claims).map(Masked::new)
    }

    fn signed(&self, claims: &Value) -> Result<String, DevKeyError> {
        let header = json!({ "alg": "EdDSA", "kid": self.id, "typ": "at+jwt" });
        let part = |json: &Value| URL_SAFE_NO_PAD.encode(json.to_string());
        let message = format!("{}.{}", part(&header), part(claims));
        let signature = self.pair.try_sign(message.as_bytes()).map_err(|_| DevKeyError::Signed)?;
        let signature = URL_SAFE_NO_PAD.encode(signature.as_ref());
        Ok(format!("{message}.{signature}"))
    }
}

/// The client of tokens that a developer issues.
const CLIENT: &str = "wf-cli";

/// Puts a claim where its name, or the JSON Pointer that it is, says.
fn place(claims: &mut Value, name: &str, value: Value) {
    let steps: Vec<String> = match name.strip_prefix('/') {
        Some(pointer) => {
            pointer.split('/').map(|s| s.replace("~1", "/").replace("~0", "~")).collect()
        }
        None => vec![name.to_owned()],
    };
    let mut at = claims;
    for step in steps {
        let Value::Object(members) = at else { return };
        at = members.entry(step).or_insert_with(|| Value::Object(Map::new()));
    }
    *at = value;
}
