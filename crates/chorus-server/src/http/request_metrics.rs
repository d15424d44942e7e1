//! Counts and times every answered request for Prometheus.

use http::{Method, StatusCode};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock, PoisonError, RwLock};
use std::time::Duration;

const REQUESTS_TOTAL: &str = "chorus_http_requests_total";
const REQUEST_SECONDS: &str = "chorus_http_request_seconds";
const COMMIT_SECONDS: &str = "chorus_commit_seconds";
const SHOWN_SECONDS: &str = "chorus_message_shown_seconds";
/// Upper bounds in seconds, from well below one synced commit to the deadline of a webhook.
const LATENCY_BUCKETS: [f64; 13] = [
    0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
];
/// Upper bounds in seconds, from an agent that is woken at once to one that looks the next day.
const SHOWN_BUCKETS: [f64; 11] = [
    0.5, 1.0, 2.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 86_400.0,
];
/// Samples stay in memory until they are sorted into buckets, so this runs even when no scraper asks.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(1);

/// The recorder of the process; several servers in one process share it.
fn metrics_recorder() -> &'static PrometheusHandle {
    static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();
    RECORDER.get_or_init(|| {
        let builder = || {
            HISTOGRAMS
                .iter()
                .try_fold(PrometheusBuilder::new(), |builder, (name, buckets, _)| {
                    builder.set_buckets_for_metric(Matcher::Full((*name).into()), buckets)
                })
                .unwrap_or_else(|_| PrometheusBuilder::new())
        };
        // A program that embeds the server may have installed its own recorder; then this one stays empty.
        let handle = builder()
            .install_recorder()
            .unwrap_or_else(|_| builder().build_recorder().handle());
        for (name, help) in COUNTER_HELP {
            metrics::describe_counter!(name, help);
        }
        for (name, help) in GAUGE_HELP {
            metrics::describe_gauge!(name, help);
        }
        for (name, _, help) in HISTOGRAMS {
            metrics::describe_histogram!(name, metrics::Unit::Seconds, help);
        }
        metrics::gauge!("chorus_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
        handle
    })
}

/// Histograms with their buckets and help texts.
const HISTOGRAMS: [(&str, &[f64], &str); 3] = [
    (
        REQUEST_SECONDS,
        &LATENCY_BUCKETS,
        "Time until the answer's head is ready",
    ),
    (
        COMMIT_SECONDS,
        &LATENCY_BUCKETS,
        "Time that the commit of a group of writes takes",
    ),
    (
        SHOWN_SECONDS,
        &SHOWN_BUCKETS,
        "Time from the send of a message until it was shown to its receiver",
    ),
];

/// The help texts of counters: scrapers show them, and `promtool check metrics` asks for them.
const COUNTER_HELP: [(&str, &str); 14] = [
    (
        REQUESTS_TOTAL,
        "Requests answered, by route, method and status",
    ),
    (
        "chorus_tool_calls_total",
        "Calls of tools, by tool and whether they were refused",
    ),
    (
        "chorus_messages_total",
        "Messages sent, by what the sender was told of their delivery",
    ),
    ("chorus_jobs_total", "Jobs ended, by how they ended"),
    (
        "chorus_outbox_given_up_total",
        "Posts of the outbox that were given up",
    ),
    (
        "chorus_channel_deliveries_untaken_total",
        "Channel deliveries that ended without being taken, by reason",
    ),
    ("chorus_frames_total", "Frames accepted"),
    ("chorus_frames_rejected_total", "Frames refused, by code"),
    (
        "chorus_streams_cut_total",
        "Streams whose reader disconnected or stalled, by reason",
    ),
    (
        "chorus_clock_leaps_total",
        "Leaps of the machine's clock that the hub noticed",
    ),
    (
        "chorus_bus_messages_refused_total",
        "Messages of the bus that were refused, by reason",
    ),
    (
        "chorus_log_lines_dropped_total",
        "Log lines that were dropped because too many were written",
    ),
    (
        "chorus_spans_exported_total",
        "Spans of traces that the collector took",
    ),
    (
        "chorus_spans_dropped_total",
        "Spans of traces that were dropped, by reason",
    ),
];

