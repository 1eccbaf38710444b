//! The canonical text of a JSON value (RFC 8785) and the hash of bytes.
//!
//! The writer is `serde_json_canonicalizer`, or `serde_json` itself where both write the same; this module
//! adds the refusals that keep them honest (`exact`). `fingerprint` hashes what is written here, `ledger` stores it.

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::exact::{self, Numbers, Plain};

/// Why a value has no canonical form.
///
/// `path` is like a JSON Pointer (RFC 6901), empty for the root; long keys and paths are cut.
#[derive(Debug, thiserror::Error)]
pub enum CanonicalError {
    /// A number that the canonical form, which knows only doubles, would change.
    #[error(
        "the number at \"{path}\" is beyond ±(2^53-1) and would lose digits; send it as a string"
    )]
    NumberOutOfRange {
        /// Where it is.
        path: String,
    },
    /// A key of `serde_json`'s private protocol: other readers of the text would misread the object.
    #[error("the key at \"{path}\" is reserved")]
    PrivateKey {
        /// Where it is, the key included.
        path: String,
    },
    /// More nested containers than any reader here takes.
    #[error("the value at \"{path}\" is nested deeper than {limit} levels")]
    TooDeep {
        /// Where the first container beyond the limit is.
        path: String,
        /// Levels allowed.
        limit: usize,
    },
    /// The writer refused the value.
    #[error("the canonical form could not be written")]
    Write(#[source] serde_json::Error),
}

impl CanonicalError {
    /// The rule that was broken, stable across releases: `number_out_of_range`, `private_key`,
    /// `too_deep` (the names of [`StrictError::rule`](crate::StrictError::rule)), or `write`.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self {
            Self::NumberOutOfRange { .. } => "number_out_of_range",
            Self::PrivateKey { .. } => "private_key",
            Self::TooDeep { .. } => "too_deep",
            Self::Write(_) => "write",
        }
    }
}

/// The canonical UTF-8 bytes of `value`: RFC 8785, members sorted by UTF-16 code units, no spaces,
/// numbers as ECMAScript writes doubles.
///
/// Values that mean the same give the same bytes: `1`, `1.0` and `1e0`, `0` and `-0`, any order of
/// members, any escaping. Whatever is written here is read back by [`replay`](crate::replay) to a
/// value with the same canonical bytes.
///
/// # Errors
///
/// An integer beyond ±(2^53-1) is refused rather than rounded; so are keys under
/// `$serde_json::private::` and more than 127 levels of nesting. A float beyond 2^53 is written: it
/// is a double already, and loses nothing. ([`Fingerprint::of`](crate::Fingerprint::of) refuses it.)
pub fn canonical_bytes(value: &Value) -> Result<Vec<u8>, CanonicalError> {
    let plain = exact::check(value, Numbers::Doubles)?;
    write(value, plain)
}

/// [`canonical_bytes`] as text.
///
/// # Errors
///
/// As [`canonical_bytes`].
pub fn canonical_string(value: &Value) -> Result<String, CanonicalError> {
    let plain = exact::check(value, Numbers::Doubles)?;
    if plain.holds() {
        serde_json::to_string(value).map_err(CanonicalError::Write)
    } else {
        serde_json_canonicalizer::to_string(value).map_err(CanonicalError::Write)
    }
}

/// The canonical bytes of something that was already checked, and found plain or not.
pub(crate) fn write<T: Serialize>(value: &T, plain: Plain) -> Result<Vec<u8>, CanonicalError> {
    if plain.holds() {
        serde_json::to_vec(value).map_err(CanonicalError::Write)
    } else {
        serde_json_canonicalizer::to_vec(value).map_err(CanonicalError::Write)
    }
}

/// SHA-256 (FIPS 180-4) of `bytes`, as 64 lowercase hexadecimal digits.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    to_hex(&Sha256::digest(bytes))
}

/// Lowercase hexadecimal, two digits a byte.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| hex_digits(*byte)).map(char::from).collect()
}

/// The two lowercase hexadecimal digits of a byte, in ASCII.
pub(crate) fn hex_digits(byte: u8) -> [u8; 2] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 0x0f)]]
}
