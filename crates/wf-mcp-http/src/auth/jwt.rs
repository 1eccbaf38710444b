//! Callers by JSON Web Tokens of one authorization server (RFC 9068, RFC 8725): an [`Authenticator`].
//!
//! In order: `bearer` takes the token out of the head, `cache` recognises it; or else `token` reads it, `keys` finds
//! the key it names, the signature is verified, and `claims` says who it is.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use jsonwebtoken::crypto::aws_lc;
use wf_core::ports::ClockPort;

use super::address::Address;
use super::bearer::bearer;
use super::cache::{Cache, TokenDigest};
use super::check::{Check, Checks};
use super::claims;
use super::dev_key::DevKey;
use super::fetch::{Fetch, HttpFetch};
use super::issuer::{Issuer, IssuerError};
use super::keys::{Keys, Missing, Remote, Source};
use super::settings::{JwtConfig, JwtConfigError};
use super::token::Token;
use super::{Authenticator, Caller, Refusal};

/// An authenticator that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum JwtError {
    /// A setting cannot be.
    #[error("the settings for tokens cannot be used")]
    Config(#[from] JwtConfigError),
    /// The issuer cannot be asked.
    #[error("the issuer of tokens cannot be used")]
    Issuer(#[from] IssuerError),
}

/// Recognises callers by the tokens of one issuer.
#[derive(Debug)]
pub struct JwtAuthenticator {
    config: JwtConfig,
    keys: Keys,
    cache: Cache,
    clock: Arc<dyn ClockPort>,
    checks: Checks,
}

impl JwtAuthenticator {
    /// Tokens of an issuer whose keys are fetched. Nothing is fetched yet: see [`load`](Self::load).
    ///
    /// # Errors
    /// [`JwtError`].
    pub fn remote(config: JwtConfig, clock: Arc<dyn ClockPort>) -> Result<Self, JwtError> {
        config.check()?;
        let address = |setting, source| JwtConfigError::Address { setting, source };
        let issuer = Address::issuer(&config.issuer).map_err(|e| address("issuer", e))?;
        let at = config.jwks_url.as_deref().map(Address::parse).transpose();
        let at = at.map_err(|e| address("jwks_url", e))?;
        let secure = at.as_ref().unwrap_or(&issuer).is_secure();
        let fetch: Arc<dyn Fetch> = Arc::new(HttpFetch::new(secure).map_err(IssuerError::Client)?);
        let source = match at {
            Some(at) => Source::At(at, fetch),
            None => Source::Of(Issuer::with(&config.issuer, issuer, Arc::clone(&fetch)), fetch),
        };
        let remote = Remote::new(source, config.key_times, Checks::ALL);
        Ok(Self::with(config, Keys::Remote(Arc::new(remote)), clock, Checks::ALL))
    }

    /// Tokens that are signed with a key of this machine, for development.
    ///
    /// # Errors
    /// [`JwtError::Config`].
    pub fn local(
        config: JwtConfig,
        key: &DevKey,
        clock: Arc<dyn ClockPort>,
    ) -> Result<Self, JwtError> {
        config.check()?;
        let keys = Keys::Fixed(Arc::new(key.key_set()));
        Ok(Self::with(config, keys, clock, Checks::ALL))
    }

    pub(super) fn with(
        config: JwtConfig,
        keys: Keys,
        clock: Arc<dyn ClockPort>,
        checks: Checks,
    ) -> Self {
        // Whoever installed a provider before us chose it; there is only this one in the build.
        let _ = aws_lc::DEFAULT_PROVIDER.install_default();
        Self { config, keys, cache: Cache::default(), clock, checks }
    }

    /// Fetches the issuer's keys now. A server may begin without them: it answers 503 until it has them, and asks
    /// again with the requests that come.
    ///
    /// # Errors
    /// [`IssuerError`].
    pub async fn load(&self) -> Result<(), IssuerError> {
        match &self.keys {
            Keys::Fixed(_) => Ok(()),
            Keys::Remote(remote) => remote.load().await,
        }
    }

    /// The issuer's metadata as it was fetched last, byte for byte; `None` before that, and where the keys are not
    /// found by it.
    #[must_use]
    pub fn metadata(&self) -> Option<Bytes> {
        match &self.keys {
            Keys::Fixed(_) => None,
            Keys::Remote(remote) => remote.metadata(),
        }
    }

    pub(super) async fn judge(
        &self,
        token: &str,
        path: &str,
        now_ms: i64,
    ) -> Result<claims::Judged, Refusal> {
        let token = Token::read(token, self.checks)?;
        let header = token.header(&self.config, self.checks)?;
        let key = match self.keys.find(header.key_id, header.algorithm).await {
            Ok(key) => key,
            Err(Missing::Unavailable { after }) => return Err(Refusal::Unavailable { after }),
            #[cfg(test)]
            Err(Missing::Unknown) if !self.checks.on(Check::KnownKey) => {
                self.keys.any().ok_or(Refusal::Unauthenticated)?
            }
            Err(Missing::Unknown) => return Err(self.checks.refuse(Check::KnownKey)),
        };
        token.verify(&key, header.algorithm, self.checks)?;
        claims::judge(&token.claims, &self.config, path, now_ms, self.checks)
    }
}

#[async_trait]
impl Authenticator for JwtAuthenticator {
    async fn authenticate(&self, head: &http::request::Parts) -> Result<Caller, Refusal> {
        let token = bearer(head, self.checks)?;
        let token: &str = token.expose();
        let path = head.uri.path();
        let digest = TokenDigest::of(path, token);
        let now_ms = self.clock.now().as_ms();
        // Before the key is looked up: a set that changes meanwhile makes the entry too old, never too new.
        let generation = self.keys.generation();
        if let Some(caller) = self.cache.get(&digest, generation, now_ms) {
            return Ok(caller);
        }
        let judged = self.judge(token, path, now_ms).await?;
        self.cache.put(digest, generation, now_ms, judged.until_ms, judged.caller.clone());
        Ok(judged.caller)
    }
}
