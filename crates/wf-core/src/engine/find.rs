//! `find_work`: what is open, blocked, offered, or may be started.

use std::sync::Arc;

use serde_json::Map;

use crate::access;
use crate::limits::OPEN_WORKFLOWS_MAX;
use crate::models::{AssetId, Phase, Principal, Text, Workflow};
use crate::policy::DomainPolicyPort;
use crate::ports::Recent;
use crate::search;
use crate::state_machine::{Outcome, Rejection};
use crate::view::shape::{self, Candidate};
use crate::view::{Saying, Stand};

use super::call::{CallMeta, FindScope, FindWork, Reply};
use super::{Engine, candidate_parts, unreadable};

/// What was found, best first.
#[derive(Default)]
struct Found {
    workflows: Vec<Workflow>,
    /// Offered to the caller or to anybody.
    offered: Vec<Workflow>,
    procedures: Vec<Arc<dyn DomainPolicyPort>>,
}

impl Engine {
    /// Answers `find_work`.
    pub async fn find_work(
        &self,
        principal: &Principal,
        query: &FindWork,
        meta: &CallMeta,
    ) -> Reply {
        match self.find(principal, query, meta).await {
            Ok(reply) => reply,
            Err(rejection) => self.refuse(&rejection, meta),
        }
    }

    async fn find(
        &self,
        principal: &Principal,
        query: &FindWork,
        meta: &CallMeta,
    ) -> Result<Reply, Rejection> {
        access::may_read(principal)?;
        let assets = query.asset_id.as_deref().map(|raw| self.asset_ids(raw));
        let mut found = self.everything(principal, query.scope).await?;
        if let (Some(ids), Some(raw)) = (&assets, &query.asset_id) {
            found.retain(|w| w.assets.iter().any(|a| ids.contains(&a.id)));
            found.procedures.retain(|p| p.canonical_asset(raw).is_some());
        }
        if let Some(words) = query.query.as_deref().map(search::words) {
            found.retain(|w| search::matches(&words, &workflow_words(w)));
            found.procedures.retain(|p| search::matches(&words, &procedure_words(p.as_ref())));
        }
        let mut reply = self.found(&found, meta);
        if let Some(ids) = assets {
            self.add_last_completed(principal, ids, meta, &mut reply).await?;
        }
        Ok(reply)
    }

    async fn everything(
        &self,
        principal: &Principal,
        scope: Option<FindScope>,
    ) -> Result<Found, Rejection> {
        let store = &self.parts.store;
        let (tenant, actor) = (&principal.tenant, &principal.actor);
        let wants = |wanted: FindScope| scope.is_none_or(|s| s == wanted);
        let mut found = Found::default();
        if wants(FindScope::Mine) {
            let mine = store.open_of(tenant, actor, OPEN_WORKFLOWS_MAX).await;
            found.add(mine.map_err(|error| unreadable(&error))?);
        }
        if wants(FindScope::Blocked) {
            found.add(self.blocked(principal).await?);
        }
        if wants(FindScope::Available) {
            let offered = store.offered_to(tenant, actor, OPEN_WORKFLOWS_MAX).await;
            found.offer(offered.map_err(|error| unreadable(&error))?);
            found.procedures = self.parts.policies.current();
        }
        Ok(found)
    }

    /// What waits for a decision, longest first: of the tenant, or of what the caller sees.
    pub(super) async fn blocked(&self, principal: &Principal) -> Result<Vec<Workflow>, Rejection> {
        let store = &self.parts.store;
        let (tenant, actor) = (&principal.tenant, &principal.actor);
        if self.parts.settings.visibility.is_whole(principal) {
            let all = store.blocked(tenant, OPEN_WORKFLOWS_MAX).await;
            return all.map_err(|error| unreadable(&error));
        }
        // Not the tenant's first hundred without those of others: one's own would be missing behind them.
        let own = store.open_of(tenant, actor, OPEN_WORKFLOWS_MAX).await;
        let mut seen = own.map_err(|error| unreadable(&error))?;
        let offered = store.offered_to(tenant, actor, OPEN_WORKFLOWS_MAX).await;
        seen.extend(offered.map_err(|error| unreadable(&error))?);
        seen.retain(|w| w.phase == Phase::Blocked);
        seen.sort_by_key(|w| w.blocks.first().map(|block| block.at));
        Ok(seen)
    }

    fn found(&self, found: &Found, meta: &CallMeta) -> Reply {
        let frame = self.frame(None, meta);
        let workflows = found.workflows.iter().chain(&found.offered).map(Candidate::Workflow);
        let procedures = found.procedures.iter().map(|p| Candidate::Procedure(p.as_ref()));
        let all: Vec<Candidate<'_>> = workflows.chain(procedures).collect();
        if all.is_empty() {
            return frame.reply(Outcome::None, &[Stand::NothingFound.into()], Map::new());
        }
        let labels = |of: &[Workflow]| of.iter().map(|w| w.label.clone()).collect::<Vec<Text>>();
        let (open, offered) = (labels(&found.workflows), labels(&found.offered));
        let titles: Vec<Text> =
            found.procedures.iter().map(|p| p.definition().title.clone()).collect();
        let sayings: [Saying; 3] = [
            Stand::OpenWork { total: open.len(), labels: open }.into(),
            Stand::OnOffer { total: offered.len(), labels: offered }.into(),
            Stand::MayStart { total: titles.len(), titles }.into(),
        ];
        frame.reply(Outcome::List, &sayings, candidate_parts(&all, &frame))
    }

    async fn add_last_completed(
        &self,
        principal: &Principal,
        ids: Vec<AssetId>,
        meta: &CallMeta,
        reply: &mut Reply,
    ) -> Result<(), Rejection> {
        let frame = self.frame(None, meta);
        for id in ids {
            let Some(last) = self.last_completed(principal, &Recent::OfAsset(id)).await? else {
                continue;
            };
            if let Some(body) = reply.body.as_object_mut() {
                let shown = shape::completed(&last, &frame.words);
                body.insert("last_completed".to_owned(), shown);
            }
            break;
        }
        Ok(())
    }
}

impl Found {
    fn knows(&self, workflow: &Workflow) -> bool {
        self.workflows.iter().chain(&self.offered).any(|known| known.id == workflow.id)
    }

    fn add(&mut self, workflows: Vec<Workflow>) {
        for workflow in workflows {
            if !self.knows(&workflow) {
                self.workflows.push(workflow);
            }
        }
    }

    fn offer(&mut self, workflows: Vec<Workflow>) {
        for workflow in workflows {
            if !self.knows(&workflow) {
                self.offered.push(workflow);
            }
        }
    }

    fn retain(&mut self, wanted: impl Fn(&Workflow) -> bool) {
        self.workflows.retain(&wanted);
        self.offered.retain(&wanted);
    }
}

pub(super) fn workflow_words(w: &Workflow) -> Vec<String> {
    let mut words: Vec<String> = w.label.wordings().flat_map(search::words).collect();
    words.extend(search::words(w.procedure.id.as_str()));
    for asset in &w.assets {
        words.extend(search::words(asset.id.as_str()));
        words.extend(asset.say.wordings().flat_map(search::words));
    }
    words
}

fn procedure_words(policy: &dyn DomainPolicyPort) -> Vec<String> {
    let definition = policy.definition();
    let mut words: Vec<String> = definition.title.wordings().flat_map(search::words).collect();
    words.extend(search::words(definition.id.as_str()));
    for asset in policy.needs().assets {
        words.extend(asset.say.wordings().flat_map(search::words));
    }
    words
}
