//! Traces: one for each request, through its commit, its deliveries and its webhooks, without a text, a key or a path (OPS-05).

use crate::mcp::host_client::{McpHost, Revision};
use crate::support::actors::collector::{Collector, SpanTree, attribute, hex};
use crate::support::actors::market::{
    job_request, register_requester, register_trader, skill_offer,
};
use crate::support::actors::remote_member::{OwnedChannel, RemoteMember};
use crate::support::actors::{Agent, Answer, Reply, Webhook};
use crate::support::hub::{Hub, eventually};
use chorus_hub::telemetry::SampleRatio;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode as SpanStatus;
use serde_json::{Value, json};
use std::time::Duration;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CLIENT: &str = "b7ad6b7169203331";

fn traceparent(flags: &str) -> String {
    format!("00-{TRACE}-{CLIENT}-{flags}")
}

fn with_collector(settings: &mut chorus_server::ServerSettings) {
    Collector::install(settings);
}

async fn post_traced(agent: &Agent, path: &str, body: &Value, traceparent: &str) -> Answer {
    let request = agent
        .request("POST", path)
        .header("traceparent", traceparent);
    Answer::of(request.json(body)).await
}

/// Stops the hub, which sends the last spans, and returns the trace of the client.
async fn client_trace(hub: &mut Hub) -> SpanTree {
    let collector = Collector::of(hub);
    hub.stop().await;
    collector.trace(TRACE)
}

story!(
    a_send_to_a_webhook_is_one_trace_from_client_to_receiver,
    with(with_collector),
    |hub| async {
        // OPS-05
        let mut webhook = Webhook::replying(Reply::ok()).await;
        let alice = hub.agent("alice").await;
        let bob = hub.agent_with_webhook("bob", &webhook.url()).await;
        let body = alice.message(&bob.id, "the secret plan");
        let sent = post_traced(&alice, "/messages", &body, &traceparent("01")).await;
        assert_eq!(sent.data(200)["delivery"], "delivered");
        let received = webhook.next_request().await.header("traceparent").unwrap();

        let collector = Collector::of(&hub);
        let tree = client_trace(&mut hub).await;
        let request = tree.child(CLIENT, "POST /messages");
        assert_eq!(request.kind, SpanKind::Server as i32);
        assert_eq!(attribute(&request.attributes, "http.route"), "/messages");
        assert_eq!(
            attribute(&request.attributes, "http.request.method"),
            "POST"
        );
        let status = attribute(&request.attributes, "http.response.status_code");
        assert_eq!(status, "200");
        let request_id = attribute(&request.attributes, "chorus.request_id");
        assert_eq!(request_id, sent.header("x-request-id"));
        assert!(request.end_time_unix_nano > request.start_time_unix_nano);
        assert_eq!(request.status, None, "it did not fail");

        let request = hex(&request.span_id);
        tree.child(&request, "commit");
        let delivery = tree.child(&request, "deliver message");
        assert_eq!(
            attribute(&delivery.attributes, "chorus.outcome"),
            "delivered"
        );
        let delivery = hex(&delivery.span_id);
        tree.child(&delivery, "commit");
        let post = tree.child(&delivery, "POST webhook");
        assert_eq!(post.kind, SpanKind::Client as i32);
        let status = attribute(&post.attributes, "http.response.status_code");
        assert_eq!(status, "200");
        assert_eq!(received, format!("00-{TRACE}-{}-01", hex(&post.span_id)));
        assert_eq!(tree.0.len(), 5, "{tree:#?}");

        let port = webhook.port().to_string();
        let secrets = [
            "secret plan",
            &alice.key,
            &bob.key,
            "alice",
            "bob",
            "/receive",
            &port,
        ];
        collector.assert_without(&secrets);
        let batches = collector.batches();
        let resource = batches[0].resource_spans[0].resource.as_ref().unwrap();
        assert_eq!(attribute(&resource.attributes, "service.name"), "chorus");
        let version = attribute(&resource.attributes, "service.version");
        assert_eq!(version, env!("CARGO_PKG_VERSION"));
        let instance = attribute(&resource.attributes, "service.instance.id");
        assert!(uuid::Uuid::parse_str(&instance).is_ok(), "{instance}");
    }
);

