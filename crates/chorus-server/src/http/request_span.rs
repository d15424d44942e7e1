//! The span of a request: its method, the template of its route and the status of its answer (OPS-05).

use super::app_state::AppState;
use super::request_metrics::method_label;
use axum::extract::Request;
use chorus_hub::telemetry::{BegunTrace, Span, SpanContext, SpanKind, TraceScope};
use http::{HeaderMap, StatusCode};

/// The part of a request in a trace. Without `--otlp` it is empty and costs one comparison.
pub struct RequestSpan {
    scope: Option<TraceScope>,
    span: Option<Span>,
}

impl RequestSpan {
    /// Continues the trace that the client names, or begins one.
    pub fn begin(state: &AppState, request: &Request, route: Option<&str>) -> Self {
        let recorder = state.hub.span_recorder();
        // Probes come every few seconds and tell nothing.
        let recorder = recorder.filter(|_| route.is_none_or(super::front::is_rate_limited));
        let Some(recorder) = recorder else {
            return Self {
                scope: None,
                span: None,
            };
        };
        let method = method_label(request.method());
        // Never the path: it contains names, and sometimes tokens.
        let name = match route {
            Some(route) => format!("{method} {route}"),
            None => method.to_owned(),
        };
        let begun = match parse_parent(request.headers()) {
            Some(client) => recorder.begin_client_trace(client, name, SpanKind::Server),
            None => recorder.begin_trace(None, name, SpanKind::Server),
        };
        let BegunTrace { scope, mut span } = begun;
        if let Some(span) = &mut span {
            span.set_text("http.request.method", method);
            if let Some(route) = route {
                span.set_text("http.route", route.to_owned());
            }
        }
        Self {
            scope: Some(scope),
            span,
        }
    }

    /// The scope of the handler. It is given once.
    pub fn take_scope(&mut self) -> Option<TraceScope> {
        self.scope.take()
    }

    /// Ends the span when the head of the answer is ready. `own_id` is the request's id if the hub chose it: a client may put
    /// anything into its own.
    pub fn finish(self, status: StatusCode, own_id: Option<&str>) {
        let Some(mut span) = self.span else {
            return;
        };
        span.set_number("http.response.status_code", status.as_u16().into());
        if let Some(id) = own_id {
            span.set_text("chorus.request_id", id.to_owned());
        }
        if status.is_server_error() {
            span.fail("server_error");
        }
        span.finish();
    }
}

/// The span of the client. Several of them are none, as the standard says.
fn parse_parent(headers: &HeaderMap) -> Option<SpanContext> {
    let mut values = headers.get_all("traceparent").iter();
    let parent = SpanContext::parse(values.next()?.to_str().ok()?)?;
    values.next().is_none().then_some(parent)
}
