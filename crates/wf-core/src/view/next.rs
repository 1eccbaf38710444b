//! What is asked next of a workflow, in words.

use crate::models::{Phase, ResultId, StepStatus, Text};
use crate::policy::{BlockSource, ResultOption};

use super::{Ask, Outlook, Saying, Words};

/// The question that follows what was done; `None` when the work is over.
#[must_use]
pub fn next(outlook: &Outlook<'_>, words: &Words<'_>) -> Option<Saying> {
    match outlook.workflow.phase {
        Phase::Created | Phase::Running => Some(step(outlook, words).into()),
        Phase::Blocked => block(outlook).map(Saying::from),
        Phase::Completed => None,
    }
}

fn step(outlook: &Outlook<'_>, words: &Words<'_>) -> Ask {
    let Some(step) = &outlook.step else {
        return Ask::ReadyToFinish { results: possible(&outlook.results) };
    };
    let prompt = step.prompt.clone();
    let Some(record) = outlook.workflow.steps.get(&step.id) else { return Ask::Next { prompt } };
    match record.status {
        StepStatus::Recheck => {
            // What a signature says is not worth hearing again.
            let shown = record.reading.as_ref().filter(|r| !r.withheld && !step.signs);
            let value = shown.map(|r| outlook.policy.spoken(&step.id, r, words.locale()));
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

fn block(outlook: &Outlook<'_>) -> Option<Ask> {
    let block = outlook.workflow.blocks.first()?;
    let source = BlockSource { step_id: block.step_id.as_ref(), reported: block.reported };
    let rule = outlook.policy.block_rule(source);
    let decisions = rule.decisions.into_iter().map(|d| d.say).collect();
    Some(Ask::Decide { question: rule.question, decisions })
}
