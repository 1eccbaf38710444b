//! Whether the conditions of a commit hold: against what was read in the transaction, and the commits before it in the
//! batch. Pure; `apply` reads the [`World`] and writes what it has become.
//!
//! Order of conditions: ledger, then locks, then revision.

use std::collections::HashMap;

use wf_core::locks::{LockChange, LockHolder, LockRow};
use wf_core::models::{AssetId, TenantId, WorkflowId};
use wf_core::ports::{Conflict, LedgerKey, LedgerRow};

use super::job::Refusal;
use crate::codec::Placement;
use crate::codec::encode::{Head, Prepared};

/// What must be read to judge a batch: each thing once, in the order in which it was met.
#[derive(Debug, Default)]
pub(crate) struct Wanted<'a> {
    /// Ledger keys.
    pub(crate) ledger: Vec<&'a LedgerKey>,
    /// Workflows.
    pub(crate) heads: Vec<(&'a TenantId, &'a WorkflowId)>,
    /// Assets.
    pub(crate) locks: Vec<(&'a TenantId, &'a AssetId)>,
    /// For each commit, where its things stand in the lists above.
    pub(crate) places: Vec<Places>,
}

/// Where the things of one commit stand.
#[derive(Debug)]
pub(crate) struct Places {
    ledger: usize,
    head: usize,
    locks: Vec<usize>,
}

/// Positions by key.
struct Positions<K>(HashMap<K, usize>);

impl<K: std::hash::Hash + Eq + Copy> Positions<K> {
    fn of(&mut self, key: K, list: &mut Vec<K>) -> usize {
        *self.0.entry(key).or_insert_with(|| {
            list.push(key);
            list.len() - 1
        })
    }
}

impl<'a> Wanted<'a> {
    /// Of a batch.
    pub(crate) fn by(commits: &[&'a Prepared]) -> Self {
        let mut wanted = Self::default();
        let mut ledger = Positions(HashMap::new());
        let mut heads = Positions(HashMap::new());
        let mut locks = Positions(HashMap::new());
        for commit in commits {
            let places = Places {
                ledger: ledger.of(&commit.ledger.key, &mut wanted.ledger),
                head: heads.of((&commit.tenant, &commit.id), &mut wanted.heads),
                locks: commit
                    .locks
                    .iter()
                    .map(|change| locks.of((&commit.tenant, change.asset_id()), &mut wanted.locks))
                    .collect(),
            };
            wanted.places.push(places);
        }
        wanted
    }
}

/// A ledger row that was looked for.
#[derive(Debug, Default)]
pub(crate) struct LedgerCell<'a> {
    /// Its row id in the database, if there is one.
    pub(crate) stored: Option<i64>,
    /// The row that was read; the text says why it cannot be read.
    pub(crate) read: Option<Result<LedgerRow, String>>,
    /// The row that an accepted commit of this batch writes, and the number of its workflow.
    pub(crate) written: Option<(i64, &'a LedgerRow)>,
}

impl LedgerCell<'_> {
    fn current(&self) -> Result<Option<&LedgerRow>, Refusal> {
        match (self.written, &self.read) {
            (Some((_, row)), _) => Ok(Some(row)),
            (None, Some(Ok(row))) => Ok(Some(row)),
            (None, Some(Err(what))) => Err(Refusal::Corrupt(what.clone())),
            (None, None) => Ok(None),
        }
    }
}

/// A workflow that was looked for.
#[derive(Debug, Default)]
pub(crate) struct HeadCell<'a> {
    /// Its number in the database, given to it in this batch when it is new.
    pub(crate) wid: i64,
    /// Its columns for lists and its assets, as read.
    pub(crate) stored: Option<(Placement, String)>,
    /// Its revision as it stands; 0 when it does not exist.
    pub(crate) revision: u64,
    /// The head that the last accepted commit of this batch writes.
    pub(crate) written: Option<&'a Head>,
}

/// An asset that was looked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct LockCell {
    /// A row exists, or will.
    pub(crate) exists: bool,
    /// Its fence.
    pub(crate) fence: u64,
    /// The least fence that it has when it is free.
    pub(crate) floor: u64,
    /// Who holds it.
    pub(crate) holder: Option<LockHolder>,
    /// Changed by this batch.
    pub(crate) written: bool,
}

impl LockCell {
    fn row(&self, tenant: &TenantId, asset_id: &AssetId) -> Option<LockRow> {
        // After a restore a free fence above 0 is known even where there is no row yet.
        (self.exists || self.fence > 0).then(|| LockRow {
            tenant: tenant.clone(),
            asset_id: asset_id.clone(),
            fence: self.fence,
            holder: self.holder.clone(),
        })
    }

