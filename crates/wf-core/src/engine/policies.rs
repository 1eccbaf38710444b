//! Which policies there are: the ones that may be started, and the ones that running workflows pinned.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use thiserror::Error;

use crate::models::{Digest, ProcedureId};
use crate::policy::{DomainPolicyPort, PolicyCompilerPort};
use crate::ports::{ReadError, StorageBackendPort};

/// Policies that exclude each other.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PoliciesError {
    /// Two policies claim the same procedure.
    #[error("procedure {0} is defined twice")]
    Twice(ProcedureId),
}

/// The policies of a server. Cheap to clone; all clones see a reload.
#[derive(Debug, Clone)]
pub struct Policies {
    shared: Arc<RwLock<Known>>,
    compiler: Option<Arc<dyn PolicyCompilerPort>>,
}

#[derive(Debug, Default)]
struct Known {
    current: BTreeMap<ProcedureId, Arc<dyn DomainPolicyPort>>,
    pinned: BTreeMap<Digest, Arc<dyn DomainPolicyPort>>,
}

impl Policies {
    /// Policies that may be started, and a compiler for definitions that only the store knows.
    ///
    /// # Errors
    /// [`PoliciesError::Twice`] when two policies have the same procedure id.
    pub fn new(
        current: Vec<Arc<dyn DomainPolicyPort>>,
        compiler: Option<Arc<dyn PolicyCompilerPort>>,
    ) -> Result<Self, PoliciesError> {
        let this = Self { shared: Arc::default(), compiler };
        this.replace(current)?;
        Ok(this)
    }

    /// Replaces what may be started. Workflows that run go on with what they pinned.
    ///
    /// # Errors
    /// [`PoliciesError::Twice`]; then nothing changed.
    pub fn replace(&self, policies: Vec<Arc<dyn DomainPolicyPort>>) -> Result<(), PoliciesError> {
        let mut current: BTreeMap<ProcedureId, Arc<dyn DomainPolicyPort>> = BTreeMap::new();
        for policy in policies {
            let id = policy.definition().id.clone();
            if current.insert(id.clone(), policy).is_some() {
                return Err(PoliciesError::Twice(id));
            }
        }
        let mut known = self.shared.write().unwrap_or_else(PoisonError::into_inner);
        for policy in current.values() {
            known.pinned.insert(policy.definition().digest.clone(), Arc::clone(policy));
        }
        known.current = current;
        Ok(())
    }

    /// Everything that may be started, by procedure id.
    #[must_use]
    pub fn current(&self) -> Vec<Arc<dyn DomainPolicyPort>> {
        let known = self.shared.read().unwrap_or_else(PoisonError::into_inner);
        known.current.values().cloned().collect()
    }

    /// The policy that a new start of `procedure` uses.
    #[must_use]
    pub fn startable(&self, procedure: &str) -> Option<Arc<dyn DomainPolicyPort>> {
        let known = self.shared.read().unwrap_or_else(PoisonError::into_inner);
        known.current.get(procedure).cloned()
    }

    /// The policy with this digest: a known one, or one compiled from the stored definition.
    ///
    /// # Errors
    /// [`ReadError`] when the store does not answer; `Ok(None)` when nobody knows the digest.
    pub async fn pinned(
        &self,
        digest: &Digest,
        store: &dyn StorageBackendPort,
    ) -> Result<Option<Arc<dyn DomainPolicyPort>>, ReadError> {
        if let Some(policy) = self.known(digest) {
            return Ok(Some(policy));
        }
        let Some(compiler) = &self.compiler else {
            return Ok(None);
        };
        let Some(definition) = store.definition(digest).await? else {
            return Ok(None);
        };
        let Some(policy) = compiler.compile(&definition) else {
            return Ok(None);
        };
        let mut known = self.shared.write().unwrap_or_else(PoisonError::into_inner);
        known.pinned.insert(digest.clone(), Arc::clone(&policy));
        Ok(Some(policy))
    }

    fn known(&self, digest: &Digest) -> Option<Arc<dyn DomainPolicyPort>> {
        let known = self.shared.read().unwrap_or_else(PoisonError::into_inner);
        known.pinned.get(digest).cloned()
    }
}
