//! One pass over one workflow of an orchestrator outside the process: reads what storage says, asks the
//! [rules](crate::reconcile) for the next step, does it, and feeds what came of it back, until nothing is left to do, or not now.
//!
//! Each step is one call or one conditional write, and every pass begins by reading. So a pass may be dropped anywhere, and
//! two may go on at once: the later of them by epoch is the one that writes. A backend brings the rows and the orchestrator
//! ([`crate::ports::executions`]), and knows which workflows to pass over. Files: `pace` (when to look again), `report`
//! (what a pass tells).

mod pace;
mod report;

use serde_json::json;

use crate::errors::ErrorCode;
use crate::models::{Phase, Timestamp};
use crate::ports::{
    Answered, Attention, BindingPort, BoundRows, Epoch, Execution, ExecutionPort, Message,
    ReadError, Told, UnclearCall, Written,
};
use crate::reconcile::{Action, Observation, Replacement, Rule, Run, Step, reconcile};

use super::Engine;

pub use report::{End, Looked, Outcome, Taken, action, in_words, rule};

/// More steps than any pass needs that goes on.
const STEPS_MAX: usize = 16;
/// Who is told that executions of a workflow do not last; a name that the configuration routes.
const OPERATIONS: &str = "operations";
/// The kind of that message.
const UNSTABLE: &str = "orchestration_unstable";

/// What a pass works with. The time is the engine's.
#[derive(Debug, Clone, Copy)]
pub struct Hands<'h, R, X> {
    /// Decides what becomes a command.
    pub engine: &'h Engine,
    /// The rows.
    pub rows: &'h R,
    /// The orchestrator.
    pub executions: &'h X,
}

