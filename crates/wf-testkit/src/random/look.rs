//! Every read of the port, compared.

use wf_core::locks::LockRow;
use wf_core::models::{Phase, TenantId, Workflow};
use wf_core::ports::{
    ListQuery, LoadQuery, OutboxQuery, OutboxRow, OutboxState, Recent, StorageBackendPort,
};

use super::answer;
use super::commits::{actors, assets, nothing, tenants, workflow_ids};
use super::run::{Runner, Same, same};
use crate::build::definition;
use crate::contract::Violation;
use crate::contract::look::{outbox_page, walk};

impl Runner<'_> {
    /// Every read for every tenant, and the ledger rows of every commit.
    pub(super) async fn look_everywhere(&self) -> Same {
        for tenant in tenants() {
            self.look(&tenant, 2).await?;
        }
        for commit in &self.commits {
            let key = &commit.ledger.key;
            let query = LoadQuery { ledger: Some(key.clone()), ..nothing(&key.tenant) };
            self.compare_load(&query).await?;
        }
        for id in 0..2 {
            for (version, says) in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)] {
                let name = format!("procedure-{id}");
                let one = definition(&name, version, &format!("says {says}"));
                let model = self.model.definition(&one.digest).await;
                let store = self.store.definition(&one.digest).await;
                same(&model, &store)?;
            }
        }
        Ok(())
    }

    /// Every read for one tenant, `limit` rows a page.
    pub(super) async fn look(&self, tenant: &TenantId, limit: u32) -> Same {
        for id in workflow_ids() {
            for actor in actors() {
                let query = LoadQuery {
                    tenant: tenant.clone(),
                    workflow: Some(id.clone()),
                    ledger: None,
                    assets: assets().into_iter().take(2).collect(),
                    answered_as: None,
                    count_open_of: Some(actor),
                };
                self.compare_load(&query).await?;
            }
            for (after, most) in [(0, 1_000), (1, limit), (2, 1)] {
                let model = self.model.events(tenant, &id, after, most).await;
                let store = self.store.events(tenant, &id, after, most).await;
                same(&model, &store)?;
            }
        }
        self.look_at_people(tenant, limit).await?;
        for tenant in [Some(tenant), None] {
            for phase in [None].into_iter().chain(Phase::ALL.map(Some)) {
                let model = workflows(self.model, tenant, phase, limit).await;
                let store = workflows(self.store, tenant, phase, limit).await;
                same(&model, &store)?;
            }
            let model = locks(self.model, tenant, limit).await;
            same(&model, &locks(self.store, tenant, limit).await)?;
        }
        for state in [
            None,
            Some(OutboxState::Pending),
            Some(OutboxState::Delivered),
            Some(OutboxState::Dead),
        ] {
            let model = outbox(self.model, state, limit).await;
            same(&model, &outbox(self.store, state, limit).await)?;
        }
        Ok(())
    }

    async fn look_at_people(&self, tenant: &TenantId, limit: u32) -> Same {
        let (model, store) = (self.model, self.store);
        for most in [limit, 1_000] {
            same(&model.people(tenant, most).await, &store.people(tenant, most).await)?;
        }
        for actor in actors() {
            for most in [limit, 1_000] {
                let answers = (
                    model.open_of(tenant, &actor, most).await,
                    store.open_of(tenant, &actor, most).await,
                );
                same(&answers.0, &answers.1)?;
                let answers = (
                    model.offered_to(tenant, &actor, most).await,
                    store.offered_to(tenant, &actor, most).await,
                );
                same(&answers.0, &answers.1)?;
            }
        }
        let blocked = (model.blocked(tenant, limit).await, store.blocked(tenant, limit).await);
        same(&blocked.0, &blocked.1)?;
        let of_actors = actors().into_iter().map(Recent::OwnedBy);
        for whose in of_actors.chain(assets().into_iter().map(Recent::OfAsset)) {
            let last = (
                model.last_completed(tenant, &whose).await,
                store.last_completed(tenant, &whose).await,
            );
            same(&last.0, &last.1)?;
        }
        Ok(())
    }

    async fn compare_load(&self, query: &LoadQuery) -> Same {
        let model = self.model.load(query).await.map(answer::snapshot);
        let store = self.store.load(query).await.map(answer::snapshot);
        same(&model, &store)
    }
}

async fn workflows(
    store: &dyn StorageBackendPort,
    tenant: Option<&TenantId>,
    phase: Option<Phase>,
    limit: u32,
) -> Result<(bool, Vec<Workflow>), Violation> {
    let rows = walk(limit, |after| {
        let query = ListQuery { tenant: tenant.cloned(), phase, after, limit };
        Box::pin(async move { store.list(&query).await })
    });
    rows.await.map(|mut rows| {
        let sorted = rows.is_sorted_by(|a, b| a.id <= b.id);
        // The order of one id in several tenants is left open.
        rows.sort_by(|a, b| (&a.id, &a.tenant).cmp(&(&b.id, &b.tenant)));
        (sorted, rows)
    })
}

async fn locks(
    store: &dyn StorageBackendPort,
    tenant: Option<&TenantId>,
    limit: u32,
) -> Result<Vec<LockRow>, Violation> {
    walk(limit, |after| {
        Box::pin(async move { store.list_locks(tenant, after.as_ref(), limit).await })
    })
    .await
}

async fn outbox(
    store: &dyn StorageBackendPort,
    state: Option<OutboxState>,
    limit: u32,
) -> Result<Vec<OutboxRow>, Violation> {
    let rows = walk(limit, |after| {
        let query = OutboxQuery { state, after, limit };
        Box::pin(async move { outbox_page(store, &query).await })
    });
    rows.await.map(answer::outbox)
}
