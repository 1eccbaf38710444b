//! Drives a workflow of a procedure file through the core's decisions, as the engine does: decide, append, fold.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use wf_core::idempotency::{Fingerprint, IdempotencyKey};
use wf_core::models::{
    Actor, Cause, Principal, Scopes, Severity, TenantId, Timestamp, Workflow, WorkflowId,
};
use wf_core::policy::DomainPolicyPort;
use wf_core::state_machine::chain::{self, Tip};
use wf_core::state_machine::command::SubmittedValue;
use wf_core::state_machine::{
    Command, CommandKind, EventBody, Facts, LockFact, Rejection, Secret, Unrecorded, Verdict,
    decide,
};
use wf_procedure::Procedure;

use crate::fixture::{id, plan_line};

/// One workflow of a procedure without assets, and a clock that is set by hand.
pub(crate) struct Desk {
    pub(crate) policy: Procedure,
    state: Option<Workflow>,
    /// Milliseconds since the epoch.
    pub(crate) now: i64,
    pub(crate) by: Principal,
    calls: u32,
}

/// Somebody who may write, and supervise if they have the role.
pub(crate) fn person(name: &str, roles: &[&str]) -> Principal {
    let supervise = roles.contains(&"supervisor");
    Principal {
        actor: Actor::User(name.to_owned()),
        name: Some(name.to_owned()),
        scopes: Scopes { read: true, write: true, supervise },
        roles: roles.iter().map(|r| (*r).to_owned()).collect(),
        ..Principal::local()
    }
}

impl Desk {
    /// Started at one minute past the epoch by ann.
    pub(crate) fn start(policy: Procedure) -> Self {
        let by = person("ann", &[]);
        let mut desk = Self { policy, state: None, now: 60_000, by, calls: 0 };
        let workflow_id = WorkflowId::parse("w-1").unwrap();
        let start = CommandKind::Start { workflow_id, assets: BTreeMap::new(), inputs: Map::new() };
        desk.must(start);
        desk
    }

    pub(crate) fn workflow(&self) -> &Workflow {
        self.state.as_ref().unwrap()
    }

    pub(crate) fn plan(&self) -> String {
        plan_line(&self.policy.plan(self.workflow()))
    }

    /// Asks; a read-back is confirmed. What was committed, as `kind step because_of`.
    pub(crate) fn act(&mut self, kind: CommandKind) -> Result<Vec<String>, Rejection> {
        let mut verdict = self.ask(kind.clone())?;
        if let Verdict::Unrecorded(Unrecorded::NeedsConfirmation(question)) = &verdict {
            let token = Some(question.token.clone());
            let kind = match kind {
                CommandKind::SubmitStep { step_id, value } => CommandKind::SubmitStep {
                    step_id,
                    value: SubmittedValue { confirm_token: token, ..value },
                },
                CommandKind::CorrectStep { step_id, value, reason_code } => {
                    let value = SubmittedValue { confirm_token: token, ..value };
                    CommandKind::CorrectStep { step_id, value, reason_code }
                }
                other => other,
            };
            verdict = self.ask(kind)?;
        }
        let Verdict::Commit(decision) = verdict else {
            return Ok(Vec::new());
        };
        let origin = || Tip::origin(&TenantId::default_tenant(), WorkflowId::parse("w-1").unwrap());
        let tip = self.state.as_ref().map_or_else(origin, Tip::of);
        let at = Timestamp::from_ms(self.now);
        let (events, next) =
            chain::append(self.state.take(), tip, decision.drafts, &self.by, &self.cause(), at)
                .unwrap();
        self.state = next;
        self.calls += 1;
        Ok(events.iter().map(|event| line(&event.body)).collect())
    }

    pub(crate) fn must(&mut self, kind: CommandKind) -> String {
        match self.act(kind.clone()) {
            Ok(events) if !events.is_empty() => events.join("; "),
            other => panic!("{kind:?} must commit, but: {other:?}"),
        }
    }

    pub(crate) fn submit(&mut self, step: &str, value: &str) -> String {
        self.must(submit(step, value))
    }

    pub(crate) fn correct(&mut self, step: &str, value: &str) -> String {
        self.must(correct(step, value))
    }

    fn ask(&self, kind: CommandKind) -> Result<Verdict, Rejection> {
        let command = Command { principal: self.by.clone(), cause: self.cause(), kind };
        let facts = Facts {
            at: Timestamp::from_ms(self.now),
            policy: &self.policy,
            locks: BTreeMap::<_, LockFact>::new(),
            secrets: &[Secret::new(vec![7; 32])],
            salt: "00112233445566778899aabbccddeeff",
            open_workflows: 0,
            people: Default::default(),
            acknowledge_at_start: true,
        };
        decide(self.state.as_ref(), &command, &facts)
    }

    fn cause(&self) -> Cause {
        let arguments = Map::from_iter([("call".to_owned(), Value::from(self.calls))]);
        let fingerprint = Fingerprint::of("test", &arguments, &[]).unwrap();
        let key = IdempotencyKey::parse(&format!("key-{}", self.calls)).unwrap();
        Cause { key, fingerprint, natural: fingerprint }
    }
}

fn line(body: &EventBody) -> String {
    match body {
        EventBody::RecheckRequired { step_id, because_of }
        | EventBody::StepNotNeeded { step_id, because_of } => {
            format!("{} {step_id} because of {because_of}", body.kind())
        }
        EventBody::WaitStarted { step_id, until } => {
            format!("{} {step_id} until {}", body.kind(), until.as_ms() / 1_000)
        }
        _ => match body.recording() {
            Some(recording) => format!("{} {}", body.kind(), recording.step_id),
            None => body.kind().to_owned(),
        },
    }
}

pub(crate) fn submit(step: &str, value: &str) -> CommandKind {
    let value = SubmittedValue { value: Some(value.to_owned()), ..SubmittedValue::default() };
    CommandKind::SubmitStep { step_id: id(step), value }
}

pub(crate) fn correct(step: &str, value: &str) -> CommandKind {
    let value = SubmittedValue { value: Some(value.to_owned()), ..SubmittedValue::default() };
    let reason_code = Some(wf_core::models::ReasonCode::parse("X").unwrap());
    CommandKind::CorrectStep { step_id: id(step), value, reason_code }
}

pub(crate) fn skip(step: &str) -> CommandKind {
    let reason_code = Some(wf_core::models::ReasonCode::parse("X").unwrap());
    CommandKind::SkipStep { step_id: id(step), reason_code, note: None }
}

pub(crate) fn report(step: &str) -> CommandKind {
    let summary = "it squeaks".to_owned();
    CommandKind::ReportProblem { summary, severity: Severity::High, step_id: Some(id(step)) }
}

pub(crate) fn finish(result: &str) -> CommandKind {
    let result = wf_core::models::ResultId::parse(result).unwrap();
    CommandKind::Finish { result, note: None, confirm_token: None, confirmed_by: None }
}
