//! `skip_step`: the policy allows it, with a reason it knows.

use crate::access;
use crate::errors::ErrorCode;
use crate::models::{Phase, ReasonCode, StepId, Workflow};
use crate::policy::SkipRule;
use crate::view::Rule;

use super::super::command::{Command, Facts};
use super::super::decision::{Draft, Outcome, Rejection, Verdict};
use super::super::event::EventBody;
use super::ripple::{self, Change};
use super::{commit, guard};

pub(super) struct Skip<'a> {
    pub(super) step_id: &'a StepId,
    pub(super) reason_code: Option<&'a ReasonCode>,
    pub(super) note: &'a Option<String>,
}

pub(super) fn decide(
    workflow: &Workflow,
    command: &Command,
    request: &Skip<'_>,
    facts: &Facts<'_>,
) -> Result<Verdict, Rejection> {
    match workflow.phase {
        Phase::Created | Phase::Running => {}
        Phase::Blocked | Phase::Completed => return Err(guard::wrong_state(workflow, command)),
    }
    let plan = facts.policy.plan(workflow);
    guard::open(workflow, &plan, request.step_id, facts.policy)?;
    let rule = facts
        .policy
        .describe(workflow, request.step_id)
        .map_or(SkipRule::Never, |description| description.skip);
    let reason_code = match rule {
        SkipRule::Never => {
            return Err(Rejection::new(
                ErrorCode::NotAllowed,
                "this step cannot be skipped; report_problem if it cannot be done",
                Rule::CannotSkip,
            ));
        }
        SkipRule::Supervisor => {
            access::may_supervise(&command.principal)?;
            Some(guard::required_reason(request.reason_code, facts.policy)?)
        }
        SkipRule::Reason => Some(guard::required_reason(request.reason_code, facts.policy)?),
        SkipRule::Free => {
            if let Some(reason) = request.reason_code {
                guard::known_reason(reason, facts.policy)?;
            }
            request.reason_code.cloned()
        }
    };
    let locks = guard::locks(workflow, facts)?;
    let mut drafts = vec![Draft::new(EventBody::StepSkipped {
        step_id: request.step_id.clone(),
        reason_code,
        note: request.note.clone(),
    })];
    // Others may have used the value that it had before it was sent back.
    let change = Change { step_id: request.step_id, value: None, drafts: &drafts };
    let follow = ripple::of(workflow, command, &change, facts);
    drafts.extend(follow);
    Ok(commit(Outcome::Skipped, drafts, locks))
}
