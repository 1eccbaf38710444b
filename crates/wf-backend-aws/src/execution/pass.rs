//! Passes as a server makes them: over the rows of a table and the executions of Step Functions, told to metrics and the log.
//! The pass itself is [`wf_core::engine::pass`]. Neighbours: `reconciler` (which workflows, and how many at once), `report`
//! (what it came to, for a command).

use std::sync::Arc;

use wf_core::engine::Engine;
use wf_core::engine::pass::{self, End, Looked, Outcome, action, rule};
use wf_core::ports::{Attention, ClockPort, Epoch};
use wf_core::reconcile::{Action, Observation, Rule};

use super::Bindings;
use super::states::States;

/// What a pass works with.
#[derive(Debug)]
pub(super) struct Hands {
    pub(super) bindings: Bindings,
    pub(super) states: States,
    pub(super) engine: Arc<Engine>,
    pub(super) clock: Arc<dyn ClockPort>,
}

impl Hands {
    fn hands(&self) -> pass::Hands<'_, Bindings, States> {
        pass::Hands { engine: &self.engine, rows: &self.bindings, executions: &self.states }
    }

    /// Looks at a workflow and does what the rules say. `met` is what was seen of its executions before, if anything was.
    pub(super) async fn pass(
        &self,
        attention: &Attention,
        epoch: Epoch,
        met: Observation,
    ) -> Looked {
        let looked = self.hands().pass(attention, epoch, met, fraction()).await;
        tell(&looked);
        looked
    }

    /// Says what a pass would do first, and only reads.
    pub(super) async fn propose(&self, attention: &Attention, met: Observation) -> Looked {
        self.hands().propose(attention, met).await
    }
}

/// A random number from 0 to 1. Without randomness from the system: the middle.
pub(super) fn fraction() -> f64 {
    let number = getrandom::u32().unwrap_or(u32::MAX / 2);
    f64::from(number) / f64::from(u32::MAX)
}

/// Tells the metrics and the log what a pass did.
fn tell(looked: &Looked) {
    for taken in &looked.steps {
        let labels = [
            ("rule", rule(taken.rule)),
            ("action", action(&taken.action)),
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
