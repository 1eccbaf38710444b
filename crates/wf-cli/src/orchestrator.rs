//! The local orchestrator: acknowledges a start inside its own commit, and wakes the dispatcher after each.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Notify;
use wf_core::models::Workflow;
use wf_core::ports::OrchestratorPort;

/// An orchestrator that lives in this process.
#[derive(Debug, Clone, Default)]
pub(crate) struct LocalOrchestrator {
    committed: Arc<Notify>,
}

impl LocalOrchestrator {
    /// Woken after each commit of this process. A hint: what it misses, a poll finds.
    pub(crate) fn commits(&self) -> Arc<Notify> {
        Arc::clone(&self.committed)
    }
}

#[async_trait]
impl OrchestratorPort for LocalOrchestrator {
    fn acknowledges_at_start(&self) -> bool {
        true
    }

    async fn committed(&self, _workflow: &Workflow) {
        self.committed.notify_one();
    }
}
