//! Decides which traces are recorded, and puts their finished spans into the queue of the exporter.

use super::client_trace_limit::ClientTraceLimit;
use super::current_span::TraceScope;
use super::span::{Span, SpanKind, SpanRecord};
use super::span_context::SpanContext;
use super::span_queue::{self, DropReason, QueueInput, SpanQueue};
use super::trace_export::SampleRatio;
use crate::clock::Clock;
use crate::random;
use chorus_wire::time::UnixMicros;
use std::borrow::Cow;
use std::sync::Arc;

/// The traces of one hub. Cheap to clone; every clone is the same recorder.
#[derive(Clone)]
pub struct SpanRecorder(Arc<RecorderInner>);

struct RecorderInner {
    clock: Clock,
    ratio: SampleRatio,
    client_traces: ClientTraceLimit,
    queue: QueueInput,
}

/// The first span of this hub in a trace, and the scope of its work.
pub struct BegunTrace {
    pub scope: TraceScope,
    /// `None` when the trace is not recorded.
    pub span: Option<Span>,
}

impl SpanRecorder {
    pub(crate) fn open(clock: Clock, ratio: SampleRatio) -> (Self, SpanQueue) {
        let (queue, output) = span_queue::open_queue();
        let inner = RecorderInner {
            clock,
            ratio,
            client_traces: ClientTraceLimit::default(),
            queue,
        };
        (Self(Arc::new(inner)), output)
    }

    /// Begins a span for work that an earlier request caused (`parent`), or that begins here. Who began a trace has decided
    /// whether it is recorded.
    pub fn begin_trace(
        &self,
        parent: Option<SpanContext>,
        name: impl Into<Cow<'static, str>>,
        kind: SpanKind,
    ) -> BegunTrace {
        let trace_id = parent.map_or_else(new_trace_id, |parent| parent.trace_id);
        let is_sampled = match parent {
            Some(parent) => parent.is_sampled,
            None => self.0.ratio.is_sampled(trace_id),
        };
        self.begin_span(parent, trace_id, is_sampled, name.into(), kind)
    }

    /// Begins a span for work that a client caused, which has decided whether its trace is recorded. That decision is bounded:
    /// strangers may send `traceparent` too.
    pub fn begin_client_trace(
        &self,
        client: SpanContext,
        name: impl Into<Cow<'static, str>>,
        kind: SpanKind,
    ) -> BegunTrace {
        let trace_id = client.trace_id;
        let is_sampled = client.is_sampled
            && (self.0.ratio.is_sampled(trace_id)
                || self.0.client_traces.admit(self.0.clock.monotonic_now()));
        self.begin_span(Some(client), trace_id, is_sampled, name.into(), kind)
    }

    fn begin_span(
        &self,
        parent: Option<SpanContext>,
        trace_id: u128,
        is_sampled: bool,
        name: Cow<'static, str>,
        kind: SpanKind,
    ) -> BegunTrace {
        // A collector that is away must not cost the work of making spans that are dropped.
        let is_recording = is_sampled && !self.0.queue.is_full();
        if is_sampled && !is_recording {
            span_queue::count_dropped(DropReason::QueueFull, 1);
        }
        if is_recording {
            let context = SpanContext {
                trace_id,
                span_id: new_span_id(),
                is_sampled,
            };
            let parent_id = parent.map(|parent| parent.span_id);
            let span = Span::begin(self, context, parent_id, name, kind);
            if let Some(scope) = span.scope() {
                return BegunTrace {
                    scope,
                    span: Some(span),
                };
            }
        }
        // Others continue the trace of the caller, as if this hub were not part of it.
        let context = parent.unwrap_or_else(|| SpanContext {
            trace_id,
            span_id: new_span_id(),
            is_sampled: false,
        });
        BegunTrace {
            scope: TraceScope {
                recorder: self.clone(),
                context,
                outcome: None,
            },
            span: None,
        }
    }

    pub(super) fn start_child(
        &self,
        parent: SpanContext,
        name: Cow<'static, str>,
        kind: SpanKind,
    ) -> Span {
        let context = SpanContext {
            span_id: new_span_id(),
            ..parent
        };
        Span::begin(self, context, Some(parent.span_id), name, kind)
    }

    pub(super) fn now(&self) -> UnixMicros {
        self.0.clock.now()
    }

    pub(super) fn record(&self, record: SpanRecord) {
        self.0.queue.push(record);
    }

    /// Sends what waits and ends the exporter. Takes no longer than [`crate::limits::SPAN_FLUSH_TIMEOUT`].
    pub(crate) async fn close(&self) {
        self.0.queue.close().await;
    }
}

/// Zero is no id.
fn new_trace_id() -> u128 {
    random::random_value::<u128>().max(1)
}

fn new_span_id() -> u64 {
    random::random_value::<u64>().max(1)
}
