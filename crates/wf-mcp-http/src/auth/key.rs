//! The public keys in a JSON Web Key Set (RFC 7517), those that tokens may be signed with. `keys` holds a set,
//! `token` verifies with one key of it.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::{Map, Value};

use super::check::{Check, Checks};

/// Most keys of a set that are looked at. Issuers publish two or three.
const KEYS_MAX: usize = 64;
/// Longest `kid`, in bytes, of a key or a token.
pub(super) const KEY_ID_BYTES_MAX: usize = 256;
/// RSA moduli, in bits: below, they can be factored; above, each verification takes too long.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

/// One key, with all that it may verify.
#[derive(Debug)]
pub(super) struct Key {
    id: Option<Box<str>>,
    algorithms: Box<[Algorithm]>,
    decoding: DecodingKey,
}

impl Key {
    /// A key from a JWK, or `None` for one that is not used here: of another type, too weak, for encryption, secret.
    fn read(jwk: &Map<String, Value>, checks: Checks) -> Option<Self> {
        let text = |name: &str| jwk.get(name).and_then(Value::as_str);
        let made_for_signatures = jwk.get("use").is_none_or(|usage| usage == "sig")
            && jwk.get("key_ops").is_none_or(|all| {
                all.as_array().is_some_and(|all| all.iter().any(|operation| operation == "verify"))
            });
        if !made_for_signatures && checks.on(Check::KeyUse) {
            return None;
        }
        let secret = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];
        if secret.iter().any(|member| jwk.contains_key(*member)) && checks.on(Check::PublicKey) {
            return None;
        }
        let (family, decoding): (&[Algorithm], _) = match (text("kty")?, text("crv")) {
            ("RSA", None) => {
                let modulus = URL_SAFE_NO_PAD.decode(text("n")?).ok()?;
                if !RSA_BITS.contains(&bits(&modulus)) {
                    return None;
                }
                let key = DecodingKey::from_rsa_components(text("n")?, text("e")?);
                (&[Algorithm::RS256, Algorithm::PS256], key)
            }
            ("EC", Some("P-256")) => {
                coordinate(text("x")?)?;
                coordinate(text("y")?)?;
                (&[Algorithm::ES256], DecodingKey::from_ec_components(text("x")?, text("y")?))
            }
            ("OKP", Some("Ed25519")) => {
                coordinate(text("x")?)?;
                (&[Algorithm::EdDSA], DecodingKey::from_ed_components(text("x")?))
            }
            _ => return None,
        };
        // A key that names an algorithm is for that one alone.
        let algorithms = match jwk.get("alg") {
            None => family.into(),
            Some(name) => {
                let only = name.as_str()?.parse::<Algorithm>().ok()?;
                if !family.contains(&only) {
                    return None;
                }
                Box::from([only])
            }
        };
        let id = match jwk.get("kid") {
            None => None,
            Some(Value::String(id)) if id.len() <= KEY_ID_BYTES_MAX => Some(id.as_str().into()),
            Some(_) => return None,
        };
        Some(Self { id, algorithms, decoding: decoding.ok()? })
    }

    /// Whether tokens of this algorithm may be signed with this key.
    pub(super) fn is_for(&self, algorithm: Algorithm) -> bool {
        self.algorithms.contains(&algorithm)
    }

    /// Whether `signature`, in base64url, is one of `message`.
    pub(super) fn verifies(&self, message: &str, signature: &str, algorithm: Algorithm) -> bool {
        jsonwebtoken::crypto::verify(signature, message.as_bytes(), &self.decoding, algorithm)
            .unwrap_or(false)
    }
}

/// Significant bits of an unsigned big-endian number.
fn bits(number: &[u8]) -> usize {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    match number.get(zeros..) {
        Some([first, rest @ ..]) => {
            let length = u8::BITS - first.leading_zeros();
            rest.len() * 8 + usize::try_from(length).unwrap_or(0)
        }
        Some([]) | None => 0,
    }
}

/// 32 bytes, as every number of both curves is written (RFC 7518 section 6.2.1.2, RFC 8037 section 2).
fn coordinate(text: &str) -> Option<()> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    (bytes.len() == 32).then_some(())
}

/// The usable keys of one issuer at one time.
#[derive(Debug, Default)]
pub(super) struct KeySet {
    keys: Vec<Arc<Key>>,
}

impl KeySet {
    /// The keys in a set (RFC 7517 section 5); `None` when it is no set. Keys that are not used here are left out.
    pub(super) fn read(document: &Map<String, Value>, checks: Checks) -> Option<Self> {
        let keys = document.get("keys")?.as_array()?.iter().take(KEYS_MAX);
        let keys = keys.filter_map(|jwk| Key::read(jwk.as_object()?, checks)).map(Arc::new);
        Some(Self { keys: keys.collect() })
    }

    /// How many keys there are.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The key that a token names. A token that names none means the only one there is.
    pub(super) fn find(&self, id: Option<&str>, algorithm: Option<Algorithm>) -> Option<Arc<Key>> {
        let Some(id) = id else {
            return if let [only] = self.keys.as_slice() { Some(Arc::clone(only)) } else { None };
        };
        let named = || self.keys.iter().filter(|key| key.id.as_deref() == Some(id));
        // Keys of different types may share a name (RFC 7517 section 4.5).
        let fitting = named().find(|key| algorithm.is_some_and(|algorithm| key.is_for(algorithm)));
        fitting.or_else(|| named().next()).cloned()
    }

    /// Any key at all, for a test that leaves out [`Check::KnownKey`].
    #[cfg(test)]
    pub(super) fn any(&self) -> Option<Arc<Key>> {
        self.keys.first().cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::bits;

    #[test]
    fn bits_of_a_number_do_not_count_leading_zeros() {
        for (number, expected) in [
            (&[][..], 0),
            (&[0, 0], 0),
            (&[1], 1),
            (&[0, 1], 1),
            (&[0x80], 8),
            (&[1, 0], 9),
            (&[0, 0xff, 0], 16),
        ] {
            assert_eq!(bits(number), expected, "{number:?}");
        }
    }
}
