//! Tells others in this process which workflows changed, right after the commit.
//!
//! A hint, no record: what other processes commit is not told, and nothing is told again.

use std::fmt::Debug;
use std::sync::{Arc, PoisonError, RwLock, Weak};

use crate::models::{TenantId, WorkflowId};

use super::Engine;

/// Is told of changes.
///
/// Law: returns at once; a commit waits for it.
pub trait Watcher: Debug + Send + Sync {
    /// This workflow was committed.
    fn changed(&self, tenant: &TenantId, workflow: &WorkflowId);
}

/// Who is told; whoever is gone is forgotten.
#[derive(Debug, Default)]
pub(super) struct Watchers(RwLock<Vec<Weak<dyn Watcher>>>);

impl Watchers {
    pub(super) fn tell(&self, tenant: &TenantId, workflow: &WorkflowId) {
        let watchers = self.0.read().unwrap_or_else(PoisonError::into_inner);
        for watcher in watchers.iter().filter_map(Weak::upgrade) {
            watcher.changed(tenant, workflow);
        }
    }
}

impl Engine {
    /// Tells `watcher` of every commit of this engine from now on, for as long as somebody else holds it.
    pub fn watch(&self, watcher: &Arc<dyn Watcher>) {
        let mut watchers = self.watchers.0.write().unwrap_or_else(PoisonError::into_inner);
        watchers.retain(|known| known.strong_count() > 0);
        watchers.push(Arc::downgrade(watcher));
    }
}
