//! People whom this engine has told the store of: the next commit of the same person need not name them again.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::models::{Actor, Person, Principal, TenantId};

/// People remembered; when there are more, all are forgotten and told of once more.
const KNOWN_MAX: usize = 10_000;

/// Who is known.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<BTreeSet<(TenantId, Person)>>);

impl Known {
    /// The caller, when the store may not know them by this name yet. Only users can be offered work.
    pub(super) fn news(&self, by: &Principal) -> Option<Person> {
        match by.actor {
            Actor::User(_) => {}
            Actor::System(_) | Actor::Cli(_) => return None,
        }
        let person = (by.tenant.clone(), by.person());
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&person);
        let (_, person) = person;
        (!known).then_some(person)
    }

    /// The store knows this person.
    pub(super) fn add(&self, tenant: &TenantId, person: &Person) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert((tenant.clone(), person.clone()));
    }
}
