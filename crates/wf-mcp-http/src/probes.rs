//! What an operator's machinery asks. `wf-cli` answers from the parts that it built; `routes` serves the answers.

use std::fmt::Debug;

use async_trait::async_trait;

/// Readiness and metrics of the process.
///
/// Laws: neither method blocks the executor; `ready` answers within a second or so, since probes time out.
#[async_trait]
pub trait Probes: Debug + Send + Sync {
    /// Whether this replica can do its work now.
    ///
    /// # Errors
    /// A sentence that says what is missing; it is shown at `/readyz`.
    async fn ready(&self) -> Result<(), String>;

    /// All metrics in the Prometheus text format, version 0.0.4.
    fn metrics(&self) -> String;
}
