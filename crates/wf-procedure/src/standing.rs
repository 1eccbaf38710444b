//! How every step stands in one workflow: what applies, what is settled, what is open, what is broken.
//!
//! A `when` is looked at as soon as every value it needs is there. Until then the step does not apply *yet*: it is not
//! open and not counted. A value that will never come (its step was skipped or does not apply, and the expression has no
//! `has()` around it) breaks the step: it blocks instead of being guessed. In the same way computed bounds hold a step
//! back, or break it. A step that does not apply has no value for later expressions, whatever was recorded before.

use wf_core::models::{Reading, StepStatus, Workflow};
use wf_core::policy::{Plan, PlannedStep};

use crate::expr::{Facts, Kept, Missing, StepFacts};
use crate::format::Order;
use crate::range::Span;
use crate::rules::{Rules, StepKind, StepRule};

/// Whether a step is to be done in this workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Applies {
    /// It is.
    Yes,
    /// It is not.
    No,
    /// Its condition needs a value that is still to come.
    NotYet,
    /// Its condition needs a value that will never come.
    Broken,
}

/// All steps of one workflow.
#[derive(Debug)]
pub(crate) struct Standing<'a> {
    /// What expressions are evaluated over.
    pub(crate) facts: Facts<'a>,
    applies: Vec<Applies>,
}

impl<'a> Standing<'a> {
    /// How the steps of `workflow` stand.
    pub(crate) fn of(rules: &'a Rules, workflow: &'a Workflow) -> Self {
        let mut facts = Facts {
            steps: Vec::with_capacity(rules.steps.len()),
            inputs: &workflow.inputs,
            assets: &workflow.assets,
        };
        let mut applies = Vec::with_capacity(rules.steps.len());
        for step in &rules.steps {
            let stands = match &step.when {
                None => Applies::Yes,
                Some(when) => match when.holds(&facts) {
                    Ok(true) => Applies::Yes,
                    Ok(false) => Applies::No,
                    Err(Missing::Yet) => Applies::NotYet,
                    Err(Missing::Ever) => Applies::Broken,
                },
            };
            facts.steps.push(step_facts(step, stands, workflow));
            applies.push(stands);
        }
        Self { facts, applies }
    }

    /// The plan for one workflow.
    pub(crate) fn plan(&self, rules: &Rules, workflow: &Workflow) -> Plan {
        let mut reached_first = false;
        // Something that a later signature would have to stand for.
        let mut unsigned = false;
        let steps = rules.steps.iter().zip(&self.applies).map(|(step, applies)| {
            let settled =
                workflow.steps.get(&step.id).is_some_and(wf_core::models::StepRecord::is_settled);
            let to_do = !settled && *applies != Applies::No;
            // In sequence only the first step that is left has its turn.
            let turn = to_do
                && match rules.order {
                    Order::Any => true,
                    Order::Sequence => !std::mem::replace(&mut reached_first, true),
                };
            let ready =
                if turn && *applies == Applies::Yes { self.bounds_ready(step) } else { Ok(()) };
            let broken = turn && (*applies == Applies::Broken || ready == Err(Missing::Ever));
            let may_sign = !(unsigned && matches!(step.kind, StepKind::Sign { .. }));
            unsigned |= to_do && step.required;
            PlannedStep {
                id: step.id.clone(),
                applies: matches!(applies, Applies::Yes | Applies::Broken),
                broken: broken.then(|| rules.expression_failed.clone()),
                required: step.required,
                settled,
                // A broken step is asked for, too: submitting it is what makes the block.
                open: broken || (turn && *applies == Applies::Yes && ready.is_ok() && may_sign),
                wait_ms: match &step.kind {
                    StepKind::Wait { duration_ms } => Some(*duration_ms),
                    StepKind::Confirm
                    | StepKind::Number(_)
                    | StepKind::Choice(_)
                    | StepKind::Text { .. }
                    | StepKind::Sign { .. } => None,
                },
            }
        });
        Plan { steps: steps.collect() }
    }

    /// Whether all computed bounds of a step have a value.
    fn bounds_ready(&self, step: &StepRule) -> Result<(), Missing> {
        match &step.kind {
            StepKind::Number(number) => {
                number.ranges().try_for_each(|bounds| Span::of(bounds, &self.facts, None).map(drop))
            }
            StepKind::Confirm
            | StepKind::Choice(_)
            | StepKind::Text { .. }
            | StepKind::Wait { .. }
            | StepKind::Sign { .. } => Ok(()),
        }
    }
}

fn step_facts<'a>(step: &'a StepRule, applies: Applies, workflow: &'a Workflow) -> StepFacts<'a> {
    let nothing = StepFacts {
        id: step.id.as_str(),
        kept: Kept::Nothing,
        to_do: false,
        recorded: false,
        out_of_range: false,
        skipped: false,
    };
    match applies {
        Applies::No => return nothing,
        Applies::NotYet => {
            return StepFacts { to_do: true, ..nothing };
        }
        Applies::Yes | Applies::Broken => {}
    }
    let Some(record) = workflow.steps.get(&step.id) else {
        return StepFacts { to_do: true, ..nothing };
    };
    let skipped = match record.status {
        StepStatus::Skipped => true,
        StepStatus::Recorded | StepStatus::Recheck | StepStatus::Reopened => false,
    };
    StepFacts {
        kept: record.reading.as_ref().map_or(Kept::Nothing, |reading| kept(step, reading)),
        to_do: !record.is_settled(),
        recorded: record.reading.is_some(),
        out_of_range: record.reading.is_some() && record.out_of_range,
        skipped,
        ..nothing
    }
}

/// A reading as expressions see it.
fn kept<'a>(step: &StepRule, reading: &'a Reading) -> Kept<'a> {
    if reading.withheld {
        return Kept::Nothing;
    }
    match &step.kind {
        StepKind::Confirm | StepKind::Wait { .. } | StepKind::Sign { .. } => Kept::Confirmed,
        StepKind::Number(_) => Kept::Number(reading),
        StepKind::Choice(_) | StepKind::Text { .. } => Kept::Text(&reading.value),
    }
}
