//! Judging a value: the same for a submitted and for a corrected one (reject, read-back, block).

use crate::errors::ErrorCode;
use crate::models::{Digest, Reading, StepId, Text, Workflow};
use crate::policy::{Accepted, BlockCause, Judgement, Offered};
use crate::view::{Ask, Fault, Rule, Saying};

use super::super::beside::SensitiveValue;
use super::super::command::{Command, Facts, SubmittedValue};
use super::super::decision::{Confirmation, Draft, Outcome, Rejection, Unrecorded};
use super::super::event::{ConfirmedBy, EventBody, Recording, Signature};
use super::super::signature::signature;
use super::super::token::{self, Bound};

/// A value that may be recorded.
pub(super) struct Judged {
    pub(super) accepted: Accepted,
    pub(super) block: Option<BlockCause>,
    pub(super) confirmed_by: Option<ConfirmedBy>,
    /// What the event holds: the reading, withheld when sensitive.
    pub(super) shown: Reading,
    pub(super) sensitive: Option<SensitiveValue>,
    pub(super) sensitive_digest: Option<Digest>,
    /// The step has limits that a value can be outside of.
    pub(super) limited: bool,
    /// What is signed, where the step is a signature.
    pub(super) signed: Option<Signature>,
    /// Counts the values recorded for the step, this one included.
    pub(super) attempt: u32,
}

impl Judged {
    /// What the answer calls it; `within` when the value is inside the limits and blocks nothing.
    pub(super) fn outcome(&self, within: Outcome) -> Outcome {
        if self.accepted.out_of_range && self.limited {
            Outcome::OutOfRange
        } else if self.block.is_some() {
            Outcome::Blocked
        } else {
            within
        }
    }

    /// The event's data.
    pub(super) fn recording(&self, step_id: &StepId, value: &SubmittedValue) -> Recording {
        Recording {
            step_id: step_id.clone(),
            attempt: self.attempt,
            reading: self.shown.clone(),
            sensitive_digest: self.sensitive_digest.clone(),
            out_of_range: self.accepted.out_of_range,
            deviation: self.accepted.deviation.clone(),
            warnings: self.accepted.warnings.clone(),
            note: value.note.clone(),
            confirmed_by: self.confirmed_by,
            signed: self.signed.clone(),
        }
    }

    /// The event with the sensitive value beside it.
    pub(super) fn draft(&self, body: EventBody) -> Draft {
        Draft { sensitive: self.sensitive.clone().into_iter().collect(), ..Draft::new(body) }
    }
}

/// What came of judging.
pub(super) enum Judging {
    Record(Box<Judged>),
    Answer(Unrecorded),
}

/// Judges `value` for `step_id`, which exists and may take a value.
pub(super) fn judge(
    workflow: &Workflow,
    command: &Command,
    step_id: &StepId,
    value: &SubmittedValue,
    facts: &Facts<'_>,
) -> Result<Judging, Rejection> {
    let offered = Offered {
        step_id,
        value: value.value.as_deref().unwrap_or_default(),
        unit: value.unit.as_deref(),
        at: facts.at,
    };
    let (accepted, block) = match facts.policy.judge(workflow, &offered) {
        Judgement::Accept(accepted) => (accepted, None),
        Judgement::Block(accepted, cause) => (accepted, Some(cause)),
        Judgement::Decline => {
            return Ok(Judging::Answer(Unrecorded::NotRecorded {
                saying: Ask::Declined.into(),
                step_id: Some(step_id.clone()),
            }));
        }
        Judgement::Reject(refusal) => return Err(refusal.into()),
    };
    waited(workflow, step_id, facts)?;
    let attempt = workflow.steps.get(step_id).map_or(0, |s| s.attempt);
    let confirmed_by = match &accepted.read_back {
        None => None,
        Some(read_back) => {
            let ask = ReadBack { workflow, command, step_id, attempt, reading: &accepted.reading };
            match ask.confirmed(value, facts) {
                Some(by) => Some(by),
                None => return ask.question(read_back.clone(), facts).map(Judging::Answer),
            }
        }
    };
    record(workflow, step_id, accepted, block, confirmed_by, attempt + 1, facts)
        .map(Judging::Record)
}