memory_story!(
    the_span_of_a_send_says_what_became_of_the_message,
    with(with_collector),
    |hub| async {
        // OPS-05
        let alice = hub.agent("alice").await;
        let bob = hub.agent("bob").await;
        alice.send_expecting(&bob.id, "away", "queued").await;
        let _inbox = bob.inbox().await;
        alice.send_expecting(&bob.id, "here", "delivered_sse").await;
        let collector = Collector::of(&hub);
        hub.stop().await;
        let spans = collector.spans();
        let sends = spans.iter().filter(|span| span.name == "POST /messages");
        let mut outcomes: Vec<String> = sends
            .map(|span| attribute(&span.attributes, "chorus.outcome"))
            .collect();
        outcomes.sort();
        assert_eq!(outcomes, ["delivered_sse", "queued"]);
    }
);

story!(
    each_attempt_of_a_channel_delivery_is_part_of_the_trace_of_its_message,
    with(with_collector),
    |hub| async {
        // OPS-05, R-72: the outbox may post later, and from another hub
        let room = OwnedChannel::create(&hub, "alice").await;
        let script = |turn| match turn {
            0 => Reply::typed(503, "text/plain", "not now"),
            _ => Reply::typed(200, "text/plain", ""),
        };
        let mut oak = RemoteMember::scripted(&hub, script).await;
        room.add_remote("oak", &oak.url()).await;
        let body = json!({"content": "the secret plan"});
        let path = room.path("/messages");
        post_traced(&room.owner, &path, &body, &traceparent("01"))
            .await
            .data(201);
        let first = oak.endpoint.next_request().await;
        hub.maintain().await;
        hub.advance(Duration::from_secs(60));
        hub.maintain().await;
        let second = oak.endpoint.next_request().await;

        let collector = Collector::of(&hub);
        let tree = client_trace(&mut hub).await;
        let request = tree.child(CLIENT, "POST /channels/{id}/messages");
        let attempts = tree.children(&hex(&request.span_id), "deliver channel message");
        let mut seen: Vec<_> = attempts
            .iter()
            .map(|span| {
                let post = tree.child(&hex(&span.span_id), "POST webhook");
                let is_failure = span
                    .status
                    .as_ref()
                    .is_some_and(|status| status.code == SpanStatus::Error as i32);
                (
                    attribute(&span.attributes, "chorus.attempt"),
                    attribute(&span.attributes, "chorus.outcome"),
                    attribute(&post.attributes, "http.response.status_code"),
                    is_failure,
                    format!("00-{TRACE}-{}-01", hex(&post.span_id)),
                )
            })
            .collect();
        seen.sort();
        let row = |attempt: &str, outcome: &str, status: &str, is_failure, received: String| {
            (
                attempt.to_owned(),
                outcome.to_owned(),
                status.to_owned(),
                is_failure,
                received,
            )
        };
        let received = |request: &crate::support::actors::ReceivedRequest| {
            request.header("traceparent").unwrap()
        };
        let expected = [
            row("1", "retry", "503", true, received(&first)),
            row("2", "accepted", "200", false, received(&second)),
        ];
        assert_eq!(seen, expected);
        collector.assert_without(&["secret plan", &room.id, &room.owner.key, "alice", "oak"]);
    }
);

story!(
    a_delivery_that_waits_behind_another_is_no_part_of_its_trace,
    with(with_collector),
    |hub| async {
        // OPS-05: a member has one row in the outbox, however many messages wait
        let room = OwnedChannel::create(&hub, "alice").await;
        let mut oak =
            RemoteMember::scripted(&hub, |_| Reply::held(Reply::typed(200, "text/plain", "")))
                .await;
        room.add_remote("oak", &oak.url()).await;
        let (path, body) = (room.path("/messages"), json!({"content": "one"}));
        let traced = traceparent("01");
        post_traced(&room.owner, &path, &body, &traced)
            .await
            .data(201);
        let first = oak.endpoint.next_request().await;
        assert!(first.header("traceparent").unwrap().contains(TRACE));
        room.post_message("two").await;
        oak.endpoint.release();
        let second = oak.endpoint.next_request().await;
        oak.endpoint.release();
        let second = second.header("traceparent").expect("a trace of its own");
        assert!(!second.contains(TRACE), "{second}");
    }
);

