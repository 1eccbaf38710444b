//! From the end of a span to the collector: a bounded queue, and a task that empties it.
//!
//! The task looks ten times a second and is never woken by a span, so that a call pays for putting a span down and for
//! nothing else.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::Context;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};
use prost::Message as _;
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval};

use super::listed::listed;
use super::send::{Sender, Signal};

/// How often the queue is emptied.
const EVERY: Duration = Duration::from_millis(100);
/// Spans of one request at most.
const BATCH: usize = 512;

/// Takes spans that ended.
#[derive(Debug)]
pub(super) struct Queue(mpsc::Sender<SpanData>);

impl Queue {
    pub(super) fn new(queue: mpsc::Sender<SpanData>) -> Self {
        Self(queue)
    }
}

impl SpanProcessor for Queue {
    fn on_start(&self, _span: &mut Span, _cx: &Context) {}

    fn on_end(&self, span: SpanData) {
        if span.span_context.is_sampled() && self.0.try_send(span).is_err() {
            Signal::Traces.dropped("queue", 1);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// Sends spans until `end`, and then what is left.
pub(super) async fn deliver(
    mut spans: mpsc::Receiver<SpanData>,
    sender: Arc<Sender>,
    resource: ResourceAttributesWithSchema,
    mut end: watch::Receiver<bool>,
) {
    let mut tick = interval(EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut ended = false;
    while !ended {
        tokio::select! {
            biased;
            _ = end.wait_for(|ended| *ended) => ended = true,
            _ = tick.tick() => {}
        }
        loop {
            let batch = take(&mut spans);
            if batch.is_empty() {
                break;
            }
            send(batch, &sender, &resource, &mut end).await;
        }
    }
}

fn take(spans: &mut mpsc::Receiver<SpanData>) -> Vec<SpanData> {
    let mut batch = Vec::with_capacity(spans.len().min(BATCH));
    while batch.len() < BATCH {
        let Ok(span) = spans.try_recv() else { break };
        batch.push(listed(span));
    }
    batch
}

async fn send(
    batch: Vec<SpanData>,
    sender: &Sender,
    resource: &ResourceAttributesWithSchema,
    end: &mut watch::Receiver<bool>,
) {
    let count = u64::try_from(batch.len()).unwrap_or(u64::MAX);
    let resource_spans = group_spans_by_resource_and_scope(batch, resource);
    let message = ExportTraceServiceRequest { resource_spans }.encode_to_vec();
    let Some(answer) = sender.send(Signal::Traces, message.into(), count, end).await else {
        return;
    };
    // The collector may refuse some of them, and says how many. An answer that is none says nothing.
    let partial = ExportTraceServiceResponse::decode(answer).ok().and_then(|a| a.partial_success);
    let refused = partial.map_or(0, |partial| u64::try_from(partial.rejected_spans).unwrap_or(0));
    if refused > 0 {
        Signal::Traces.dropped("refused", refused);
    }
}
