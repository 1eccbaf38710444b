//! The tenant as a label: as many tenants as a label may have values, the rest counted together.
//!
//! A tenant comes from a verified token, so nobody outside makes one up; but an authorization server may have many, and
//! each value of a label is a row that is kept for ever.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use metrics::SharedString;
use wf_core::models::TenantId;

/// Most tenants that have a label of their own.
const TENANTS_MAX: usize = 256;
/// The label of all others. No tenant can be called so.
const OTHERS: &str = "(others)";

/// The labels that were given so far: to whoever came first.
#[derive(Debug)]
pub(super) struct Tenants(RwLock<BTreeMap<TenantId, SharedString>>);

impl Tenants {
    pub(super) const fn new() -> Self {
        Self(RwLock::new(BTreeMap::new()))
    }

    /// The tenant's label, for as long as the process lives.
    pub(super) fn label(&self, tenant: &TenantId) -> SharedString {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(label) = known.get(tenant) {
            return label.clone();
        }
        let full = known.len() >= TENANTS_MAX;
        drop(known);
        if full {
            return SharedString::const_str(OTHERS);
        }
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= TENANTS_MAX && !known.contains_key(tenant) {
            return SharedString::const_str(OTHERS);
        }
        let label = || SharedString::from(Arc::<str>::from(tenant.as_str()));
        known.entry(tenant.clone()).or_insert_with(label).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(n: usize) -> TenantId {
        TenantId::parse(&format!("t-{n}")).unwrap()
    }

    fn label(tenants: &Tenants, n: usize) -> String {
        tenants.label(&tenant(n)).into_owned()
    }

    #[test]
    fn the_first_have_their_own_and_the_rest_share_one() {
        let tenants = Tenants::new();
        for n in 0..TENANTS_MAX {
            assert_eq!(label(&tenants, n), format!("t-{n}"));
        }
        for n in [TENANTS_MAX, TENANTS_MAX + 1, 1_000_000] {
            assert_eq!(label(&tenants, n), OTHERS);
        }
        assert_eq!(label(&tenants, 7), "t-7", "what was given stays");
        assert_eq!(tenants.0.read().unwrap().len(), TENANTS_MAX);
        assert!(TenantId::parse(OTHERS).is_err());
    }

    #[test]
    fn many_at_once_stay_within_the_bound() {
        let tenants = Tenants::new();
        std::thread::scope(|scope| {
            for worker in 0..4 {
                let tenants = &tenants;
                scope.spawn(move || {
                    for n in 0..TENANTS_MAX {
                        tenants.label(&tenant(worker * TENANTS_MAX + n));
                    }
                });
            }
        });
        assert_eq!(tenants.0.read().unwrap().len(), TENANTS_MAX);
    }
}
