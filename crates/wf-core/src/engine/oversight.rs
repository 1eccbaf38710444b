//! What somebody who watches over work reads: lists by pages, one workflow whole, lock rows, messages. Each answer is limited
//! to what the caller sees (`sight`); acting goes through `execute`, like every tool.

use std::collections::BTreeMap;

use crate::access;
use crate::limits::{HISTORY_PAGE_EVENTS, WATCHED_ROWS_MAX};
use crate::locks::LockRow;
use crate::models::{AssetId, Block, BlockId, Phase, Principal, StepId, Workflow, WorkflowId};
use crate::policy::{BlockSource, DomainPolicyPort, Effect};
use crate::ports::{Cursor, ListQuery, OutboxQuery, OutboxRow, Page, Snapshot};
use crate::state_machine::{Event, Rejection};
use crate::view::{Outlook, next};

use super::call::CallMeta;
use super::{Engine, bad_cursor, is_meant, unreadable};

/// Which workflows to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WatchQuery {
    /// Only in this phase; when absent every open one, blocked ones first.
    pub phase: Option<Phase>,
    /// Only those that are called so: the beginning of an id, or words of label, procedure and assets; all when empty.
    pub words: String,
    /// Where to go on; what the page before said.
    pub after: Option<Cursor>,
    /// About as many rows, at least 1.
    pub limit: u32,
}

/// A workflow in a list, with what is asked next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched {
    /// The workflow.
    pub workflow: Workflow,
    /// What is asked next, in words; none when it is over, or its definition is not known here.
    pub next: Option<String>,
}

/// One workflow with what its policy says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Portrait {
    /// The workflow.
    pub workflow: Workflow,
    /// Lock rows of its assets.
    pub locks: Vec<LockRow>,
    /// How its steps are called, those that somebody touched or that are named in `events`.
    pub steps: BTreeMap<StepId, String>,
    /// What is asked next, in words.
    pub next: Option<String>,
    /// How many required steps are settled, and how many there are.
    pub progress: Option<(usize, usize)>,
    /// What may be decided, by open block; empty where the definition is not known here.
    pub questions: BTreeMap<BlockId, BlockQuestion>,
    /// The page of the history, counted from 1, that `events` is.
    pub page: u64,
    /// How many pages the history has.
    pub pages: u64,
    /// A page of the history, oldest first; at most [`HISTORY_PAGE_EVENTS`].
    pub events: Vec<Event>,
}

/// What is asked of whoever decides on a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockQuestion {
    /// The question.
    pub question: String,
    /// What may be decided: id, words, and what it leads to.
    pub decisions: Vec<(String, String, Effect)>,
}

/// Open phases, in the order of the list.
const OPEN: [Phase; 3] = [Phase::Blocked, Phase::Running, Phase::Created];

/// Pages of the outbox that one answer looks through for messages of the caller's tenant.
const OUTBOX_PAGES_MAX: usize = 10;

impl Engine {
    /// A page of the workflows that the caller sees. A workflow that changes its phase meanwhile may come twice or not at
    /// all. With words, at most [`WATCHED_ROWS_MAX`] are looked at for a page, which may be empty and have a next one.
    ///
    /// # Errors
    /// `NOT_ALLOWED`, `VALIDATION_ERROR` for a cursor that is none, `BACKEND_UNAVAILABLE`.
    pub async fn watched(
        &self,
        by: &Principal,
        query: &WatchQuery,
        meta: &CallMeta,
    ) -> Result<Page<Watched>, Rejection> {
        access::may_read(by)?;
        let wanted = query.phase.map_or_else(|| OPEN.to_vec(), |phase| vec![phase]);
        let page = if self.parts.settings.visibility.is_whole(by) {
            self.walked(by, query, &wanted).await?
        } else {
            let mut items = self.at_hand(by).await?;
            items.retain(|w| wanted.contains(&w.phase) && is_meant(w, query.words.trim()));
            Page { items, next: None }
        };
        let mut items = Vec::with_capacity(page.items.len());
        for workflow in page.items {
            let policy = self.pinned(&workflow).await?;
            let next =
                policy.as_deref().and_then(|p| self.asked_next(&Outlook::of(&workflow, p), meta));
            items.push(Watched { workflow, next });
        }
        Ok(Page { items, next: page.next })
    }

