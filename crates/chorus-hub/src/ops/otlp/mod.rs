//! Exports traces to an OpenTelemetry collector: OTLP over HTTP, in protobuf (OPS-05).

mod exporter;
mod messages;

pub(crate) use exporter::start_exporter;
