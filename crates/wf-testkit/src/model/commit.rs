//! The one write: conditions first, in the order in which they are reported, then everything.

use serde::Serialize;
use wf_core::limits::{EVENT_BYTES_MAX, STATE_BYTES_MAX};
use wf_core::locks::{LockChange, LockHolder, LockRow};
use wf_core::models::AssetId;
use wf_core::ports::{
    Commit, CommitError, Conflict, DeadlineChange, OutboxRow, OutboxState, OutboxStatus,
};

use super::{Queued, State};

impl State {
    pub(crate) fn commit(&mut self, commit: Commit) -> Result<(), CommitError> {
        check_sizes(&commit)?;
        if let Some(conflict) = self.conflict(&commit) {
            return Err(CommitError::Conflict(conflict));
        }
        self.apply(commit);
        Ok(())
    }

    /// The condition that is reported, if one fails.
    pub(crate) fn conflict(&self, commit: &Commit) -> Option<Conflict> {
        self.ledger_conflict(commit)
            .or_else(|| self.lock_conflict(commit))
            .or_else(|| self.revision_conflict(commit))
    }

    pub(crate) fn ledger_conflict(&self, commit: &Commit) -> Option<Conflict> {
        let row = self.ledger.get(&commit.ledger.key)?;
        let replaced = commit.replaces.as_ref() == Some(row);
        (!replaced).then(|| Conflict::Ledger(Box::new(row.clone())))
    }

    pub(crate) fn lock_conflict(&self, commit: &Commit) -> Option<Conflict> {
        let failed = commit.locks.iter().find(|change| !self.lock_condition(commit, change))?;
        let asset_id = failed.asset_id().clone();
        let row = self.lock_row(commit, &asset_id).cloned();
        Some(Conflict::Asset { asset_id, row })
    }

    pub(crate) fn revision_conflict(&self, commit: &Commit) -> Option<Conflict> {
        let key = (commit.next.tenant.clone(), commit.next.id.clone());
        let current = self.workflows.get(&key).map_or(0, |w| w.revision);
        (current != commit.expected).then_some(Conflict::Revision { current })
    }

    fn lock_row(&self, commit: &Commit, asset: &AssetId) -> Option<&LockRow> {
        self.locks.get(&(commit.next.tenant.clone(), asset.clone()))
    }

    pub(crate) fn lock_condition(&self, commit: &Commit, change: &LockChange) -> bool {
        let row = self.lock_row(commit, change.asset_id());
        match change {
            LockChange::Acquire { fence, .. } => {
                let free = row.is_none_or(|row| row.holder.is_none());
                free && row.map_or(0, |row| row.fence).checked_add(1) == Some(*fence)
            }
            LockChange::Take { fence, .. } => {
                let ours = row.is_none_or(|row| row.holder.is_none() || holds(row, commit));
                ours && row.map_or(0, |row| row.fence).checked_add(1) == Some(*fence)
            }
            LockChange::Assert { fence, .. } => {
                row.is_some_and(|row| row.fence == *fence && holds(row, commit))
            }
            LockChange::Release { .. } => true,
        }
    }

    /// Writes everything, whatever the conditions say.
    pub(crate) fn apply(&mut self, commit: Commit) {
        let key = (commit.next.tenant.clone(), commit.next.id.clone());
        for change in &commit.locks {
            self.change_lock(&commit, change);
        }
        let due_at = commit.due_at();
        for change in commit.deadlines {
            match change {
                DeadlineChange::Set(deadline) => {
                    let id = (key.0.clone(), key.1.clone(), deadline.id.clone());
                    self.deadline_leases.remove(&id);
                    self.deadlines.insert(id, deadline);
                }
                DeadlineChange::Clear(id) => {
                    let id = (key.0.clone(), key.1.clone(), id);
                    self.deadline_leases.remove(&id);
                    self.deadlines.remove(&id);
                }
            }
        }
        if let Some(person) = commit.seen {
            let named = (person.name, commit.next.updated_at);
            self.people.insert((key.0.clone(), person.id), named);
        }
        for message in commit.outbox {
            let status = OutboxStatus {
                state: OutboxState::Pending,
                attempts: 0,
                next_attempt_at: message.time.min(due_at),
                last_error: None,
            };
            let id = message.id.clone();
            let row = OutboxRow { message, status };
            self.outbox.insert(id, Queued { row, delivered_at: None });
        }
        self.ledger.insert(commit.ledger.key.clone(), commit.ledger);
        self.events.entry(key.clone()).or_default().extend(commit.events);
        self.workflows.insert(key, commit.next);
    }

    pub(crate) fn change_lock(&mut self, commit: &Commit, change: &LockChange) {
        let key = (commit.next.tenant.clone(), change.asset_id().clone());
        match change {
            LockChange::Acquire { fence, .. } | LockChange::Take { fence, .. } => {
                let holder = LockHolder {
                    workflow_id: commit.next.id.clone(),
                    owner: commit.next.owner.clone(),
                    acquired_at: commit.next.updated_at,
                };
                let row = LockRow {
                    tenant: key.0.clone(),
                    asset_id: key.1.clone(),
                    fence: *fence,
                    holder: Some(holder),
                };
                self.locks.insert(key, row);
            }
            LockChange::Assert { .. } => {}
            LockChange::Release { fence, .. } => {
                let row = self.locks.get_mut(&key);
                if let Some(row) = row.filter(|row| row.fence == *fence && holds(row, commit)) {
                    row.holder = None;
                }
            }
        }
    }
}

fn holds(row: &LockRow, commit: &Commit) -> bool {
    let holder = row.holder.as_ref();
    holder.is_some_and(|holder| holder.workflow_id == commit.next.id)
}

fn check_sizes(commit: &Commit) -> Result<(), CommitError> {
    fits("the state", &commit.next, STATE_BYTES_MAX)?;
    fits("the result", &commit.ledger.entry.result, STATE_BYTES_MAX)?;
    for event in &commit.events {
        fits("an event", event, EVENT_BYTES_MAX)?;
    }
    for message in &commit.outbox {
        fits("a message", message, EVENT_BYTES_MAX)?;
    }
    Ok(())
}

fn fits(what: &'static str, record: &impl Serialize, most: usize) -> Result<(), CommitError> {
    match serde_json::to_vec(record) {
        Ok(bytes) if bytes.len() <= most => Ok(()),
        Ok(_) => Err(CommitError::TooLarge { what }),
        Err(_) => Err(CommitError::Corrupt { what: format!("{what} is no JSON") }),
    }
}
