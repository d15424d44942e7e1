//! One span: a named piece of work of a trace, with when it began, how long it took and how it ended.

use super::current_span::TraceScope;
use super::span_context::SpanContext;
use super::span_recorder::SpanRecorder;
use chorus_wire::time::UnixMicros;
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The part that a span has in its trace, as OpenTelemetry numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    Internal = 1,
    /// Answers a request.
    Server = 2,
    /// Makes a request.
    Client = 3,
}

/// The value of an attribute. Texts are words of this program or templates of routes: what clients write, names, keys and paths
/// never become one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SpanValue {
    Text(Cow<'static, str>),
    Number(i64),
}

/// How the work of a span ended, when only the work itself knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkOutcome {
    pub label: &'static str,
    pub is_failure: bool,
}

/// What is exported of a span.
#[derive(Clone, Debug)]
pub(crate) struct SpanRecord {
    pub context: SpanContext,
    pub parent: Option<u64>,
    /// A span of another trace that is part of the same work.
    pub link: Option<SpanContext>,
    pub name: Cow<'static, str>,
    pub kind: SpanKind,
    pub started_at: UnixMicros,
    pub elapsed: Duration,
    pub attributes: Vec<(&'static str, SpanValue)>,
    pub is_failure: bool,
}

/// A span that is under way. It is recorded when it is finished, or when it is dropped, which means that its work was cancelled.
pub struct Span(Option<Box<OpenSpan>>);

struct OpenSpan {
    recorder: SpanRecorder,
    record: SpanRecord,
    /// Only measures: the hub's clock may be one that a test holds still.
    began: Instant,
    outcome: Arc<OnceLock<WorkOutcome>>,
}

impl Span {
    pub(super) fn begin(
        recorder: &SpanRecorder,
        context: SpanContext,
        parent: Option<u64>,
        name: Cow<'static, str>,
        kind: SpanKind,
    ) -> Self {
        Self(Some(Box::new(OpenSpan {
            record: SpanRecord {
                context,
                parent,
                link: None,
                name,
                kind,
                started_at: recorder.now(),
                elapsed: Duration::ZERO,
                attributes: Vec::new(),
                is_failure: false,
            },
            recorder: recorder.clone(),
            began: Instant::now(),
            outcome: Arc::default(),
        })))
    }

    /// The scope of work that this span is the parent of.
    pub fn scope(&self) -> Option<TraceScope> {
        let open = self.0.as_deref()?;
        Some(TraceScope {
            recorder: open.recorder.clone(),
            context: open.record.context,
            outcome: Some(open.outcome.clone()),
        })
    }

    pub fn set_text(&mut self, name: &'static str, value: impl Into<Cow<'static, str>>) {
        self.set(name, SpanValue::Text(value.into()));
    }

    pub fn set_number(&mut self, name: &'static str, value: i64) {
        self.set(name, SpanValue::Number(value));
    }

    fn set(&mut self, name: &'static str, value: SpanValue) {
        if let Some(open) = &mut self.0 {
            open.record.attributes.push((name, value));
        }
    }

    /// Points to a span of another trace that is part of the same work.
    pub fn link_to(&mut self, other: SpanContext) {
        if let Some(open) = &mut self.0 {
            open.record.link = Some(other);
        }
    }

    /// Marks the work as failed. `kind` is a word of this program.
    pub fn fail(&mut self, kind: &'static str) {
        if let Some(open) = &mut self.0 {
            open.record.is_failure = true;
        }
        self.set_text("error.type", kind);
    }

    /// Ends the span: its work was done, or failed as [`Self::fail`] said.
    pub fn finish(mut self) {
        self.record();
    }

    fn record(&mut self) {
        let Some(open) = self.0.take() else {
            return;
        };
        let OpenSpan {
            recorder,
            mut record,
            began,
            outcome,
        } = *open;
        record.elapsed = began.elapsed();
        if let Some(outcome) = outcome.get() {
            let label = SpanValue::Text(outcome.label.into());
            record.attributes.push(("chorus.outcome", label));
            record.is_failure |= outcome.is_failure;
        }
        recorder.record(record);
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if self.0.is_some() {
            self.fail("cancelled");
            self.record();
        }
    }
}