story!(
    a_job_is_traced_to_the_endpoint_of_its_worker,
    with(with_collector),
    |hub| async {
        // OPS-05, R-61
        let reply = r#"{"status":"SUCCESS","output_data":{"entities":[]},"execution_cost":0.05}"#;
        let mut endpoint = Webhook::replying(Reply::json(200, reply)).await;
        let boss = register_requester(&hub).await;
        let url = format!("http://127.0.0.1:{}", endpoint.port());
        register_trader(&hub, "worker-1", skill_offer(0.10), Some(&url)).await;
        let mut results = boss.inbox().await;
        let asked = post_traced(&boss, "/jobs", &job_request("job-1"), &traceparent("01")).await;
        assert_eq!(asked.status, 202, "{asked:?}");
        let heard = endpoint.next_request().await.header("traceparent").unwrap();
        results.next("job_result").await;

        let collector = Collector::of(&hub);
        let dispatched = async || {
            let tree = collector.trace(TRACE);
            tree.0.iter().any(|span| span.name == "dispatch job")
        };
        eventually("the dispatch is exported", dispatched).await;
        let tree = client_trace(&mut hub).await;
        let request = tree.child(CLIENT, "POST /jobs");
        let dispatch = tree.child(&hex(&request.span_id), "dispatch job");
        assert_eq!(
            attribute(&dispatch.attributes, "chorus.outcome"),
            "reported"
        );
        let post = tree.child(&hex(&dispatch.span_id), "POST webhook");
        assert_eq!(heard, format!("00-{TRACE}-{}-01", hex(&post.span_id)));
        collector.assert_without(&["job-1", "worker-1", "boss-1"]);
    }
);

story!(
    a_tool_call_continues_the_trace_that_its_metadata_names,
    with(with_collector),
    |hub| async {
        // OPS-05: `_meta` is of the program that calls the tool, the header of the one that carries the call
        let bob = hub.agent("bob").await;
        let alice = hub.agent("alice").await;
        for (turn, revision) in Revision::BOTH.into_iter().enumerate() {
            let host = McpHost::of(&alice).await.with_revision(revision);
            let arguments = json!({"receiver_id": bob.id, "text": "the secret plan"});
            let params = json!({"name": "chorus_send", "arguments": arguments.clone(),
                "_meta": {"traceparent": traceparent("01")}});
            let result = host.result("tools/call", params).await;
            assert_ne!(result["isError"], true, "{result}");
            let plain = json!({"name": "chorus_send", "arguments": arguments});
            host.result("tools/call", plain).await;
            let collector = Collector::of(&hub);
            let exported = async || {
                let spans = collector.spans();
                let named = spans
                    .iter()
                    .filter(|span| span.name == "tools/call chorus_send");
                named.count() == 2 * (turn + 1)
            };
            eventually("both calls are exported", exported).await;
        }
        let collector = Collector::of(&hub);
        let tree = client_trace(&mut hub).await;
        let spans = collector.spans();
        let calls = tree.children(CLIENT, "tools/call chorus_send");
        assert_eq!(calls.len(), 2, "{spans:#?}");
        for call in calls {
            tree.child(&hex(&call.span_id), "commit");
            assert_eq!(
                attribute(&call.attributes, "gen_ai.tool.name"),
                "chorus_send"
            );
            let linked = &call.links[0].span_id;
            let carrier = spans.iter().find(|span| span.span_id == *linked).unwrap();
            assert_eq!(carrier.name, "POST /mcp");
        }
        let is_plain =
            |name: &str, trace: &[u8]| name == "tools/call chorus_send" && hex(trace) != TRACE;
        let plain = spans
            .iter()
            .find(|span| is_plain(&span.name, &span.trace_id))
            .unwrap();
        let parent = spans
            .iter()
            .find(|span| span.span_id == plain.parent_span_id);
        assert_eq!(parent.unwrap().name, "POST /mcp");
        collector.assert_without(&["secret plan", "alice", "bob", &alice.key]);
    }
);

