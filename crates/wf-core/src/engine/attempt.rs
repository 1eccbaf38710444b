//! One attempt at a mutating call: read, judge the ledger, decide, build the result, commit.

mod build;
mod guess;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use wf_idempotency::{Verdict as Judged, judge};

use crate::errors::ErrorCode;
use crate::limits::PEOPLE_MAX;
use crate::locks::LockRow;
use crate::models::{AssetId, Cause, Person, Principal, Timestamp, Workflow, WorkflowId};
use crate::policy::DomainPolicyPort;
use crate::ports::{IdPort, LedgerKey, LedgerRow, LoadQuery, Snapshot};
use crate::state_machine::{
    Command, Decision, Facts, LockFact, Rejection, Secret, Transfer, Unrecorded, Verdict, decide,
};
use crate::view::{Fault, Frame, Outlook, shape};

use super::call::{Call, Reply, Request};
use super::execute::Refused;
use super::{Engine, ledger, unreadable};

/// A call on its way.
pub(super) struct Attempting<'a> {
    pub(super) engine: &'a Engine,
    pub(super) principal: &'a Principal,
    pub(super) call: &'a Call,
    pub(super) cause: Cause,
    /// Salt of sensitive values.
    pub(super) salt: String,
    /// What tokens and links are signed with.
    pub(super) keys: Arc<[Secret]>,
    /// The workflow, or the id that a start will give it.
    pub(super) workflow_id: WorkflowId,
}

/// What came of one attempt.
pub(super) enum Attempt {
    Answered(Box<Reply>),
    /// Somebody else changed something: read again, judge again, decide again.
    Again,
}

/// A new workflow id.
pub(super) fn minted(ids: &dyn IdPort) -> Result<WorkflowId, Rejection> {
    WorkflowId::parse(&ids.workflow_id())
        .map_err(|error| Rejection::new(ErrorCode::Internal, error.to_string(), Fault::Internal))
}

fn answered(reply: Reply) -> Attempt {
    Attempt::Answered(Box::new(reply))
}

