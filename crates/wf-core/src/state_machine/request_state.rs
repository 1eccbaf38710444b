//! Request states: what a client brings back with the answer to a question (MCP 2026-07-28, multi round-trip requests).
//!
//! `rs1.<claims, base64url>.<HMAC-SHA256, base64url>`; the claims are JSON. The code is also over the call that the
//! question belongs to, which the state does not name: presented with another call it is no state at all. Keys are the
//! store's, so any replica and any restart accepts a state; nothing is stored. The nonce is for using it once
//! (`engine::asking`). Siblings: `token`, which a state of a read-back carries, and `ack_token`.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::limits::{REQUEST_STATE_BYTES_MAX, REQUEST_STATE_MS};
use crate::models::Timestamp;

use super::command::Secret;

/// The call that a question belongs to. Every part counts.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// Tenant.
    pub tenant: &'a str,
    /// Actor.
    pub actor: &'a str,
    /// OAuth client; empty without one.
    pub client: &'a str,
    /// Method of the request.
    pub method: &'a str,
    /// Fingerprint of the operation with all its arguments.
    pub call: &'a str,
}

/// What a state says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// What was asked.
    pub question: Question,
    /// Until when an answer counts.
    pub expires_at: Timestamp,
    /// Unique among the states of the store; visible ASCII.
    pub nonce: String,
}

/// What was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Question {
    /// Whether what was read back is right.
    ReadBack {
        /// The confirm token, which says of which value at which attempt.
        token: String,
    },
    /// Which one is meant.
    Which {
        /// The ids to choose from.
        ids: Vec<String>,
    },
}

/// Why a state does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It was not made by this store for this call of this caller.
    #[error("the state was not made for this call")]
    Foreign,
    /// It was, too long ago.
    #[error("the state has expired")]
    Expired,
}

impl Claims {
    /// What is asked at `now`.
    #[must_use]
    pub fn new(question: Question, nonce: String, now: Timestamp) -> Self {
        Self { question, expires_at: now.plus_ms(REQUEST_STATE_MS), nonce }
    }

    /// The state under the newest key; `None` without a key, or when it would be too long to be taken back.
    #[must_use]
    pub fn sign(&self, secrets: &[Secret], origin: &Origin<'_>) -> Option<String> {
        let claims = URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).ok()?);
        let code = mac(secrets.first()?, origin, &claims)?.finalize().into_bytes();
        let state = format!("rs1.{claims}.{}", URL_SAFE_NO_PAD.encode(code));
        (state.len() <= REQUEST_STATE_BYTES_MAX).then_some(state)
    }

    /// What `state` says, when it was sealed for exactly this call under a current key and has not expired.
    ///
    /// # Errors
    /// [`Unfit`]; nothing of a state is looked at before its code.
    pub fn open(
        secrets: &[Secret],
        origin: &Origin<'_>,
        state: &str,
        now: Timestamp,
    ) -> Result<Self, Unfit> {
        if state.len() > REQUEST_STATE_BYTES_MAX {
            return Err(Unfit::Foreign);
        }
        let sealed = state.strip_prefix("rs1.").and_then(|rest| rest.split_once('.'));
        let (claims, code) = sealed.ok_or(Unfit::Foreign)?;
        let code = URL_SAFE_NO_PAD.decode(code).map_err(|_| Unfit::Foreign)?;
        let made =
            |secret| mac(secret, origin, claims).is_some_and(|m| m.verify_slice(&code).is_ok());
        if !secrets.iter().any(made) {
            return Err(Unfit::Foreign);
        }
        let claims = URL_SAFE_NO_PAD.decode(claims).map_err(|_| Unfit::Foreign)?;
        let claims: Self = serde_json::from_slice(&claims).map_err(|_| Unfit::Foreign)?;
        if claims.expires_at <= now {
            return Err(Unfit::Expired);
        }
        Ok(claims)
    }
}

