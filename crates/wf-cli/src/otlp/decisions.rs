//! The span `decide`: from where a call has read its snapshot to where it commits what it decided.
//!
//! The core, which decides, knows no clock and no trace. Both its neighbours are seen here: the span `load` ends, and
//! `commit` of the same call begins. A call that is refused, or that only reads, decides too, but nothing says when it
//! was done: it has no such span.

use std::time::SystemTime;

use opentelemetry::trace::{Span as _, TraceContextExt as _, Tracer as _};
use opentelemetry_sdk::trace::SdkTracer;
use tracing::span::{Attributes, Id};
use tracing::{Subscriber, dispatcher};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

/// When a call had read what it decides on; in the extensions of its span.
#[derive(Debug)]
struct Loaded(SystemTime);

/// Makes the spans.
#[derive(Debug)]
pub(super) struct Decisions {
    tracer: SdkTracer,
}

impl Decisions {
    pub(super) fn new(tracer: SdkTracer) -> Self {
        Self { tracer }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Decisions {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if attributes.metadata().name() != "commit" {
            return;
        }
        let Some(call) = context.span(id).and_then(|span| span.parent()) else { return };
        let loaded = call.extensions_mut().remove::<Loaded>();
        let Some(Loaded(begun)) = loaded else { return };
        let parent = dispatcher::get_default(|dispatch| {
            tracing_opentelemetry::get_otel_context(&call.id(), dispatch)
        });
        let Some(parent) = parent.filter(|cx| cx.span().span_context().is_sampled()) else {
            return;
        };
        let span = self.tracer.span_builder("decide").with_start_time(begun);
        span.start_with_context(&self.tracer, &parent).end();
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id).filter(|span| span.name() == "load") else { return };
        if let Some(call) = span.parent() {
            call.extensions_mut().replace(Loaded(SystemTime::now()));
        }
    }
}
