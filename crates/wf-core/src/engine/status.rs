//! `get_status` and `check_value`, and whose workflow it is that holds an asset.

use serde_json::{Map, Value};

use crate::access;
use crate::limits::{HISTORY_SHOWN_MAX, OPEN_WORKFLOWS_MAX};
use crate::locks::{self, LockRow};
use crate::models::{AssetId, HeldAsset, Principal, ResultId, Workflow, WorkflowId};
use crate::policy::DomainPolicyPort;
use crate::ports::{LoadQuery, Recent, Snapshot};
use crate::state_machine::{Outcome, Rejection};
use crate::view::shape::{self, Candidate};
use crate::view::{Ask, Fault, Frame, Outlook, Rule, Saying, Stand};

use super::call::{CallMeta, Detail, GetStatus, Reply};
use super::resume::resume;
use super::{Engine, candidate_parts, unreadable};

impl Engine {
    /// Answers `get_status`.
    pub async fn get_status(
        &self,
        principal: &Principal,
        query: &GetStatus,
        meta: &CallMeta,
    ) -> Reply {
        match self.status(principal, query, meta).await {
            Ok(reply) => reply,
            Err(rejection) => self.refuse(&rejection, meta),
        }
    }

    async fn status(
        &self,
        principal: &Principal,
        query: &GetStatus,
        meta: &CallMeta,
    ) -> Result<Reply, Rejection> {
        access::may_read(principal)?;
        if let Some(id) = &query.workflow_id {
            return self.shown(principal, id, query.detail, meta).await;
        }
        if let Some(raw) = &query.asset_id {
            return self.asset(principal, raw, query.detail, meta).await;
        }
        let store = &self.parts.store;
        let open = store
            .open_of(&principal.tenant, &principal.actor, OPEN_WORKFLOWS_MAX)
            .await
            .map_err(|error| unreadable(&error))?;
        match open.as_slice() {
            [] => self.nothing_open(principal, meta).await,
            [one] => self.shown(principal, &one.id, query.detail, meta).await,
            several => Ok(self.which(several, meta)),
        }
    }

    /// Several workflows match: a question, never a guess.
    pub(super) fn which(&self, several: &[Workflow], meta: &CallMeta) -> Reply {
        let frame = self.frame(None, meta);
        let all: Vec<Candidate<'_>> = several.iter().map(Candidate::Workflow).collect();
        let labels = several.iter().map(|w| w.label.clone()).collect();
        let saying = Ask::Which { labels, total: several.len() };
        frame.reply(Outcome::Disambiguation, &[saying.into()], candidate_parts(&all, &frame))
    }

    async fn nothing_open(
        &self,
        principal: &Principal,
        meta: &CallMeta,
    ) -> Result<Reply, Rejection> {
        let whose = Recent::OwnedBy(principal.actor.clone());
        let last = self.last_completed(principal, &whose).await?;
        let now = self.parts.clock.now();
        let frame = self.frame(None, meta);
        let mut sayings: Vec<Saying> = vec![Stand::NothingOpen.into()];
        let mut parts = Map::new();
        if let Some(last) = last.filter(|w| shape::is_recent(w, now)) {
            let policy = self.pinned(&last).await?;
            let policy = policy.as_deref();
            let outlook = policy.map(|policy| Outlook::of(&last, policy));
            let view = shape::workflow(&frame, &last, outlook.as_ref());
            if let Some(recorded) = view.get("last_recorded") {
                parts.insert("last_recorded".to_owned(), recorded.clone());
            }
            parts.insert("last_completed".to_owned(), shape::completed(&last, &frame.words));
            sayings.push(last_finished(&last, policy, &frame).into());
        }
        Ok(frame.reply(Outcome::None, &sayings, parts))
    }

    async fn asset(
        &self,
        principal: &Principal,
        raw: &str,
        detail: Detail,
        meta: &CallMeta,
    ) -> Result<Reply, Rejection> {
        let ids = self.asset_ids(raw);
        let snapshot = self.locks(principal, ids.clone()).await?;
        let held: Vec<&WorkflowId> = snapshot
            .locks
            .iter()
            .filter_map(|row| row.holder.as_ref().map(|h| &h.workflow_id))
            .collect();
        let (mut open, mut hidden) = (Vec::with_capacity(held.len()), false);
        for id in held {
            match self.workflow(principal, id).await? {
                Some(workflow) if self.sees(principal, &workflow) => open.push(workflow),
                Some(_) => hidden = true,
                None => {}
            }
        }
        match open.as_slice() {
            [] if hidden => {
                let frame = self.frame(None, meta);
                Ok(frame.reply(Outcome::None, &[Stand::AssetInUse.into()], Map::new()))
            }
            [] => self.free_asset(principal, ids, meta).await,
            [one] => self.shown(principal, &one.id, detail, meta).await,
            several => Ok(self.which(several, meta)),
        }
    }

    async fn free_asset(
        &self,
        principal: &Principal,
        ids: Vec<AssetId>,
        meta: &CallMeta,
    ) -> Result<Reply, Rejection> {
        let frame = self.frame(None, meta);
        // What nobody here can name is not said to be free.
        let stand = if ids.is_empty() { Stand::NothingFound } else { Stand::AssetFree };
        let mut sayings: Vec<Saying> = vec![stand.into()];
        let mut parts = Map::new();
        for id in ids {
            if let Some(last) = self.last_completed(principal, &Recent::OfAsset(id)).await? {
                let policy = self.pinned(&last).await?;
                sayings.push(last_finished(&last, policy.as_deref(), &frame).into());
                parts.insert("last_completed".to_owned(), shape::completed(&last, &frame.words));
                break;
            }
        }
        Ok(frame.reply(Outcome::None, &sayings, parts))
    }

