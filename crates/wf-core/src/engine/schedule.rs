//! Fires deadlines that are due: takes their leases, runs `deadline_reached` as any other call, gives up what was refused.
//!
//! Those of one workflow go in order, one commit each; workflows go side by side. The deadline's id is the key of its
//! firing, so that it happens once whoever fires it. Who serves sleeps until [`Engine::next_due`], claims with
//! [`Engine::claim_due`] and runs [`Engine::fire_in_order`] in tasks of its own; [`Engine::fire_due`] does both once, for
//! everybody else. Neighbours: `dispatch`, `together`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use wf_idempotency::IdempotencyKey;

use crate::errors::{ErrorCode, Retry};
use crate::limits::LEASE_MS;
use crate::models::{Actor, Principal, WorkflowId};
use crate::ports::{Claim, ClaimedDeadline, LeaseToken, NextDeadline, ReadError, SettleError};

use super::Engine;
use super::call::{Call, CallMeta, Request};
use super::dispatch::together;

/// The operation's name in the ledger.
const OPERATION: &str = "deadline_reached";

/// Deadlines of one workflow that are due, under lease, in the order in which they are to be fired.
#[derive(Debug)]
pub struct DueDeadlines(Vec<ClaimedDeadline>);

/// What became of the deadlines that were due.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fired {
    /// Deadlines that are done with: fired, or refused because nothing waits for them any more.
    pub settled: usize,
    /// Deadlines that stay, to be fired again after their lease.
    pub kept: usize,
    /// How late the latest of the settled ones was, in milliseconds.
    pub late_ms: i64,
}

impl Fired {
    /// Adds what became of others.
    pub fn add(&mut self, other: Self) {
        self.settled += other.settled;
        self.kept += other.kept;
        self.late_ms = self.late_ms.max(other.late_ms);
    }
}

impl Engine {
    /// When the next deadline can be fired.
    ///
    /// # Errors
    /// [`ReadError`] when the store does not answer.
    pub async fn next_due(&self) -> Result<NextDeadline, ReadError> {
        self.parts.store.next_deadline(self.parts.clock.now(), LEASE_MS).await
    }

    /// Fires deadlines that are due, at most `limit`.
    ///
    /// # Errors
    /// [`ReadError`] when the store does not answer.
    pub async fn fire_due(&self, limit: u32) -> Result<Fired, ReadError> {
        let firing = self.claim_due(limit).await?.into_iter().map(|due| self.fire_in_order(due));
        let mut fired = Fired::default();
        for one in together::all(firing).await {
            fired.add(one);
        }
        Ok(fired)
    }

    /// Takes the lease of deadlines that are due, at most `limit`, the earliest first. Each must go to
    /// [`Engine::fire_in_order`] at once; one that does not comes again when its lease is over.
    ///
    /// # Errors
    /// [`ReadError`] when the store does not answer.
    pub async fn claim_due(&self, limit: u32) -> Result<Vec<DueDeadlines>, ReadError> {
        let claim = Claim {
            now: self.parts.clock.now(),
            lease_ms: LEASE_MS,
            token: LeaseToken(self.parts.ids.random_hex()),
            limit,
        };
        let mut workflows: BTreeMap<_, Vec<ClaimedDeadline>> = BTreeMap::new();
        for claimed in self.parts.store.claim_deadlines(&claim).await? {
            let workflow = (claimed.tenant.clone(), claimed.workflow_id.clone());
            workflows.entry(workflow).or_default().push(claimed);
        }
        Ok(workflows.into_values().map(DueDeadlines).collect())
    }

    /// Fires those of one workflow. One that stays makes those behind it stay: they never overtake it.
    pub async fn fire_in_order(&self, due: DueDeadlines) -> Fired {
        let mut fired = Fired::default();
        let all = due.0.len();
        for claimed in due.0 {
            // A policy or a store with a bug must not take the other workflows with it.
            let settled = together::unless_panics(self.fire(&claimed)).await.unwrap_or(false);
            if !settled {
                break;
            }
            let late_ms = self.parts.clock.now().since_ms(claimed.deadline.fire_at);
            fired.add(Fired { settled: 1, kept: 0, late_ms });
        }
        fired.kept = all - fired.settled;
        fired
    }

    /// Fires one; true when it is done with, false when it is to be fired again after its lease. A crash at any point
    /// leaves it due, and its key lets nothing happen twice. A lease that is over does no harm for the same reason.
    async fn fire(&self, claimed: &ClaimedDeadline) -> bool {
        let Ok(key) = IdempotencyKey::parse(&claimed.deadline.id) else {
            return self.give_up(claimed).await;
        };
        let principal = Principal::part(claimed.tenant.clone(), Actor::clock());
        let deadline_id = &claimed.deadline.id;
        let reply = self.execute(&principal, &call(&claimed.workflow_id, deadline_id, key)).await;
        match reply.error {
            // The commit removed the row.
            None => true,
            // A build that knows the definition must fire it.
            Some(ErrorCode::ProcedureNotFound) => false,
            Some(code) => match code.retry() {
                Retry::SameCall => false,
                Retry::ChangedCall | Retry::No => self.give_up(claimed).await,
            },
        }
    }

    /// Removes the row of a deadline that the state does not have.
    async fn give_up(&self, claimed: &ClaimedDeadline) -> bool {
        match self.parts.store.settle_deadline(claimed).await {
            Ok(()) | Err(SettleError::LeaseLost) => true,
            Err(SettleError::Unavailable { .. }) => false,
        }
    }
}

/// `deadline_reached`, under the deadline's id as its key.
pub(super) fn call(workflow_id: &WorkflowId, deadline_id: &str, key: IdempotencyKey) -> Call {
    let (workflow_id, deadline_id) = (workflow_id.clone(), deadline_id.to_owned());
    let arguments = Map::from_iter([
        ("workflow_id".to_owned(), Value::from(workflow_id.as_str())),
        ("deadline_id".to_owned(), Value::from(deadline_id.as_str())),
    ]);
    Call {
        operation: OPERATION,
        arguments,
        key: Some(key),
        request: Request::DeadlineReached { workflow_id, deadline_id },
        meta: CallMeta::default(),
    }
}
