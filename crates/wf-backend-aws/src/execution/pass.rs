//! One pass over one workflow: reads what storage says, asks the rules for the next step, does it, and feeds what came of it
//! back, until nothing is left to do, or not now.
//!
//! Each step is one call or one conditional write, and every pass begins by reading. So a pass may be dropped anywhere, and
//! two may go on at once: the later of them by epoch is the one that writes. Neighbours: `pace` (when to look again),
//! `reconciler` (which workflows, and how many at once), `report` (what a pass tells).

mod pace;

use std::error::Error;
use std::sync::Arc;

use serde_json::json;
use wf_core::engine::Engine;
use wf_core::errors::ErrorCode;
use wf_core::models::{Phase, Timestamp};
use wf_core::ports::{ClockPort, Message, ReadError};
use wf_core::reconcile::{Action, Observation, Replacement, Rule, Run, Step, reconcile};

use super::Bindings;
use super::attention::Attention;
use super::binding::{Bound, Written};
use super::lease::Epoch;
use super::report::{self, End, Looked, Outcome, Taken};
use super::states::{Answered, Execution, States, Told, Trouble};

pub(super) use pace::fraction;

/// More steps than any pass needs that goes on.
const STEPS_MAX: usize = 16;
/// Who is told that executions of a workflow do not last; a name that the configuration routes.
pub(super) const OPERATIONS: &str = "operations";
/// The kind of that message.
pub(super) const UNSTABLE: &str = "orchestration_unstable";

/// What a pass works with.
#[derive(Debug)]
pub(super) struct Hands {
    pub(super) bindings: Bindings,
    pub(super) states: States,
    pub(super) engine: Arc<Engine>,
    pub(super) clock: Arc<dyn ClockPort>,
}

impl Hands {
    /// Looks at a workflow and does what the rules say. `met` is what was seen of its executions before, if anything was.
    pub(super) async fn pass(
        &self,
        attention: &Attention,
        epoch: Epoch,
        met: Observation,
    ) -> Looked {
        let mut looked = Looked::new(attention);
        let end = self.steps(attention, epoch, met, &mut looked.steps).await;
        looked.end = end.unwrap_or_else(|error| failed(&error));
        tell(&looked);
        looked
    }

    async fn steps(
        &self,
        attention: &Attention,
        epoch: Epoch,
        met: Observation,
        steps: &mut Vec<Taken>,
    ) -> Result<End, ReadError> {
        let mut seen = met;
        loop {
            let now = self.clock.now();
            let bound = self.bindings.bound(attention, now).await?;
            let step = reconcile(bound.head.as_ref(), &bound.binding, seen, now);
            // What was done already and is asked for again has no effect that can be seen yet.
            let again = steps.iter().any(|taken| taken.action == step.action);
            if step.action == Action::Later || again || steps.len() >= STEPS_MAX {
                let at = pace::look_again(&bound, now, fraction());
                return self.later(&bound, epoch, at).await;
            }
            if step.action == Action::Settled {
                return self.settled(&bound, epoch, now).await;
            }
            let (next, outcome) = self.act(&bound, step, epoch, now).await?;
            let overtaken = outcome == Outcome::Overtaken;
            steps.push(Taken { rule: step.rule, action: step.action, outcome });
            if overtaken {
                return Ok(End::Overtaken);
            }
            seen = next;
        }
    }

    /// Says what a pass would do first, and only reads.
    pub(super) async fn propose(&self, attention: &Attention, met: Observation) -> Looked {
        let mut looked = Looked::new(attention);
        looked.end = self
            .proposed(attention, met, &mut looked.steps)
            .await
            .unwrap_or_else(|error| failed(&error));
        looked
    }

    async fn proposed(
        &self,
        attention: &Attention,
        met: Observation,
        steps: &mut Vec<Taken>,
    ) -> Result<End, ReadError> {
        let mut seen = met;
        loop {
            let now = self.clock.now();
            let bound = self.bindings.peek(attention, now).await?;
            let step = reconcile(bound.head.as_ref(), &bound.binding, seen, now);
            match step.action {
                Action::Settled => return Ok(End::Settled),
                Action::Later => return Ok(End::Again(pace::look_again(&bound, now, 0.5))),
                Action::Describe { fence } if steps.is_empty() => {
                    let (next, outcome) =
                        observed(fence, self.states.describe(&execution(&bound, fence)).await);
                    steps.push(Taken { rule: step.rule, action: step.action, outcome });
                    seen = next;
                }
                Action::Describe { .. }
                | Action::Acknowledge { .. }
                | Action::Fire
                | Action::Start { .. }
                | Action::Record
                | Action::Tell { .. }
                | Action::ForgetToken
                | Action::Replace(_)
                | Action::Stop { .. }
                | Action::Close => {
                    let outcome = Outcome::WouldBe;
                    steps.push(Taken { rule: step.rule, action: step.action, outcome });
                    return Ok(End::Proposed);
                }
            }
        }
    }

