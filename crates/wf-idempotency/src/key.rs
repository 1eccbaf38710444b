//! The key under which a caller repeats a call.
//!
//! The scope of a key, (tenant, actor), is the caller's business: a key alone identifies nothing.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::written::from_text;

/// An idempotency key: 1 to 128 visible ASCII characters (`0x21..=0x7E`), compared byte for byte.
///
/// No spaces, no control characters, nothing that looks equal and is not: a key is copied by models,
/// logged, and part of a database key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdempotencyKey(String);

/// Why a text is no [`IdempotencyKey`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// No characters at all.
    #[error("an idempotency key has at least 1 character")]
    Empty,
    /// More than [`IdempotencyKey::MAX_LEN`] bytes.
    #[error("an idempotency key has at most {max} characters, this one has {len} bytes", max = IdempotencyKey::MAX_LEN)]
    TooLong {
        /// Bytes found.
        len: usize,
    },
    /// A character outside visible ASCII.
    #[error(
        "an idempotency key is visible ASCII without spaces; the character at byte {at} is not"
    )]
    BadCharacter {
        /// Byte offset of the first such character.
        at: usize,
    },
}

impl IdempotencyKey {
    /// The longest key, in bytes (= characters).
    pub const MAX_LEN: usize = 128;

    /// Takes `text` as it is; nothing is trimmed or folded.
    ///
    /// # Errors
    ///
    /// [`KeyError`] when it is empty, longer than [`Self::MAX_LEN`], or not visible ASCII.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        check(text)?;
        Ok(Self(text.to_owned()))
    }

    /// The key as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn check(text: &str) -> Result<(), KeyError> {
    if text.is_empty() {
        return Err(KeyError::Empty);
    }
    if text.len() > IdempotencyKey::MAX_LEN {
        return Err(KeyError::TooLong { len: text.len() });
    }
    match text.bytes().position(|byte| !byte.is_ascii_graphic()) {
        Some(at) => Err(KeyError::BadCharacter { at }),
        None => Ok(()),
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for IdempotencyKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        Self::parse(text)
    }
}

impl Serialize for IdempotencyKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for IdempotencyKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer)
    }
}

impl TryFrom<String> for IdempotencyKey {
    type Error = KeyError;

    fn try_from(text: String) -> Result<Self, KeyError> {
        check(&text)?;
        Ok(Self(text))
    }
}

impl From<IdempotencyKey> for String {
    fn from(key: IdempotencyKey) -> Self {
        key.0
    }
}

impl AsRef<str> for IdempotencyKey {
    fn as_ref(&self) -> &str {
        &self.0
    }
}
