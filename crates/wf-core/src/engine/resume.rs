//! "Where was I?", in at most two sentences: what was really recorded last, and what is next or what stops the work.
//!
//! Both come from the records, so the answer is the same on another device and after days.

use crate::models::{Phase, Principal};
use crate::view::{Ask, LastStep, Outlook, Saying, Stand, Words, next};

use super::commit::stands;

/// What there is to say of a workflow to somebody who comes back to it.
pub(super) fn resume(by: &Principal, outlook: &Outlook<'_>, words: &Words<'_>) -> Vec<Saying> {
    let workflow = outlook.workflow;
    let resumed = |label| Stand::Resumed { label, last: last(outlook, words) };
    match workflow.phase {
        Phase::Created => {
            let next = next::next(outlook, words).map(briefly);
            std::iter::once(stands(workflow, outlook.policy).into()).chain(next).collect()
        }
        Phase::Running => {
            let next = next::next(outlook, words).map(briefly);
            std::iter::once(resumed(Some(workflow.label.clone())).into()).chain(next).collect()
        }
        // Whoever may decide is asked; everybody else hears what was recorded and who was told.
        Phase::Blocked => {
            let stopped: Saying = stands(workflow, outlook.policy).into();
            if by.scopes.supervise {
                return std::iter::once(stopped)
                    .chain(next::next(outlook, words).map(briefly))
                    .collect();
            }
            let known = workflow.last_recorded.is_some();
            known.then(|| resumed(None).into()).into_iter().chain([stopped]).collect()
        }
        Phase::Completed => vec![stands(workflow, outlook.policy).into()],
    }
}

/// The step recorded last, in words.
fn last(outlook: &Outlook<'_>, words: &Words<'_>) -> Option<LastStep> {
    let (workflow, policy) = (outlook.workflow, outlook.policy);
    let id = workflow.last_recorded.as_ref()?;
    let record = workflow.steps.get(id)?;
    let shown = record.reading.as_ref().filter(|reading| !reading.withheld);
    Some(LastStep {
        say: policy.describe(workflow, id)?.say,
        value: shown.map(|reading| policy.spoken(id, reading, words.locale())),
        at: record.at,
    })
}

/// The same in one sentence.
fn briefly(saying: Saying) -> Saying {
    let Saying::Ask(ask) = &saying else { return saying };
    if let Ask::ReadyToFinish { results } = ask
        && !results.is_empty()
    {
        return Ask::Finish { results: results.clone() }.into();
    }
    if let Ask::Decide { question, decisions } = ask {
        return Ask::Choose { question: question.clone(), decisions: decisions.clone() }.into();
    }
    if let Ask::Recheck { prompt, value } = ask {
        return Ask::CheckAgain { prompt: prompt.clone(), value: value.clone() }.into();
    }
    saying
}
