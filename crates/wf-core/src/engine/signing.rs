//! The keys that confirm tokens, states of questions and links of messages are signed with: those of the store, until an
//! operator gives others.

use std::sync::{Arc, PoisonError, RwLock};

use crate::state_machine::Secret;

use super::Engine;

/// Keys, of which the first signs and all are accepted.
#[derive(Debug)]
pub(super) struct Signing(RwLock<Arc<[Secret]>>);

impl Signing {
    pub(super) fn new(keys: &[Secret]) -> Self {
        Self(RwLock::new(keys.into()))
    }

    /// The keys that count now. A call takes them once, so that it signs and verifies with the same.
    pub(super) fn keys(&self) -> Arc<[Secret]> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn replace(&self, keys: Arc<[Secret]>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = keys;
    }
}

impl Engine {
    /// From now on `signs` signs instead of the store's own keys, and only what it or one of `also` signed is accepted.
    /// Calls that are under way keep the keys that they began with.
    pub fn sign_with(&self, signs: Secret, also: Vec<Secret>) {
        self.signing.replace(std::iter::once(signs).chain(also).collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_keeps_the_keys_it_took_while_they_are_replaced() {
        let key = |byte| Secret::new(vec![byte; 32]);
        let signing = Signing::new(&[key(1)]);
        let taken = signing.keys();
        signing.replace([key(2), key(1)].into());
        assert_eq!(*taken, [key(1)]);
        assert_eq!(*signing.keys(), [key(2), key(1)]);
    }
}
