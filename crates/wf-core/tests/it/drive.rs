//! Drives one workflow by hand, as the engine does: decide, append to the chain, fold, apply the locks. No engine, no store.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use wf_core::idempotency::{Fingerprint, IdempotencyKey};
use wf_core::locks::LockChange;
use wf_core::models::{
    Actor, AssetId, Cause, Person, Principal, Scopes, Severity, TenantId, Timestamp, Workflow,
    WorkflowId,
};
use wf_core::ports::Message;
use wf_core::state_machine::chain::{self, Tip};
use wf_core::state_machine::command::SubmittedValue;
use wf_core::state_machine::notices::notices;
use wf_core::state_machine::{
    Command, CommandKind, Decision, Event, Facts, LockFact, Rejection, Secret, Transfer,
    Unrecorded, Verdict, decide, room,
};

use crate::plain_policy::{PlainPolicy, id};

/// Where the time of these tests begins.
pub(crate) const BEGIN_MS: i64 = 1_767_225_600_000;
const SALT: &str = "00112233445566778899aabbccddeeff";

/// One workflow, the rows around it, and a clock that is set by hand.
#[derive(Debug, Clone)]
pub(crate) struct Desk {
    pub(crate) policy: PlainPolicy,
    pub(crate) state: Option<Workflow>,
    pub(crate) events: Vec<Event>,
    pub(crate) locks: BTreeMap<AssetId, LockFact>,
    pub(crate) messages: Vec<Message>,
    pub(crate) now: Timestamp,
    pub(crate) acknowledge_at_start: bool,
    pub(crate) open_workflows: u32,
    pub(crate) people: Vec<Person>,
    pub(crate) secrets: Vec<Secret>,
    pub(crate) calls: u32,
}

/// The owner of the workflow.
pub(crate) fn owner() -> Principal {
    person("ann", false)
}

/// Somebody who may write and owns nothing.
pub(crate) fn stranger() -> Principal {
    person("bob", false)
}

/// Who may do everything.
pub(crate) fn supervisor() -> Principal {
    person("sue", true)
}

/// An operator at the command line.
pub(crate) fn operator() -> Principal {
    Principal {
        scopes: Scopes { supervise: false, ..Scopes::ALL },
        ..Principal::operator(TenantId::default_tenant(), "root")
    }
}

/// The clock.
pub(crate) fn clock() -> Principal {
    Principal::part(TenantId::default_tenant(), Actor::clock())
}

/// Who followed the link of an escalation.
pub(crate) fn told() -> Principal {
    let page = Principal::part(TenantId::default_tenant(), Actor::acknowledgements());
    Principal { name: Some("duty".to_owned()), ..page }
}

fn person(name: &str, supervise: bool) -> Principal {
    Principal {
        actor: Actor::User(format!("{name}-subject")),
        name: Some(name.to_owned()),
        scopes: Scopes { read: true, write: true, supervise },
        ..Principal::local()
    }
}

impl Desk {
    /// Before the start; the orchestrator acknowledges later.
    pub(crate) fn new() -> Self {
        Self {
            policy: PlainPolicy::new(),
            state: None,
            events: Vec::new(),
            locks: BTreeMap::new(),
            messages: Vec::new(),
            now: Timestamp::from_ms(BEGIN_MS),
            acknowledge_at_start: false,
            open_workflows: 0,
            people: Vec::new(),
            secrets: vec![Secret::new(vec![7; 32])],
            calls: 0,
        }
    }

    /// Started and acknowledged at once.
    pub(crate) fn running() -> Self {
        let mut desk = Self { acknowledge_at_start: true, ..Self::crowded() };
        desk.must(&owner(), start("U-7", json!({"order": "A-1"})));
        desk
    }

    pub(crate) fn workflow_id() -> WorkflowId {
        id("w-1")
    }

    /// The state; a test that has none is wrong.
    pub(crate) fn workflow(&self) -> &Workflow {
        self.state.as_ref().expect("a started workflow")
    }

