//! The double of `otlp` in builds without the feature: no collector can be configured, so nothing of it can be made.
//!
//! The configuration refuses an endpoint before (`config::check`); this is what keeps `telemetry` and `serve` whole.

use std::convert::Infallible;
use std::sync::Arc;

use metrics_exporter_prometheus::PrometheusHandle;
use tracing_subscriber::layer::Layer;
use tracing_subscriber::registry::Registry;
use wf_mcp_http::Traces;

use crate::exit::Failure;

/// A collector that cannot be.
#[derive(Debug)]
pub(crate) struct Otlp(Infallible);

impl Otlp {
    /// Refuses.
    ///
    /// # Errors
    /// Always.
    pub(crate) fn open(_endpoint: &str) -> Result<Self, Failure> {
        Err(Failure::usage("telemetry.otlp_endpoint needs the feature `otlp`"))
    }

    /// What collects spans.
    pub(crate) fn layer(&self) -> Box<dyn Layer<Registry> + Send + Sync> {
        match self.0 {}
    }

    /// Told to which traces requests belong.
    pub(crate) fn traces(&self) -> Arc<dyn Traces> {
        match self.0 {}
    }

    /// Begins to send.
    pub(crate) fn begin(self, _registry: PrometheusHandle) -> Sending {
        match self.0 {}
    }
}

/// The `traceparent` of what a span asks of others: none.
pub(crate) fn traceparent(_span: &tracing::Span) -> Option<String> {
    None
}

/// What is being sent.
#[derive(Debug)]
pub(crate) struct Sending(Infallible);

impl Sending {
    /// Sends what is left.
    pub(crate) async fn finish(self) {
        match self.0 {}
    }
}