    async fn walked(
        &self,
        by: &Principal,
        query: &WatchQuery,
        wanted: &[Phase],
    ) -> Result<Page<Workflow>, Rejection> {
        let begin = query.after.as_ref().map(|after| place(after, wanted)).transpose()?;
        let (first, mut after) = begin.unwrap_or((0, None));
        let limit = query.limit.clamp(1, WATCHED_ROWS_MAX);
        let rows = usize::try_from(limit).unwrap_or(usize::MAX);
        let words = query.words.trim();
        let looks_max = if words.is_empty() { limit } else { WATCHED_ROWS_MAX };
        let looks_max = usize::try_from(looks_max).unwrap_or(usize::MAX);
        let (mut items, mut looks) = (Vec::new(), 0);
        for phase in wanted.iter().skip(first) {
            loop {
                if items.len() >= rows || looks >= looks_max {
                    return Ok(Page { items, next: Some(place_of(*phase, after.as_ref())) });
                }
                let left = u32::try_from(rows.saturating_sub(items.len())).unwrap_or(limit);
                let tenant = Some(by.tenant.clone());
                let list = ListQuery { tenant, phase: Some(*phase), after, limit: left };
                let page =
                    self.parts.store.list(&list).await.map_err(|error| unreadable(&error))?;
                looks += page.items.len();
                items.extend(page.items.into_iter().filter(|w| is_meant(w, words)));
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(Page { items, next: None })
    }

    fn asked_next(&self, outlook: &Outlook<'_>, meta: &CallMeta) -> Option<String> {
        let frame = self.frame(Some(outlook.policy), meta);
        next::next(outlook, &frame.words).map(|saying| frame.words.say(&saying))
    }

    /// One workflow that the caller sees, with a page of its history; the last page when none is named.
    ///
    /// # Errors
    /// `WORKFLOW_NOT_FOUND`, `NOT_ALLOWED`, `VALIDATION_ERROR` for a page that is not there, `BACKEND_UNAVAILABLE`.
    pub async fn portrait(
        &self,
        by: &Principal,
        id: &WorkflowId,
        page: Option<u64>,
        meta: &CallMeta,
    ) -> Result<Portrait, Rejection> {
        access::may_read(by)?;
        let Snapshot { workflow, locks, .. } = self.with_locks(by, id).await?;
        let workflow = workflow.filter(|w| self.sees(by, w)).ok_or_else(Rejection::not_found)?;
        let size = u64::from(HISTORY_PAGE_EVENTS);
        let pages = workflow.revision.div_ceil(size).max(1);
        let page = page.unwrap_or(pages);
        let Some(before) = page.checked_sub(1).filter(|before| *before < pages) else {
            return Err(Rejection::invalid("page", &format!("must be from 1 to {pages}")));
        };
        let after = before.saturating_mul(size);
        let limit = u32::try_from(workflow.revision.saturating_sub(after).min(size));
        let limit = limit.unwrap_or(HISTORY_PAGE_EVENTS);
        let events = self.parts.store.events(&workflow.tenant, &workflow.id, after, limit).await;
        let events = events.map_err(|error| unreadable(&error))?;
        let policy = self.pinned(&workflow).await?;
        let mut portrait = Portrait {
            locks,
            steps: BTreeMap::new(),
            next: None,
            progress: None,
            questions: BTreeMap::new(),
            page,
            pages,
            events,
            workflow,
        };
        if let Some(policy) = policy.as_deref() {
            self.describe(&mut portrait, policy, meta);
        }
        Ok(portrait)
    }

    fn describe(&self, portrait: &mut Portrait, policy: &dyn DomainPolicyPort, meta: &CallMeta) {
        let frame = self.frame(Some(policy), meta);
        let workflow = &portrait.workflow;
        let outlook = Outlook::of(workflow, policy);
        portrait.next = self.asked_next(&outlook, meta);
        portrait.progress = Some(outlook.plan.progress());
        let named = outlook.plan.steps.iter().map(|step| step.id.clone());
        portrait.steps = named
            .filter_map(|id| {
                let described = policy.describe(workflow, &id)?;
                Some((id, frame.words.text(&described.say).to_owned()))
            })
            .collect();
        let question = |block: &Block| {
            let source = BlockSource { step_id: block.step_id.as_ref(), reported: block.reported };
            let rule = policy.block_rule(source);
            let decisions = rule
                .decisions
                .iter()
                .map(|d| (d.id.as_str().to_owned(), frame.words.text(&d.say).to_owned(), d.effect));
            let question = frame.words.text(&rule.question).to_owned();
            (block.id.clone(), BlockQuestion { question, decisions: decisions.collect() })
        };
        portrait.questions = workflow.blocks.iter().map(question).collect();
    }

    /// A page of the lock rows that the caller sees, by asset id. Whoever does not see all of the tenant is told of the assets
    /// of the work at hand, on one page.
    ///
    /// # Errors
    /// `NOT_ALLOWED`, `BACKEND_UNAVAILABLE`.
    pub async fn lock_rows(
        &self,
        by: &Principal,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<LockRow>, Rejection> {
        access::may_read(by)?;
        if self.parts.settings.visibility.is_whole(by) {
            let limit = limit.clamp(1, WATCHED_ROWS_MAX);
            let page = self.parts.store.list_locks(Some(&by.tenant), after, limit).await;
            return page.map_err(|error| unreadable(&error));
        }
        let own = self.at_hand(by).await?;
        let assets: Vec<AssetId> =
            own.iter().flat_map(|w| w.assets.iter().map(|a| a.id.clone())).collect();
        let mut items = self.locks(by, assets).await?.locks;
        items.retain(|row| {
            row.holder.as_ref().is_some_and(|h| own.iter().any(|w| w.id == h.workflow_id))
        });
        Ok(Page { items, next: None })
    }

    /// A page of the messages of the caller's tenant; for supervisors. It may be empty and have a next one.
    ///
    /// # Errors
    /// `NOT_ALLOWED`, `BACKEND_UNAVAILABLE`.
    pub async fn messages(
        &self,
        by: &Principal,
        query: &OutboxQuery,
    ) -> Result<Page<OutboxRow>, Rejection> {
        access::may_supervise(by)?;
        let limit = query.limit.clamp(1, WATCHED_ROWS_MAX);
        let rows = usize::try_from(limit).unwrap_or(usize::MAX);
        let (mut items, mut after) = (Vec::new(), query.after.clone());
        for _ in 0..OUTBOX_PAGES_MAX {
            let left = u32::try_from(rows.saturating_sub(items.len())).unwrap_or(limit);
            let asked = OutboxQuery { after, limit: left, ..query.clone() };
            let page = self.parts.store.list_outbox(&asked).await;
            let page = page.map_err(|error| unreadable(&error))?;
            items.extend(page.items.into_iter().filter(|row| row.message.tenant == by.tenant));
            after = page.next;
            if after.is_none() || items.len() >= rows {
                break;
            }
        }
        Ok(Page { items, next: after })
    }
}

/// Where a list goes on: the phase, and the place in the store's list of it.
fn place_of(phase: Phase, after: Option<&Cursor>) -> Cursor {
    Cursor(format!("{}|{}", phase.as_str(), after.map_or("", |after| after.0.as_str())))
}

/// The same, read: which of the wanted phases, and the place in it.
fn place(cursor: &Cursor, wanted: &[Phase]) -> Result<(usize, Option<Cursor>), Rejection> {
    let read = cursor.0.split_once('|').and_then(|(phase, rest)| {
        let index = wanted.iter().position(|wanted| wanted.as_str() == phase)?;
        Some((index, (!rest.is_empty()).then(|| Cursor(rest.to_owned()))))
    });
    read.ok_or_else(bad_cursor)
}