    /// What the command would lead to. Changes nothing.
    pub(crate) fn ask(&self, by: &Principal, kind: CommandKind) -> Result<Verdict, Rejection> {
        let command = Command { principal: by.clone(), cause: self.cause(), kind };
        let facts = Facts {
            at: self.now,
            policy: &self.policy,
            locks: self.locks.clone(),
            secrets: &self.secrets,
            salt: SALT,
            open_workflows: self.open_workflows,
            people: &self.people,
            acknowledge_at_start: self.acknowledge_at_start,
        };
        decide(self.state.as_ref(), &command, &facts)
    }

    /// Asks and, when the answer is a commit, commits. A read-back is confirmed with its token when `confirm` is set.
    pub(crate) fn act(
        &mut self,
        by: &Principal,
        kind: CommandKind,
        confirm: bool,
    ) -> Result<Verdict, Rejection> {
        let mut verdict = self.ask(by, kind.clone())?;
        if let (true, Verdict::Unrecorded(Unrecorded::NeedsConfirmation(question))) =
            (confirm, &verdict)
        {
            verdict = self.ask(by, with_token(kind, &question.token))?;
        }
        if let Verdict::Commit(decision) = &verdict {
            self.apply(by, decision.clone())?;
        }
        Ok(verdict)
    }

    /// Commits, or fails the test.
    pub(crate) fn must(&mut self, by: &Principal, kind: CommandKind) -> Decision {
        match self.act(by, kind.clone(), true) {
            Ok(Verdict::Commit(decision)) => decision,
            other => panic!("{kind:?} must commit, but: {other:?}"),
        }
    }

    fn apply(&mut self, by: &Principal, decision: Decision) -> Result<(), Rejection> {
        let tip = self
            .state
            .as_ref()
            .map_or_else(|| Tip::origin(&TenantId::default_tenant(), Self::workflow_id()), Tip::of);
        let cause = self.cause();
        let (events, next) =
            chain::append(self.state.clone(), tip, decision.drafts, by, &cause, self.now)
                .expect("canonical events");
        if let Some(next) = &next {
            room(next)?;
            self.messages.extend(notices(&events, next, &self.policy, None));
        }
        self.events.extend(events);
        self.state = next;
        for change in &decision.locks {
            self.change(change);
        }
        self.calls += 1;
        Ok(())
    }

    fn change(&mut self, change: &LockChange) {
        let me = Self::workflow_id();
        let row = self.locks.entry(change.asset_id().clone()).or_default();
        match change {
            LockChange::Acquire { fence, .. } | LockChange::Take { fence, .. } => {
                *row = LockFact { fence: *fence, workflow_id: Some(me), owner: None };
            }
            LockChange::Release { fence, .. } => {
                if row.fence == *fence && row.workflow_id.as_ref() == Some(&me) {
                    row.workflow_id = None;
                }
            }
            LockChange::Assert { .. } => {}
        }
    }

    /// People who were seen: Ann, Bob, Sue, and two who are called Cy.
    pub(crate) fn crowded() -> Self {
        let more = |subject: &str, name: &str| Person {
            id: Actor::User(subject.to_owned()),
            name: Some(name.to_owned()),
        };
        let people = [owner(), stranger(), supervisor()].map(|by| by.person());
        let more = [more("c-1", "Cy Coe"), more("c-2", "Cy Dee")];
        Self { people: people.into_iter().chain(more).collect(), ..Self::new() }
    }

    /// The owner offers the workflow.
    pub(crate) fn must_offer(&mut self, to: Option<&str>) {
        self.must(&owner(), offer(to));
    }

    /// The asset goes to another workflow.
    pub(crate) fn steal(&mut self, asset: &str) {
        let row = self.locks.entry(id(asset)).or_default();
        row.fence += 1;
        row.workflow_id = Some(id("w-other"));
        row.owner =
            Some(Person { id: Actor::User("oscar".to_owned()), name: Some("Oscar".into()) });
    }

    /// The asset is freed by hand, and nobody has taken it.
    pub(crate) fn lose(&mut self, asset: &str) {
        self.locks.entry(id(asset)).or_default().workflow_id = None;
    }

