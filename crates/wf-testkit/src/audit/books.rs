//! What a store holds, read whole and kept small: the commits of every workflow, the ledger rows of every key that
//! anybody named, the lock rows. What can be judged while reading is judged here: messages, definitions.

mod commits;
mod deadlines;
mod messages;
mod moves;

use std::collections::{BTreeMap, BTreeSet};

use wf_core::locks::LockRow;
use wf_core::models::{
    Actor, AssetId, Cause, Digest, ProcedureRef, TenantId, Workflow, WorkflowId,
};
use wf_core::policy::PolicyCompilerPort;
use wf_core::ports::{LedgerKey, ListQuery, LoadQuery, ReadError, StorageBackendPort};
use wf_idempotency::{Fingerprint, canonical_bytes};

use super::Invariant;
use super::found::Found;
use commits::Grouping;
use deadlines::Deadlines;
use messages::Outbox;
use moves::Moves;

/// Rows asked of the store at once.
const PAGE: u32 = 200;

/// Tenant and workflow.
pub(super) type Place = (TenantId, WorkflowId);

/// The place that an answer names.
pub(super) fn place_of(tenant: &str, workflow: &str) -> Option<Place> {
    Some((TenantId::parse(tenant).ok()?, WorkflowId::parse(workflow).ok()?))
}

/// A store.
#[derive(Debug, Default)]
pub(super) struct Books {
    pub(super) works: BTreeMap<Place, Work>,
    pub(super) locks: Vec<LockRow>,
    pub(super) rows: BTreeMap<LedgerKey, Row>,
    /// Every commit of a key, as workflow and number of the commit in it.
    pub(super) by_key: BTreeMap<LedgerKey, Vec<(Place, usize)>>,
    pub(super) events: u64,
    pub(super) messages: u64,
}

/// A workflow.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) workflow: Workflow,
    /// What the first event says that it runs.
    pub(super) started: Option<ProcedureRef>,
    pub(super) commits: Vec<Applied>,
}

/// A commit, as its events tell it.
#[derive(Debug, Clone)]
pub(super) struct Applied {
    /// `seq` of its first event.
    pub(super) first: u64,
    /// `seq` of its last event.
    pub(super) last: u64,
    pub(super) actor: Actor,
    pub(super) cause: Cause,
    /// What its fingerprints are under, where it recorded a sensitive value that was not erased.
    pub(super) salt: Option<String>,
    pub(super) effects: Vec<Effect>,
    /// Assets that it acquired, with their fences.
    pub(super) taken: Vec<(AssetId, u64)>,
    /// Assets that it freed by hand.
    pub(super) freed: Vec<AssetId>,
    /// It completes the workflow, which frees what it holds.
    pub(super) ends: bool,
}

/// One event, as far as it can be held against what a caller asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Effect {
    pub(super) kind: &'static str,
    /// The procedure, step or block.
    pub(super) subject: Option<String>,
    /// The value as given, the decision, the result, the words; none when it is withheld.
    pub(super) value: Option<String>,
}

/// A ledger row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) workflow_id: WorkflowId,
    pub(super) seq: u64,
    pub(super) fingerprint: Fingerprint,
    /// The bytes of the result, hashed.
    pub(super) result: Digest,
}

impl Applied {
    /// It is of a call with this fingerprint.
    pub(super) fn is_of(&self, payload: &Fingerprint) -> bool {
        let salted = self.salt.as_deref().map(|salt| payload.blinded(salt));
        salted.as_ref().unwrap_or(payload) == &self.cause.fingerprint
    }

    /// What the command asserted before it: that the workflow still holds its assets with its fences.
    pub(super) fn asserted(&self) -> bool {
        let asserting = |effect: &Effect| {
            matches!(effect.kind, "step_recorded" | "step_corrected" | "step_skipped")
        };
        self.effects.iter().any(asserting)
    }
}

impl Books {
    /// Reads a store, and the ledger rows of `keys` besides those of its own commits.
    pub(super) async fn read(
        store: &dyn StorageBackendPort,
        keys: BTreeSet<LedgerKey>,
        compiler: Option<&dyn PolicyCompilerPort>,
        found: &mut Found,
    ) -> Result<Self, ReadError> {
        let mut books = Self::default();
        let mut outbox = Outbox::read(store, compiler).await?;
        books.messages = outbox.len();
        let mut query = ListQuery { limit: PAGE, ..ListQuery::default() };
        loop {
            let page = store.list(&query).await?;
            for workflow in page.items {
                books.work(store, workflow, &mut outbox, found).await?;
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => break,
            }
        }
        outbox.close(found);
        books.locks(store).await?;
        books.index();
        let known: Vec<LedgerKey> = books.by_key.keys().cloned().collect();
        for key in keys.into_iter().chain(known) {
            books.row(store, key).await?;
        }
        Ok(books)
    }

