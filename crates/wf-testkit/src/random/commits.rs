//! Makes a commit of a command, from what the model knows.

use std::collections::BTreeSet;

use wf_core::locks::LockChange;
use wf_core::models::{Actor, AssetId, TenantId, Workflow, WorkflowId};
use wf_core::ports::{Commit, LedgerRow, LoadQuery, ReadError};

use super::command::{Change, Extras, Fence, Key, Locks};
use super::run::Runner;
use crate::build::{self, CommitBuilder, at};

const TENANTS: [&str; 2] = ["plant-a", "plant-a.2"];
const ACTORS: [&str; 3] = ["ann", "bob", "eve"];
const WORKFLOWS: u8 = 4;
const ASSETS: [&str; 4] = ["PUMP-7", "PUMP-70", "GAUGE:3", "VALVE.1"];

pub(super) fn pick<T>(from: &[T], choice: u8) -> Option<&T> {
    let index = usize::from(choice).checked_rem(from.len())?;
    from.get(index)
}

pub(super) fn tenants() -> Vec<TenantId> {
    TENANTS.iter().map(|text| build::tenant(text)).collect()
}

pub(super) fn actors() -> Vec<Actor> {
    ACTORS.iter().map(|text| build::user(text)).collect()
}

pub(super) fn workflow_ids() -> Vec<WorkflowId> {
    (0..WORKFLOWS).map(|n| build::workflow_id(&format!("wf-{n}"))).collect()
}

pub(super) fn assets() -> Vec<AssetId> {
    ASSETS.iter().map(|text| build::asset(text)).collect()
}

pub(super) fn actor(choice: u8) -> Actor {
    build::user(pick(&ACTORS, choice).copied().unwrap_or_default())
}

pub(super) fn asset(choice: u8) -> AssetId {
    build::asset(pick(&ASSETS, choice).copied().unwrap_or_default())
}

