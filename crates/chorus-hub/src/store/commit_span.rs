//! The span of a write: from its request to its answer, so with the wait for the group before it and for the sync.

use crate::Result;
use crate::telemetry::{self, Span, SpanKind};

/// Costs nothing on a hub that exports no traces, and for work outside of one.
pub(super) struct CommitSpan(Option<Span>);

impl CommitSpan {
    pub fn start() -> Self {
        Self(telemetry::start_span("commit", SpanKind::Internal))
    }

    pub fn finish<T>(self, written: &Result<T>) {
        let Some(mut span) = self.0 else {
            return;
        };
        if let Err(error) = written {
            span.fail(error.code.as_str());
        }
        span.finish();
    }
}
