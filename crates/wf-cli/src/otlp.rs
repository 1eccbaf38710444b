//! Traces and metrics to a collector over OTLP (http/protobuf), where `telemetry.otlp_endpoint` names one.
//!
//! ```text
//! spans of wf-* ─▶ tracing-opentelemetry ─▶ queue ─▶ deliver ─▶ send ─▶ collector/v1/traces
//!                  ▲ joins, decisions        (bounded)  ▲ listed
//! metrics registry ─────────────────────────▶ figures ─▶ send ─▶ collector/v1/metrics
//! ```
//!
//! A call never waits for any of it: it puts spans into a bounded queue, and what finds the queue full is counted and
//! gone. `listed` has every attribute that may leave. The spans themselves are made where the work is done, by `tracing`
//! alone; `without_otlp` is the double of this file in builds that lack the feature.
//!
//! Of the environment the SDK reads `OTEL_TRACES_SAMPLER`, `OTEL_TRACES_SAMPLER_ARG`, `OTEL_RESOURCE_ATTRIBUTES` and
//! `OTEL_SERVICE_NAME`, and `send` reads `OTEL_EXPORTER_OTLP_HEADERS`.

mod decisions;
mod deliver;
mod figures;
mod joins;
mod listed;
mod send;

use std::sync::Arc;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{InstrumentationScope, Key, KeyValue};
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing_subscriber::filter::{FilterExt as _, LevelFilter, filter_fn};
use tracing_subscriber::layer::Layer;
use tracing_subscriber::registry::Registry;
use wf_core::ports::IdPort as _;
use wf_mcp_http::Traces;

use crate::ambient::OsIds;
use crate::exit::Failure;
use send::Sender;

/// Spans that wait for the collector at most; about 4 MB.
const QUEUE: usize = 4_096;
/// How long the last spans and figures may take once the server has ended. Before that calls have had up to
/// 25 seconds and work in the background 5.
const LAST: Duration = Duration::from_secs(2);
/// Name of the service where the environment gives none.
const SERVICE: &str = "checkpoint";

/// A collector, and the spans that go to it.
#[derive(Debug)]
pub(crate) struct Otlp {
    provider: SdkTracerProvider,
    sender: Arc<Sender>,
    resource: Resource,
    spans: mpsc::Receiver<SpanData>,
}

impl Otlp {
    /// Prepares it; sends nothing yet.
    ///
    /// # Errors
    /// When the endpoint, or what the environment says of it, cannot be used.
    pub(crate) fn open(endpoint: &str) -> Result<Self, Failure> {
        let headers = std::env::var(send::HEADERS).unwrap_or_default();
        let sender = Sender::open(endpoint, &headers).map_err(|error| {
            Failure::usage("telemetry.otlp_endpoint cannot be used")
                .because(error)
                .help("docs/observability.md says what a collector needs")
        })?;
        let resource = resource();
        let (queue, spans) = mpsc::channel(QUEUE);
        let provider = SdkTracerProvider::builder()
            .with_sampler(joins::Linked::configured())
            .with_resource(resource.clone())
            .with_span_processor(deliver::Queue::new(queue))
            .build();
        Ok(Self { provider, sender: Arc::new(sender), resource, spans })
    }

    /// What collects the spans of this program and nobody else's. Events are left out: they are the log, and have texts.
    pub(crate) fn layer(&self) -> Box<dyn Layer<Registry> + Send + Sync> {
        let scope = InstrumentationScope::builder(SERVICE).with_version(env!("CARGO_PKG_VERSION"));
        let tracer = self.provider.tracer_with_scope(scope.build());
        let ours = filter_fn(|meta| meta.is_span() && meta.target().starts_with("wf_"));
        let spans = tracing_opentelemetry::layer()
            .with_tracer(tracer.clone())
            .with_context_activation(false)
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_level(false)
            .with_tracked_inactivity(false);
        let both = spans.and_then(decisions::Decisions::new(tracer));
        both.with_filter(ours.and(LevelFilter::DEBUG)).boxed()
    }

    /// Told by the transport to which traces requests belong.
    pub(crate) fn traces(&self) -> Arc<dyn Traces> {
        Arc::new(joins::Joins)
    }

    /// Begins to send, from the runtime of the caller.
    pub(crate) fn begin(self, registry: PrometheusHandle) -> Sending {
        let (end, ended) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let resource = ResourceAttributesWithSchema::from(&self.resource);
        let sender = Arc::clone(&self.sender);
        tasks.spawn(deliver::deliver(self.spans, sender, resource, ended.clone()));
        let resource = ResourceAttributesWithSchema::from(&self.resource);
        tasks.spawn(figures::tell(registry, self.sender, resource, ended));
        Sending { tasks, end }
    }
}

/// What is being sent.
#[derive(Debug)]
pub(crate) struct Sending {
    tasks: JoinSet<()>,
    end: watch::Sender<bool>,
}

impl Sending {
    /// Sends what is left, as far as two seconds go.
    pub(crate) async fn finish(mut self) {
        self.end.send_replace(true);
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(LAST, all).await.is_err() {
            tracing::warn!("the collector did not take the last spans and figures in time");
        }
    }
}

/// The `traceparent` of what a span asks of others; none where nobody collects spans.
pub(crate) fn traceparent(span: &tracing::Span) -> Option<String> {
    joins::traceparent(span)
}

/// Who sends: name and version of the program, and an id of this process.
fn resource() -> Resource {
    let named = Resource::builder().build();
    let name = named.get(&Key::from_static_str("service.name"));
    let name =
        name.map(|name| name.to_string()).filter(|name| !name.starts_with("unknown_service"));
    Resource::builder()
        .with_service_name(name.unwrap_or_else(|| SERVICE.to_owned()))
        .with_attributes([
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("service.instance.id", OsIds.random_hex()),
        ])
        .build()
}
