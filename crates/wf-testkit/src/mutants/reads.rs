//! Broken reads and definitions.

use wf_core::locks::LockRow;
use wf_core::models::{Actor, Person, TenantId, Workflow};
use wf_core::policy::Definition;
use wf_core::ports::{
    Backlog, Cursor, DefinitionError, ListQuery, LoadQuery, OutboxPage, OutboxQuery, Page,
    ReadError, Recent, Snapshot, StorageBackendPort,
};

use super::{MutantStore, Mutation};

impl MutantStore {
    pub(super) async fn mutant_load(&self, query: &LoadQuery) -> Result<Snapshot, ReadError> {
        if self.is(Mutation::ReadsLag) {
            return Ok(self.load_before(query));
        }
        let mut query = query.clone();
        if self.is(Mutation::LoadLeaksTenants)
            && let Some(tenant) = self.tenant_of(&query)
        {
            query.tenant = tenant;
        }
        let mut seen = self.faulty().load(&query).await?;
        if self.is(Mutation::AnsweredByAnyRow)
            && query.answered_as.is_some()
            && seen.ledger.is_some()
        {
            return Ok(Snapshot { ledger: seen.ledger, ..Snapshot::default() });
        }
        let state = self.model().lock();
        let of_tenant = || state.workflows.values().filter(|w| w.tenant == query.tenant);
        if self.is(Mutation::CountUnasked) && query.count_open_of.is_none() {
            seen.open_count = count(of_tenant().filter(|w| w.phase.is_open()));
        }
        if self.is(Mutation::CountIncludesCompleted)
            && let Some(actor) = &query.count_open_of
        {
            seen.open_count = count(of_tenant().filter(|w| w.owner.id == *actor));
        }
        if self.is(Mutation::OwnLocksForgotten) {
            seen.locks.retain(|row| query.assets.contains(&row.asset_id));
        }
        Ok(seen)
    }

    /// The first tenant that has the workflow.
    fn tenant_of(&self, query: &LoadQuery) -> Option<TenantId> {
        let id = query.workflow.as_ref()?;
        let state = self.model().lock();
        let found = state.workflows.values().find(|w| w.id == *id)?;
        Some(found.tenant.clone())
    }

    pub(super) async fn mutant_open_of(
        &self,
        tenant: &TenantId,
        actor: &Actor,
        limit: u32,
    ) -> Result<Vec<Workflow>, ReadError> {
        if self.is(Mutation::OpenOfOldestFirst) {
            let all = self.faulty().open_of(tenant, actor, u32::MAX).await?;
            return Ok(backwards(all, limit));
        }
        if self.is(Mutation::ListsLeakTenants) {
            let state = self.model().lock();
            let tenants = state.workflows.keys().map(|(tenant, _)| tenant);
            let tenants: std::collections::BTreeSet<_> = tenants.collect();
            let all = tenants.into_iter().flat_map(|one| state.open_of(one, actor, limit));
            return Ok(all.collect());
        }
        self.faulty().open_of(tenant, actor, limit).await
    }

    pub(super) async fn mutant_people(
        &self,
        tenant: &TenantId,
        limit: u32,
    ) -> Result<Vec<Person>, ReadError> {
        if self.is(Mutation::PeopleOldestFirst) {
            let all = self.faulty().people(tenant, u32::MAX).await?;
            return Ok(backwards(all, limit));
        }
        if self.is(Mutation::PeopleLeakTenants) {
            let state = self.model().lock();
            let tenants: std::collections::BTreeSet<_> =
                state.people.keys().map(|(tenant, _)| tenant.clone()).collect();
            return Ok(tenants.iter().flat_map(|one| state.people(one, limit)).collect());
        }
        self.faulty().people(tenant, limit).await
    }

    pub(super) async fn mutant_offered_to(
        &self,
        tenant: &TenantId,
        actor: &Actor,
        limit: u32,
    ) -> Result<Vec<Workflow>, ReadError> {
        if self.is(Mutation::OffersNewestFirst) {
            let all = self.faulty().offered_to(tenant, actor, u32::MAX).await?;
            return Ok(backwards(all, limit));
        }
        let mut offered = self.faulty().offered_to(tenant, actor, limit).await?;
        if self.is(Mutation::OffersToAnybodyHidden) {
            offered.retain(|w| w.offer.as_ref().is_some_and(|offer| offer.to.is_some()));
        }
        Ok(offered)
    }

    pub(super) async fn mutant_blocked(
        &self,
        tenant: &TenantId,
        limit: u32,
    ) -> Result<Vec<Workflow>, ReadError> {
        if self.is(Mutation::BlockedNewestFirst) {
            let all = self.faulty().blocked(tenant, u32::MAX).await?;
            return Ok(backwards(all, limit));
        }
        self.faulty().blocked(tenant, limit).await
    }

