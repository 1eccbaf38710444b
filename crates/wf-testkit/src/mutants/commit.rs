//! Broken commits.

use std::sync::atomic::Ordering;

use wf_core::locks::LockChange;
use wf_core::models::Actor;
use wf_core::ports::{
    Commit, CommitError, Conflict, DeadlineChange, OutboxRow, OutboxState, OutboxStatus,
    StorageBackendPort,
};

use super::{MutantStore, Mutation};
use crate::build::key;
use crate::model::{Queued, State};

impl MutantStore {
    pub(super) async fn mutant_commit(&self, commit: Commit) -> Result<(), CommitError> {
        if self.is(Mutation::ReadsLag) {
            self.remember();
        }
        if self.is(Mutation::HalfAtATime) {
            return self.half_at_a_time(commit).await;
        }
        if self.is(Mutation::EventsLate) {
            return self.events_late(commit).await;
        }
        if self.is(Mutation::DropPoisons) {
            if self.poisoned().swap(true, Ordering::SeqCst) {
                return Err(unavailable());
            }
            tokio::task::yield_now().await;
            self.poisoned().store(false, Ordering::SeqCst);
        }
        if let Some(refusal) = self.early_refusal(&commit) {
            return Err(refusal);
        }
        let sent = self.changed(commit.clone());
        let answer = if self.is(Mutation::SizesUnchecked) {
            unchecked(&mut self.model().lock(), sent)
        } else {
            self.faulty().commit(sent).await
        };
        match answer {
            Ok(()) => {
                self.after_success(&commit);
                Ok(())
            }
            Err(CommitError::Ambiguous { .. }) if self.is(Mutation::UnavailableAlthoughApplied) => {
                Err(unavailable())
            }
            Err(error) => {
                self.after_refusal(&commit);
                Err(error)
            }
        }
    }

    /// Refusals that the law does not know, or not in this order.
    fn early_refusal(&self, commit: &Commit) -> Option<CommitError> {
        let state = self.model().lock();
        let conflict = if self.is(Mutation::RevisionFirst) {
            state.revision_conflict(commit)
        } else if self.is(Mutation::ReplacesMustExist) {
            let gone = commit.replaces.is_some() && !state.ledger.contains_key(&commit.ledger.key);
            gone.then_some(Conflict::Revision { current: 0 })
        } else {
            None
        };
        let large = self.is(Mutation::SizesTooSmall)
            && serde_json::to_vec(&commit.next).is_ok_and(|bytes| bytes.len() > 100_000);
        let too_large = large.then_some(CommitError::TooLarge { what: "the state" });
        conflict.map(CommitError::Conflict).or(too_large)
    }

    /// The commit with what the mutation ignores left out or made to pass.
    fn changed(&self, mut commit: Commit) -> Commit {
        if self.is(Mutation::OutboxForgotten) {
            commit.outbox.clear();
        } else if self.is(Mutation::DeadlinesForgotten) {
            commit.deadlines.clear();
        } else if self.is(Mutation::LocksForgotten) || self.is(Mutation::LocksUnchecked) {
            commit.locks.clear();
        } else if self.is(Mutation::AssertIgnored) {
            commit.locks.retain(|change| !matches!(change, LockChange::Assert { .. }));
        } else if self.is(Mutation::PeopleForgotten) {
            commit.seen = None;
        } else if self.is(Mutation::TakeForgotten) {
            commit.locks.retain(|change| !matches!(change, LockChange::Take { .. }));
        } else if self.is(Mutation::TakeNeedsFree) {
            for change in &mut commit.locks {
                if let LockChange::Take { asset_id, fence } = change.clone() {
                    *change = LockChange::Acquire { asset_id, fence };
                }
            }
        } else if self.is(Mutation::ClearIgnored) {
            commit.deadlines.retain(|change| !matches!(change, DeadlineChange::Clear(_)));
        } else if self.is(Mutation::KeyOfTenant) {
            commit.ledger.key.actor = Actor::User("anybody".to_owned());
        } else if self.is(Mutation::KeysCaseless) {
            let lower = commit.ledger.key.key.as_str().to_lowercase();
            commit.ledger.key.key = key(&lower);
        } else if self.is(Mutation::SensitiveForgotten) {
            commit.events.iter_mut().for_each(|event| event.sensitive.clear());
        }
        self.made_to_pass(&mut commit);
        commit
    }

