//! The task that sends finished spans to the collector. Nothing in the hub waits for it: while the collector is away the queue
//! fills, and further spans are dropped and counted.

use super::messages::{
    ExportTraceRequest, ExportTraceResponse, InstrumentationScope, KeyValue, ResourceSpans,
    ScopeSpans, SpanResource,
};
use crate::delivery::outgoing::build_tls_config;
use crate::limits;
use crate::random;
use crate::telemetry::{DropReason, SpanQueue, SpanRecord, TraceExport, count_dropped};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use prost::Message;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Starts the exporter. It ends when the queue is closed and what waited was sent or given up.
pub(crate) fn start_exporter(queue: SpanQueue, export: TraceExport) {
    tokio::spawn(SpanExporter::new(queue, export).run_exporter());
}

struct SpanExporter {
    queue: SpanQueue,
    client: reqwest::Client,
    export: TraceExport,
    headers: HeaderMap,
    resource: SpanResource,
    /// Failed posts in a row.
    failures: u32,
}

/// Why the collector did not take a batch.
#[derive(Debug, thiserror::Error)]
enum ExportError {
    /// It may take the same batch later.
    #[error("{0}")]
    Away(String),
    /// It would refuse the same batch again.
    #[error("it answered {0}")]
    Refused(StatusCode),
}

impl SpanExporter {
    fn new(queue: SpanQueue, export: TraceExport) -> Self {
        // Without the guard of webhooks: the operator chose the address, which is mostly a private one. Without redirects, because
        // they would take the key of the headers to another host.
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(build_tls_config())
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .http1_only()
            .timeout(limits::SPAN_EXPORT_TIMEOUT)
            .user_agent(concat!("chorus/", env!("CARGO_PKG_VERSION")))
            .build()
            .expect("no setting above depends on anything outside the program");
        let mut headers = HeaderMap::new();
        for header in &export.headers {
            if let Ok(mut value) = HeaderValue::from_str(header.value.expose()) {
                value.set_sensitive(true);
                headers.append(header.name.clone(), value);
            }
        }
        let protobuf = HeaderValue::from_static("application/x-protobuf");
        headers.insert(header::CONTENT_TYPE, protobuf);
        let resource = SpanResource {
            attributes: vec![
                KeyValue::from_text("service.name", "chorus"),
                KeyValue::from_text("service.version", env!("CARGO_PKG_VERSION")),
                KeyValue::from_text("service.instance.id", random::new_id().to_string()),
            ],
        };
        Self {
            queue,
            client,
            export,
            headers,
            resource,
            failures: 0,
        }
    }

    async fn run_exporter(mut self) {
        loop {
            let batch = self.queue.next_batch().await;
            if !batch.is_empty() {
                self.export_batch(batch).await;
            }
            if self.queue.is_closing() {
                return self.export_rest().await;
            }
        }
    }

    /// Sends one batch, again and again until the collector has taken or refused it, or the hub stops.
    async fn export_batch(&mut self, batch: Vec<SpanRecord>) {
        let count = batch.len() as u64;
        let body = self.encode_batch(batch);
        loop {
            let error = match self.post_batch(body.clone(), count).await {
                Ok(()) => return self.note_success(),
                Err(error) => error,
            };
            self.note_failure(&error);
            let is_over = tokio::select! {
                () = tokio::time::sleep(export_backoff(self.failures)) => false,
                () = self.queue.wait_closing() => true,
            };
            match error {
                ExportError::Refused(_) => return count_dropped(DropReason::Refused, count),
                // One more attempt: a collector that has just come back gets what the hub has.
                ExportError::Away(_) if is_over => {
                    if self.post_batch(body, count).await.is_err() {
                        count_dropped(DropReason::Stopped, count);
                    }
                    return;
                }
                ExportError::Away(_) => {}
            }
        }
    }

    /// Sends what waits when the hub stops, each batch once. The rest is dropped.
    async fn export_rest(mut self) {
        let deadline = Instant::now() + limits::SPAN_FLUSH_TIMEOUT;
        loop {
            let batch = self.queue.next_batch().await;
            if batch.is_empty() {
                return;
            }
            let count = batch.len() as u64;
            let body = self.encode_batch(batch);
            let posted = timeout_at(deadline, self.post_batch(body, count)).await;
            if !matches!(posted, Ok(Ok(()))) {
                let dropped = count + self.queue.waiting_count() as u64;
                return count_dropped(DropReason::Stopped, dropped);
            }
        }
    }

    fn encode_batch(&self, batch: Vec<SpanRecord>) -> Bytes {
        let request = ExportTraceRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(self.resource.clone()),
                scope_spans: vec![ScopeSpans {
                    scope: Some(InstrumentationScope {
                        name: "chorus".into(),
                        version: env!("CARGO_PKG_VERSION").into(),
                    }),
                    spans: batch.into_iter().map(Into::into).collect(),
                }],
            }],
        };
        request.encode_to_vec().into()
    }

    async fn post_batch(&self, body: Bytes, count: u64) -> Result<(), ExportError> {
        let request = self
            .client
            .post(self.export.endpoint().clone())
            .headers(self.headers.clone())
            .body(body);
        // The error's own text has the URL.
        let away = |error: reqwest::Error| ExportError::Away(describe_error(&error).into());
        let response = request.send().await.map_err(away)?;
        let status = response.status();
        if !status.is_success() {
            return Err(match status.as_u16() {
                408 | 429 | 502 | 503 | 504 => ExportError::Away(format!("it answered {status}")),
                _ => ExportError::Refused(status),
            });
        }
        let rejected = read_rejected(response).await.min(count);
        if rejected > 0 {
            count_dropped(DropReason::Refused, rejected);
        }
        metrics::counter!("chorus_spans_exported_total").increment(count - rejected);
        Ok(())
    }

    fn note_success(&mut self) {
        if self.failures > 0 {
            tracing::info!("the trace collector takes spans again");
        }
        self.failures = 0;
    }

    /// One line for each time that the collector goes away.
    fn note_failure(&mut self, error: &ExportError) {
        if self.failures == 0 {
            tracing::warn!(%error, "the trace collector takes no spans; it will be tried again");
        }
        self.failures = self.failures.saturating_add(1);
    }
}

fn describe_error(error: &reqwest::Error) -> &'static str {
    if error.is_timeout() {
        "it did not answer in time"
    } else if error.is_connect() {
        "no connection could be made"
    } else {
        "the connection broke"
    }
}

/// How many spans the collector refused of a batch that it took. An answer that cannot be read refuses none.
async fn read_rejected(mut response: reqwest::Response) -> u64 {
    let mut body = BytesMut::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        if body.len() + chunk.len() > limits::SPAN_ANSWER_BYTES {
            return 0;
        }
        body.extend_from_slice(&chunk);
    }
    let answer = ExportTraceResponse::decode(body.freeze()).unwrap_or_default();
    let rejected = answer
        .partial_success
        .map_or(0, |partial| partial.rejected_spans);
    u64::try_from(rejected).unwrap_or(0)
}

/// 1 s, 2 s, 4 s … 30 s, and up to half as much less, so that hubs that lost a collector together do not return together.
fn export_backoff(failures: u32) -> Duration {
    let doubled = limits::SPAN_EXPORT_BACKOFF_FIRST
        .saturating_mul(1 << failures.saturating_sub(1).min(16))
        .min(limits::SPAN_EXPORT_BACKOFF_MAX);
    doubled.mul_f64(1.0 - random::random_value::<f64>() / 2.0)
}
