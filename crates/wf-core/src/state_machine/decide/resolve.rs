//! `resolve_block`: a supervisor takes one of the block's decisions.

use serde_json::{Value, json};

use crate::errors::ErrorCode;
use crate::models::{BlockId, DecisionId, Phase, ResultId, Workflow};
use crate::policy::{BlockSource, DecisionOption, Effect};
use crate::view::Rule;

use super::super::command::{Command, Facts};
use super::super::decision::{Draft, Outcome, Rejection, Verdict};
use super::super::event::EventBody;
use super::{commit, guard};

pub(super) struct Resolve<'a> {
    pub(super) block_id: &'a BlockId,
    pub(super) decision: &'a DecisionId,
    pub(super) comment: &'a str,
}

pub(super) fn decide(
    workflow: &Workflow,
    command: &Command,
    request: &Resolve<'_>,
    facts: &Facts<'_>,
) -> Result<Verdict, Rejection> {
    match workflow.phase {
        Phase::Blocked => {}
        Phase::Created | Phase::Running | Phase::Completed => {
            return Err(guard::wrong_state(workflow, command));
        }
    }
    let block = guard::block(workflow, request.block_id)?;
    let source = BlockSource { step_id: block.step_id.as_ref(), reported: block.reported };
    let options = facts.policy.block_rule(source).decisions;
    let Some(option) = options.iter().find(|o| &o.id == request.decision) else {
        return Err(not_allowed(&options));
    };
    let resolved = Draft::new(EventBody::BlockResolved {
        block_id: block.id.clone(),
        decision: option.id.clone(),
        effect: option.effect,
        step_id: block.step_id.clone(),
        comment: Some(request.comment.to_owned()),
    });
    match option.effect {
        Effect::Continue | Effect::Redo => {
            let locks = guard::locks(workflow, facts)?;
            Ok(commit(Outcome::Resolved, vec![resolved], locks))
        }
        Effect::Abort => Ok(abort(workflow, resolved)),
    }
}

fn abort(workflow: &Workflow, resolved: Draft) -> Verdict {
    let completed = Draft::new(EventBody::WorkflowCompleted {
        result: ResultId::abandoned(),
        note: None,
        confirmed_by: None,
    });
    commit(Outcome::Resolved, vec![resolved, completed], guard::release_all(workflow))
}

fn not_allowed(options: &[DecisionOption]) -> Rejection {
    let listed: Value = options.iter().map(|o| json!({"id": o.id, "say": o.say})).collect();
    let decisions = options.iter().take(3).map(|o| o.say.clone()).collect();
    Rejection::new(
        ErrorCode::DecisionNotAllowed,
        "the decision is none of this block's",
        Rule::DecisionNotAllowed { decisions },
    )
    .with("decisions", listed)
}
