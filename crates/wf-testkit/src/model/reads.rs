//! The reads: filter everything, sort, cut.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use wf_core::locks::LockRow;
use wf_core::models::{Actor, AssetId, Person, Phase, TenantId, Workflow, WorkflowId};
use wf_core::ports::{
    Cursor, LedgerRow, ListQuery, LoadQuery, OutboxQuery, OutboxRow, Page, Recent, Snapshot,
};
use wf_core::state_machine::Event;

use super::State;
use super::state::rows;

impl State {
    pub(crate) fn load(&self, query: &LoadQuery) -> Snapshot {
        let ledger = query.ledger.as_ref().and_then(|key| self.ledger.get(key).cloned());
        let is_answered =
            |row: &LedgerRow| query.answered_as.is_some_and(|own| own == row.entry.fingerprint);
        if ledger.as_ref().is_some_and(is_answered) {
            return Snapshot { ledger, ..Snapshot::default() };
        }
        let workflow = query.workflow.as_ref().and_then(|id| {
            let key = (query.tenant.clone(), id.clone());
            self.workflows.get(&key).cloned()
        });
        let own = workflow.iter().flat_map(|w| &w.assets).map(|held| &held.id);
        let assets: BTreeSet<&AssetId> = own.chain(&query.assets).collect();
        let locks = assets.into_iter().filter_map(|asset| {
            let key = (query.tenant.clone(), asset.clone());
            self.locks.get(&key).cloned()
        });
        let open_count = query.count_open_of.as_ref().map_or(0, |actor| {
            let open = self.open(&query.tenant).filter(|w| w.owner.id == *actor);
            u32::try_from(open.count()).unwrap_or(u32::MAX)
        });
        Snapshot { ledger, locks: locks.collect(), open_count, workflow }
    }

    fn of(&self, tenant: &TenantId) -> impl Iterator<Item = &Workflow> {
        self.workflows.values().filter(move |w| w.tenant == *tenant)
    }

    fn open(&self, tenant: &TenantId) -> impl Iterator<Item = &Workflow> {
        self.of(tenant).filter(|w| w.phase.is_open())
    }

    pub(crate) fn events(
        &self,
        tenant: &TenantId,
        workflow: &WorkflowId,
        after: u64,
        limit: u32,
    ) -> Vec<Event> {
        let history = self.events.get(&(tenant.clone(), workflow.clone()));
        let later = history.into_iter().flatten().filter(|event| event.seq > after);
        later.take(rows(limit)).cloned().collect()
    }

    pub(crate) fn open_of(&self, tenant: &TenantId, actor: &Actor, limit: u32) -> Vec<Workflow> {
        let mut mine: Vec<_> = self.open(tenant).filter(|w| w.owner.id == *actor).collect();
        mine.sort_by_key(|w| (Reverse(w.last_activity), &w.id));
        mine.into_iter().take(rows(limit)).cloned().collect()
    }

    pub(crate) fn offered_to(&self, tenant: &TenantId, actor: &Actor, limit: u32) -> Vec<Workflow> {
        let mut offered = Vec::new();
        for workflow in self.open(tenant) {
            if let Some(offer) = &workflow.offer
                && offer.to.as_ref().is_none_or(|to| to.id == *actor)
            {
                offered.push((offer.at, workflow));
            }
        }
        offered.sort_by_key(|(at, w)| (*at, &w.id));
        offered.into_iter().take(rows(limit)).map(|(_, w)| w.clone()).collect()
    }

    pub(crate) fn people(&self, tenant: &TenantId, limit: u32) -> Vec<Person> {
        let of_tenant = self.people.iter().filter(|((of, _), _)| of == tenant);
        let mut found: Vec<_> = of_tenant.map(|((_, id), (name, at))| (at, id, name)).collect();
        found.sort_by_key(|(at, id, _)| Reverse((**at, id.to_string())));
        let person = |(_, id, name): (_, &Actor, &Option<String>)| Person {
            id: id.clone(),
            name: name.clone(),
        };
        found.into_iter().take(rows(limit)).map(person).collect()
    }

    pub(crate) fn blocked(&self, tenant: &TenantId, limit: u32) -> Vec<Workflow> {
        let mut blocked: Vec<_> = self.of(tenant).filter(|w| w.phase == Phase::Blocked).collect();
        blocked.sort_by_key(|w| (w.blocks.iter().map(|b| b.at).min(), &w.id));
        blocked.into_iter().take(rows(limit)).cloned().collect()
    }

    pub(crate) fn last_completed(&self, tenant: &TenantId, whose: &Recent) -> Option<Workflow> {
        let is_meant = |w: &&Workflow| match whose {
            Recent::OwnedBy(actor) => w.owner.id == *actor,
            Recent::OfAsset(asset) => w.assets.iter().any(|held| held.id == *asset),
        };
        let over = self.of(tenant).filter(|w| !w.phase.is_open());
        over.filter(is_meant).max_by_key(|w| (w.completed_at, &w.id)).cloned()
    }

    pub(crate) fn list(&self, query: &ListQuery) -> Page<Workflow> {
        let mut found: Vec<&Workflow> = self.workflows.values().collect();
        found.retain(|w| query.tenant.as_ref().is_none_or(|tenant| w.tenant == *tenant));
        found.retain(|w| query.phase.is_none_or(|phase| w.phase == phase));
        found.sort_by_key(|w| (&w.id, &w.tenant));
        let place = |w: &Workflow| format!("{} {}", w.id, w.tenant);
        page(found.into_iter().cloned().collect(), query.after.as_ref(), query.limit, place)
    }

    pub(crate) fn list_locks(
        &self,
        tenant: Option<&TenantId>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Page<LockRow> {
        let of_tenant = |row: &&LockRow| tenant.is_none_or(|tenant| row.tenant == *tenant);
        let found = self.locks.values().filter(of_tenant).cloned().collect();
        page(found, after, limit, |row| format!("{} {}", row.tenant, row.asset_id))
    }

    pub(crate) fn list_outbox(&self, query: &OutboxQuery) -> Page<OutboxRow> {
        let found = self.outbox.values().map(|queued| &queued.row);
        let found = found.filter(|row| query.state.is_none_or(|s| row.status.state == s));
        let place = |row: &OutboxRow| row.message.id.clone();
        page(found.cloned().collect(), query.after.as_ref(), query.limit, place)
    }
}

/// Cuts a page out of all rows. The cursor names the last row before the page; whether it still exists is no matter.
/// Places of two parts compare like the parts: the space between sorts before everything that an id may hold.
fn page<T>(
    all: Vec<T>,
    after: Option<&Cursor>,
    limit: u32,
    place: impl Fn(&T) -> String,
) -> Page<T> {
    let start = after.map_or(0, |after| all.iter().take_while(|row| place(row) <= after.0).count());
    let mut items: Vec<T> = all.into_iter().skip(start).collect();
    let more = items.len() > rows(limit);
    items.truncate(rows(limit));
    let last = items.last().map(|row| Cursor(place(row)));
    Page { items, next: last.filter(|_| more) }
}
