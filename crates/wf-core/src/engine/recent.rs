//! Workflows as this engine committed them last: the next call on one is decided on that first, without asking the store.
//!
//! It is a guess, not the truth: another process may have changed the workflow since. Only a commit may come of it, for
//! its conditions (revision, ledger key, locks) hold the guess against the store; everything else that a call can be
//! answered is decided on what the store says (`attempt::guess`).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::locks::{LockChange, LockRow};
use crate::models::{Phase, TenantId, WorkflowId};
use crate::ports::{Commit, Snapshot};

/// What was committed last, the newest `most`.
#[derive(Debug)]
pub(super) struct Recent {
    most: usize,
    kept: Mutex<Kept>,
}

type Name = (TenantId, WorkflowId);

#[derive(Debug, Default)]
struct Kept {
    /// Counts what was kept, so that the oldest is known.
    count: u64,
    by_name: BTreeMap<Name, (u64, Arc<Snapshot>)>,
    by_age: BTreeMap<u64, Name>,
}

impl Recent {
    pub(super) fn new(most: usize) -> Self {
        Self { most, kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the workflow stood after the last commit of this engine, with its locks; no ledger row, no counts.
    pub(super) fn of(&self, tenant: &TenantId, id: &WorkflowId) -> Option<Arc<Snapshot>> {
        let name = (tenant.clone(), id.clone());
        self.kept().by_name.get(&name).map(|(_, snapshot)| Arc::clone(snapshot))
    }

    /// The commit is in the store; `locks` are those that it was decided on. One that changes locks, or ends the
    /// workflow, leaves nothing to guess.
    pub(super) fn keep(&self, commit: Commit, locks: Vec<LockRow>) {
        if self.most == 0 {
            return;
        }
        let Commit { next, locks: changes, .. } = commit;
        let as_before = changes.iter().all(|change| matches!(change, LockChange::Assert { .. }));
        let name = (next.tenant.clone(), next.id.clone());
        if !as_before || next.phase == Phase::Completed {
            self.kept().forget(&name);
            return;
        }
        let snapshot = Snapshot { workflow: Some(next), locks, ..Snapshot::default() };
        self.kept().insert(name, Arc::new(snapshot), self.most);
    }

    /// The guess was wrong.
    pub(super) fn forget(&self, tenant: &TenantId, id: &WorkflowId) {
        self.kept().forget(&(tenant.clone(), id.clone()));
    }
}

impl Kept {
    fn insert(&mut self, name: Name, snapshot: Arc<Snapshot>, most: usize) {
        self.forget(&name);
        self.count += 1;
        self.by_age.insert(self.count, name.clone());
        self.by_name.insert(name, (self.count, snapshot));
        if self.by_name.len() > most
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.by_name.remove(&oldest);
        }
    }

    fn forget(&mut self, name: &Name) {
        if let Some((age, _)) = self.by_name.remove(name) {
            self.by_age.remove(&age);
        }
    }
}
