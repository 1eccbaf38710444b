//! What its policy says of a workflow as it stands: asked once for an answer, which shows it and speaks of it.

use crate::models::{Phase, Workflow};
use crate::policy::{DomainPolicyPort, Plan, ResultOption, StepDescription};

/// A workflow with what its policy says of it.
#[derive(Debug)]
pub struct Outlook<'a> {
    /// The workflow.
    pub workflow: &'a Workflow,
    /// The policy of the definition that it pinned.
    pub policy: &'a dyn DomainPolicyPort,
    /// How its steps stand.
    pub plan: Plan,
    /// What is asked next; `None` while blocked, when all is done, or when the work is over.
    pub step: Option<StepDescription>,
    /// Ways to finish it.
    pub results: Vec<ResultOption>,
}

impl<'a> Outlook<'a> {
    /// Asks the policy.
    #[must_use]
    pub fn of(workflow: &'a Workflow, policy: &'a dyn DomainPolicyPort) -> Self {
        let plan = policy.plan(workflow);
        let step = match workflow.phase {
            Phase::Created | Phase::Running => {
                plan.next().and_then(|step| policy.describe(workflow, &step.id))
            }
            Phase::Blocked | Phase::Completed => None,
        };
        Self { workflow, policy, plan, step, results: policy.results(workflow) }
    }
}
