//! How an agent can be reached: what records say, and what a stream declares when it opens.

use crate::mcp::host_client::McpHost;
use crate::support::hub::{Hub, eventually};
use serde_json::{Value, json};

/// What the directory, the record and the tool say of an agent; they must agree.
async fn read_reach(hub: &Hub, host: &McpHost, name: &str) -> Value {
    let record = hub.anonymous().get(&format!("/agents/{name}")).await;
    let listed = hub.anonymous().get("/discover").await.json();
    let found = host.call("chorus_discover", json!({})).await.data();
    let reach_in = |rows: &Value| {
        let rows = rows.as_array().unwrap().iter();
        let mut rows = rows.filter(|row| row["agent_id"] == format!("{name}@chorus"));
        rows.next().map(|row| row["reach"].clone())
    };
    let reach = record.data(200)["reach"].clone();
    assert_eq!(reach_in(&listed), Some(reach.clone()), "{listed}");
    assert_eq!(reach_in(&found["agents"]), Some(reach.clone()), "{found}");
    reach
}

story!(an_agent_wakes_while_a_waker_hears_its_inbox, |hub| async {
    // R-82, WAK-14
    let bob = hub.agent("bob").await;
    let host = McpHost::of(&bob).await;
    assert_eq!(read_reach(&hub, &host, "bob").await, "mail");
    let turns = bob.inbox().await;
    assert_eq!(read_reach(&hub, &host, "bob").await, "turns");
    let mut waker = bob.stream("/agent/inbox?reach=wakes").await;
    waker.next("connected").await;
    // On two hubs each answer may come from either.
    for _ in 0..2 {
        assert_eq!(read_reach(&hub, &host, "bob").await, "wakes");
    }
    let health = hub.anonymous().get("/health").await.data(200);
    assert_eq!(health["inbox_connections"], 2, "it is a stream like others");
    drop(waker);
    let now_reached = |wanted: &'static str| {
        let (hub, host) = (&hub, &host);
        async move { read_settled(hub, host, "bob", wanted).await }
    };
    eventually("the waker is gone", || now_reached("turns")).await;
    drop(turns);
    eventually("nothing listens", || now_reached("mail")).await;
});

/// Whether every hub says so: while a stream closes, two hubs may disagree for a moment.
async fn read_settled(hub: &Hub, host: &McpHost, name: &str, wanted: &str) -> bool {
    for _ in 0..4 {
        let record = hub.anonymous().get(&format!("/agents/{name}")).await;
        if record.data(200)["reach"] != wanted {
            return false;
        }
    }
    read_reach(hub, host, name).await == wanted
}

story!(
    an_endpoint_reaches_an_agent_unless_a_stream_does,
    |hub| async {
        // R-82, TRN-18: an open inbox comes before the endpoint.
        let alice = hub
            .agent_with_webhook("alice", "http://127.0.0.1:9/hook")
            .await;
        let host = McpHost::of(&alice).await;
        assert_eq!(read_reach(&hub, &host, "alice").await, "endpoint");
        let inbox = alice.inbox().await;
        assert_eq!(read_reach(&hub, &host, "alice").await, "turns");
        drop(inbox);
        eventually("the inbox is closed", || {
            read_settled(&hub, &host, "alice", "endpoint")
        })
        .await;
    }
);

story!(a_stream_with_an_unknown_reach_is_refused, |hub| async {
    //
    let bob = hub.agent("bob").await;
    for query in [
        "reach=mail",
        "reach=",
        "reach=WAKES",
        "reach=turns&reach=wakes",
    ] {
        let answer = bob.get(&format!("/agent/inbox?{query}")).await;
        answer.refused(400, "ERR_VALIDATION");
        assert!(answer.text.contains("reach"), "{query}: {}", answer.text);
    }
    // A refused stream does not consume the token that it was opened with.
    let token = bob.post("/agent/session", &json!({})).await.data(200);
    let session = token["session_token"].as_str().unwrap();
    let refused = hub
        .anonymous()
        .get(&format!("/agent/inbox?session={session}&reach=x"))
        .await;
    refused.refused(400, "ERR_VALIDATION");
    let mut stream = hub
        .anonymous()
        .stream(&format!("/agent/inbox?session={session}&reach=wakes"))
        .await;
    stream.next("connected").await;
    let record = hub.anonymous().get("/agents/bob").await.data(200);
    assert_eq!(record["reach"], "wakes");
    drop(stream);
});

story!(
    a_rotated_key_ends_its_wakers_and_a_reply_says_so,
    |hub| async {
        // the streams of the old key end with it.
        let bob = hub.agent("bob").await;
        let mut waker = bob.stream("/agent/inbox?reach=wakes").await;
        waker.next("connected").await;
        let body = crate::support::actors::registration("bob@chorus");
        let data = bob.post("/register", &body).await.data(200);
        assert_eq!(data["registration"]["reach"], "mail");
        eventually("no waker is left", || async {
            hub.anonymous().get("/agents/bob").await.data(200)["reach"] == "mail"
        })
        .await;
    }
);