const GAUGE_HELP: [(&str, &str); 7] = [
    ("chorus_build_info", "1; the label is the version"),
    ("chorus_inbox_streams", "Open inbox streams at this hub"),
    (
        "chorus_outbox_pending",
        "Posts of the outbox that wait or are in flight; hubs that share a database report the same",
    ),
    ("chorus_frame_streams", "Open frame streams"),
    ("chorus_bus_up", "1 while the bus is connected"),
    (
        "chorus_hubs_known",
        "Other hubs of the cluster that are known",
    ),
    (
        "chorus_certificate_expiry_timestamp_seconds",
        "When the certificate that the hub renews by itself expires",
    ),
];

pub fn set_outbox_pending(count: u64) {
    metrics::gauge!("chorus_outbox_pending").set(count as f64);
}

/// Installs the recorder. A meter that is made before it records nothing, so this is done before the hub is used.
pub fn install_recorder() {
    metrics_recorder();
}

/// All metrics in Prometheus text form.
pub fn render_metrics() -> String {
    metrics_recorder().render()
}

/// Sorts pending samples at intervals; runs as long as the server does.
pub async fn run_upkeep() {
    let mut ticks = tokio::time::interval(UPKEEP_INTERVAL);
    loop {
        ticks.tick().await;
        metrics_recorder().run_upkeep();
    }
}

/// The counter and the histogram of one status, method and route.
#[derive(Clone)]
struct RequestMeters {
    requests: metrics::Counter,
    seconds: metrics::Histogram,
}

/// Meters by status, method and route: the recorder's own look-up would cost each request five allocations.
type MeterCache = RwLock<HashMap<(StatusCode, &'static str), HashMap<String, RequestMeters>>>;

/// Records one answered request. `route` is the pattern, so that names in paths do not become labels.
pub fn record_request(route: &str, method: &Method, status: StatusCode, elapsed: Duration) {
    static METER_CACHE: LazyLock<MeterCache> = LazyLock::new(MeterCache::default);
    let kind = (status, method_label(method));
    let record = |meters: &RequestMeters| {
        meters.requests.increment(1);
        meters.seconds.record(elapsed.as_secs_f64());
    };
    let cache = METER_CACHE.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(meters) = cache.get(&kind).and_then(|routes| routes.get(route)) {
        return record(meters);
    }
    drop(cache);
    let mut cache = METER_CACHE.write().unwrap_or_else(PoisonError::into_inner);
    record(
        cache
            .entry(kind)
            .or_default()
            .entry(route.to_owned())
            .or_insert_with(|| create_meters(route, kind)),
    );
}

fn create_meters(route: &str, (status, method): (StatusCode, &'static str)) -> RequestMeters {
    // A meter created before the recorder is installed would record nothing.
    metrics_recorder();
    let labels = [
        metrics::Label::new("route", route.to_owned()),
        metrics::Label::from_static_parts("method", method),
        metrics::Label::new("status", status.as_str().to_owned()),
    ];
    RequestMeters {
        requests: metrics::counter!(REQUESTS_TOTAL, labels.iter()),
        seconds: metrics::histogram!(REQUEST_SECONDS, labels[..2].iter()),
    }
}

/// Clients may invent methods; unknown ones share one label, so that the set of labels stays bounded.
pub(super) fn method_label(method: &Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH"];
    KNOWN
        .into_iter()
        .find(|known| *known == method.as_str())
        .unwrap_or("other")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invented_method_becomes_no_label() {
        let invented = Method::from_bytes(b"BREW").unwrap();
        assert_eq!(
            (method_label(&Method::GET), method_label(&invented)),
            ("GET", "other")
        );
    }

    #[test]
    fn a_request_is_counted_under_its_route_pattern() {
        record_request(
            "/agents/{id}",
            &Method::GET,
            StatusCode::OK,
            Duration::from_millis(3),
        );
        let text = metrics_recorder().render();
        assert!(
            text.contains(
                r#"chorus_http_requests_total{route="/agents/{id}",method="GET",status="200"} 1"#
            ),
            "{text}"
        );
        assert!(
            text.contains(r#"chorus_http_request_seconds_bucket{route="/agents/{id}",method="GET",le="0.005"} 1"#),
            "{text}"
        );
    }
}