/// The time of a wait is over, whatever a policy says: it runs from a recorded event to a recorded instant.
fn waited(workflow: &Workflow, step_id: &StepId, facts: &Facts<'_>) -> Result<(), Rejection> {
    let Some(wait) = workflow.waits.get(step_id) else { return Ok(()) };
    let left = wait.until.since_ms(facts.at);
    if left == 0 {
        return Ok(());
    }
    let message = format!("the wait is over at {}, in {left} ms", wait.until);
    let rejection =
        Rejection::new(ErrorCode::TooEarly, message, Rule::TooEarly { until: wait.until })
            .with("due_at", wait.until.to_string());
    Err(Rejection { after_ms: Some(left), ..rejection })
}

fn record(
    workflow: &Workflow,
    step_id: &StepId,
    accepted: Accepted,
    block: Option<BlockCause>,
    confirmed_by: Option<ConfirmedBy>,
    attempt: u32,
    facts: &Facts<'_>,
) -> Result<Box<Judged>, Rejection> {
    let step = facts.policy.describe(workflow, step_id);
    let secret = step.as_ref().is_some_and(|d| d.sensitive);
    let signs = step.as_ref().is_some_and(|d| d.signs);
    let limited = step.is_some_and(|d| d.min.is_some() || d.max.is_some());
    let (mut shown, mut sensitive, mut sensitive_digest) = (accepted.reading.clone(), None, None);
    if secret {
        let value = serde_json::json!({
            "given": accepted.reading.given,
            "value": accepted.reading.value,
        });
        let beside = SensitiveValue::new("value", facts.salt, value);
        let digest = beside
            .digest()
            .map_err(|_| Rejection::invalid("value", "cannot be written as canonical JSON"))?;
        shown = accepted.reading.withhold();
        (sensitive, sensitive_digest) = (Some(beside), Some(digest));
    }
    let unsigned = |_| Rejection::new(ErrorCode::Internal, "cannot be signed", Fault::Internal);
    let signed = signs.then(|| signature(workflow).map_err(unsigned)).transpose()?;
    Ok(Box::new(Judged {
        accepted,
        block,
        confirmed_by,
        shown,
        sensitive,
        sensitive_digest,
        limited,
        signed,
        attempt,
    }))
}

/// A read-back in question.
struct ReadBack<'a> {
    workflow: &'a Workflow,
    command: &'a Command,
    step_id: &'a StepId,
    attempt: u32,
    reading: &'a Reading,
}

impl ReadBack<'_> {
    fn with<R>(&self, then: impl FnOnce(&Bound<'_>) -> R) -> R {
        let actor = self.command.principal.actor.to_string();
        let exact = self.reading.exact.as_deref().unwrap_or(&self.reading.value);
        then(&Bound {
            tenant: self.workflow.tenant.as_str(),
            actor: &actor,
            workflow: self.workflow.id.as_str(),
            target: self.step_id.as_str(),
            attempt: self.attempt,
            value: exact,
            unit: self.reading.given_unit.as_deref().unwrap_or_default(),
            definition: self.workflow.procedure.digest.as_str(),
        })
    }

    fn confirmed(&self, value: &SubmittedValue, facts: &Facts<'_>) -> Option<ConfirmedBy> {
        let token = value.confirm_token.as_deref()?;
        self.with(|bound| token::verify(facts.secrets, bound, token, facts.at))
            .then_some(value.confirmed_by.unwrap_or(ConfirmedBy::Token))
    }

    fn question(&self, read_back: Text, facts: &Facts<'_>) -> Result<Unrecorded, Rejection> {
        let minted = self.with(|bound| token::mint(facts.secrets, bound, facts.at));
        confirmation(minted, Saying::Policy(read_back))
    }
}

/// The question with its token.
pub(super) fn confirmation(
    minted: Option<(String, crate::models::Timestamp)>,
    read_back: Saying,
) -> Result<Unrecorded, Rejection> {
    let (token, expires_at) = minted.ok_or_else(|| {
        Rejection::new(ErrorCode::Internal, "the store has no signing key", Fault::Internal)
    })?;
    Ok(Unrecorded::NeedsConfirmation(Confirmation { token, read_back, expires_at }))
}
