//! The checks that a credential has to pass, by name. `bearer`, `key`, `token` and `claims` ask one by one.
//!
//! A test can leave some out and see which attacks get through then; a build of the product has no such switch.

use super::Refusal;
use crate::telemetry;

macro_rules! checks {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)+) => {
        /// One thing that must be right.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(super) enum Check {
            $($(#[$doc])* $name,)+
        }

        impl Check {
            /// The name in logs and metrics.
            const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)+
                }
            }

            #[cfg(test)]
            pub(super) const ALL: &[Self] = &[$(Self::$name,)+];
        }
    };
}

checks! {
    /// There is an `Authorization` header of the scheme `Bearer`.
    Bearer = "bearer",
    /// There is one `Authorization` header.
    OneHeader = "one_header",
    /// The token is in the header only, not in the query too (RFC 6750 section 2).
    OneMethod = "one_method",
    /// The token is not longer than any that is issued.
    Length = "length",
    /// Three parts of JSON, as RFC 7515 section 7.1 has them.
    Shape = "shape",
    /// The one way to write the bytes in base64url: no padding, no spare bits (RFC 4648 section 3.5).
    CanonicalBase64 = "canonical_base64",
    /// JSON that can be understood in one way only: no name twice, no number that loses digits.
    StrictJson = "strict_json",
    /// `typ` says that it is an access token, or at least does not say that it is something else (RFC 8725 3.11).
    Type = "type",
    /// No extension that must be understood: none is (RFC 7515 section 4.1.11).
    Critical = "critical",
    /// `alg` is on the configured list, where no symmetric one and no `none` can be.
    Algorithm = "algorithm",
    /// `kid` is a text of sensible length.
    KeyId = "key_id",
    /// The issuer has such a key.
    KnownKey = "known_key",
    /// The key is made for this algorithm (RFC 8725 section 3.1).
    KeyAlgorithm = "key_algorithm",
    /// A key of the issuer is for signatures.
    KeyUse = "key_use",
    /// A key of the issuer is public: one with private members has been given away.
    PublicKey = "public_key",
    /// The signature.
    Signature = "signature",
    /// `iss` is the issuer, one text, byte for byte (RFC 9068 section 4).
    Issuer = "issuer",
    /// `aud` is this resource and nothing else (RFC 8707 section 2), or the client is on the list of exceptions.
    Audience = "audience",
    /// `exp` is a time to come.
    Expiry = "expiry",
    /// `nbf`, when there is one, is a time past.
    NotBefore = "not_before",
    /// `iat` is a time past.
    IssuedAt = "issued_at",
    /// `sub` is a text that can name somebody.
    Subject = "subject",
    /// Nothing that only an ID token or a refresh token has (RFC 8725 section 3.12).
    AccessToken = "access_token",
    /// The tenant, the client, the scopes and the roles are of the types that they should be.
    Claims = "claims",
}

/// The checks in force: all of them.
#[cfg(not(test))]
#[derive(Debug, Clone, Copy)]
pub(super) struct Checks;

#[cfg(not(test))]
impl Checks {
    pub(super) const ALL: Self = Self;

    pub(super) const fn on(self, _: Check) -> bool {
        true
    }
}

/// The checks in force: all but some.
#[cfg(test)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Checks(pub(super) &'static [Check]);

#[cfg(test)]
impl Checks {
    pub(super) const ALL: Self = Self(&[]);

    pub(super) fn on(self, check: Check) -> bool {
        !self.0.contains(&check)
    }
}

impl Checks {
    /// # Errors
    /// The refusal, when `check` is in force and did not pass.
    pub(super) fn hold(self, check: Check, passed: bool) -> Result<(), Refusal> {
        if passed || !self.on(check) { Ok(()) } else { Err(self.refuse(check)) }
    }

    /// The refusal of a credential that does not pass. Who operates the server learns why, who sent it does not.
    #[expect(clippy::unused_self, reason = "whoever refuses has been given the checks in force")]
    pub(super) fn refuse(self, check: Check) -> Refusal {
        tracing::debug!(check = check.name(), "a credential was refused");
        telemetry::refused(check.name());
        Refusal::Unauthenticated
    }
}
