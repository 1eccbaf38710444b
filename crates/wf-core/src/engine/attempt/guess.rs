//! The attempt that asks the store nothing: decided on how this engine left the workflow (`engine::recent`).

use crate::ports::Snapshot;
use crate::state_machine::{Verdict, decide};

use super::super::call::{Reply, Request};
use super::super::execute::Refused;
use super::super::ledger;
use super::build::Made;
use super::{Attempt, Attempting};

impl Attempting<'_> {
    /// The answer to a call that could be committed on a guess. Without one nothing was written, and the store is asked.
    pub(in super::super) async fn guessed(&self) -> Result<Option<Reply>, Refused> {
        if self.call.key.is_none() || !self.can_be_guessed() {
            return Ok(None);
        }
        let tenant = &self.principal.tenant;
        let Some(snapshot) = self.engine.recent.of(tenant, &self.workflow_id) else {
            return Ok(None);
        };
        let Some(made) = self.made_on(&snapshot).await else { return Ok(None) };
        let written = self.write(made, None, snapshot.locks.clone()).await;
        if let Ok(Attempt::Answered(reply)) = written {
            return Ok(Some(*reply));
        }
        self.engine.recent.forget(tenant, &self.workflow_id);
        written.map(|_again| None)
    }

    /// What the store would be asked besides the workflow and its locks is nothing. A repeat without a key looks for its
    /// first answer.
    fn can_be_guessed(&self) -> bool {
        match &self.call.request {
            Request::Start { .. } | Request::Transfer { .. } => false,
            Request::SubmitStep { .. }
            | Request::CorrectStep { .. }
            | Request::SkipStep { .. }
            | Request::ReportProblem { .. }
            | Request::ResolveBlock { .. }
            | Request::AcknowledgeBlock { .. }
            | Request::DeadlineReached { .. }
            | Request::AcknowledgeOrchestration { .. }
            | Request::ReleaseLock { .. }
            | Request::Finish { .. } => true,
        }
    }

    /// What would be committed. Whatever refuses the call here is no answer: the store may know better.
    async fn made_on(&self, snapshot: &Snapshot) -> Option<Made> {
        let workflow = snapshot.workflow.as_ref()?;
        let state = Some(workflow);
        let is_repeat = ledger::repeated(self.call, &self.cause, &self.principal.actor, workflow);
        // What looks like a repeat is the ledger's to answer.
        if is_repeat.is_some() || !self.reaches(workflow).await {
            return None;
        }
        self.expected(state).ok()?;
        let policy = self.policy(None, state).await.ok()?;
        let now = self.engine.parts.clock.now();
        let facts = self.facts(snapshot, policy.as_ref(), &[], now);
        let Ok(Verdict::Commit(decision)) = decide(state, &self.command(), &facts) else {
            return None;
        };
        let frame = self.engine.frame(Some(policy.as_ref()), &self.call.meta);
        self.build(decision, state, policy.as_ref(), &frame, now).ok()
    }
}
