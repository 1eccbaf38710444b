//! What there is to read besides the answers of the tools: procedures, whole histories, and which workflows a caller finds
//! by themselves. Evidence: `evidence`.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::access;
use crate::errors::ErrorCode;
use crate::limits::{CANDIDATE_ASSETS_MAX, HISTORY_PAGE_EVENTS, OPEN_WORKFLOWS_MAX};
use crate::models::{AssetId, Principal, Workflow, WorkflowId};
use crate::policy::DomainPolicyPort;
use crate::search;
use crate::state_machine::Rejection;
use crate::view::{Fault, shape};

use super::call::{CallMeta, Detail};
use super::find::workflow_words;
use super::{Engine, unreadable};

impl Engine {
    /// Everything that may be started, by id.
    #[must_use]
    pub fn procedures(&self) -> Vec<Arc<dyn DomainPolicyPort>> {
        self.parts.policies.current()
    }

    /// A procedure that may be started: `{"id", "version", "digest", "title", "needs", "document"}`, the document as written.
    ///
    /// # Errors
    /// `NOT_ALLOWED`, `PROCEDURE_NOT_FOUND`.
    pub fn procedure(
        &self,
        principal: &Principal,
        id: &str,
        meta: &CallMeta,
    ) -> Result<Value, Rejection> {
        access::may_read(principal)?;
        let policy = self.parts.policies.startable(id).ok_or_else(|| {
            let text = "there is no procedure with this id that may be started";
            let available =
                self.procedures().iter().map(|p| p.definition().title.clone()).collect();
            let saying = Fault::ProcedureNotFound { available };
            Rejection::new(ErrorCode::ProcedureNotFound, text, saying)
        })?;
        let frame = self.frame(Some(policy.as_ref()), meta);
        let definition = policy.definition();
        Ok(json!({
            "id": definition.id,
            "version": definition.version,
            "digest": definition.digest,
            "title": frame.words.text(&definition.title),
            "needs": shape::needs(&policy.needs(), &frame.words),
            "document": definition.document,
        }))
    }

    /// A workflow that the caller sees, as `get_status` tells it.
    ///
    /// # Errors
    /// `WORKFLOW_NOT_FOUND`, `NOT_ALLOWED`, `BACKEND_UNAVAILABLE`.
    pub async fn workflow_view(
        &self,
        principal: &Principal,
        id: &WorkflowId,
        meta: &CallMeta,
    ) -> Result<Value, Rejection> {
        access::may_read(principal)?;
        Ok(self.shown(principal, id, Detail::Brief, meta).await?.body)
    }

    /// A page of the history of a workflow that the caller sees, oldest first: `{"workflow_id", "revision", "page", "pages",
    /// "history"}`. Pages count from 1 and have [`HISTORY_PAGE_EVENTS`] events; a full one never changes.
    ///
    /// # Errors
    /// `WORKFLOW_NOT_FOUND`, `NOT_ALLOWED`, `VALIDATION_ERROR` for a page that is not there, `BACKEND_UNAVAILABLE`.
    pub async fn history_page(
        &self,
        principal: &Principal,
        id: &WorkflowId,
        page: u64,
    ) -> Result<Value, Rejection> {
        access::may_read(principal)?;
        let workflow = self.seen(principal, id).await?.ok_or_else(Rejection::not_found)?;
        let size = u64::from(HISTORY_PAGE_EVENTS);
        let pages = workflow.revision.div_ceil(size).max(1);
        let Some(before) = page.checked_sub(1).filter(|before| *before < pages) else {
            return Err(Rejection::invalid("page", &format!("must be from 1 to {pages}")));
        };
        let after = before.saturating_mul(size);
        let left = workflow.revision.saturating_sub(after).min(size);
        let limit = u32::try_from(left).unwrap_or(HISTORY_PAGE_EVENTS);
        let store = &self.parts.store;
        let events = store.events(&workflow.tenant, &workflow.id, after, limit).await;
        let events = events.map_err(|error| unreadable(&error))?;
        Ok(json!({
            "workflow_id": workflow.id,
            "revision": workflow.revision,
            "page": page,
            "pages": pages,
            "history": shape::history(&events),
        }))
    }

    /// The caller's open workflows, newest activity first, then those that wait for them to take them; at most
    /// [`OPEN_WORKFLOWS_MAX`] of each.
    ///
    /// # Errors
    /// `NOT_ALLOWED`, `BACKEND_UNAVAILABLE`.
    pub async fn at_hand(&self, principal: &Principal) -> Result<Vec<Workflow>, Rejection> {
        access::may_read(principal)?;
        let store = &self.parts.store;
        let (tenant, actor) = (&principal.tenant, &principal.actor);
        let own = store.open_of(tenant, actor, OPEN_WORKFLOWS_MAX).await;
        let mut all = own.map_err(|error| unreadable(&error))?;
        let offered = store.offered_to(tenant, actor, OPEN_WORKFLOWS_MAX).await;
        for workflow in offered.map_err(|error| unreadable(&error))? {
            if all.iter().all(|known| known.id != workflow.id) {
                all.push(workflow);
            }
        }
        all.retain(|workflow| self.sees(principal, workflow));
        Ok(all)
    }

    /// The blocked workflows that the caller sees, longest blocked first; at most [`OPEN_WORKFLOWS_MAX`], of one's own and
    /// offered ones where that is all one sees.
    ///
    /// # Errors
    /// `NOT_ALLOWED`, `BACKEND_UNAVAILABLE`.
    pub async fn blocked_in_sight(
        &self,
        principal: &Principal,
    ) -> Result<Vec<Workflow>, Rejection> {
        access::may_read(principal)?;
        self.blocked(principal).await
    }

    /// Assets that a start of `policy` could have and that nobody holds, of those whose id begins with `typed`: by id, at most
    /// [`CANDIDATE_ASSETS_MAX`] looked at. None for a caller who does not see all of the tenant.
    ///
    /// # Errors
    /// `NOT_ALLOWED`, `BACKEND_UNAVAILABLE`.
    pub async fn free_assets(
        &self,
        principal: &Principal,
        policy: &dyn DomainPolicyPort,
        typed: &str,
    ) -> Result<Vec<String>, Rejection> {
        access::may_read(principal)?;
        if !self.parts.settings.visibility.is_whole(principal) {
            return Ok(Vec::new());
        }
        let tenant = Some(&principal.tenant);
        let page = self.parts.store.list_locks(tenant, None, CANDIDATE_ASSETS_MAX).await;
        let rows = page.map_err(|error| unreadable(&error))?.items;
        let free = rows.into_iter().filter(|row| row.holder.is_none()).map(|row| row.asset_id);
        let fits = |id: &AssetId| {
            id.as_str().starts_with(typed)
                && policy.canonical_asset(id.as_str()).as_ref() == Some(id)
        };
        Ok(free.filter(fits).map(|id| id.to_string()).collect())
    }

    /// The caller may be told of the workflow with this id, now.
    ///
    /// # Errors
    /// `BACKEND_UNAVAILABLE`.
    pub async fn is_in_sight(
        &self,
        principal: &Principal,
        id: &WorkflowId,
    ) -> Result<bool, Rejection> {
        if access::may_read(principal).is_err() {
            return Ok(false);
        }
        Ok(self.seen(principal, id).await?.is_some())
    }
}

/// What somebody has typed of a workflow so far, `typed`, fits it: the beginning of its id, or words of how it is called.
#[must_use]
pub fn is_meant(workflow: &Workflow, typed: &str) -> bool {
    workflow.id.as_str().starts_with(typed)
        || search::matches(&search::words(typed), &workflow_words(workflow))
}
