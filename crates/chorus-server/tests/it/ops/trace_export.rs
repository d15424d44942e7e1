//! The export of traces while the collector refuses, hangs or is away: nothing waits for it, and what is lost is counted (OPS-05).

use crate::support::actors::STEP_TIMEOUT;
use crate::support::actors::collector::{Collector, CollectorTurn};
use crate::support::hub::{Hub, eventually, within};
use chorus_hub::limits;
use chorus_hub::telemetry::{ExportHeader, TraceExport};
use std::time::Duration;

/// The value of a meter; 0 before it is counted. Other stories of the same process may count too.
async fn meter(hub: &Hub, name: &str) -> f64 {
    let text = hub.anonymous().get("/metrics").await.text;
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.map_or(0.0, |value| value.parse().unwrap())
}

const QUEUE_FULL: &str = r#"chorus_spans_dropped_total{reason="queue_full"}"#;
const REFUSED: &str = r#"chorus_spans_dropped_total{reason="refused"}"#;
const EXPORTED: &str = "chorus_spans_exported_total";

sqlite_story!(
    a_collector_that_is_away_stops_nothing_and_what_is_dropped_is_counted,
    with(|settings| {
        // Port 9 has no listener.
        settings.hub.trace_export = Some(TraceExport::parse("http://127.0.0.1:9").unwrap());
    }),
    |hub| async {
        // OPS-05
        let alice = hub.agent("alice").await;
        let bob = hub.agent("bob").await;
        let before = meter(&hub, QUEUE_FULL).await;
        let requests = (0..limits::SPANS_WAITING + 2 * limits::SPAN_BATCH).collect::<Vec<_>>();
        for some in requests.chunks(64) {
            let asked = some.iter().map(|_| async {
                assert_eq!(hub.anonymous().get("/no/route").await.status, 404);
            });
            futures_util::future::join_all(asked).await;
        }
        assert!(meter(&hub, QUEUE_FULL).await > before);
        alice.send_expecting(&bob.id, "hello", "queued").await;
        assert_eq!(bob.inbox_after("0").await.texts(1).await, ["hello"]);
        within(Duration::from_secs(5), hub.stop())
            .await
            .expect("it stops in time");
    }
);

sqlite_story!(
    a_collector_that_hangs_delays_neither_sends_nor_the_stop,
    with(|settings| {
        let collector = Collector::install(settings);
        collector.answer_next(&[CollectorTurn::Silence; 8]);
    }),
    |hub| async {
        // OPS-05
        let alice = hub.agent("alice").await;
        let bob = hub.agent("bob").await;
        let collector = Collector::of(&hub);
        let is_asked = async || !collector.requests().is_empty();
        eventually("a batch hangs", is_asked).await;
        alice.send_expecting(&bob.id, "hello", "queued").await;
        within(Duration::from_secs(5), hub.stop())
            .await
            .expect("it stops in time");
        assert!(collector.spans().is_empty());
    }
);

sqlite_story!(
    a_busy_collector_gets_the_batch_again_and_a_refused_batch_is_counted,
    with(|settings| {
        let collector = Collector::install(settings);
        collector.answer_next(&[
            CollectorTurn::Status(503),
            CollectorTurn::Status(400),
            CollectorTurn::Partial(1),
        ]);
    }),
    |hub| async {
        // OPS-05
        let collector = Collector::of(&hub);
        let refused = meter(&hub, REFUSED).await;
        let exported = meter(&hub, EXPORTED).await;
        hub.anonymous().get("/agents").await;
        eventually(
            "503, and the same batch again, which is refused",
            async || collector.requests().len() >= 2,
        )
        .await;
        let requests = collector.requests();
        assert_eq!(requests[0].1, requests[1].1, "the same batch");
        assert!(collector.spans().is_empty());
        eventually("the refused batch is counted", async || {
            meter(&hub, REFUSED).await > refused
        })
        .await;
        hub.anonymous().get("/agents").await;
        hub.anonymous().get("/agents").await;
        eventually("the next batch is taken in part", async || {
            collector.requests().len() >= 3
        })
        .await;
        eventually("what was taken is counted", async || {
            meter(&hub, EXPORTED).await > exported
        })
        .await;
        assert!(meter(&hub, REFUSED).await >= refused + 2.0);
        assert!(!collector.spans().is_empty());
    }
);

sqlite_story!(
    the_headers_of_the_collector_are_sent_and_printed_nowhere,
    with(|settings| {
        Collector::install(settings);
        let export = settings.hub.trace_export.as_mut().unwrap();
        export.headers = ExportHeader::parse_list("api-key=hidden%20key").unwrap();
    }),
    |hub| async {
        // OPS-05, invariant 12
        let collector = Collector::of(&hub);
        hub.anonymous().get("/agents").await;
        within(STEP_TIMEOUT, hub.stop()).await.expect("it stops");
        let (headers, _) = &collector.requests()[0];
        assert_eq!(headers["api-key"], "hidden key");
        assert_eq!(headers["content-type"], "application/x-protobuf");
        assert!(!format!("{:?}", hub.settings).contains("hidden"));
    }
);
