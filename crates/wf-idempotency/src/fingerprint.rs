//! The fingerprint of a call: what makes "the same call again" recognisable.
//!
//! Built on `canonical`, compared by `ledger`.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::canonical::{CanonicalError, hex_digits, write};
use crate::exact::{Numbers, Plain, check_member};
use crate::written::from_text;

/// SHA-256 of an operation and its arguments, with the version of the recipe.
///
/// Its text is `v1:` and 64 lowercase hexadecimal digits, in [`Display`](fmt::Display),
/// [`FromStr`] and serde alike. Fingerprints of different versions are never equal.
///
/// ```
/// use serde_json::json;
/// use wf_idempotency::Fingerprint;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let sent = json!({ "item": "a-1", "value": "4.20", "idempotency_key": "k-1" });
/// let fingerprint = Fingerprint::of("record", sent.as_object().ok_or("no object")?, &["idempotency_key"])?;
/// assert_eq!(fingerprint.to_string().parse::<Fingerprint>()?, fingerprint);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint {
    version: u16,
    hash: [u8; 32],
}

/// A text that is no [`Fingerprint`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a fingerprint is \"v\", its version, \":\" and 64 lowercase hexadecimal digits")]
pub struct FingerprintError;

/// What separates these hashes from every other use of SHA-256 over the same bytes. Names
/// [`Fingerprint::VERSION`]: the two change together.
const DOMAIN: &[u8] = b"checkpoint/fingerprint/v1";
/// The same for a fingerprint under a salt.
const BLINDED: &[u8] = b"checkpoint/blinded/v1";

impl Fingerprint {
    /// The version that [`Fingerprint::of`] makes. It changes when the recipe does.
    pub const VERSION: u16 = 1;

    /// The fingerprint of calling `operation` with `arguments`, as the client sent them, without the
    /// top-level members named in `excluded` (the key itself, confirmations, request metadata).
    ///
    /// SHA-256 over the text `checkpoint/fingerprint/v1`, a NUL, `operation`, a NUL, and the
    /// canonical form of the arguments that remain. No two different inputs share these bytes: the
    /// canonical form holds no NUL. An excluded name deeper inside counts, and so does a member whose
    /// value is `null`. An excluded member is not looked at.
    ///
    /// `arguments` should come from [`parse_strict`](crate::parse_strict): an ordinary parser drops
    /// duplicate keys and rounds numbers before this function can see them.
    ///
    /// # Errors
    ///
    /// As [`canonical_bytes`](crate::canonical_bytes), and also for a float beyond ±(2^53-1): it may
    /// be an integer that was rounded on the way here.
    pub fn of(
        operation: &str,
        arguments: &Map<String, Value>,
        excluded: &[&str],
    ) -> Result<Self, CanonicalError> {
        let mut kept = BTreeMap::new();
        let mut plain = Plain::YES;
        for (key, value) in arguments {
            if !excluded.contains(&key.as_str()) {
                plain = plain.and(check_member(key, value, Numbers::Exact)?);
                kept.insert(key, value);
            }
        }
        let mut hasher = Sha256::new();
        hasher.update(DOMAIN);
        hasher.update([0]);
        hasher.update(operation.as_bytes());
        hasher.update([0]);
        hasher.update(write(&kept, plain)?);
        Ok(Self { version: Self::VERSION, hash: hasher.finalize().into() })
    }

    /// This fingerprint under a random `salt`: who has it and not the salt learns nothing of the arguments by trying, however
    /// few values they may have. For a call with a value that must be erasable: keep the salt beside, and drop it with the
    /// value.
    ///
    /// SHA-256 over the text `checkpoint/blinded/v1`, a NUL, `salt`, a NUL, and the text of this fingerprint.
    ///
    /// ```
    /// use wf_idempotency::Fingerprint;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let plain = Fingerprint::of("record", &serde_json::Map::new(), &[])?;
    /// assert_eq!(plain.blinded("5a17"), plain.blinded("5a17"));
    /// assert_ne!(plain.blinded("5a17"), plain.blinded("0b5c"));
    /// assert_ne!(plain.blinded("5a17"), plain);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn blinded(&self, salt: &str) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(BLINDED);
        hasher.update([0]);
        hasher.update(salt.as_bytes());
        hasher.update([0]);
        hasher.update(self.to_string());
        Self { version: self.version, hash: hasher.finalize().into() }
    }

    /// The version of the recipe it was made with.
    #[must_use]
    pub fn version(&self) -> u16 {
        self.version
    }

    /// The 32 bytes of the hash.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.hash
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0; 64];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.hash) {
            pair.copy_from_slice(&hex_digits(byte));
        }
        write!(f, "v{}:", self.version)?;
        f.write_str(std::str::from_utf8(&digits).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    /// Takes every version from 1 on, so that an older build can read, and differ from, a newer row.
    fn from_str(text: &str) -> Result<Self, FingerprintError> {
        let (version, digits) =
            text.strip_prefix('v').and_then(|rest| rest.split_once(':')).ok_or(FingerprintError)?;
        // One text per fingerprint: no sign, no leading zero, no capital digits.
        let plain = version.bytes().all(|b| b.is_ascii_digit()) && !version.starts_with('0');
        let version = version.parse().map_err(|_| FingerprintError)?;
        if !plain || digits.len() != 64 {
            return Err(FingerprintError);
        }
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
            *byte = match pair {
                [high, low] => nibble(*high)? << 4 | nibble(*low)?,
                _ => return Err(FingerprintError),
            };
        }
        Ok(Self { version, hash })
    }
}

fn nibble(digit: u8) -> Result<u8, FingerprintError> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(FingerprintError),
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Every state has two for each of its steps: written at once, not piece by piece through the serialiser.
        serializer.serialize_str(&self.to_string())
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer)
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = FingerprintError;

    fn try_from(text: String) -> Result<Self, FingerprintError> {
        text.parse()
    }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> Self {
        fingerprint.to_string()
    }
}