    async fn settled(&self, bound: &Bound, epoch: Epoch, now: Timestamp) -> Result<End, ReadError> {
        Ok(match self.bindings.settle(bound, epoch, now).await? {
            Written::Done => End::Settled,
            Written::Overtaken => End::Overtaken,
        })
    }

    async fn later(&self, bound: &Bound, epoch: Epoch, at: Timestamp) -> Result<End, ReadError> {
        Ok(match self.bindings.postpone(bound, epoch, at).await? {
            Written::Done => End::Again(at),
            Written::Overtaken => End::Overtaken,
        })
    }

    /// Does one step: what is to be fed back to the rules, and what to report.
    async fn act(
        &self,
        bound: &Bound,
        step: Step,
        epoch: Epoch,
        now: Timestamp,
    ) -> Result<(Observation, Outcome), ReadError> {
        let (tenant, id) = (&bound.attention.tenant, &bound.attention.workflow_id);
        let rows = &self.bindings;
        Ok(match step.action {
            Action::Acknowledge { fence } => {
                submitted(self.engine.acknowledge_orchestration(tenant, id, fence).await)
            }
            Action::Fire => submitted(self.engine.fire_due_of(tenant, id).await.map(|_| ())),
            Action::Start { fence } => {
                observed(fence, self.states.start(&execution(bound, fence)).await)
            }
            Action::Describe { fence } => {
                observed(fence, self.states.describe(&execution(bound, fence)).await)
            }
            Action::Record => written(rows.record(bound, epoch, now).await?),
            Action::Tell { revision, ends, timeout_s } => {
                let told = Told { state: state(bound), ends, revision, timeout_s };
                self.answer(bound, &told, epoch, now).await?
            }
            Action::ForgetToken => written(rows.drop_token(bound, epoch, now).await?),
            Action::Replace(by) => {
                let told = if by.alert { vec![alert(bound, &by, now)] } else { Vec::new() };
                written(rows.replace(bound, epoch, &by, &told, now).await?)
            }
            Action::Stop { fence } => {
                let cause = cause(bound, step.rule, fence);
                match self.states.stop(&execution(bound, fence), &cause).await {
                    Ok(()) => written(rows.evicted(bound, epoch, fence).await?),
                    Err(trouble) => unclear(&trouble),
                }
            }
            Action::Close => written(rows.close(bound, epoch, now).await?),
            // These end a pass before they come here.
            Action::Later | Action::Settled => (Observation::Nothing, Outcome::Done),
        })
    }

    /// Answers the token that was read, then takes it off the binding, unless another is registered.
    async fn answer(
        &self,
        bound: &Bound,
        told: &Told<'_>,
        epoch: Epoch,
        now: Timestamp,
    ) -> Result<(Observation, Outcome), ReadError> {
        let Some(token) = &bound.token else {
            return Ok((Observation::Nothing, Outcome::Overtaken));
        };
        match self.states.answer(token, told).await {
            Ok(Answered::Taken) => {
                // It may have registered again before we came to write: then there is nothing to take off.
                self.bindings.drop_token(bound, epoch, now).await?;
                Ok((Observation::Nothing, Outcome::Done))
            }
            Ok(Answered::Dead) => Ok((Observation::TokenDead, Outcome::TokenDead)),
            Err(trouble) => Ok(unclear(&trouble)),
        }
    }
}

impl Looked {
    fn new(attention: &Attention) -> Self {
        let (tenant, workflow_id) = (attention.tenant.clone(), attention.workflow_id.clone());
        Self { tenant, workflow_id, steps: Vec::new(), end: End::Settled }
    }
}

fn execution(bound: &Bound, fence: u64) -> Execution<'_> {
    let (tenant, workflow_id) = (&bound.attention.tenant, &bound.attention.workflow_id);
    Execution { tenant, workflow_id, fence }
}