fn mac(secret: &Secret, origin: &Origin<'_>, claims: &str) -> Option<Hmac<Sha256>> {
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(secret.expose()).ok()?;
    let parts = [
        // No code over a read-back can be one over a state: theirs begins with another text.
        "checkpoint/request-state/v1",
        origin.tenant,
        origin.actor,
        origin.client,
        origin.method,
        origin.call,
        claims,
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

    const ORIGIN: Origin<'_> =
        Origin { tenant: "t", actor: "user:a", client: "c", method: "m", call: "v1:00" };

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_ms(1_000_000 + ms)
    }

    fn key(byte: u8) -> Secret {
        Secret::new(vec![byte; 32])
    }

    fn claims() -> Claims {
        let question = Question::ReadBack { token: "ct1.1300000.AAAA".to_owned() };
        Claims::new(question, "0011".to_owned(), at(0))
    }

    #[test]
    fn a_state_counts_for_exactly_the_call_it_was_made_for() {
        let keys = [key(1)];
        let state = claims().sign(&keys, &ORIGIN).expect("a key");
        assert_eq!(Claims::open(&keys, &ORIGIN, &state, at(0)), Ok(claims()));
        for other in [
            Origin { tenant: "x", ..ORIGIN },
            Origin { actor: "user:b", ..ORIGIN },
            Origin { client: "d", ..ORIGIN },
            Origin { client: "", ..ORIGIN },
            Origin { method: "n", ..ORIGIN },
            Origin { call: "v1:01", ..ORIGIN },
            Origin { tenant: "tu", actor: "ser:a", ..ORIGIN },
        ] {
            let opened = Claims::open(&keys, &other, &state, at(0));
            assert_eq!(opened, Err(Unfit::Foreign), "{other:?}");
        }
    }

    #[test]
    fn a_state_is_short_lived() {
        let keys = [key(1)];
        let state = claims().sign(&keys, &ORIGIN).expect("a key");
        let open = |ms| Claims::open(&keys, &ORIGIN, &state, at(ms));
        assert_eq!(open(REQUEST_STATE_MS - 1), Ok(claims()));
        assert_eq!(open(REQUEST_STATE_MS), Err(Unfit::Expired));
        assert_eq!(open(-60_000), Ok(claims()), "a clock that went back");
    }

    #[test]
    fn an_old_key_still_opens_and_a_foreign_one_never_does() {
        let state = claims().sign(&[key(1)], &ORIGIN).expect("a key");
        assert_eq!(Claims::open(&[key(2), key(1)], &ORIGIN, &state, at(0)), Ok(claims()));
        assert_eq!(Claims::open(&[key(2)], &ORIGIN, &state, at(0)), Err(Unfit::Foreign));
        assert_eq!(Claims::open(&[], &ORIGIN, &state, at(0)), Err(Unfit::Foreign));
    }

    #[test]
    fn nothing_of_a_state_can_be_changed() {
        let keys = [key(1)];
        let state = claims().sign(&keys, &ORIGIN).expect("a key");
        for at_byte in 0..state.len() {
            let mut bytes = state.clone().into_bytes();
            bytes[at_byte] = if bytes[at_byte] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).expect("ascii");
            let opened = Claims::open(&keys, &ORIGIN, &changed, at(0));
            assert_eq!(opened, Err(Unfit::Foreign), "byte {at_byte}");
        }
        for junk in ["", "rs1", "rs1.", "rs1..", "ct1.e30.AA", &"x".repeat(100_000)] {
            assert_eq!(Claims::open(&keys, &ORIGIN, junk, at(0)), Err(Unfit::Foreign));
        }
    }

    #[test]
    fn the_longest_question_fits_and_a_longer_one_is_not_asked() {
        let which = |ids: usize| {
            let longest = format!("user:{}", "s".repeat(crate::models::Actor::SUBJECT_BYTES_MAX));
            let question = Question::Which { ids: vec![longest; ids] };
            Claims::new(question, "0".repeat(32), at(0)).sign(&[key(1)], &ORIGIN)
        };
        assert!(which(crate::limits::CANDIDATES_SHOWN_MAX).is_some());
        assert_eq!(which(50), None);
    }
}
