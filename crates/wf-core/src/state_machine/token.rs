//! Confirm tokens: proof that a read-back was asked for, for exactly this value, a short while ago.
//!
//! `ct1.<expiry in ms, base 10>.<HMAC-SHA256, base64url>`. Keys are the store's, so any replica and any restart
//! accepts a token; nothing is stored, and several may be valid at once.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::limits::CONFIRM_TOKEN_MS;
use crate::models::Timestamp;

use super::command::Secret;

/// What a token is bound to. Every part counts.
#[derive(Debug, Clone, Copy)]
pub struct Bound<'a> {
    /// Tenant.
    pub tenant: &'a str,
    /// Actor.
    pub actor: &'a str,
    /// Workflow id.
    pub workflow: &'a str,
    /// Step id, or `finish`.
    pub target: &'a str,
    /// Values recorded for the step so far; 0 for a finish.
    pub attempt: u32,
    /// The canonical value, or the result.
    pub value: &'a str,
    /// The unit the value is meant in.
    pub unit: &'a str,
    /// Digest of the definition.
    pub definition: &'a str,
}

/// Makes a token that counts until the returned time; `None` without a key.
#[must_use]
pub fn mint(secrets: &[Secret], bound: &Bound<'_>, now: Timestamp) -> Option<(String, Timestamp)> {
    let expires_at = now.plus_ms(CONFIRM_TOKEN_MS);
    let mac = mac(secrets.first()?, bound, expires_at)?;
    let code = URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes());
    Some((format!("ct1.{}.{code}", expires_at.as_ms()), expires_at))
}

/// True when `token` was minted for exactly this under a current key and has not expired.
#[must_use]
pub fn verify(secrets: &[Secret], bound: &Bound<'_>, token: &str, now: Timestamp) -> bool {
    let mut parts = token.splitn(3, '.');
    let (Some("ct1"), Some(expiry), Some(code)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let (Ok(expiry), Ok(code)) = (expiry.parse::<i64>(), URL_SAFE_NO_PAD.decode(code)) else {
        return false;
    };
    let expires_at = Timestamp::from_ms(expiry);
    // An expiry that is further ahead than a token lives is no forgery, the code is over it: the clock went back in the
    // meantime, or is that of another replica.
    if expires_at <= now {
        return false;
    }
    secrets.iter().any(|secret| {
        mac(secret, bound, expires_at).is_some_and(|mac| mac.verify_slice(&code).is_ok())
    })
}

fn mac(secret: &Secret, bound: &Bound<'_>, expires_at: Timestamp) -> Option<Hmac<Sha256>> {
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(secret.expose()).ok()?;
    let attempt = bound.attempt.to_string();
    let expiry = expires_at.as_ms().to_string();
    let parts = [
        "checkpoint/confirm/v1",
        bound.tenant,
        bound.actor,
        bound.workflow,
        bound.target,
        attempt.as_str(),
        bound.value,
        bound.unit,
        bound.definition,
        expiry.as_str(),
    ];
    for part in parts {
        // Length first, so that no two lists of parts have the same bytes.
        mac.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        mac.update(part.as_bytes());
    }
    Some(mac)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Bound<'_> = Bound {
        tenant: "t",
        actor: "user:a",
        workflow: "w",
        target: "s",
        attempt: 1,
        value: "7",
        unit: "u",
        definition: "d",
    };

    #[test]
    fn a_token_counts_for_exactly_what_it_was_minted_for() {
        let keys = [Secret::new(vec![1; 32])];
        let now = Timestamp::from_ms(1_000_000);
        let (token, until) = mint(&keys, &BOUND, now).expect("a key");
        assert!(verify(&keys, &BOUND, &token, now));
        assert!(verify(&keys, &BOUND, &token, until.plus_ms(-1)));
        assert!(!verify(&keys, &BOUND, &token, until), "expired");
        assert!(verify(&keys, &BOUND, &token, now.plus_ms(-60_000)), "a clock that went back");
        for other in [
            Bound { tenant: "x", ..BOUND },
            Bound { actor: "user:b", ..BOUND },
            Bound { workflow: "x", ..BOUND },
            Bound { target: "x", ..BOUND },
            Bound { attempt: 2, ..BOUND },
            Bound { value: "8", ..BOUND },
            Bound { unit: "v", ..BOUND },
            Bound { definition: "e", ..BOUND },
            Bound { target: "s7", value: "", ..BOUND },
        ] {
            assert!(!verify(&keys, &other, &token, now), "{other:?}");
        }
    }

    #[test]
    fn an_old_key_still_verifies_and_a_foreign_one_never_does() {
        let old = Secret::new(vec![1; 32]);
        let now = Timestamp::from_ms(1_000_000);
        let (token, _) = mint(std::slice::from_ref(&old), &BOUND, now).expect("a key");
        assert!(verify(&[Secret::new(vec![2; 32]), old], &BOUND, &token, now));
        assert!(!verify(&[Secret::new(vec![3; 32])], &BOUND, &token, now));
        let stretched = token.replacen("ct1.1300000", "ct1.1299999", 1);
        assert!(!verify(&[Secret::new(vec![1; 32])], &BOUND, &stretched, now));
        for junk in ["", "ct1", "ct1..", "ct1.9.!", "ct2.1300000.AA"] {
            assert!(!verify(&[Secret::new(vec![1; 32])], &BOUND, junk, now), "{junk}");
        }
    }
}
