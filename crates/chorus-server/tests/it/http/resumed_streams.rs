//! Streams that resume: from the id of their first event, from an instant, and with a token in place of a key.

use crate::support::actors::channel::{create_channel, post_message};
use crate::support::actors::{Agent, Caller, Event, Stream};
use serde_json::{Value, json};
use std::time::Duration;

async fn resume_after(who: &Caller, path: &str, event: &Event) -> Stream {
    let id = event.id.as_deref().expect("an id");
    let mut stream = Stream::open(who.request("GET", path).header("last-event-id", id)).await;
    stream.next("connected").await;
    stream
}

story!(
    a_stream_that_heard_nothing_resumes_without_loss,
    |hub| async {
        // EventSource has no cursor before the first id, so `connected` has one
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        alice.send_expecting(&bob.id, "before", "queued").await;
        let connected = bob.stream("/agent/inbox").await.next("connected").await;
        for text in ["m1", "m2"] {
            alice.send(&bob.id, text).await;
        }
        let mut inbox = resume_after(&bob, "/agent/inbox", &connected).await;
        assert_eq!(inbox.texts(2).await, ["m1", "m2"]);
    }
);

story!(
    a_channel_that_heard_nothing_resumes_without_loss,
    |hub| async {
        //
        let alice = hub.agent("alice").await;
        let path = create_channel(&alice, "ops").await;
        let stream_path = format!("{path}/stream");
        post_message(&alice, &path, "before").await;
        let connected = alice.stream(&stream_path).await.next("connected").await;
        post_message(&alice, &path, "after").await;
        let mut stream = resume_after(&alice, &stream_path, &connected).await;
        assert_eq!(stream.next("message").await.data["content"], "after");
    }
);

story!(
    activity_that_heard_nothing_resumes_without_loss,
    |hub| async {
        // an entry can be two rows, and none of those before the stream is repeated
        let operator = hub.operator();
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        alice.send_expecting(&bob.id, "before", "queued").await;
        let connected = operator.stream("/events").await.next("connected").await;
        alice.send_expecting(&bob.id, "after", "queued").await;
        let mut events = resume_after(&operator, "/events", &connected).await;
        for kind in ["message_submitted", "message_queued"] {
            assert_eq!(events.next("activity").await.data["type"], kind);
        }
        let history = bob.history("").await;
        let rows = operator.activity(connected.cursor()).await;
        assert_eq!(rows.len(), 2, "{rows:?}");
        assert_eq!(rows[0]["data"]["trace_id"], history[1]["trace_id"]);
    }
);

memory_story!(a_gap_has_an_id_of_its_own, |hub| async {
    // some readers drop an event whose id they have seen
    let alice = hub.agent("alice").await;
    let path = "/handles/~alice/stream";
    let connected = alice.stream(path).await.next("connected").await;
    assert!(connected.id.is_some());
    let request = alice.request("GET", path).header("last-event-id", "1-7");
    let mut stream = Stream::open(request).await;
    let connected = stream.next("connected").await;
    stream.next("open-items").await;
    let gap = stream.next("resume-gap").await;
    assert!(gap.id.is_some());
    assert_ne!(connected.id, gap.id);
    alice.send_advisory("~alice", "kept").await;
    stream.next("agent_advisory").await;
});

story!(a_stream_replays_from_an_instant, |hub| async {
    // `since` of a stream is what it is in history
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    alice.send_expecting(&bob.id, "old", "queued").await;
    hub.advance(Duration::from_secs(10));
    alice.send_expecting(&bob.id, "new", "queued").await;
    let at = bob.history("").await[1]["timestamp"].clone();
    let at = at.as_str().unwrap();
    let mut inbox = bob.stream(&format!("/agent/inbox?since={at}")).await;
    inbox.next("connected").await;
    assert_eq!(inbox.texts(1).await, ["new"]);
    let path = create_channel(&alice, "ops").await;
    post_message(&alice, &path, "old").await;
    hub.advance(Duration::from_secs(10));
    let posted = post_message(&alice, &path, "new").await;
    let at = posted["timestamp"].as_str().unwrap().to_owned();
    let mut stream = alice.stream(&format!("{path}/stream?since={at}")).await;
    stream.next("connected").await;
    assert_eq!(stream.next("message").await.data["content"], "new");
    let mut events = hub.operator().stream(&format!("/events?since={at}")).await;
    events.next("connected").await;
    for bad in ["yesterday", "2026-01-01", "1-2"] {
        bob.get(&format!("/agent/inbox?since={bad}"))
            .await
            .refused(400, "ERR_VALIDATION");
    }
});

async fn session_token(agent: &Agent) -> String {
    let data = agent.post("/agent/session", &json!({})).await.data(200);
    data["session_token"].as_str().unwrap().to_owned()
}

async fn open_session(stranger: &Caller, token: &str) -> Stream {
    stranger
        .stream(&format!("/agent/inbox?session={token}"))
        .await
}

fn resume_token(connected: &Event) -> String {
    let token = connected.data["resume_token"].as_str();
    token.expect("a resume token").to_owned()
}

story!(
    a_session_stream_resumes_with_its_resume_token,
    |hub| async {
        // a browser cannot set headers, and its session token is spent
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let stranger = hub.anonymous();
        let token = session_token(&bob).await;
        let mut inbox = open_session(&stranger, &token).await;
        let connected = inbox.next("connected").await;
        let resume = resume_token(&connected);
        drop(inbox);
        stranger
            .get(&format!("/agent/inbox?session={token}"))
            .await
            .refused(401, "ERR_UNAUTHORIZED");
        alice.send(&bob.id, "meanwhile").await;
        // Long after the session token itself would have expired.
        hub.advance(Duration::from_secs(3600));
        let since = connected.cursor();
        let mut inbox = open_session(&stranger, &format!("{resume}&since={since}")).await;
        let again = resume_token(&inbox.next("connected").await);
        assert_eq!(inbox.texts(1).await, ["meanwhile"]);
        assert_ne!(again, resume);
        stranger
            .get(&format!("/agent/inbox?session={resume}"))
            .await
            .refused(401, "ERR_UNAUTHORIZED");
        // A stream that was opened with a key shows none.
        let with_key = bob.stream("/agent/inbox").await.next("connected").await;
        assert_eq!(with_key.data["resume_token"], Value::Null);
        // when the key ends, so does what was made with it.
        bob.post("/agent/keys/rotate", &json!({"overlap_s": 0}))
            .await
            .data(200);
        stranger
            .get(&format!("/agent/inbox?session={again}"))
            .await
            .refused(401, "ERR_UNAUTHORIZED");
    }
);

story!(
    without_a_key_a_wrong_parameter_is_still_a_401,
    |hub| async {
        // TRN-24
        let stranger = hub.anonymous();
        for path in [
            "/agent/inbox?since=abc",
            "/agent/messages?limit=0",
            "/agent/messages?since=abc",
            "/activity?limit=0",
            "/events?since=abc",
        ] {
            stranger.get(path).await.refused(401, "ERR_UNAUTHORIZED");
        }
    }
);
