//! What stands beside the chain of events: sensitive values, and what is left of them when they were erased.
//!
//! The chain holds a salted digest of each, and so it stays whole without the value. The salt goes with the value, so that
//! the digest, and the fingerprint of the call ([`Cause::blinded`](crate::models::Cause::blinded)), tell nothing any more.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::models::{Actor, Digest, Timestamp};

/// A sensitive value that stands beside its event, or its erasure.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SensitiveValue {
    /// What it is: `value`, or `inputs.<name>`.
    pub name: String,
    /// 32 hexadecimal digits, random per call; empty when erased.
    pub salt: String,
    /// The value, as JSON; null when erased.
    pub value: Value,
    /// Who erased it, when and why.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub erased: Option<Erased>,
}

/// The end of a sensitive value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Erased {
    /// When.
    pub at: Timestamp,
    /// Who.
    pub by: Actor,
    /// Why.
    pub reason: String,
}

impl std::fmt::Debug for SensitiveValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SensitiveValue")
            .field("name", &self.name)
            .field("erased", &self.erased)
            .finish_non_exhaustive()
    }
}

impl SensitiveValue {
    /// A value that is there.
    #[must_use]
    pub fn new(name: impl Into<String>, salt: impl Into<String>, value: Value) -> Self {
        Self { name: name.into(), salt: salt.into(), value, erased: None }
    }

    /// What is left of it when it is erased.
    #[must_use]
    pub fn erase(&self, erased: Erased) -> Self {
        Self { erased: Some(erased), ..Self::new(self.name.clone(), "", Value::Null) }
    }

    /// Lowercase hexadecimal SHA-256 of the salt's text and the value's RFC 8785 form: what the chain holds.
    ///
    /// # Errors
    /// When the value cannot be canonical; values from a strictly parsed request always can.
    pub fn digest(&self) -> Result<Digest, wf_idempotency::CanonicalError> {
        let mut bytes = self.salt.clone().into_bytes();
        bytes.extend(wf_idempotency::canonical_bytes(&self.value)?);
        Ok(Digest::of(&bytes))
    }

    /// It may stand where the chain holds `chained`: it is the value of that digest, or an erasure that left nothing of it.
    #[must_use]
    pub fn fits(&self, chained: &str) -> bool {
        match &self.erased {
            Some(_) => self.salt.is_empty() && self.value.is_null(),
            None => {
                is_salt(&self.salt) && self.digest().is_ok_and(|digest| digest.as_str() == chained)
            }
        }
    }
}

/// 32 hexadecimal digits. The digest is over salt and value in one, so that a salt of any length could take over digits
/// of a changed value.
fn is_salt(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn erased() -> Erased {
        let by = Actor::Cli("ann".to_owned());
        Erased { at: Timestamp::from_ms(1), by, reason: "asked for".to_owned() }
    }

    #[test]
    fn an_erasure_leaves_nothing_of_the_value() {
        let value = SensitiveValue::new("value", "0".repeat(32), Value::from("4711"));
        let chained = value.digest().unwrap();
        assert!(value.fits(chained.as_str()));
        let left = value.erase(erased());
        assert!(left.fits(chained.as_str()));
        let written = serde_json::to_string(&left).unwrap();
        assert!(!written.contains("4711") && !written.contains(&value.salt), "{written}");
        assert_eq!(serde_json::from_str::<SensitiveValue>(&written).unwrap(), left);
    }

    #[test]
    fn neither_a_changed_value_nor_half_an_erasure_fits() {
        let value = SensitiveValue::new("value", "0".repeat(32), Value::from("4711"));
        let chained = value.digest().unwrap();
        let other = SensitiveValue { value: Value::from("4712"), ..value.clone() };
        let salted = SensitiveValue { salt: value.salt.clone(), ..value.erase(erased()) };
        let kept = SensitiveValue { value: value.value.clone(), ..value.erase(erased()) };
        let unsaid = SensitiveValue { erased: None, ..value.erase(erased()) };
        for wrong in [other, salted, kept, unsaid] {
            assert!(!wrong.fits(chained.as_str()), "{wrong:?}");
        }
    }
}