    /// The commit whose last event has this number.
    pub(super) fn commit(&self, place: &Place, revision: u64) -> Option<&Applied> {
        let commits = &self.works.get(place)?.commits;
        let number = commits.binary_search_by_key(&revision, |commit| commit.last).ok()?;
        commits.get(number)
    }

    /// Every commit with its workflow.
    pub(super) fn commits(&self) -> impl Iterator<Item = (&Place, &Applied)> {
        self.works.iter().flat_map(|(place, work)| work.commits.iter().map(move |c| (place, c)))
    }

    async fn work(
        &mut self,
        store: &dyn StorageBackendPort,
        workflow: Workflow,
        outbox: &mut Outbox<'_>,
        found: &mut Found,
    ) -> Result<(), ReadError> {
        let digest = &workflow.procedure.digest;
        outbox.policy_of(store, digest).await?;
        let (mut grouping, mut due) = (Grouping::default(), Deadlines::default());
        let mut moves = Moves::default();
        let mut after = 0;
        loop {
            let events = store.events(&workflow.tenant, &workflow.id, after, PAGE).await?;
            let Some(last) = events.last() else { break };
            // Always onwards, whatever number an event claims to have.
            after = last.seq.max(after.saturating_add(1));
            self.events += u64::try_from(events.len()).unwrap_or(u64::MAX);
            for event in events {
                due.push(&event, found);
                moves.push(&event, found);
                if let Some(done) = grouping.push(event) {
                    outbox.commit(&workflow.tenant, digest, &done, found);
                }
            }
        }
        if let Some(done) = grouping.finish() {
            outbox.commit(&workflow.tenant, digest, &done, found);
        }
        due.finish(&workflow, found);
        moves.finish(&workflow, found);
        defined(store, &workflow, found).await?;
        let (started, commits) = grouping.into_parts();
        let place = (workflow.tenant.clone(), workflow.id.clone());
        self.works.insert(place, Work { workflow, started, commits });
        Ok(())
    }

    async fn locks(&mut self, store: &dyn StorageBackendPort) -> Result<(), ReadError> {
        let mut after = None;
        loop {
            let page = store.list_locks(None, after.as_ref(), PAGE).await?;
            self.locks.extend(page.items);
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(()),
            }
        }
    }

    fn index(&mut self) {
        for (place, work) in &self.works {
            for (number, commit) in work.commits.iter().enumerate() {
                let (tenant, _) = place;
                let key = LedgerKey {
                    tenant: tenant.clone(),
                    actor: commit.actor.clone(),
                    key: commit.cause.key.clone(),
                };
                self.by_key.entry(key).or_default().push((place.clone(), number));
            }
        }
    }

    async fn row(
        &mut self,
        store: &dyn StorageBackendPort,
        key: LedgerKey,
    ) -> Result<(), ReadError> {
        if self.rows.contains_key(&key) {
            return Ok(());
        }
        let query = LoadQuery {
            tenant: key.tenant.clone(),
            workflow: None,
            ledger: Some(key.clone()),
            assets: Vec::new(),
            answered_as: None,
            count_open_of: None,
        };
        if let Some(row) = store.load(&query).await?.ledger {
            let result = Digest::of(row.entry.result.as_bytes());
            let fingerprint = row.entry.fingerprint;
            let (workflow_id, seq) = (row.workflow_id, row.seq);
            self.rows.insert(key, Row { workflow_id, seq, fingerprint, result });
        }
        Ok(())
    }
}

/// The definition that a workflow pinned is stored, and is the one that its digest says.
async fn defined(
    store: &dyn StorageBackendPort,
    workflow: &Workflow,
    found: &mut Found,
) -> Result<(), ReadError> {
    let pinned = &workflow.procedure;
    let message = match store.definition(&pinned.digest).await? {
        None => "the definition that it pinned is not stored",
        Some(stored) => {
            let true_digest = canonical_bytes(&stored.document).map(|bytes| Digest::of(&bytes));
            let named = stored.id == pinned.id && stored.version == pinned.version;
            if named && true_digest.is_ok_and(|digest| digest == pinned.digest) {
                return Ok(());
            }
            "the definition that is stored under its digest is another one"
        }
    };
    found.add(Invariant::I12, workflow.id.as_str(), message);
    Ok(())
}
