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

#[async_trait]
impl Probes for Process {
    async fn ready(&self) -> Result<(), String> {
        if !self.backend.is_healthy() {
            return Err("the store takes no commits".to_owned());
        }
        let store = self.backend.store();
        let one = ListQuery { limit: 1, ..ListQuery::default() };
        match timeout(PATIENCE, store.list(&one)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("the store did not answer in time".to_owned()),
        }
    }

    fn metrics(&self) -> String {
        self.backend.tell_usage();
        self.registry.render()
    }
}
