//! What `/readyz` and `/metrics` say about this process.

use std::time::Duration;

use async_trait::async_trait;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::time::timeout;
use wf_core::ports::ListQuery;
use wf_mcp_http::Probes;

use crate::compose::Backend;

/// How long the store may take to answer a probe.
const PATIENCE: Duration = Duration::from_secs(1);

/// The process: its store and its registry.
#[derive(Debug)]
pub(super) struct Process {
    backend: Backend,
    registry: PrometheusHandle,
}

impl Process {
    /// Probes over these parts.
    pub(super) fn new(backend: Backend, registry: PrometheusHandle) -> Self {
        Self { backend, registry }
    }
}

impl Process {
    async fn look(&self) -> Result<(), String> {
        if let Some(why) = self.backend.refusal().await {
            return Err(format!("the store takes no commits: {why}"));
        }
        let one = ListQuery { limit: 1, ..ListQuery::default() };
        let listed = self.backend.store().list(&one).await;
        listed.map(drop).map_err(|error| error.to_string())
    }
}

#[async_trait]
impl Probes for Process {
    async fn ready(&self) -> Result<(), String> {
        match timeout(PATIENCE, self.look()).await {
            Ok(looked) => looked,
            Err(_) => Err("the store did not answer in time".to_owned()),
        }
    }

    fn metrics(&self) -> String {
        self.backend.tell_usage();
        self.registry.render()
    }
}
