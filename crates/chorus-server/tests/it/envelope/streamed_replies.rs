//! Sends with `"stream": true`: the receiver's event stream is relayed to the sender.

use crate::support::actors::{Agent, Answer, Event, Reply, Stream, Webhook};
use serde_json::json;

/// A streamed send, every event until the end.
async fn streamed(from: &Agent, to: &str, text: &str) -> Vec<Event> {
    let mut body = from.message(to, text);
    body["stream"] = json!(true);
    let request = from
        .request("POST", "/messages")
        .header("accept", "text/event-stream")
        .json(&body);
    Stream::open(request).await.ended().await
}

fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.name.as_str()).collect()
}

story!(
    the_receivers_stream_is_relayed_however_it_is_cut,
    |hub| async {
        // TRN-52…54, lesson 12; failure 19: pieces end inside a line and inside a character
        let mut webhook = Webhook::replying(Reply::events(&[
            b"event: chunk\ndata: {\"text\":\"caf\xc3",
            b"\xa9\"}\n\nevent: chu",
            b"nk\ndata: {\"text\":\" au lait\"}\n",
            b"\nevent: done\ndata: {\"full_text\":\"caf\xc3\xa9 au lait\",\"envelope\":null}\n\n",
        ]))
        .await;
        let (alice, bob) = (
            hub.agent("alice").await,
            hub.agent_with_webhook("bob", &webhook.url()).await,
        );
        let events = streamed(&alice, &bob.id, "order, please").await;
        assert_eq!(names(&events), ["chunk", "chunk", "done"]);
        assert_eq!(events[0].data["text"], "café");
        assert_eq!(events[2].data["full_text"], "café au lait");
        let heard = webhook.next_request().await;
        assert_eq!(heard.json()["envelope"]["original_text"], "order, please");
        assert!(
            heard
                .head
                .to_ascii_lowercase()
                .contains("text/event-stream"),
            "{}",
            heard.head
        );
        // stored and counted like any other.
        let row = &bob.history("").await[0];
        assert_eq!(row["delivered_via"], "webhook");
        assert_ne!(
            alice.delivery_status(&row["trace_id"]).await["status"],
            "failed"
        );
    }
);

story!(an_error_at_the_end_means_failed, |hub| async {
    // TRN-53, TRN-54; a stream that just ends has not succeeded either
    let said = b"event: chunk\ndata: {\"text\":\"I \"}\n\nevent: error\ndata: {\"code\":\"ADAPTATION_FAILED\",\"message\":\"no\"}\n\n";
    let cut = b"event: chunk\ndata: {\"text\":\"I \"}\n\n";
    for (name, pieces) in [("says-so", &said[..]), ("just-ends", &cut[..])] {
        let webhook = Webhook::replying(Reply::events(&[pieces])).await;
        let (alice, bob) = (
            hub.agent(&format!("{name}-from")).await,
            hub.agent_with_webhook(name, &webhook.url()).await,
        );
        let events = streamed(&alice, &bob.id, "hello").await;
        assert_eq!(names(&events), ["chunk", "error"], "{name}");
        let row = &bob.history("").await[0];
        assert_eq!(row["delivered_via"], "failed", "{name}");
        assert_eq!(
            alice.delivery_status(&row["trace_id"]).await["status"],
            "failed",
            "{name}"
        );
    }
});

story!(
    an_error_with_what_no_database_keeps_still_has_its_outcome,
    |hub| async {
        // TRN-53: a NUL in a receiver's words is the receiver's doing, and must not lose the sender the outcome
        let said = b"event: error\ndata: {\"code\":\"ADAPT\\u0000ATION\",\"message\":\"no\\u0000 way\"}\n\n";
        let webhook = Webhook::replying(Reply::events(&[said])).await;
        let (alice, bob) = (
            hub.agent("alice").await,
            hub.agent_with_webhook("bob", &webhook.url()).await,
        );
        assert_eq!(names(&streamed(&alice, &bob.id, "hello").await), ["error"]);
        let row = &bob.history("").await[0];
        assert_eq!(row["delivered_via"], "failed");
        let standing = alice.delivery_status(&row["trace_id"]).await;
        assert_eq!(standing["status"], "failed");
        assert!(
            standing.to_string().contains("ADAPTATION") && standing.to_string().contains("no way"),
            "{standing}"
        );
    }
);

