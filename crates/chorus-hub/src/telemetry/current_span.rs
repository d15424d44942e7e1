//! The span that the current task is in. It is set while the task is polled, so functions need no parameter for it.

use super::span::{Span, SpanKind, WorkOutcome};
use super::span_context::SpanContext;
use super::span_recorder::SpanRecorder;
use std::borrow::Cow;
use std::cell::RefCell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

thread_local! {
    static CURRENT: RefCell<Option<TraceScope>> = const { RefCell::new(None) };
}

/// The trace that work belongs to, and the span that is its parent.
#[derive(Clone)]
pub struct TraceScope {
    pub(super) recorder: SpanRecorder,
    pub(super) context: SpanContext,
    /// Where the work says how it ended; `None` when this hub records no span of the trace.
    pub(super) outcome: Option<Arc<OnceLock<WorkOutcome>>>,
}

impl TraceScope {
    pub fn context(&self) -> SpanContext {
        self.context
    }

    pub fn recorder(&self) -> &SpanRecorder {
        &self.recorder
    }

    /// Whether this hub records spans of the trace.
    pub fn is_recording(&self) -> bool {
        self.outcome.is_some()
    }
}

/// The scope of the task that is running; `None` outside of requests and posts, and on a hub that exports no traces.
pub fn current_scope() -> Option<TraceScope> {
    CURRENT.with_borrow(Clone::clone)
}

/// The context of the current span, for work that continues on another thread or at another time.
pub(crate) fn current_context() -> Option<SpanContext> {
    CURRENT.with_borrow(|current| current.as_ref().map(TraceScope::context))
}

/// Starts a span below the current one; `None` when there is none or its trace is not recorded.
pub(crate) fn start_span(name: impl Into<Cow<'static, str>>, kind: SpanKind) -> Option<Span> {
    CURRENT.with_borrow(|current| {
        let scope = current.as_ref().filter(|scope| scope.is_recording())?;
        Some(scope.recorder.start_child(scope.context, name.into(), kind))
    })
}

/// The `traceparent` of a request that the hub makes in `span`, or in the current one.
pub(crate) fn outgoing_traceparent(span: Option<&Span>) -> Option<String> {
    let of_span = span.and_then(Span::scope).map(|scope| scope.context);
    of_span
        .or_else(current_context)
        .map(|context| context.to_string())
}

/// Says how the work of the current span ended; the first call counts. `label` is a word of this program.
pub(crate) fn set_outcome(label: &'static str, is_failure: bool) {
    CURRENT.with_borrow(|current| {
        if let Some(outcome) = current.as_ref().and_then(|scope| scope.outcome.as_ref()) {
            let _ = outcome.set(WorkOutcome { label, is_failure });
        }
    });
}

/// Work in a scope, or as it is without one. It borrows the work, so that a scope makes no future larger.
pub fn within_scope<F: Future + Unpin>(scope: Option<TraceScope>, work: F) -> WorkInScope<F> {
    WorkInScope { scope, work }
}

/// The future of [`within_scope`].
pub struct WorkInScope<F> {
    scope: Option<TraceScope>,
    work: F,
}

impl<F: Future + Unpin> Future for WorkInScope<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Self { scope, work } = &mut *self;
        if scope.is_none() {
            return Pin::new(work).poll(cx);
        }
        let _entered = EnteredScope::enter(scope);
        Pin::new(work).poll(cx)
    }
}

/// Puts the scope in force until it is dropped, also by a panic.
struct EnteredScope<'a> {
    scope: &'a mut Option<TraceScope>,
}

impl<'a> EnteredScope<'a> {
    fn enter(scope: &'a mut Option<TraceScope>) -> Self {
        CURRENT.with_borrow_mut(|current| std::mem::swap(current, scope));
        Self { scope }
    }
}

impl Drop for EnteredScope<'_> {
    fn drop(&mut self) {
        CURRENT.with_borrow_mut(|current| std::mem::swap(current, self.scope));
    }
}

/// Runs work of its own task in `span`, or without one in the scope of the task that calls this.
pub(crate) fn run_in_span<F: Future>(
    span: Option<Span>,
    work: F,
) -> impl Future<Output = F::Output> {
    let scope = match &span {
        Some(span) => span.scope(),
        None => current_scope(),
    };
    async move {
        let done = within_scope(scope, pin!(work)).await;
        if let Some(span) = span {
            span.finish();
        }
        done
    }
}
