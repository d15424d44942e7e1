//! The messages of OTLP that the hub sends and reads, with the field numbers of `opentelemetry/proto`. Fields that the hub never
//! sets are left out.

use crate::telemetry::{SpanRecord, SpanValue};
use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(super) struct ExportTraceRequest {
    #[prost(message, repeated, tag = "1")]
    pub resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ExportTraceResponse {
    #[prost(message, optional, tag = "1")]
    pub partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PartialSuccess {
    #[prost(int64, tag = "1")]
    pub rejected_spans: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    pub resource: Option<SpanResource>,
    #[prost(message, repeated, tag = "2")]
    pub scope_spans: Vec<ScopeSpans>,
}

/// The program that the spans are of.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SpanResource {
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    pub scope: Option<InstrumentationScope>,
    #[prost(message, repeated, tag = "2")]
    pub spans: Vec<OtlpSpan>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct InstrumentationScope {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub version: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OtlpSpan {
    #[prost(bytes = "vec", tag = "1")]
    pub trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    pub parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    pub name: String,
    #[prost(int32, tag = "6")]
    pub kind: i32,
    #[prost(fixed64, tag = "7")]
    pub start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    pub end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    pub attributes: Vec<KeyValue>,
    #[prost(message, repeated, tag = "13")]
    pub links: Vec<OtlpLink>,
    #[prost(message, optional, tag = "15")]
    pub status: Option<OtlpStatus>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OtlpLink {
    #[prost(bytes = "vec", tag = "1")]
    pub trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub span_id: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OtlpStatus {
    #[prost(int32, tag = "3")]
    pub code: i32,
}

/// `STATUS_CODE_ERROR`
const STATUS_ERROR: i32 = 2;

#[derive(Clone, PartialEq, Message)]
pub(super) struct KeyValue {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AnyValue {
    #[prost(oneof = "AnyValueKind", tags = "1, 3")]
    pub kind: Option<AnyValueKind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum AnyValueKind {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(int64, tag = "3")]
    Number(i64),
}

impl KeyValue {
    pub fn from_text(key: &str, text: impl Into<String>) -> Self {
        Self::new(key, AnyValueKind::Text(text.into()))
    }

    fn new(key: &str, kind: AnyValueKind) -> Self {
        Self {
            key: key.to_owned(),
            value: Some(AnyValue { kind: Some(kind) }),
        }
    }
}

impl From<SpanRecord> for OtlpSpan {
    fn from(record: SpanRecord) -> Self {
        let start = u64::try_from(record.started_at.0).unwrap_or(0) * 1_000;
        let elapsed = u64::try_from(record.elapsed.as_nanos()).unwrap_or(u64::MAX);
        let attributes = record.attributes.into_iter();
        let status = record
            .is_failure
            .then_some(OtlpStatus { code: STATUS_ERROR });
        Self {
            trace_id: record.context.trace_id.to_be_bytes().to_vec(),
            span_id: record.context.span_id.to_be_bytes().to_vec(),
            parent_span_id: record
                .parent
                .map(|id| id.to_be_bytes().to_vec())
                .unwrap_or_default(),
            name: record.name.into_owned(),
            kind: record.kind as i32,
            start_time_unix_nano: start,
            end_time_unix_nano: start.saturating_add(elapsed),
            attributes: attributes
                .map(|(key, value)| match value {
                    SpanValue::Text(text) => KeyValue::from_text(key, text),
                    SpanValue::Number(number) => KeyValue::new(key, AnyValueKind::Number(number)),
                })
                .collect(),
            links: record
                .link
                .map(|link| OtlpLink {
                    trace_id: link.trace_id.to_be_bytes().to_vec(),
                    span_id: link.span_id.to_be_bytes().to_vec(),
                })
                .into_iter()
                .collect(),
            status,
        }
    }
}