    /// What an asset may be called canonically, by any procedure that may be started, or as it is.
    pub(super) fn asset_ids(&self, raw: &str) -> Vec<AssetId> {
        let current = self.parts.policies.current();
        let mut ids: Vec<AssetId> =
            current.iter().filter_map(|policy| policy.canonical_asset(raw)).collect();
        ids.extend(AssetId::parse(raw.trim()).ok());
        ids.sort();
        ids.dedup();
        ids.truncate(crate::limits::ASSETS_MAX);
        ids
    }

    /// The view of a workflow that the caller sees.
    pub(super) async fn shown(
        &self,
        principal: &Principal,
        id: &WorkflowId,
        detail: Detail,
        meta: &CallMeta,
    ) -> Result<Reply, Rejection> {
        let Snapshot { workflow, locks, .. } = self.with_locks(principal, id).await?;
        let workflow = workflow.filter(|workflow| self.sees(principal, workflow));
        let workflow = &workflow.ok_or_else(Rejection::not_found)?;
        let policy = self.pinned(workflow).await?;
        let policy = policy.as_deref();
        let frame = self.frame(policy, meta);
        let outlook = policy.map(|policy| Outlook::of(workflow, policy));
        let mut parts = shape::workflow(&frame, workflow, outlook.as_ref());
        if detail == Detail::Full {
            parts.insert("history".to_owned(), self.history(workflow).await?);
        }
        let mut sayings = outlook.as_ref().map_or_else(
            || vec![Fault::DefinitionUnknown.into()],
            |outlook| resume(principal, outlook, &frame.words),
        );
        if let Some(asset) = locks::lost(workflow, &locks) {
            // What is asked next would be refused: the loss is what there is to say.
            let lost: Saying = self.lost(principal, asset, &locks).into();
            parts.insert("warnings".to_owned(), Value::from(vec![frame.words.say(&lost)]));
            sayings.truncate(1);
            sayings.push(lost);
        }
        Ok(frame.reply(Outcome::View, &sayings, parts))
    }

    /// An asset is lost: to whom, where the caller may know.
    fn lost(&self, principal: &Principal, asset: &HeldAsset, rows: &[LockRow]) -> Rule {
        let row = rows.iter().find(|row| row.asset_id == asset.id);
        let holder = row.and_then(|row| row.holder.as_ref());
        let whole = self.parts.settings.visibility.is_whole(principal);
        let shown = holder.filter(|h| whole || h.owner.id == principal.actor);
        Rule::LockLost {
            asset: asset.say.clone(),
            taken: holder.is_some(),
            holder: shown.and_then(|h| h.owner.name.clone()),
        }
    }

    /// The last events, oldest first.
    async fn history(&self, workflow: &Workflow) -> Result<Value, Rejection> {
        let shown = u32::try_from(HISTORY_SHOWN_MAX).unwrap_or(u32::MAX);
        let after = workflow.revision.saturating_sub(u64::from(shown));
        let store = &self.parts.store;
        let events = store.events(&workflow.tenant, &workflow.id, after, shown).await;
        Ok(shape::history(&events.map_err(|error| unreadable(&error))?))
    }

    /// The workflow of the caller's tenant with this id, seen or not.
    pub(super) async fn workflow(
        &self,
        principal: &Principal,
        id: &WorkflowId,
    ) -> Result<Option<Workflow>, Rejection> {
        Ok(self.with_locks(principal, id).await?.workflow)
    }

    /// The same with the lock rows of its assets.
    pub(super) async fn with_locks(
        &self,
        principal: &Principal,
        id: &WorkflowId,
    ) -> Result<Snapshot, Rejection> {
        let query = LoadQuery {
            tenant: principal.tenant.clone(),
            workflow: Some(id.clone()),
            ledger: None,
            assets: Vec::new(),
            answered_as: None,
            count_open_of: None,
        };
        self.parts.store.load(&query).await.map_err(|error| unreadable(&error))
    }

    /// Lock rows of assets.
    pub(super) async fn locks(
        &self,
        principal: &Principal,
        assets: Vec<AssetId>,
    ) -> Result<Snapshot, Rejection> {
        let query = LoadQuery {
            tenant: principal.tenant.clone(),
            workflow: None,
            ledger: None,
            assets,
            answered_as: None,
            count_open_of: None,
        };
        self.parts.store.load(&query).await.map_err(|error| unreadable(&error))
    }

    pub(super) async fn last_completed(
        &self,
        principal: &Principal,
        whose: &Recent,
    ) -> Result<Option<Workflow>, Rejection> {
        let store = &self.parts.store;
        let last = store.last_completed(&principal.tenant, whose).await;
        let last = last.map_err(|error| unreadable(&error))?;
        Ok(last.filter(|workflow| self.sees(principal, workflow)))
    }

    pub(super) async fn pinned(
        &self,
        workflow: &Workflow,
    ) -> Result<Option<std::sync::Arc<dyn DomainPolicyPort>>, Rejection> {
        let store = self.parts.store.as_ref();
        self.parts
            .policies
            .pinned(&workflow.procedure.digest, store)
            .await
            .map_err(|error| unreadable(&error))
    }
}

/// What was finished last, in words.
pub(super) fn last_finished(
    last: &Workflow,
    policy: Option<&dyn DomainPolicyPort>,
    frame: &Frame<'_>,
) -> Stand {
    let words = policy.and_then(|policy| super::commit::result_words(last, policy));
    let result = last.result.as_ref().filter(|result| **result != ResultId::abandoned());
    let result = result.map(|result| match &words {
        Some(text) => frame.words.text(text).to_owned(),
        None => result.as_str().replace(['_', '-'], " "),
    });
    let at = last.completed_at.unwrap_or(last.updated_at);
    Stand::LastFinished { label: last.label.clone(), result, at }
}
