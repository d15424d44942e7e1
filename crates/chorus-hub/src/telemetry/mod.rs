//! Traces: which spans are recorded, the span that the current task is in, and the queue to the exporter (OPS-05).
//!
//! A hub without `--otlp` has no recorder and no span: every function here then returns after one look at a thread-local.

mod client_trace_limit;
mod current_span;
mod span;
mod span_context;
mod span_queue;
mod span_recorder;
mod trace_export;

pub use current_span::{TraceScope, current_scope, within_scope};
pub(crate) use current_span::{
    current_context, outgoing_traceparent, run_in_span, set_outcome, start_span,
};
pub use span::{Span, SpanKind};
pub(crate) use span::{SpanRecord, SpanValue};
pub use span_context::SpanContext;
pub(crate) use span_queue::{DropReason, SpanQueue, count_dropped};
pub use span_recorder::{BegunTrace, SpanRecorder};
pub use trace_export::{ExportHeader, SampleRatio, TraceExport};