impl Runner<'_> {
    /// The fence that an asset has now.
    pub(super) async fn fence(&self, tenant: &TenantId, id: &AssetId) -> Result<u64, ReadError> {
        let query = LoadQuery { assets: vec![id.clone()], ..nothing(tenant) };
        let seen = self.model.load(&query).await?;
        Ok(seen.locks.first().map_or(0, |row| row.fence))
    }

    async fn to_acquire(
        &self,
        tenant: &TenantId,
        id: &AssetId,
        fence: Fence,
    ) -> Result<u64, ReadError> {
        let now = self.fence(tenant, id).await?;
        Ok(match fence {
            Fence::Right => now + 1,
            Fence::Wrong => now + 2,
        })
    }

    /// Acquires each asset once.
    pub(super) async fn with_assets(
        &self,
        mut builder: CommitBuilder,
        tenant: &TenantId,
        choices: &[(u8, Fence)],
    ) -> Result<CommitBuilder, ReadError> {
        let mut seen = BTreeSet::new();
        for (choice, fence) in choices {
            let id = asset(*choice);
            if seen.insert(id.clone()) {
                let fence = self.to_acquire(tenant, &id, *fence).await?;
                builder = builder.acquire(&id, fence);
            }
        }
        Ok(builder)
    }

    pub(super) async fn with_locks(
        &self,
        builder: CommitBuilder,
        current: &Workflow,
        locks: Locks,
    ) -> Result<CommitBuilder, ReadError> {
        let tenant = &current.tenant;
        Ok(match locks {
            Locks::Leave => builder,
            Locks::AssertOwn => builder.assert_assets(),
            Locks::ReleaseOwn => builder.release_assets(),
            Locks::Acquire(choice, fence) => {
                let asset_id = asset(choice);
                let fence = self.to_acquire(tenant, &asset_id, fence).await?;
                if current.assets.iter().any(|held| held.id == asset_id) {
                    // It is among the workflow's own already, so only the row changes hands.
                    builder.lock(LockChange::Acquire { asset_id, fence })
                } else {
                    builder.acquire(&asset_id, fence)
                }
            }
            Locks::TakeOwn => builder.take_assets(),
            Locks::Take(choice, fence) => {
                let asset_id = asset(choice);
                let fence = self.to_acquire(tenant, &asset_id, fence).await?;
                builder.lock(LockChange::Take { asset_id, fence })
            }
            Locks::Assert(choice) => {
                let asset_id = asset(choice);
                let fence = self.fence(tenant, &asset_id).await?;
                builder.lock(LockChange::Assert { asset_id, fence })
            }
            Locks::Release(choice) => {
                let asset_id = asset(choice);
                let fence = self.fence(tenant, &asset_id).await?;
                builder.lock(LockChange::Release { asset_id, fence })
            }
        })
    }

    /// Puts the key in. Rows to replace are those that the model has.
    pub(super) async fn with_key(
        &self,
        builder: CommitBuilder,
        key: Key,
    ) -> Result<CommitBuilder, ReadError> {
        let (choice, alter) = match key {
            Key::Fresh => return Ok(builder.key(&format!("key-{}", self.now_ms))),
            Key::Used(choice) => (choice, None),
            Key::Replacing(choice) => (choice, Some(false)),
            Key::ReplacingOther(choice) => (choice, Some(true)),
        };
        let Some(earlier) = pick(&self.commits, choice) else {
            return Ok(builder.key(&format!("key-{}", self.now_ms)));
        };
        let builder = builder.key(earlier.ledger.key.key.as_str());
        let row = self.row_of(earlier).await?;
        Ok(match (alter, row) {
            (Some(true), Some(mut row)) => {
                row.seq += 1;
                builder.replaces(&row)
            }
            (Some(false), Some(row)) => builder.replaces(&row),
            (Some(_), None) => builder.replaces(&earlier.ledger),
            (None, _) => builder,
        })
    }

    /// The row under the key of a commit, as it is now.
    pub(super) async fn row_of(&self, commit: &Commit) -> Result<Option<LedgerRow>, ReadError> {
        let key = &commit.ledger.key;
        let query = LoadQuery { ledger: Some(key.clone()), ..nothing(&key.tenant) };
        Ok(self.model.load(&query).await?.ledger)
    }

    pub(super) fn with_extras(
        &self,
        mut builder: CommitBuilder,
        tenant: &TenantId,
        workflow: &WorkflowId,
        extras: Extras,
    ) -> CommitBuilder {
        // Message and deadline ids are unique over all tenants, as real workflow ids make them.
        let first_tenant = tenant.as_str() == TENANTS.first().copied().unwrap_or_default();
        for n in 0..extras.messages.min(2) {
            builder = builder.message(&format!("{tenant}-{n}"));
        }
        let even = workflow.as_str().ends_with(['0', '2']);
        if first_tenant == even {
            // Due times never meet each other or the time of a claim.
            for (_, ms) in (0..extras.deadlines).zip([2_250, 20_750]) {
                builder = builder.deadline(at(self.now_ms + ms));
            }
        }
        if extras.messages == 1 {
            let who = u8::try_from(self.now_ms % 3).unwrap_or_default();
            let name = format!("name {}", self.now_ms % 5);
            builder = builder.seen(&actor(who), extras.clear.then_some(name.as_str()));
        }
        if extras.expires {
            builder = builder.expires_at(at(self.now_ms + 2_500));
        }
        builder
    }
}

/// Applies a change of state. What does not apply to the workflow becomes a note.
pub(super) fn with_change(
    builder: CommitBuilder,
    current: &Workflow,
    change: Change,
) -> CommitBuilder {
    let open = current.phase.is_open();
    match change {
        Change::Record(n) if open => builder.record(&format!("step-{}", n % 3), "4.2"),
        Change::Block if open => builder.block(),
        Change::Resolve if open && !current.blocks.is_empty() => builder.resolve(),
        Change::Offer(to) if open => builder.offer(to.map(actor).as_ref()),
        Change::Withdraw if open => builder.withdraw(),
        Change::Transfer(to) if open => builder.transfer(&actor(to)),
        Change::Complete if open => builder.complete(),
        Change::Record(_)
        | Change::Block
        | Change::Resolve
        | Change::Offer(_)
        | Change::Withdraw
        | Change::Transfer(_)
        | Change::Complete
        | Change::Note => builder.note("nothing else"),
    }
}

/// A query for nothing.
pub(super) fn nothing(tenant: &TenantId) -> LoadQuery {
    LoadQuery {
        tenant: tenant.clone(),
        workflow: None,
        ledger: None,
        assets: Vec::new(),
        answered_as: None,
        count_open_of: None,
    }
}
