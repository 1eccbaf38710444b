//! `wf-cli workflow evidence`: everything about one workflow in one document. `verify_evidence` looks through it.

use wf_core::engine::evidence::{EvidenceError, collect};
use wf_core::models::Workflow;
use wf_core::ports::{ClockPort as _, StorageBackendPort};

use crate::ambient::SystemClock;
use crate::exit::Failure;
use crate::output::Output;

/// Prints the document.
pub(super) async fn print(
    store: &dyn StorageBackendPort,
    workflow: Workflow,
    output: Output,
) -> Result<(), Failure> {
    let identity = store.identity().await?;
    let now = SystemClock.now();
    let evidence =
        collect(store, workflow, &identity.id, now).await.map_err(|error| match error {
            EvidenceError::Store(error) => Failure::from(error),
            EvidenceError::TooLarge => Failure::failed(error.to_string()).help(
                "`wf-cli workflow history` prints the history, `wf-cli backup` copies the store",
            ),
        })?;
    let text = evidence
        .to_text()
        .map_err(|error| Failure::failed("the evidence cannot be written").because(error))?;
    output.line(&text)
}
