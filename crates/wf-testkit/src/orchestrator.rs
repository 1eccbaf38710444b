//! Orchestrators for tests: one that acknowledges at the start, one that leaves it to the test.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use wf_core::models::{Phase, Workflow, WorkflowId};
use wf_core::ports::OrchestratorPort;

/// What an orchestrator was told after a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The workflow.
    pub workflow_id: WorkflowId,
    /// Its revision after the commit.
    pub revision: u64,
    /// Its phase after the commit.
    pub phase: Phase,
}

type Record = Arc<Mutex<Vec<Told>>>;

fn note(record: &Record, workflow: &Workflow) {
    let told = Told {
        workflow_id: workflow.id.clone(),
        revision: workflow.revision,
        phase: workflow.phase,
    };
    record.lock().unwrap_or_else(PoisonError::into_inner).push(told);
}

fn noted(record: &Record) -> Vec<Told> {
    record.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Acknowledges every start inside its own commit, as the local orchestrator does. Clones share their record.
#[derive(Debug, Clone, Default)]
pub struct ImmediateOrchestrator {
    record: Record,
}

impl ImmediateOrchestrator {
    /// What it was told, in order.
    #[must_use]
    pub fn told(&self) -> Vec<Told> {
        noted(&self.record)
    }
}

#[async_trait]
impl OrchestratorPort for ImmediateOrchestrator {
    fn acknowledges_at_start(&self) -> bool {
        true
    }

    async fn committed(&self, workflow: &Workflow) {
        note(&self.record, workflow);
    }
}

/// Never acknowledges anything by itself, as an orchestrator that is down. Clones share their record.
#[derive(Debug, Clone, Default)]
pub struct SilentOrchestrator {
    record: Record,
}

impl SilentOrchestrator {
    /// What it was told, in order.
    #[must_use]
    pub fn told(&self) -> Vec<Told> {
        noted(&self.record)
    }
}

#[async_trait]
impl OrchestratorPort for SilentOrchestrator {
    fn acknowledges_at_start(&self) -> bool {
        false
    }

    async fn committed(&self, workflow: &Workflow) {
        note(&self.record, workflow);
    }
}