    pub(super) async fn mutant_last_completed(
        &self,
        tenant: &TenantId,
        whose: &Recent,
    ) -> Result<Option<Workflow>, ReadError> {
        if self.is(Mutation::LastByStart) {
            let mut state = self.model().lock().clone();
            for workflow in state.workflows.values_mut() {
                let started = Some(workflow.started_at);
                workflow.completed_at = workflow.completed_at.and(started);
            }
            return Ok(state.last_completed(tenant, whose));
        }
        self.faulty().last_completed(tenant, whose).await
    }

    pub(super) async fn mutant_list(&self, query: &ListQuery) -> Result<Page<Workflow>, ReadError> {
        let mut query = query.clone();
        if self.is(Mutation::PhaseFilterIgnored) {
            query.phase = None;
        }
        query.after = self.taken(query.after.as_ref())?;
        let (after, limit) = (query.after.clone(), query.limit);
        if self.is(Mutation::OffsetPages) {
            query.after = None;
            query.limit = u32::MAX;
        }
        let page = self.faulty().list(&query).await?;
        Ok(self.paged(page, after.as_ref(), limit))
    }

    pub(super) async fn mutant_list_locks(
        &self,
        tenant: Option<&TenantId>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<LockRow>, ReadError> {
        let after = self.taken(after)?;
        let after = after.as_ref();
        let page = if self.is(Mutation::OffsetPages) {
            self.faulty().list_locks(tenant, None, u32::MAX).await?
        } else {
            self.faulty().list_locks(tenant, after, limit).await?
        };
        Ok(self.paged(page, after, limit))
    }

    pub(super) async fn mutant_list_outbox(
        &self,
        query: &OutboxQuery,
    ) -> Result<OutboxPage, ReadError> {
        let mut query = query.clone();
        query.after = self.taken(query.after.as_ref())?;
        let (after, limit) = (query.after.clone(), query.limit);
        if self.is(Mutation::OffsetPages) {
            query.after = None;
            query.limit = u32::MAX;
        }
        let OutboxPage { items, damaged, next } = self.faulty().list_outbox(&query).await?;
        let Page { items, next } = self.paged(Page { items, next }, after.as_ref(), limit);
        Ok(OutboxPage { items, damaged, next })
    }

    pub(super) async fn mutant_outbox_backlog(&self, limit: u32) -> Result<Backlog, ReadError> {
        let limit = if self.is(Mutation::BacklogUnlimited) { u32::MAX } else { limit };
        let mut backlog = self.faulty().outbox_backlog(limit).await?;
        if self.is(Mutation::BacklogCountsDelivered) {
            let query = OutboxQuery { limit: u32::MAX, ..OutboxQuery::default() };
            let all = self.faulty().list_outbox(&query).await?.items.len();
            backlog.pending = u64::try_from(all).unwrap_or(u64::MAX);
        }
        Ok(backlog)
    }

    /// Where to go on, as a store takes it that does not know the empty text for no place.
    fn taken(&self, after: Option<&Cursor>) -> Result<Option<Cursor>, ReadError> {
        let empty = after.is_some_and(|after| after.0.is_empty());
        if empty && self.is(Mutation::BadCursorUnavailable) {
            return Err(ReadError::Unavailable { source: "no place of this list".into() });
        }
        let begins = empty && self.is(Mutation::EmptyCursorBegins);
        Ok(after.filter(|_| !begins).cloned())
    }

    /// Breaks a page; for pages by offset it is given all rows.
    fn paged<T>(&self, mut page: Page<T>, after: Option<&Cursor>, limit: u32) -> Page<T> {
        if self.is(Mutation::PageSkipsRow) && after.is_some() && !page.items.is_empty() {
            page.items.remove(0);
        }
        if self.is(Mutation::OffsetPages) {
            let start: usize = after.and_then(|after| after.0.parse().ok()).unwrap_or(0);
            let end = start.saturating_add(usize::try_from(limit).unwrap_or(usize::MAX));
            page.next = (page.items.len() > end).then(|| Cursor(end.to_string()));
            page.items.truncate(end);
            page.items.drain(..start.min(page.items.len()));
        }
        page
    }

    pub(super) async fn mutant_put_definition(
        &self,
        definition: &Definition,
    ) -> Result<(), DefinitionError> {
        let version = (definition.id.clone(), definition.version);
        if self.is(Mutation::DefinitionOnce)
            && let Some(existing) = self.model().lock().versions.get(&version)
        {
            let existing = existing.clone();
            return Err(DefinitionError::Changed { existing });
        }
        if self.is(Mutation::DefinitionOverwritten) {
            self.model().lock().versions.remove(&version);
        }
        self.faulty().put_definition(definition).await
    }
}

fn count<'a>(workflows: impl Iterator<Item = &'a Workflow>) -> u32 {
    u32::try_from(workflows.count()).unwrap_or(u32::MAX)
}

fn backwards<T>(mut all: Vec<T>, limit: u32) -> Vec<T> {
    all.reverse();
    all.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    all
}
