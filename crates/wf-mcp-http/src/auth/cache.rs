//! Tokens that were verified a moment ago, so that a client that calls often pays for a hash and not for a signature.
//!
//! Bounded in number by two halves: when the younger is full, it becomes the older and the older is forgotten. Only
//! verified tokens get in, so that nobody can push others out with invented ones.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use aws_lc_rs::digest::{Context, SHA256};

use super::Caller;

/// Tokens in each half.
const HALF_MAX: usize = 4096;
/// How long a token is recognised, in milliseconds: so long a key that was taken back still counts at most beside
/// what [`KeyTimes`](super::KeyTimes) says.
pub(super) const RECOGNISED_MS: i64 = 60 * 1000;

/// SHA-256 of a token and of the path that it was sent to, since it may count at one and not at another: enough to
/// recognise it, and nothing that could be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TokenDigest([u8; 32]);

impl TokenDigest {
    pub(super) fn of(path: &str, token: &str) -> Self {
        let mut hash = Context::new(&SHA256);
        for part in [path.as_bytes(), b" ", token.as_bytes()] {
            // Neither has a blank in it, so that no two pairs are one text.
            hash.update(part);
        }
        let mut bytes = [0; 32];
        // SHA-256 has 32 bytes, so that nothing is left over on either side.
        for (to, from) in bytes.iter_mut().zip(hash.finish().as_ref()) {
            *to = *from;
        }
        Self(bytes)
    }
}

#[derive(Debug, Clone)]
struct Entry {
    caller: Caller,
    generation: u64,
    from_ms: i64,
    until_ms: i64,
}

impl Entry {
    fn counts(&self, generation: u64, now_ms: i64) -> bool {
        // A wall clock that was set back makes an entry count less, not more.
        self.generation == generation && (self.from_ms..self.until_ms).contains(&now_ms)
    }
}

#[derive(Debug, Default)]
struct Halves {
    young: HashMap<TokenDigest, Entry>,
    old: HashMap<TokenDigest, Entry>,
}

/// The callers of verified tokens.
#[derive(Debug, Default)]
pub(super) struct Cache(Mutex<Halves>);

impl Cache {
    /// The caller of this token, if it was verified less than a minute ago by keys that are still the same.
    pub(super) fn get(&self, token: &TokenDigest, generation: u64, now_ms: i64) -> Option<Caller> {
        let halves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = halves.young.get(token).or_else(|| halves.old.get(token))?;
        entry.counts(generation, now_ms).then(|| entry.caller.clone())
    }

    /// Remembers the caller of a token that counts until `until_ms`.
    pub(super) fn put(
        &self,
        token: TokenDigest,
        generation: u64,
        now_ms: i64,
        until_ms: i64,
        caller: Caller,
    ) {
        let until_ms = until_ms.min(now_ms.saturating_add(RECOGNISED_MS));
        let entry = Entry { caller, generation, from_ms: now_ms, until_ms };
        let mut halves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if halves.young.len() >= HALF_MAX && !halves.young.contains_key(&token) {
            halves.old = std::mem::take(&mut halves.young);
        }
        halves.young.insert(token, entry);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use wf_core::models::Principal;

    use super::*;

    fn caller() -> Caller {
        Caller::User(Arc::new(Principal::local()))
    }

    #[test]
    fn a_token_is_recognised_for_a_minute_at_most() {
        let cache = Cache::default();
        let (long, short) = (TokenDigest::of("/", "a"), TokenDigest::of("/", "b"));
        cache.put(long, 1, 1_000, i64::MAX, caller());
        cache.put(short, 1, 1_000, 5_000, caller());
        for (token, at, found) in [
            (long, 1_000, true),
            (long, 1_000 + RECOGNISED_MS - 1, true),
            (long, 1_000 + RECOGNISED_MS, false),
            (long, 999, false),
            (short, 4_999, true),
            (short, 5_000, false),
            (TokenDigest::of("/", "c"), 1_000, false),
            (TokenDigest::of("/x", "a"), 1_000, false),
        ] {
            assert_eq!(cache.get(&token, 1, at).is_some(), found, "{at}");
        }
    }

    #[test]
    fn other_keys_make_every_token_unknown() {
        let cache = Cache::default();
        cache.put(TokenDigest::of("/", "a"), 1, 0, i64::MAX, caller());
        assert!(cache.get(&TokenDigest::of("/", "a"), 1, 0).is_some());
        assert!(cache.get(&TokenDigest::of("/", "a"), 2, 0).is_none());
    }

    #[test]
    fn the_number_of_tokens_is_bounded_and_the_latest_stay() {
        let cache = Cache::default();
        let tokens: Vec<_> =
            (0..HALF_MAX * 4).map(|n| TokenDigest::of("/", &n.to_string())).collect();
        for token in &tokens {
            cache.put(*token, 0, 0, i64::MAX, caller());
        }
        let halves = cache.0.lock().expect("not poisoned");
        assert!(halves.young.len() + halves.old.len() <= HALF_MAX * 2);
        drop(halves);
        let known = |token| cache.get(token, 0, 0).is_some();
        assert!(tokens.iter().rev().take(HALF_MAX).all(known));
        assert!(!tokens.iter().take(HALF_MAX).any(known));
    }
}