    fn is_held_by(&self, commit: &Prepared, fence: u64) -> bool {
        self.fence == fence
            && self.holder.as_ref().is_some_and(|holder| holder.workflow_id == commit.id)
    }

    /// Whether the change may be done.
    fn allows(&self, change: &LockChange, commit: &Prepared) -> bool {
        match change {
            LockChange::Acquire { fence, .. } => {
                self.holder.is_none() && self.fence.checked_add(1) == Some(*fence)
            }
            LockChange::Take { fence, .. } => {
                let ours =
                    self.holder.as_ref().is_none_or(|holder| holder.workflow_id == commit.id);
                ours && self.fence.checked_add(1) == Some(*fence)
            }
            LockChange::Assert { fence, .. } => self.is_held_by(commit, *fence),
            LockChange::Release { .. } => true,
        }
    }

    /// Does it.
    fn change(&mut self, change: &LockChange, commit: &Prepared) {
        match change {
            LockChange::Acquire { fence, .. } | LockChange::Take { fence, .. } => {
                self.fence = *fence;
                self.holder = Some(commit.holder.clone());
                self.exists = true;
                self.written = true;
            }
            LockChange::Assert { .. } => {}
            LockChange::Release { fence, .. } => {
                if self.is_held_by(commit, *fence) {
                    self.holder = None;
                    self.fence = self.fence.max(self.floor);
                    self.written = true;
                }
            }
        }
    }
}

/// What was read for a batch, and what it becomes.
#[derive(Debug, Default)]
pub(crate) struct World<'a> {
    /// Parallel to [`Wanted::ledger`].
    pub(crate) ledger: Vec<LedgerCell<'a>>,
    /// Parallel to [`Wanted::heads`].
    pub(crate) heads: Vec<HeadCell<'a>>,
    /// Parallel to [`Wanted::locks`].
    pub(crate) locks: Vec<LockCell>,
    /// The number of the next new workflow.
    pub(crate) next_wid: i64,
    /// Accepted commits with the numbers of their workflows, in order.
    pub(crate) accepted: Vec<(i64, &'a Prepared)>,
}

impl<'a> World<'a> {
    /// Judges a commit and, when its conditions hold, takes it.
    pub(crate) fn take(&mut self, commit: &'a Prepared, places: &Places) -> Result<(), Refusal> {
        self.check_ledger(commit, places)?;
        self.check_locks(commit, places)?;
        let Some(head) = self.heads.get_mut(places.head) else {
            return Err(Refusal::Corrupt("a workflow was not looked for".to_owned()));
        };
        if head.revision != commit.expected {
            return Err(Refusal::Conflict(Conflict::Revision { current: head.revision }));
        }
        if head.stored.is_none() && head.written.is_none() {
            head.wid = self.next_wid;
            self.next_wid += 1;
        }
        head.revision = commit.revision;
        head.written = Some(&commit.head);
        let wid = head.wid;
        self.accepted.push((wid, commit));
        for (change, &place) in commit.locks.iter().zip(&places.locks) {
            if let Some(cell) = self.locks.get_mut(place) {
                cell.change(change, commit);
            }
        }
        if let Some(cell) = self.ledger.get_mut(places.ledger) {
            cell.written = Some((wid, &commit.ledger));
        }
        Ok(())
    }

    fn check_ledger(&self, commit: &Prepared, places: &Places) -> Result<(), Refusal> {
        let current = match self.ledger.get(places.ledger) {
            Some(cell) => cell.current()?,
            None => None,
        };
        match current {
            Some(row) if commit.replaces.as_ref() != Some(row) => {
                Err(Refusal::Conflict(Conflict::Ledger(Box::new(row.clone()))))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// All conditions are about the locks as they are before the commit.
    fn check_locks(&self, commit: &Prepared, places: &Places) -> Result<(), Refusal> {
        for (change, &place) in commit.locks.iter().zip(&places.locks) {
            let Some(cell) = self.locks.get(place) else {
                return Err(Refusal::Corrupt("an asset was not looked for".to_owned()));
            };
            if !cell.allows(change, commit) {
                let asset_id = change.asset_id().clone();
                let row = cell.row(&commit.tenant, &asset_id);
                return Err(Refusal::Conflict(Conflict::Asset { asset_id, row }));
            }
        }
        Ok(())
    }
}
