//! What a store holds. Plain maps, in the order in which the port lists them.

use std::collections::BTreeMap;

use wf_core::locks::LockRow;
use wf_core::models::{
    Actor, AssetId, Digest, ProcedureId, TenantId, Timestamp, Workflow, WorkflowId,
};
use wf_core::policy::Definition;
use wf_core::ports::{
    Claim, Deadline, DefinitionError, LeaseToken, LedgerKey, LedgerRow, OutboxRow, StoreIdentity,
    Tombstone, latest_live_expiry,
};
use wf_core::state_machine::{Event, Secret};

use super::ModelStore;

/// Which workflow.
pub(crate) type WorkflowKey = (TenantId, WorkflowId);
/// Which stream of messages: tenant, workflow, recipient.
pub(crate) type StreamKey = (TenantId, WorkflowId, String);

/// Who works on something, and until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) token: LeaseToken,
    pub(crate) expires_at: Timestamp,
}

impl Lease {
    pub(crate) fn of(claim: &Claim) -> Self {
        Self { token: claim.token.clone(), expires_at: claim.now.plus_ms(claim.lease_ms) }
    }

    /// It has not expired, and could have been given by a clock like the claimer's.
    pub(crate) fn is_live(&self, claim: &Claim) -> bool {
        let latest = latest_live_expiry(claim.now, claim.lease_ms);
        claim.now < self.expires_at && self.expires_at <= latest
    }
}

/// A message and what is known of its delivery.
#[derive(Debug, Clone)]
pub(crate) struct Queued {
    pub(crate) row: OutboxRow,
    pub(crate) delivered_at: Option<Timestamp>,
}

/// Everything in a store.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) identity: StoreIdentity,
    pub(crate) schema: u64,
    pub(crate) workflows: BTreeMap<WorkflowKey, Workflow>,
    pub(crate) events: BTreeMap<WorkflowKey, Vec<Event>>,
    pub(crate) ledger: BTreeMap<LedgerKey, LedgerRow>,
    pub(crate) locks: BTreeMap<(TenantId, AssetId), LockRow>,
    /// Names, and when they were told last.
    pub(crate) people: BTreeMap<(TenantId, Actor), (Option<String>, Timestamp)>,
    /// By message id.
    pub(crate) outbox: BTreeMap<String, Queued>,
    pub(crate) stream_leases: BTreeMap<StreamKey, Lease>,
    /// By tenant, workflow and deadline id.
    pub(crate) deadlines: BTreeMap<StreamKey, Deadline>,
    pub(crate) deadline_leases: BTreeMap<StreamKey, Lease>,
    pub(crate) tombstones: BTreeMap<WorkflowKey, Tombstone>,
    pub(crate) definitions: BTreeMap<Digest, Definition>,
    pub(crate) versions: BTreeMap<(ProcedureId, u32), Digest>,
}

impl State {
    pub(crate) fn new(number: u64) -> Self {
        let id = Digest::of(format!("model store {number}").as_bytes());
        let secret = Digest::of(format!("model secret {number}").as_bytes());
        let identity = StoreIdentity {
            id: id.as_str().chars().take(32).collect(),
            secrets: vec![Secret::new(secret.as_str().as_bytes().to_vec())],
        };
        Self {
            identity,
            schema: ModelStore::SCHEMA,
            workflows: BTreeMap::new(),
            events: BTreeMap::new(),
            ledger: BTreeMap::new(),
            locks: BTreeMap::new(),
            people: BTreeMap::new(),
            outbox: BTreeMap::new(),
            stream_leases: BTreeMap::new(),
            deadlines: BTreeMap::new(),
            deadline_leases: BTreeMap::new(),
            tombstones: BTreeMap::new(),
            definitions: BTreeMap::new(),
            versions: BTreeMap::new(),
        }
    }

    pub(crate) fn put_definition(&mut self, new: &Definition) -> Result<(), DefinitionError> {
        let version = (new.id.clone(), new.version);
        match self.versions.get(&version) {
            Some(existing) if *existing != new.digest => {
                let existing = existing.clone();
                return Err(DefinitionError::Changed { existing });
            }
            Some(_) | None => {}
        }
        self.versions.insert(version, new.digest.clone());
        self.definitions.insert(new.digest.clone(), new.clone());
        Ok(())
    }
}

/// A number of rows, as an index.
pub(super) fn rows(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}
