//! Identifiers: newtypes that parse, so that a value of the type is always well formed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// An identifier that does not have the form it must have.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what} must match {rule}")]
pub struct IdError {
    /// What was being read, for example `workflow id`.
    pub what: &'static str,
    /// The form it must have, as a regular expression.
    pub rule: &'static str,
}

fn is_plain(text: &str, max: usize, colon: bool) -> bool {
    !text.is_empty()
        && text.len() <= max
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b) || (colon && b == b':'))
}

fn is_hex64(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

macro_rules! string_id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $rule:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Reads the identifier.
            ///
            /// # Errors
            /// [`IdError`] when `text` does not have the required form.
            pub fn parse(text: &str) -> Result<Self, IdError> {
                let well_formed: fn(&str) -> bool = $check;
                if well_formed(text) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(IdError { what: $what, rule: $rule })
                }
            }

            /// The identifier as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::parse(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                wf_idempotency::from_text(deserializer)
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

string_id!(
    /// A tenant: nothing of one is visible to another.
    TenantId, "tenant", "[A-Za-z0-9._-]{1,64}", |t| is_plain(t, 64, false)
);
string_id!(
    /// One execution of a procedure.
    WorkflowId, "workflow id", "[A-Za-z0-9._:-]{1,128}", |t| is_plain(t, 128, true)
);
string_id!(
    /// A procedure definition, without its version.
    ProcedureId, "procedure id", "[A-Za-z0-9._:-]{1,128}", |t| is_plain(t, 128, true)
);
string_id!(
    /// One item of a procedure.
    StepId, "step id", "[A-Za-z0-9._:-]{1,128}", |t| is_plain(t, 128, true)
);
string_id!(
    /// A physical thing that one open workflow at a time may hold; compared byte for byte.
    AssetId, "asset id", "[A-Za-z0-9._:-]{1,128}", |t| is_plain(t, 128, true)
);
string_id!(
    /// The part an asset plays in a procedure.
    AssetRole, "asset role", "[A-Za-z0-9._:-]{1,128}", |t| is_plain(t, 128, true)
);
string_id!(
    /// Why a step was skipped or corrected, or why a workflow is blocked.
    ReasonCode, "reason code", "[A-Za-z0-9._:-]{1,128}", |t| is_plain(t, 128, true)
);
string_id!(
    /// How a completed workflow ended.
    ResultId, "result", "[A-Za-z0-9._:-]{1,128}", |t| is_plain(t, 128, true)
);
string_id!(
    /// One way to resolve a block.
    DecisionId, "decision", "[A-Za-z0-9._:-]{1,128}", |t| is_plain(t, 128, true)
);
string_id!(
    /// A block of one workflow: `block-<seq of the event that made it>`.
    BlockId, "block id", "[A-Za-z0-9._:-]{1,128}", |t| is_plain(t, 128, true)
);
string_id!(
    /// Lowercase hexadecimal SHA-256.
    Digest, "digest", "[0-9a-f]{64}", is_hex64
);

impl BlockId {
    /// The id of the block made by the event with this `seq`.
    #[must_use]
    pub fn of_seq(seq: u64) -> Self {
        Self(format!("block-{seq}"))
    }
}

impl ResultId {
    /// The result that always exists: the workflow was given up.
    #[must_use]
    pub fn abandoned() -> Self {
        Self("abandoned".to_owned())
    }
}

impl DecisionId {
    /// The decision that a correction inside the limits stands for.
    #[must_use]
    pub fn corrected() -> Self {
        Self("corrected".to_owned())
    }
}

impl Digest {
    /// SHA-256 of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(wf_idempotency::sha256_hex(bytes))
    }
}

impl TenantId {
    /// The tenant of a server that has none configured.
    #[must_use]
    pub fn default_tenant() -> Self {
        Self("default".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_accept_their_alphabet_and_nothing_else() {
        for good in ["a", "ASSET-204", "A.b_c:d-1", &"x".repeat(128)] {
            assert!(AssetId::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "../x", "a b", "é", "a\n", "a/b", &"x".repeat(129)] {
            assert!(AssetId::parse(bad).is_err(), "{bad:?}");
        }
        assert!(TenantId::parse("a:b").is_err());
        assert!(TenantId::parse(&"t".repeat(65)).is_err());
        assert!(Digest::parse(&"A".repeat(64)).is_err());
    }
}