impl Attempting<'_> {
    pub(super) async fn once(&self) -> Result<Attempt, Refused> {
        let startable = self.startable();
        let mut snapshot = self.load(startable.as_deref(), true).await?;
        let now = self.engine.parts.clock.now();
        if self.wants_more(&snapshot, now) {
            snapshot = self.load(startable.as_deref(), false).await?;
        }
        let replaces = match self.judged(&snapshot, now).await? {
            Ledger::Answer(reply) => return Ok(answered(reply)),
            Ledger::Free { replaces } => replaces,
        };
        let state = self.state(&snapshot).await?;
        if let Some(reply) = self.repeat(state).await? {
            return Ok(answered(reply));
        }
        self.expected(state)?;
        let policy = self.policy(startable, state).await?;
        let frame = self.engine.frame(Some(policy.as_ref()), &self.call.meta);
        let people = self.people().await?;
        let facts = self.facts(&snapshot, policy.as_ref(), &people, now);
        let command = self.command();
        match decide(state, &command, &facts) {
            Err(rejection) => {
                Err(Refused { parts: self.shown(&frame, state, policy.as_ref()), rejection })
            }
            Ok(Verdict::Unrecorded(unrecorded)) => {
                self.unrecorded(&unrecorded, &snapshot, policy.as_ref()).await
            }
            Ok(Verdict::Commit(decision)) => {
                self.keyed(&decision)?;
                let made = self.build(decision, state, policy.as_ref(), &frame, now)?;
                self.write(made, replaces.map(|row| *row), snapshot.locks).await
            }
        }
    }

    fn startable(&self) -> Option<Arc<dyn DomainPolicyPort>> {
        match &self.call.request {
            Request::Start { procedure_id, .. } => {
                self.engine.parts.policies.startable(procedure_id)
            }
            Request::SubmitStep { .. }
            | Request::CorrectStep { .. }
            | Request::SkipStep { .. }
            | Request::ReportProblem { .. }
            | Request::ResolveBlock { .. }
            | Request::AcknowledgeBlock { .. }
            | Request::DeadlineReached { .. }
            | Request::AcknowledgeOrchestration { .. }
            | Request::Transfer { .. }
            | Request::ReleaseLock { .. }
            | Request::Finish { .. } => None,
        }
    }

    /// Reads what a decision needs; with `briefly` no more than the stored answer, if there is one.
    async fn load(
        &self,
        startable: Option<&dyn DomainPolicyPort>,
        briefly: bool,
    ) -> Result<Snapshot, Rejection> {
        let starts = self.call.request.workflow_id().is_none();
        let takes = matches!(
            &self.call.request,
            Request::Transfer { transfer: Transfer::Accept | Transfer::TakeOver { .. }, .. }
        );
        let query = LoadQuery {
            tenant: self.principal.tenant.clone(),
            workflow: (!starts).then(|| self.workflow_id.clone()),
            ledger: self.call.key.as_ref().map(|key| self.ledger_key(key.clone())),
            assets: startable.map_or_else(Vec::new, |policy| self.wanted(policy)),
            answered_as: briefly.then_some(self.cause.fingerprint),
            count_open_of: (starts || takes).then(|| self.principal.actor.clone()),
        };
        self.engine.parts.store.load(&query).await.map_err(|error| unreadable(&error))
    }

    /// A row of the call's key and fingerprint, for which the rest was left out, answers nothing: its time is past.
    fn wants_more(&self, snapshot: &Snapshot, now: Timestamp) -> bool {
        snapshot.ledger.as_ref().is_some_and(|row| {
            row.entry.fingerprint == self.cause.fingerprint
                && !matches!(self.verdict(Some(row), now), Judged::Replay(_))
        })
    }

    /// Assets that a start asks for. A start that is refused asks for none.
    fn wanted(&self, policy: &dyn DomainPolicyPort) -> Vec<AssetId> {
        let Request::Start { assets, inputs, .. } = &self.call.request else { return Vec::new() };
        policy
            .plan_start(assets, inputs)
            .map(|plan| plan.assets.into_iter().map(|a| a.id).collect())
            .unwrap_or_default()
    }

    /// People among whom the name of an offer is looked for.
    async fn people(&self) -> Result<Vec<Person>, Refused> {
        let Request::Transfer { transfer: Transfer::Offer { to: Some(_) }, .. } =
            &self.call.request
        else {
            return Ok(Vec::new());
        };
        let people = self.engine.parts.store.people(&self.principal.tenant, PEOPLE_MAX).await;
        Ok(people.map_err(|error| unreadable(&error))?)
    }

    fn ledger_key(&self, key: wf_idempotency::IdempotencyKey) -> LedgerKey {
        LedgerKey {
            tenant: self.principal.tenant.clone(),
            actor: self.principal.actor.clone(),
            key,
        }
    }

    /// What the row of the call's key says of the call.
    fn verdict<'r>(&self, row: Option<&'r LedgerRow>, now: Timestamp) -> Judged<'r> {
        let entry = row.map(|row| &row.entry);
        judge(entry, self.call.operation, &self.cause.fingerprint, now.as_ms())
    }

    /// Answers a repeated call, or leaves the key to this one.
    async fn judged(&self, snapshot: &Snapshot, now: Timestamp) -> Result<Ledger, Refused> {
        let row = snapshot.ledger.as_ref();
        match (self.verdict(row, now), row) {
            (Judged::Fresh, _) | (_, None) => Ok(Ledger::Free { replaces: None }),
            (Judged::Expired(_), Some(row)) => {
                Ok(Ledger::Free { replaces: Some(Box::new(row.clone())) })
            }
            (Judged::Replay(_), Some(row)) => Ok(Ledger::Answer(ledger::replayed(row)?)),
            (Judged::Conflict(_), Some(row)) => self.differing(row, snapshot).await,
        }
    }

    /// The key has a row with another fingerprint: a repeat of a call with a sensitive value, or a conflict.
    async fn differing(&self, row: &LedgerRow, snapshot: &Snapshot) -> Result<Ledger, Refused> {
        let same_operation = row.entry.operation == self.call.operation;
        let salt = if same_operation {
            self.engine.salt_of(row).await?
        } else {
            super::blind::Salt::Nothing
        };
        if same_operation && salt.over(&self.cause.fingerprint) == Some(row.entry.fingerprint) {
            return Ok(Ledger::Answer(ledger::replayed(row)?));
        }
        let seen = |w: &&Workflow| self.engine.sees(self.principal, w);
        let named = snapshot.workflow.as_ref().filter(seen);
        // A start names no workflow: the one that the key's row is about tells the next key.
        let recorded = match named {
            Some(_) => None,
            None => self.engine.seen(self.principal, &row.workflow_id).await?,
        };
        let workflow = named.or(recorded.as_ref());
        let frame = self.engine.frame(None, &self.call.meta);
        Err(ledger::conflict(row, self.call, &salt, workflow, &frame).into())
    }

    /// The state to decide on: none for a start; for everything else it must exist, for this caller.
    async fn state<'s>(&self, snapshot: &'s Snapshot) -> Result<Option<&'s Workflow>, Refused> {
        if self.call.request.workflow_id().is_none() {
            return Ok(None);
        }
        match snapshot.workflow.as_ref() {
            Some(workflow) if self.reaches(workflow).await => Ok(Some(workflow)),
            Some(_) | None => Err(Rejection::not_found().into()),
        }
    }

    /// The workflow has the revision that the caller expects, if it said one.
    fn expected(&self, state: Option<&Workflow>) -> Result<(), Refused> {
        let (Some(workflow), Some(expected)) = (state, self.call.meta.expected_revision) else {
            return Ok(());
        };
        if expected == workflow.revision {
            return Ok(());
        }
        Err(Rejection::new(
            ErrorCode::VersionConflict,
            "the workflow has another revision than expected",
            Fault::VersionConflict,
        )
        .with("expected_revision", expected)
        .with("current_revision", workflow.revision)
        .into())
    }

    /// The answer of the event that a call without a key repeats.
    async fn repeat(&self, state: Option<&Workflow>) -> Result<Option<Reply>, Refused> {
        let (None, Some(workflow)) = (&self.call.key, state) else { return Ok(None) };
        let actor = &self.principal.actor;
        let Some(touch) = ledger::repeated(self.call, &self.cause, actor, workflow) else {
            return Ok(None);
        };
        let query = LoadQuery {
            tenant: self.principal.tenant.clone(),
            workflow: None,
            ledger: Some(self.ledger_key(touch.cause.key.clone())),
            assets: Vec::new(),
            answered_as: None,
            count_open_of: None,
        };
        let store = &self.engine.parts.store;
        let snapshot = store.load(&query).await.map_err(|error| unreadable(&error))?;
        let Some(row) = snapshot.ledger.as_ref() else { return Ok(None) };
        let plain = touch.cause.natural == self.cause.natural;
        let same = plain || {
            let salt = self.engine.salt_of(row).await?;
            salt.over(&self.cause.natural) == Some(touch.cause.natural)
        };
        Ok(same.then(|| ledger::replayed(row)).transpose()?)
    }

    /// The policy of the pinned definition, or of the procedure to start.
    async fn policy(
        &self,
        startable: Option<Arc<dyn DomainPolicyPort>>,
        state: Option<&Workflow>,
    ) -> Result<Arc<dyn DomainPolicyPort>, Refused> {
        if let Some(policy) = startable {
            return Ok(policy);
        }
        let Some(workflow) = state else { return Err(self.unknown_procedure().into()) };
        let policies = &self.engine.parts.policies;
        let pinned =
            policies.pinned(&workflow.procedure.digest, self.engine.parts.store.as_ref()).await;
        pinned.map_err(|error| unreadable(&error))?.ok_or_else(|| {
            Rejection::definition_unknown()
                .with("digest", workflow.procedure.digest.as_str())
                .into()
        })
    }

    fn unknown_procedure(&self) -> Rejection {
        let current = self.engine.parts.policies.current();
        let available = current.iter().take(3).map(|p| p.definition().title.clone()).collect();
        let ids: Vec<&str> = current.iter().map(|p| p.definition().id.as_str()).collect();
        Rejection::new(
            ErrorCode::ProcedureNotFound,
            "there is no such procedure",
            Fault::ProcedureNotFound { available },
        )
        .with("available", ids)
    }

    fn facts<'f>(
        &'f self,
        snapshot: &Snapshot,
        policy: &'f dyn DomainPolicyPort,
        people: &'f [Person],
        at: Timestamp,
    ) -> Facts<'f> {
        Facts {
            at,
            policy,
            locks: self.lock_facts(&snapshot.locks),
            secrets: &self.keys,
            salt: &self.salt,
            open_workflows: snapshot.open_count,
            people,
            acknowledge_at_start: self.engine.parts.orchestrator.acknowledges_at_start(),
        }
    }

    fn lock_facts(&self, rows: &[LockRow]) -> BTreeMap<AssetId, LockFact> {
        let whole = self.engine.parts.settings.visibility.is_whole(self.principal);
        rows.iter()
            .map(|row| {
                let holder = row.holder.as_ref();
                let shown = holder.filter(|h| whole || h.owner.id == self.principal.actor);
                let fact = LockFact {
                    fence: row.fence,
                    workflow_id: holder.map(|h| h.workflow_id.clone()),
                    owner: shown.map(|h| h.owner.clone()),
                };
                (row.asset_id.clone(), fact)
            })
            .collect()
    }

    fn command(&self) -> Command {
        Command {
            principal: self.principal.clone(),
            cause: self.cause.clone(),
            kind: self.call.request.command(&self.workflow_id),
        }
    }

    /// A start without assets has no lock that its repeat could meet: it needs a key.
    fn keyed(&self, decision: &Decision) -> Result<(), Rejection> {
        let starts = self.call.request.workflow_id().is_none();
        if !starts || self.call.key.is_some() || !decision.locks.is_empty() {
            return Ok(());
        }
        let mut rejection =
            Rejection::invalid("idempotency_key", "a start without assets needs a key");
        rejection.saying = Fault::KeyNeeded.into();
        Err(rejection)
    }

    /// The workflow as it stands, beside an error.
    fn shown(
        &self,
        frame: &Frame<'_>,
        state: Option<&Workflow>,
        policy: &dyn DomainPolicyPort,
    ) -> Map<String, Value> {
        match state {
            Some(workflow) if self.engine.sees(self.principal, workflow) => {
                shape::workflow(frame, workflow, Some(&Outlook::of(workflow, policy)))
            }
            Some(_) | None => Map::new(),
        }
    }

    async fn unrecorded(
        &self,
        unrecorded: &Unrecorded,
        snapshot: &Snapshot,
        policy: &dyn DomainPolicyPort,
    ) -> Result<Attempt, Refused> {
        if let Unrecorded::HeldBy { workflow_id, asset_id, asset } = unrecorded {
            let held = super::twin::Held { workflow_id, asset_id, asset, locks: &snapshot.locks };
            return self.engine.held(self.principal, self.call, &self.cause, &held, policy).await;
        }
        let frame = self.engine.frame(Some(policy), &self.call.meta);
        let state = snapshot.workflow.as_ref();
        let mut parts = self.shown(&frame, state, policy);
        let (outcome, saying) = super::commit::unrecorded(unrecorded, &frame, &mut parts);
        if let Request::Start { procedure_id, .. } = &self.call.request {
            parts.extend(self.engine.startable_parts(Some(procedure_id), &frame));
        }
        Ok(answered(frame.reply(outcome, &[saying], parts)))
    }
}

/// What the ledger says.
enum Ledger {
    Answer(Reply),
    Free { replaces: Option<Box<LedgerRow>> },
}
