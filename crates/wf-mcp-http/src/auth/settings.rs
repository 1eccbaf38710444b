//! What an operator says about the tokens of an authorization server. `wf-cli` fills a [`JwtConfig`] from its `[auth]`
//! table; `jwt` makes an authenticator of it.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jsonwebtoken::Algorithm;

use super::address::{Address, AddressError};

/// An algorithm that tokens may be signed with. Asymmetric ones only: the server holds nothing that it could sign with
/// itself (RFC 8725 sections 2.1 and 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SigningAlgorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// RSASSA-PSS with SHA-256.
    Ps256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// Ed25519.
    EdDsa,
}

impl SigningAlgorithm {
    /// All of them.
    pub const ALL: &[Self] = &[Self::Rs256, Self::Ps256, Self::Es256, Self::EdDsa];

    /// The name of RFC 7518 section 3.1 and RFC 8037 section 3.1.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Ps256 => "PS256",
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
        }
    }

    pub(super) const fn of_library(self) -> Algorithm {
        match self {
            Self::Rs256 => Algorithm::RS256,
            Self::Ps256 => Algorithm::PS256,
            Self::Es256 => Algorithm::ES256,
            Self::EdDsa => Algorithm::EdDSA,
        }
    }
}

impl fmt::Display for SigningAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A name that is not one of [`SigningAlgorithm::ALL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be RS256, PS256, ES256 or EdDSA")]
pub struct AlgorithmError;

impl FromStr for SigningAlgorithm {
    type Err = AlgorithmError;

    fn from_str(name: &str) -> Result<Self, AlgorithmError> {
        Self::ALL.iter().copied().find(|known| known.as_str() == name).ok_or(AlgorithmError)
    }
}

/// Which tokens count, and what their claims mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JwtConfig {
    /// The issuer, exactly as in `iss`: an `https` URL, or `http` on loopback.
    pub issuer: String,
    /// What a token must have as `aud`.
    pub audience: Audience,
    /// Where the issuer's keys are. Without it, where the issuer's metadata says (RFC 8414).
    pub jwks_url: Option<String>,
    /// Algorithms that tokens may be signed with; at least one.
    pub algorithms: Vec<SigningAlgorithm>,
    /// The claim with the tenant; without it everybody belongs to the default tenant. With it, a token without that
    /// claim is refused.
    pub tenant_claim: Option<String>,
    /// The claim with the scopes: a text with spaces (RFC 8693 section 4.2) or a list of texts.
    pub scope_claim: String,
    /// The claim with the name to speak.
    pub name_claim: String,
    /// The claim with the roles: a list of texts, or one. Like every other name of a claim it is a JSON Pointer
    /// (RFC 6901) when it begins with a slash, for nested claims.
    pub roles_claim: Option<String>,
    /// Roles that may supervise, as the scope `workflow:supervise` does.
    pub supervisor_roles: BTreeSet<String>,
    /// Scopes that make a token a service token, whatever else it has.
    pub service_scopes: BTreeSet<String>,
    /// Clients whose service tokens need no `aud`, for issuers that cannot put one into tokens of
    /// `client_credentials`. An `aud` that is there still has to be right, and tokens of people always need it.
    pub service_clients: BTreeSet<String>,
    /// How far the clocks of issuer and server may be apart. At most five minutes.
    pub clock_skew: Duration,
    /// When keys are fetched.
    pub key_times: KeyTimes,
}

/// What a token must have as `aud`, byte for byte (RFC 8707 section 2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Audience {
    /// This name, whichever path is called: for issuers that know the server by a name of their own.
    Named(String),
    /// The URL that is called, without its query: each path is a resource of its own (RFC 9728 section 3), and a token
    /// for one is nothing to the other.
    Called {
        /// What comes before the path, such as `https://wf.example.com`.
        origin: String,
    },
}