/// What an execution is told of the state, for whoever looks at it in the console.
fn state(bound: &Bound) -> &'static str {
    bound.phase.map_or("UNKNOWN", Phase::as_str)
}

fn observed(fence: u64, asked: Result<Run, Trouble>) -> (Observation, Outcome) {
    match asked {
        Ok(run) => (Observation::Seen { fence, run }, Outcome::Seen(run)),
        Err(trouble) => unclear(&trouble),
    }
}

fn unclear(trouble: &Trouble) -> (Observation, Outcome) {
    (Observation::Unclear, Outcome::Unclear(trouble.kind(), in_words(trouble)))
}

fn written(written: Written) -> (Observation, Outcome) {
    let outcome = match written {
        Written::Done => Outcome::Done,
        Written::Overtaken => Outcome::Overtaken,
    };
    (Observation::Nothing, outcome)
}

fn submitted(answer: Result<(), ErrorCode>) -> (Observation, Outcome) {
    match answer {
        Ok(()) => (Observation::Nothing, Outcome::Done),
        Err(code) => (Observation::Unclear, Outcome::Refused(code)),
    }
}

fn failed(error: &ReadError) -> End {
    let may_pass = match error {
        ReadError::Unavailable { .. } => true,
        ReadError::Corrupt { .. } | ReadError::BadCursor => false,
    };
    End::Failed { may_pass, why: in_words(error) }
}

/// Why an execution is stopped, for whoever looks at it in the console.
fn cause(bound: &Bound, rule: Rule, fence: u64) -> String {
    let rule = report::rule(rule);
    match bound.head {
        None => format!("{rule}: no such workflow, fence {fence}"),
        Some(_) if fence == bound.binding.fence => {
            format!("{rule}: the workflow has ended, fence {fence}")
        }
        Some(_) => format!("{rule}: fence {fence} was replaced by fence {}", bound.binding.fence),
    }
}

/// Tells operators that executions of a workflow do not last. The workflow itself is as it was.
fn alert(bound: &Bound, by: &Replacement, now: Timestamp) -> Message {
    let (tenant, workflow_id) = (&bound.attention.tenant, &bound.attention.workflow_id);
    Message {
        id: format!("{workflow_id}/orchestration-{}/{OPERATIONS}", by.fence),
        kind: UNSTABLE.to_owned(),
        time: now,
        tenant: tenant.clone(),
        workflow_id: workflow_id.clone(),
        // No event caused it: it is told where the history stands.
        seq: bound.revision,
        recipient: OPERATIONS.to_owned(),
        data: json!({
            "state": state(bound),
            "successors": by.successors,
            "since": by.window_at,
            "fence": by.fence,
            "next_start": by.not_before,
        }),
    }
}

/// An error with what stands behind it.
pub(super) fn in_words(error: &(dyn Error + 'static)) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        words.push_str(": ");
        words.push_str(&error.to_string());
        source = error.source();
    }
    words
}

/// Tells the metrics and the log what a pass did.
fn tell(looked: &Looked) {
    for taken in &looked.steps {
        let labels = [
            ("rule", report::rule(taken.rule)),
            ("action", report::action(&taken.action)),
            ("outcome", taken.outcome.kind()),
        ];
        metrics::counter!("checkpoint_reconciler_actions_total", &labels).increment(1);
        let evicted = matches!(taken.action, Action::Stop { .. }) && taken.rule == Rule::R7;
        if evicted && taken.outcome == Outcome::Done {
            metrics::counter!("checkpoint_reconciler_evictions_total").increment(1);
        }
        let (tenant, workflow) = (looked.tenant.as_str(), looked.workflow_id.as_str());
        match (&taken.outcome, taken.rule) {
            (Outcome::Unclear(..) | Outcome::Refused(_), _) => {
                tracing::warn!(tenant, workflow, step = %taken, "the reconciler looks again later");
            }
            (_, Rule::R5 | Rule::R7) => {
                tracing::warn!(tenant, workflow, step = %taken, "an execution was not as it should be");
            }
            (_, Rule::R1 | Rule::R2 | Rule::R3 | Rule::R4 | Rule::R6 | Rule::R8) => {
                tracing::debug!(tenant, workflow, step = %taken, "reconciled");
            }
        }
    }
    if let End::Failed { why, .. } = &looked.end {
        let (tenant, workflow) = (looked.tenant.as_str(), looked.workflow_id.as_str());
        tracing::warn!(tenant, workflow, why, "a workflow could not be looked at");
    }
}