    fn cause(&self) -> Cause {
        let arguments = Map::from_iter([("call".to_owned(), Value::from(self.calls))]);
        let fingerprint = Fingerprint::of("test", &arguments, &[]).expect("canonical");
        let key = IdempotencyKey::parse(&format!("key-{}", self.calls)).expect("a key");
        Cause { key, fingerprint, natural: fingerprint }
    }
}

fn with_token(kind: CommandKind, token: &str) -> CommandKind {
    let token = Some(token.to_owned());
    match kind {
        CommandKind::SubmitStep { step_id, value } => {
            let value = SubmittedValue { confirm_token: token, ..value };
            CommandKind::SubmitStep { step_id, value }
        }
        CommandKind::CorrectStep { step_id, value, reason_code } => {
            let value = SubmittedValue { confirm_token: token, ..value };
            CommandKind::CorrectStep { step_id, value, reason_code }
        }
        CommandKind::Finish { result, note, confirmed_by, .. } => {
            CommandKind::Finish { result, note, confirm_token: token, confirmed_by }
        }
        CommandKind::Start { .. }
        | CommandKind::AcknowledgeOrchestration { .. }
        | CommandKind::SkipStep { .. }
        | CommandKind::ReportProblem { .. }
        | CommandKind::ResolveBlock { .. }
        | CommandKind::AcknowledgeBlock { .. }
        | CommandKind::DeadlineReached { .. }
        | CommandKind::Transfer(_)
        | CommandKind::ReleaseLock { .. } => kind,
    }
}

pub(crate) fn start(asset: &str, inputs: Value) -> CommandKind {
    start_with(&[("unit", asset)], inputs)
}

pub(crate) fn start_with(assets: &[(&str, &str)], inputs: Value) -> CommandKind {
    let inputs = inputs.as_object().cloned().unwrap_or_default();
    let assets = assets.iter().map(|(r, a)| ((*r).to_owned(), (*a).to_owned())).collect();
    CommandKind::Start { workflow_id: Desk::workflow_id(), assets, inputs }
}

pub(crate) fn value(text: &str) -> SubmittedValue {
    SubmittedValue { value: Some(text.to_owned()), ..SubmittedValue::default() }
}

pub(crate) fn submit(step: &str, text: &str) -> CommandKind {
    CommandKind::SubmitStep { step_id: id(step), value: value(text) }
}

pub(crate) fn correct(step: &str, text: &str) -> CommandKind {
    CommandKind::CorrectStep {
        step_id: id(step),
        value: value(text),
        reason_code: Some(id("HEARD_WRONG")),
    }
}

pub(crate) fn skip(step: &str, reason: Option<&str>) -> CommandKind {
    CommandKind::SkipStep { step_id: id(step), reason_code: reason.map(id), note: None }
}

pub(crate) fn report(severity: Severity, step: Option<&str>) -> CommandKind {
    CommandKind::ReportProblem { summary: "it squeaks".to_owned(), severity, step_id: step.map(id) }
}

pub(crate) fn resolve(block: &str, decision: &str) -> CommandKind {
    CommandKind::ResolveBlock {
        block_id: id(block),
        decision: id(decision),
        comment: "looked at it".to_owned(),
    }
}

/// Offers the workflow: to whoever is called so, or to anybody.
pub(crate) fn offer(to: Option<&str>) -> CommandKind {
    CommandKind::Transfer(Transfer::Offer { to: to.map(ToOwned::to_owned) })
}

pub(crate) fn take_over(reason: Option<&str>) -> CommandKind {
    CommandKind::Transfer(Transfer::TakeOver { reason_code: reason.map(id) })
}

pub(crate) fn acknowledge(block: &str) -> CommandKind {
    CommandKind::AcknowledgeBlock { block_id: id(block) }
}

pub(crate) fn reached(deadline: &str) -> CommandKind {
    CommandKind::DeadlineReached { deadline_id: deadline.to_owned() }
}

pub(crate) fn release(asset: &str) -> CommandKind {
    CommandKind::ReleaseLock { asset_id: id(asset), reason: "holder left".to_owned() }
}

pub(crate) fn finish(result: &str) -> CommandKind {
    CommandKind::Finish { result: id(result), note: None, confirm_token: None, confirmed_by: None }
}
