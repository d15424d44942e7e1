//! The span of a tool call. Its parent is what the caller names in `_meta`, else the request that carried the call (OPS-05).

use chorus_hub::telemetry::{
    BegunTrace, Span, SpanContext, SpanKind, TraceScope, current_scope, within_scope,
};
use rmcp::model::{CallToolResult, RequestMetaObject};
use serde_json::Value;
use std::future::Future;
use std::pin::pin;

/// The trace of the request that carried a call. It is kept here because the library runs the call on a task of its own.
#[derive(Clone)]
pub struct CallTrace(Option<TraceScope>);

impl CallTrace {
    /// The trace of the current request.
    pub fn of_request() -> Self {
        Self(current_scope())
    }

    /// Runs a call in a span with the name of the tool, which is one of this hub's own.
    pub async fn run_tool(
        &self,
        meta: &RequestMetaObject,
        tool: &str,
        call: impl Future<Output = CallToolResult>,
    ) -> CallToolResult {
        let Some(request) = &self.0 else {
            return call.await;
        };
        let BegunTrace { scope, span } = begin_span(request, meta, tool);
        let result = within_scope(Some(scope), pin!(call)).await;
        if let Some(span) = span {
            finish_span(span, tool, &result);
        }
        result
    }
}

fn begin_span(request: &TraceScope, meta: &RequestMetaObject, tool: &str) -> BegunTrace {
    let named = meta.get("traceparent").and_then(Value::as_str);
    let named = named.and_then(SpanContext::parse);
    let name = format!("tools/call {tool}");
    let recorder = request.recorder();
    let mut begun = match named {
        Some(client) => recorder.begin_client_trace(client, name, SpanKind::Server),
        None => recorder.begin_trace(Some(request.context()), name, SpanKind::Server),
    };
    // Both are true: the model's program caused the call, and the request carried it.
    if let (Some(span), Some(_), true) = (&mut begun.span, named, request.is_recording()) {
        span.link_to(request.context());
    }
    begun
}

fn finish_span(mut span: Span, tool: &str, result: &CallToolResult) {
    span.set_text("mcp.method.name", "tools/call");
    span.set_text("gen_ai.tool.name", tool.to_owned());
    if result.is_error == Some(true) {
        span.fail("tool_error");
    }
    span.finish();
}