story!(a_receiver_on_sse_answers_with_one_done, |hub| async {
    //
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let mut inbox = bob.inbox().await;
    let events = streamed(&alice, &bob.id, "hello").await;
    assert_eq!(names(&events), ["done"]);
    assert_eq!(events[0].data["delivery"], "delivered_sse");
    assert_eq!(
        inbox.next("message").await.data["trace_id"],
        events[0].data["trace_id"]
    );
});

story!(
    a_receiver_that_does_not_stream_still_ends_the_stream,
    |hub| async {
        // TRN-54, R-29
        let webhook = Webhook::script(|turn| {
            if turn == 0 {
                Reply::ok()
            } else {
                Reply::json(500, "")
            }
        })
        .await;
        let (alice, bob) = (
            hub.agent("alice").await,
            hub.agent_with_webhook("bob", &webhook.url()).await,
        );
        let events = streamed(&alice, &bob.id, "one").await;
        assert_eq!(names(&events), ["done"]);
        assert_eq!(events[0].data["receiver_response"], json!({"status": "ok"}));
        let events = streamed(&alice, &bob.id, "two").await;
        assert_eq!(names(&events), ["error"]);
        assert!(
            events[0].text.contains("ERR_AGENT_UNREACHABLE"),
            "{:?}",
            events[0]
        );
    }
);

story!(stream_true_is_enough, |hub| async {
    // R-103, TRN-52: public clients send no `Accept`
    let webhook = Webhook::replying(Reply::ok()).await;
    let (alice, bob) = (
        hub.agent("alice").await,
        hub.agent_with_webhook("bob", &webhook.url()).await,
    );
    let mut body = alice.message(&bob.id, "hello");
    body["stream"] = json!(true);
    for accept in [
        None,
        Some("*/*"),
        Some("application/json, text/event-stream"),
    ] {
        let mut request = alice.request("POST", "/messages").json(&body);
        if let Some(accept) = accept {
            request = request.header("accept", accept);
        }
        let events = Stream::open(request).await.ended().await;
        assert_eq!(names(&events), ["done"], "{accept:?}");
        assert_eq!(events[0].data["delivery"], "delivered");
    }
    // The receiver is asked for a stream just as it is for a sender that names it.
    let mut writer = Webhook::replying(Reply::events(&[
        b"event: chunk\ndata: {\"text\":\"hel\"}\n\n",
        b"event: done\ndata: {\"full_text\":\"hello\",\"envelope\":null}\n\n",
    ]))
    .await;
    let carol = hub.agent_with_webhook("carol", &writer.url()).await;
    let mut body = alice.message(&carol.id, "hello");
    body["stream"] = json!(true);
    let request = alice.request("POST", "/messages").json(&body);
    let events = Stream::open(request).await.ended().await;
    assert_eq!(names(&events), ["chunk", "done"]);
    assert_eq!(events[1].data["full_text"], "hello");
    let heard = writer.next_request().await.head.to_ascii_lowercase();
    assert!(heard.contains("accept: text/event-stream"), "{heard}");
});

story!(
    a_streamed_send_that_accepts_json_only_answers_in_json,
    |hub| async {
        //
        let webhook = Webhook::replying(Reply::ok()).await;
        let (alice, bob) = (
            hub.agent("alice").await,
            hub.agent_with_webhook("bob", &webhook.url()).await,
        );
        let carol = hub.agent("carol").await;
        for (to, status, delivery) in [(&bob.id, 200, "delivered"), (&carol.id, 202, "queued")] {
            let mut body = alice.message(to, "hello");
            body["stream"] = json!(true);
            let request = alice
                .request("POST", "/messages")
                .header("accept", "application/json");
            let answer = Answer::of(request.json(&body)).await;
            assert_eq!(answer.data(status)["delivery"], delivery);
        }
    }
);

story!(a_wrong_streamed_send_is_refused_in_json, |hub| async {
    // TRN-22, TRN-39
    let alice = hub.agent("alice").await;
    let mut body = alice.message("absent@chorus", "hello");
    body["stream"] = json!(true);
    let request = alice
        .request("POST", "/messages")
        .header("accept", "text/event-stream")
        .json(&body);
    Answer::of(request)
        .await
        .refused(404, "ERR_AGENT_NOT_FOUND");
});
