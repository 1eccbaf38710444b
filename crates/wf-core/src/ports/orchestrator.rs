//! `OrchestratorPort`: gives a workflow a life in time. It never decides business state.

use std::fmt::Debug;

use async_trait::async_trait;

use crate::models::Workflow;

/// Acknowledges starts and wakes workflows at their deadlines.
#[async_trait]
pub trait OrchestratorPort: Debug + Send + Sync {
    /// True when a start is acknowledged inside its own commit (events 1 and 2).
    fn acknowledges_at_start(&self) -> bool;
    /// Told after each commit, on a best-effort basis: what must not be missed is read from storage.
    async fn committed(&self, workflow: &Workflow);
}