impl<R: BindingPort, X: ExecutionPort> Hands<'_, R, X> {
    fn now(&self) -> Timestamp {
        self.engine.parts.clock.now()
    }

    /// Looks at a workflow and does what the rules say. `met` is what was seen of its executions before, if anything was;
    /// `fraction`, by chance from 0 to 1, spreads when it is looked at again.
    pub async fn pass(
        &self,
        attention: &Attention,
        epoch: Epoch,
        met: Observation,
        fraction: f64,
    ) -> Looked {
        let mut looked = Looked::new(attention);
        let end = self.steps(attention, epoch, (met, fraction), &mut looked.steps).await;
        looked.end = end.unwrap_or_else(|error| failed(&error));
        looked
    }

    async fn steps(
        &self,
        attention: &Attention,
        epoch: Epoch,
        (met, fraction): (Observation, f64),
        steps: &mut Vec<Taken>,
    ) -> Result<End, ReadError> {
        let (mut seen, mut answered) = (met, None);
        loop {
            let now = self.now();
            let bound = self.rows.bound(attention, now).await?;
            // What is dead is the token that was answered. Of one that was registered since, nothing is known.
            if seen == Observation::TokenDead && bound.token() != answered.as_deref() {
                seen = Observation::Nothing;
            }
            let step = reconcile(bound.head(), bound.binding(), seen, now);
            // What was done already and is asked for again has no effect that can be seen yet.
            let again = steps.iter().any(|taken| taken.action == step.action);
            if step.action == Action::Later || again || steps.len() >= STEPS_MAX {
                let at = pace::look_again(&bound, now, fraction);
                return self.later(&bound, epoch, at).await;
            }
            if step.action == Action::Settled {
                return self.settled(&bound, epoch, now).await;
            }
            let (next, outcome) = self.act(&bound, step, epoch, now).await?;
            answered = bound.token().map(str::to_owned);
            let overtaken = outcome == Outcome::Overtaken;
            steps.push(Taken { rule: step.rule, action: step.action, outcome });
            if overtaken {
                return Ok(End::Overtaken);
            }
            seen = next;
        }
    }

    /// Says what a pass would do first, and only reads.
    pub async fn propose(&self, attention: &Attention, met: Observation) -> Looked {
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
            let now = self.now();
            let bound = self.rows.peek(attention, now).await?;
            let step = reconcile(bound.head(), bound.binding(), seen, now);
            match step.action {
                Action::Settled => return Ok(End::Settled),
                Action::Later => return Ok(End::Again(pace::look_again(&bound, now, 0.5))),
                Action::Describe { fence } if steps.is_empty() => {
                    let (next, outcome) =
                        observed(fence, self.executions.describe(&execution(&bound, fence)).await);
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

    async fn settled(
        &self,
        bound: &R::Bound,
        epoch: Epoch,
        now: Timestamp,
    ) -> Result<End, ReadError> {
        Ok(match self.rows.settle(bound, epoch, now).await? {
            Written::Done => End::Settled,
            Written::Overtaken => End::Overtaken,
        })
    }

    async fn later(&self, bound: &R::Bound, epoch: Epoch, at: Timestamp) -> Result<End, ReadError> {
        Ok(match self.rows.postpone(bound, epoch, at).await? {
            Written::Done => End::Again(at),
            Written::Overtaken => End::Overtaken,
        })
    }

    /// Does one step: what is to be fed back to the rules, and what to report.
    async fn act(
        &self,
        bound: &R::Bound,
        step: Step,
        epoch: Epoch,
        now: Timestamp,
    ) -> Result<(Observation, Outcome), ReadError> {
        let (tenant, id) = (&bound.attention().tenant, &bound.attention().workflow_id);
        let rows = self.rows;
        Ok(match step.action {
            Action::Acknowledge { fence } => {
                submitted(self.engine.acknowledge_orchestration(tenant, id, fence).await)
            }
            Action::Fire => submitted(self.engine.fire_due_of(tenant, id).await.map(|_| ())),
            Action::Start { fence } => {
                observed(fence, self.executions.start(&execution(bound, fence)).await)
            }
            Action::Describe { fence } => {
                observed(fence, self.executions.describe(&execution(bound, fence)).await)
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
                match self.executions.stop(&execution(bound, fence), &cause).await {
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
        bound: &R::Bound,
        told: &Told<'_>,
        epoch: Epoch,
        now: Timestamp,
    ) -> Result<(Observation, Outcome), ReadError> {
        let Some(token) = bound.token() else {
            return Ok((Observation::Nothing, Outcome::Overtaken));
        };
        match self.executions.answer(token, told).await {
            Ok(Answered::Taken) => {
                // It may have registered again before we came to write: then there is nothing to take off.
                self.rows.drop_token(bound, epoch, now).await?;
                Ok((Observation::Nothing, Outcome::Done))
            }
            Ok(Answered::Dead) => Ok((Observation::TokenDead, Outcome::TokenDead)),
            Err(trouble) => Ok(unclear(&trouble)),
        }
    }
}

fn execution(bound: &impl BoundRows, fence: u64) -> Execution<'_> {
    let Attention { tenant, workflow_id, .. } = bound.attention();
    Execution { tenant, workflow_id, fence }
}

/// What an execution is told of the state, for whoever looks at it in the console.
fn state(bound: &impl BoundRows) -> &'static str {
    bound.phase().map_or("UNKNOWN", Phase::as_str)
}

fn observed(fence: u64, asked: Result<Run, UnclearCall>) -> (Observation, Outcome) {
    match asked {
        Ok(run) => (Observation::Seen { fence, run }, Outcome::Seen(run)),
        Err(trouble) => unclear(&trouble),
    }
}

fn unclear(trouble: &UnclearCall) -> (Observation, Outcome) {
    (Observation::Unclear, Outcome::Unclear(trouble.kind, trouble.why.clone()))
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
fn cause(bound: &impl BoundRows, rule: Rule, fence: u64) -> String {
    let rule = report::rule(rule);
    match bound.head() {
        None => format!("{rule}: no such workflow, fence {fence}"),
        Some(_) if fence == bound.binding().fence => {
            format!("{rule}: the workflow has ended, fence {fence}")
        }
        Some(_) => format!("{rule}: fence {fence} was replaced by fence {}", bound.binding().fence),
    }
}

/// Tells operators that executions of a workflow do not last. The workflow itself is as it was.
fn alert(bound: &impl BoundRows, by: &Replacement, now: Timestamp) -> Message {
    let Attention { tenant, workflow_id, .. } = bound.attention();
    Message {
        id: format!("{workflow_id}/orchestration-{}/{OPERATIONS}", by.fence),
        kind: UNSTABLE.to_owned(),
        time: now,
        tenant: tenant.clone(),
        workflow_id: workflow_id.clone(),
        // No event caused it: it is told where the history stands.
        seq: bound.revision(),
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