    fn made_to_pass(&self, commit: &mut Commit) {
        let mut state = self.model().lock();
        let id = (commit.next.tenant.clone(), commit.next.id.clone());
        if self.is(Mutation::RevisionIgnored) {
            commit.expected = state.workflows.get(&id).map_or(0, |w| w.revision);
        }
        let replaces = self.is(Mutation::ReplacesUnchecked) && commit.replaces.is_some();
        if replaces || self.is(Mutation::LedgerIgnored) {
            commit.replaces = state.ledger.get(&commit.ledger.key).cloned();
        }
        if self.is(Mutation::OutboxBeforeConditions) {
            write_outbox(&mut state, commit);
            commit.outbox.clear();
        }
        if self.is(Mutation::TakeFromAnybody) {
            for change in &commit.locks {
                if let LockChange::Take { asset_id, .. } = change
                    && let Some(row) = state.locks.get_mut(&(id.0.clone(), asset_id.clone()))
                {
                    row.holder = None;
                }
            }
        }
        for change in &mut commit.locks {
            if let LockChange::Acquire { asset_id, fence } = change {
                let row = state.locks.get_mut(&(id.0.clone(), asset_id.clone()));
                let Some(row) = row else {
                    if self.is(Mutation::FenceUnchecked) {
                        *fence = 1;
                    }
                    continue;
                };
                let own = row.holder.as_ref().is_some_and(|h| h.workflow_id == id.1);
                if own && self.is(Mutation::OwnAssetIsFree) {
                    row.holder = None;
                }
                if row.holder.is_none() && self.is(Mutation::FenceUnchecked) {
                    *fence = row.fence + 1;
                }
            }
        }
    }

    fn after_success(&self, commit: &Commit) {
        let mut state = self.model().lock();
        let id = (commit.next.tenant.clone(), commit.next.id.clone());
        if self.is(Mutation::LedgerForgotten) {
            state.ledger.remove(&commit.ledger.key);
        }
        if self.is(Mutation::DueByItsHistory) {
            for message in &commit.outbox {
                if let Some(queued) = state.outbox.get_mut(&message.id) {
                    queued.row.status.next_attempt_at = message.time;
                }
            }
        }
        if self.is(Mutation::EventsOverwritten) {
            state.events.insert(id.clone(), commit.events.clone());
        }
        for change in &commit.locks {
            let asset = (id.0.clone(), change.asset_id().clone());
            let released = matches!(change, LockChange::Release { .. });
            if self.is(Mutation::LocksUnchecked) {
                state.change_lock(commit, change);
            } else if released && self.is(Mutation::ReleaseDeletesRow) {
                state.locks.remove(&asset);
            } else if let Some(row) = state.locks.get_mut(&asset) {
                if released && self.is(Mutation::ReleaseUnchecked) {
                    row.holder = None;
                }
                if self.is(Mutation::AssertWrites)
                    && let Some(holder) = &mut row.holder
                {
                    holder.acquired_at = commit.next.updated_at;
                }
            }
        }
    }

    fn after_refusal(&self, commit: &Commit) {
        let mut state = self.model().lock();
        if self.is(Mutation::LocksOneByOne) {
            for change in &commit.locks {
                if !state.lock_condition(commit, change) {
                    break;
                }
                state.change_lock(commit, change);
            }
        }
        if self.is(Mutation::EventsRewritten) {
            let id = (commit.next.tenant.clone(), commit.next.id.clone());
            for event in state.events.entry(id).or_default() {
                if let Some(other) = commit.events.iter().find(|other| other.seq == event.seq) {
                    *event = other.clone();
                }
            }
        }
    }

    async fn half_at_a_time(&self, commit: Commit) -> Result<(), CommitError> {
        {
            let mut state = self.model().lock();
            if let Some(conflict) = state.conflict(&commit) {
                return Err(CommitError::Conflict(conflict));
            }
            state.ledger.insert(commit.ledger.key.clone(), commit.ledger.clone());
        }
        self.reads_pass().await;
        self.model().lock().apply(commit);
        Ok(())
    }

    async fn events_late(&self, mut commit: Commit) -> Result<(), CommitError> {
        let events = std::mem::take(&mut commit.events);
        let id = (commit.next.tenant.clone(), commit.next.id.clone());
        self.faulty().commit(commit).await?;
        self.reads_pass().await;
        self.model().lock().events.entry(id).or_default().extend(events);
        Ok(())
    }
}

fn unchecked(state: &mut State, commit: Commit) -> Result<(), CommitError> {
    if let Some(conflict) = state.conflict(&commit) {
        return Err(CommitError::Conflict(conflict));
    }
    state.apply(commit);
    Ok(())
}

fn write_outbox(state: &mut State, commit: &Commit) {
    for message in &commit.outbox {
        let status = OutboxStatus {
            state: OutboxState::Pending,
            attempts: 0,
            next_attempt_at: message.time,
            last_error: None,
        };
        let row = OutboxRow { message: message.clone(), status };
        let queued = Queued { row, delivered_at: None };
        state.outbox.insert(message.id.clone(), queued);
    }
}

#[derive(Debug, thiserror::Error)]
#[error("a mutation")]
struct Mutated;

fn unavailable() -> CommitError {
    CommitError::Unavailable { after_ms: None, source: Box::new(Mutated) }
}
