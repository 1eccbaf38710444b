//! `find_work`: what is open, blocked, offered, or may be started.

use std::sync::Arc;

use serde_json::Map;

use crate::access;
use crate::limits::OPEN_WORKFLOWS_MAX;
use crate::models::{AssetId, Phase, Principal, Text, Workflow};
use crate::policy::DomainPolicyPort;
use crate::ports::Recent;
use crate::state_machine::{Outcome, Rejection};
use crate::view::shape::{self, Candidate};
use crate::view::{Saying, Stand};

use super::call::{CallMeta, FindScope, FindWork, Reply};
use super::{Engine, candidate_parts, unreadable};

/// What was found, best first.
#[derive(Default)]
struct Found {
    workflows: Vec<Workflow>,
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
            found.workflows.retain(|w| w.assets.iter().any(|a| ids.contains(&a.id)));
            found.procedures.retain(|p| p.canonical_asset(raw).is_some());
        }
        if let Some(words) = query.query.as_deref().map(search_words) {
            found.workflows.retain(|w| matches(&words, &workflow_words(w)));
            found.procedures.retain(|p| matches(&words, &procedure_words(p.as_ref())));
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
            found.add(offered.map_err(|error| unreadable(&error))?);
            found.procedures = self.parts.policies.current();
        }
        Ok(found)
    }

    /// What waits for a decision, longest first: of the tenant, or of what the caller sees.
    async fn blocked(&self, principal: &Principal) -> Result<Vec<Workflow>, Rejection> {
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
        let workflows = found.workflows.iter().map(Candidate::Workflow);
        let procedures = found.procedures.iter().map(|p| Candidate::Procedure(p.as_ref()));
        let all: Vec<Candidate<'_>> = workflows.chain(procedures).collect();
        if all.is_empty() {
            return frame.reply(Outcome::None, &[Stand::NothingFound.into()], Map::new());
        }
        let labels: Vec<Text> = found.workflows.iter().map(|w| w.label.clone()).collect();
        let titles: Vec<Text> =
            found.procedures.iter().map(|p| p.definition().title.clone()).collect();
        let sayings: [Saying; 2] = [
            Stand::OpenWork { total: labels.len(), labels }.into(),
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
    fn add(&mut self, workflows: Vec<Workflow>) {
        for workflow in workflows {
            if self.workflows.iter().all(|known| known.id != workflow.id) {
                self.workflows.push(workflow);
            }
        }
    }
}

/// Case-folded words; digits without leading zeros, so that "pump 07" finds PUMP-7.
fn search_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut digits = false;
    for c in text.to_lowercase().chars() {
        if !c.is_alphanumeric() || (!word.is_empty() && c.is_ascii_digit() != digits) {
            push(&mut words, &mut word);
        }
        if c.is_alphanumeric() {
            digits = c.is_ascii_digit();
            word.push(c);
        }
    }
    push(&mut words, &mut word);
    words
}

fn push(words: &mut Vec<String>, word: &mut String) {
    let taken = std::mem::take(word);
    if taken.is_empty() {
        return;
    }
    let number = taken.bytes().all(|b| b.is_ascii_digit());
    let trimmed = if number { taken.trim_start_matches('0') } else { &taken };
    words.push(if trimmed.is_empty() { "0".to_owned() } else { trimmed.to_owned() });
}

/// Each word asked for is a prefix of a word that is there.
fn matches(asked: &[String], there: &[String]) -> bool {
    asked.iter().all(|word| there.iter().any(|t| t.starts_with(word.as_str())))
}

fn workflow_words(w: &Workflow) -> Vec<String> {
    let mut words: Vec<String> = w.label.wordings().flat_map(search_words).collect();
    words.extend(search_words(w.procedure.id.as_str()));
    for asset in &w.assets {
        words.extend(search_words(asset.id.as_str()));
        words.extend(asset.say.wordings().flat_map(search_words));
    }
    words
}

fn procedure_words(policy: &dyn DomainPolicyPort) -> Vec<String> {
    let definition = policy.definition();
    let mut words: Vec<String> = definition.title.wordings().flat_map(search_words).collect();
    words.extend(search_words(definition.id.as_str()));
    for asset in policy.needs().assets {
        words.extend(asset.say.wordings().flat_map(search_words));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_split_at_digits_and_drop_leading_zeros() {
        assert_eq!(search_words("Unit-007 of Hall 0"), ["unit", "7", "of", "hall", "0"]);
        assert_eq!(search_words("AB12cd"), ["ab", "12", "cd"]);
        assert_eq!(search_words("  --  "), Vec::<String>::new());
    }

    #[test]
    fn every_word_must_be_a_prefix() {
        let there = search_words("Yearly inspection of unit 204");
        for hit in ["insp", "unit 204", "UNIT-0204", "204 yearly", "", "2"] {
            assert!(matches(&search_words(hit), &there), "{hit}");
        }
        for miss in ["nspection", "unit 205", "weekly"] {
            assert!(!matches(&search_words(miss), &there), "{miss}");
        }
    }
}
