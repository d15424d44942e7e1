//! An OpenTelemetry collector on loopback: decodes what hubs export, with the definitions of OpenTelemetry (OPS-05).

use crate::support::hub::Hub;
use axum::{Router, extract::State, routing::post};
use bytes::Bytes;
use chorus_hub::telemetry::TraceExport;
use chorus_server::ServerSettings;
use http::{HeaderMap, StatusCode};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value as OtlpValue;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, LazyLock, Mutex};

/// What the collector does with the next batch.
#[derive(Clone, Copy, Debug)]
pub enum CollectorTurn {
    Status(u16),
    /// Takes the batch except for this many spans.
    Partial(i64),
    /// Never answers.
    Silence,
}

#[derive(Default)]
struct CollectorState {
    turns: VecDeque<CollectorTurn>,
    /// The batches that it took.
    taken: Vec<ExportTraceServiceRequest>,
    /// Head and body of every request.
    requests: Vec<(HeaderMap, Bytes)>,
}

/// Cheap to clone; every clone is the same collector.
#[derive(Clone, Default)]
pub struct Collector(Arc<Mutex<CollectorState>>);

/// The collectors by their ports, because a story gets nothing but its hub.
static COLLECTORS: LazyLock<Mutex<BTreeMap<u16, Collector>>> = LazyLock::new(Mutex::default);

impl Collector {
    /// Starts a collector and gives the hub its URL.
    pub fn install(settings: &mut ServerSettings) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let collector = Self::default();
        let router = Router::new()
            .route("/v1/traces", post(take_batch))
            .with_state(collector.clone());
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        COLLECTORS.lock().unwrap().insert(port, collector.clone());
        let url = format!("http://127.0.0.1:{port}");
        settings.hub.trace_export = Some(TraceExport::parse(&url).unwrap());
        collector
    }

    /// The collector of this hub.
    pub fn of(hub: &Hub) -> Self {
        let export = hub.settings.hub.trace_export.as_ref().unwrap();
        let port = export.endpoint().port().unwrap();
        COLLECTORS.lock().unwrap()[&port].clone()
    }

    /// Answers the next batches so, and takes all further ones.
    pub fn answer_next(&self, turns: &[CollectorTurn]) {
        self.0.lock().unwrap().turns.extend(turns);
    }

    /// All spans that it took.
    pub fn spans(&self) -> Vec<Span> {
        let state = self.0.lock().unwrap();
        let resources = state.taken.iter().flat_map(|batch| &batch.resource_spans);
        let scopes = resources.flat_map(|resource| &resource.scope_spans);
        scopes.flat_map(|scope| scope.spans.clone()).collect()
    }

    pub fn batches(&self) -> Vec<ExportTraceServiceRequest> {
        self.0.lock().unwrap().taken.clone()
    }

    pub fn requests(&self) -> Vec<(HeaderMap, Bytes)> {
        self.0.lock().unwrap().requests.clone()
    }

    /// The spans of one trace, as a tree.
    pub fn trace(&self, trace_id: &str) -> SpanTree {
        let spans = self.spans().into_iter();
        let of_trace = spans.filter(|span| hex(&span.trace_id) == trace_id);
        SpanTree(of_trace.collect())
    }

    /// No export has any of these texts in it.
    #[track_caller]
    pub fn assert_without(&self, secrets: &[&str]) {
        for (_, body) in self.requests() {
            let text = String::from_utf8_lossy(&body);
            for secret in secrets {
                assert!(!text.contains(secret), "{secret} is in {text}");
            }
        }
    }
}

async fn take_batch(
    State(collector): State<Collector>,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, Vec<u8>) {
    let turn = {
        let mut state = collector.0.lock().unwrap();
        state.requests.push((headers, body.clone()));
        state.turns.pop_front().unwrap_or(CollectorTurn::Partial(0))
    };
    let batch = ExportTraceServiceRequest::decode(body).expect("a batch");
    match turn {
        CollectorTurn::Status(status) => (StatusCode::from_u16(status).unwrap(), Vec::new()),
        CollectorTurn::Silence => std::future::pending().await,
        CollectorTurn::Partial(rejected_spans) => {
            collector.0.lock().unwrap().taken.push(batch);
            let answer = ExportTraceServiceResponse {
                partial_success: (rejected_spans > 0).then_some(ExportTracePartialSuccess {
                    rejected_spans,
                    error_message: "too many".into(),
                }),
            };
            (StatusCode::OK, answer.encode_to_vec())
        }
    }
}

/// The spans of one trace.
#[derive(Debug)]
pub struct SpanTree(pub Vec<Span>);

impl SpanTree {
    /// The only span of this name below the span with the id `parent`.
    #[track_caller]
    pub fn child(&self, parent: &str, name: &str) -> &Span {
        let children = self.children(parent, name);
        assert_eq!(children.len(), 1, "{name} below {parent} in {self:#?}");
        children[0]
    }

    pub fn children(&self, parent: &str, name: &str) -> Vec<&Span> {
        let is_child = |span: &&Span| hex(&span.parent_span_id) == parent && span.name == name;
        self.0.iter().filter(is_child).collect()
    }
}

pub fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// An attribute as text; empty when it is not there.
pub fn attribute(attributes: &[KeyValue], key: &str) -> String {
    let found = attributes.iter().find(|attribute| attribute.key == key);
    match found.and_then(|found| found.value.as_ref()) {
        Some(AnyValue {
            value: Some(OtlpValue::StringValue(text)),
        }) => text.clone(),
        Some(AnyValue {
            value: Some(OtlpValue::IntValue(number)),
        }) => number.to_string(),
        _ => String::new(),
    }
}
