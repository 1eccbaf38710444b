//! What is asked next of a workflow, in words.

use crate::models::{Phase, ResultId, StepStatus, Text, Workflow};
use crate::policy::{BlockSource, DomainPolicyPort, ResultOption};

use super::{Ask, Saying, Words};

/// The question that follows what was done; `None` when the work is over.
#[must_use]
pub fn next(
    workflow: &Workflow,
    policy: &dyn DomainPolicyPort,
    words: &Words<'_>,
) -> Option<Saying> {
    match workflow.phase {
        Phase::Created | Phase::Running => Some(step(workflow, policy, words).into()),
        Phase::Blocked => block(workflow, policy).map(Saying::from),
        Phase::Completed => None,
    }
}

fn step(workflow: &Workflow, policy: &dyn DomainPolicyPort, words: &Words<'_>) -> Ask {
    let plan = policy.plan(workflow);
    let described = plan.next().and_then(|s| policy.describe(workflow, &s.id));
    let Some(step) = described else {
        return Ask::ReadyToFinish { results: possible(&policy.results(workflow)) };
    };
    let prompt = step.prompt;
    let Some(record) = workflow.steps.get(&step.id) else { return Ask::Next { prompt } };
    match record.status {
        StepStatus::Recheck => {
            let shown = record.reading.as_ref().filter(|r| !r.withheld);
            let value = shown.map(|r| policy.spoken(&step.id, r, words.locale()));
            Ask::Recheck { prompt, value }
        }
        StepStatus::Reopened | StepStatus::Recorded | StepStatus::Skipped => Ask::Next { prompt },
    }
}

/// Results to offer: abandoning is always possible and never offered.
fn possible(results: &[ResultOption]) -> Vec<Text> {
    let abandoned = ResultId::abandoned();
    let offered = results.iter().filter(|r| r.available && r.id != abandoned);
    offered.map(|r| r.say.clone()).collect()
}

fn block(workflow: &Workflow, policy: &dyn DomainPolicyPort) -> Option<Ask> {
    let block = workflow.blocks.first()?;
    let source = BlockSource { step_id: block.step_id.as_ref(), reported: block.reported };
    let rule = policy.block_rule(source);
    let decisions = rule.decisions.into_iter().map(|d| d.say).collect();
    Some(Ask::Decide { question: rule.question, decisions })
}