story!(
    a_client_that_records_no_trace_makes_the_hub_record_none,
    with(with_collector),
    |hub| async {
        // OPS-05: the decision goes on to the receiver
        let mut webhook = Webhook::replying(Reply::ok()).await;
        let alice = hub.agent("alice").await;
        let bob = hub.agent_with_webhook("bob", &webhook.url()).await;
        let body = alice.message(&bob.id, "hello");
        post_traced(&alice, "/messages", &body, &traceparent("00"))
            .await
            .data(200);
        let received = webhook.next_request().await.header("traceparent").unwrap();
        assert_eq!(received, traceparent("00"));
        // A header that breaks the standard begins a new trace.
        for invalid in ["00-0-0-01", &traceparent("01").to_uppercase()] {
            post_traced(&alice, "/messages", &body, invalid)
                .await
                .data(200);
            let received = webhook.next_request().await.header("traceparent").unwrap();
            assert!(
                !received.contains(TRACE) && received.ends_with("-01"),
                "{received}"
            );
        }
        assert_eq!(client_trace(&mut hub).await.0, []);
    }
);

story!(
    without_a_share_only_traces_of_clients_are_recorded,
    with(|settings| {
        Collector::install(settings);
        let export = settings.hub.trace_export.as_mut().unwrap();
        export.ratio = "0".parse::<SampleRatio>().unwrap();
    }),
    |hub| async {
        // OPS-05
        let mut webhook = Webhook::replying(Reply::ok()).await;
        let alice = hub.agent("alice").await;
        let bob = hub.agent_with_webhook("bob", &webhook.url()).await;
        alice.send_expecting(&bob.id, "hello", "delivered").await;
        let received = webhook.next_request().await.header("traceparent").unwrap();
        assert!(received.ends_with("-00"), "{received}");
        let body = alice.message(&bob.id, "hello");
        post_traced(&alice, "/messages", &body, &traceparent("01"))
            .await
            .data(200);
        let collector = Collector::of(&hub);
        let tree = client_trace(&mut hub).await;
        assert_eq!(tree.0.len(), 5, "{tree:#?}");
        assert_eq!(collector.spans().len(), 5, "no other trace is recorded");
    }
);

// Each hub of several has a bound of its own.
sqlite_story!(
    strangers_cannot_have_more_traces_recorded_than_a_bound,
    with(|settings| {
        Collector::install(settings);
        let export = settings.hub.trace_export.as_mut().unwrap();
        export.ratio = "0".parse::<SampleRatio>().unwrap();
    }),
    |hub| async {
        // OPS-05
        let ask_for_trace = async || {
            let request = hub.anonymous().request("GET", "/.well-known/chorus.json");
            let asked = Answer::of(request.header("traceparent", &traceparent("01"))).await;
            assert_eq!(asked.status, 200, "{asked:?}");
        };
        for _ in 0..130 {
            ask_for_trace().await;
        }
        hub.advance(Duration::from_secs(1));
        ask_for_trace().await;
        let tree = client_trace(&mut hub).await;
        assert_eq!(tree.0.len(), 101);
    }
);

story!(a_hub_without_a_collector_sends_no_trace, |hub| async {
    // OPS-05: off unless it is asked for
    let mut webhook = Webhook::replying(Reply::ok()).await;
    let alice = hub.agent("alice").await;
    let bob = hub.agent_with_webhook("bob", &webhook.url()).await;
    let body = alice.message(&bob.id, "hello");
    post_traced(&alice, "/messages", &body, &traceparent("01"))
        .await
        .data(200);
    assert_eq!(webhook.next_request().await.header("traceparent"), None);
});

story!(
    paths_keys_and_unknown_routes_are_in_no_span,
    with(with_collector),
    |hub| async {
        // OPS-05, R-74
        let alice = hub.agent("alice").await;
        alice.get("/agents/alice@chorus").await.data(200);
        alice.get("/no/such/route-of-alice?q=hidden").await;
        hub.anonymous().get("/health").await.data(200);
        let guess = hub.anonymous().with_key("sk_hidden_guess");
        let named = guess
            .request("GET", "/agent/messages")
            .header("x-request-id", "my-own-id");
        assert_eq!(Answer::of(named).await.status, 401);
        let collector = Collector::of(&hub);
        hub.stop().await;
        let mut names: Vec<String> = collector
            .spans()
            .into_iter()
            .map(|span| span.name)
            .collect();
        names.retain(|name| name.starts_with("GET"));
        names.sort();
        assert_eq!(names, ["GET", "GET /agent/messages", "GET /agents/{id}"]);
        collector.assert_without(&["alice", "hidden", "no/such", "my-own-id", "127.0.0.1"]);
    }
);