impl Audience {
    /// Whether `name` is what tokens for `path` must name.
    pub(super) fn is(&self, name: &str, path: &str) -> bool {
        match self {
            Self::Named(ours) => name == ours,
            Self::Called { origin } => name.strip_prefix(origin.as_str()) == Some(path),
        }
    }

    /// What tokens for `path` must name.
    pub(super) fn at(&self, path: &str) -> String {
        match self {
            Self::Named(name) => name.clone(),
            Self::Called { origin } => format!("{origin}{path}"),
        }
    }
}

/// When the issuer's keys are fetched, and how long they count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyTimes {
    /// A set this old counts no more, unless the issuer could not be reached when it was asked. So long at most a key
    /// counts that the issuer took out. At half this age the set is fetched again, while requests go on with it.
    pub refresh: Duration,
    /// The least time between two fetches, however many tokens name keys that nobody knows. So long at most a new key
    /// that is used at once is not recognised.
    pub pause: Duration,
    /// The least time between two fetches while there is no set, or an old one.
    pub retry: Duration,
    /// How long a set counts while the issuer cannot be reached.
    pub keep: Duration,
}

impl Default for KeyTimes {
    fn default() -> Self {
        Self {
            refresh: Duration::from_secs(10 * 60),
            pause: Duration::from_secs(30),
            retry: Duration::from_secs(5),
            keep: Duration::from_secs(6 * 60 * 60),
        }
    }
}

/// The greatest sensible difference between two clocks.
const SKEW_MAX: Duration = Duration::from_secs(5 * 60);

impl JwtConfig {
    /// The documented defaults, for tokens of `issuer` about the resource `audience`, by whichever path it is called.
    #[must_use]
    pub fn new(issuer: impl Into<String>, audience: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            audience: Audience::Named(audience.into()),
            jwks_url: None,
            algorithms: vec![
                SigningAlgorithm::Rs256,
                SigningAlgorithm::Es256,
                SigningAlgorithm::EdDsa,
            ],
            tenant_claim: None,
            scope_claim: "scope".to_owned(),
            name_claim: "name".to_owned(),
            roles_claim: None,
            supervisor_roles: BTreeSet::new(),
            service_scopes: BTreeSet::from(["mcp:service".to_owned()]),
            service_clients: BTreeSet::new(),
            clock_skew: Duration::from_secs(60),
            key_times: KeyTimes::default(),
        }
    }

    /// Says what is wrong before anything is served.
    ///
    /// # Errors
    /// [`JwtConfigError`] with the first setting that cannot be.
    pub fn check(&self) -> Result<(), JwtConfigError> {
        Address::issuer(&self.issuer)
            .map_err(|source| JwtConfigError::Address { setting: "issuer", source })?;
        if let Some(url) = &self.jwks_url {
            Address::parse(url)
                .map_err(|source| JwtConfigError::Address { setting: "jwks_url", source })?;
        }
        let other = |setting, problem| Err(JwtConfigError::Value { setting, problem });
        let (Audience::Named(name) | Audience::Called { origin: name }) = &self.audience;
        if name.is_empty() {
            return other("audience", "must not be empty");
        }
        if self.algorithms.is_empty() {
            return other("algorithms", "must name at least one");
        }
        if self.clock_skew > SKEW_MAX {
            return other("clock_skew", "must be at most five minutes");
        }
        let times = self.key_times;
        if times.pause.is_zero() || times.retry.is_zero() || times.refresh > times.keep {
            return other("key_times", "pauses must not be zero, and keep not below refresh");
        }
        Ok(())
    }
}

/// A setting that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JwtConfigError {
    /// A URL that no keys or metadata are fetched from.
    #[error("{setting} cannot be used")]
    Address {
        /// The setting.
        setting: &'static str,
        /// Why.
        #[source]
        source: AddressError,
    },
    /// Another value.
    #[error("{setting} {problem}")]
    Value {
        /// The setting.
        setting: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
}
