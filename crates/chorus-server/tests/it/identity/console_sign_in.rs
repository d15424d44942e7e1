//! Console links and sessions: single use, the rights of the key that made them, and their end.

use crate::support::actors::channel::create_channel;
use crate::support::actors::{Answer, Caller, Stream};
use crate::support::hub::Hub;
use serde_json::{Value, json};
use std::time::Duration;

const LINK_LIFE: Duration = Duration::from_secs(300);
const SESSION_LIFE: Duration = Duration::from_secs(12 * 3600);

async fn make_link(caller: &Caller) -> Value {
    let link = caller.post("/console/links", &json!({})).await.data(200);
    assert_eq!(link["expires_in_seconds"], LINK_LIFE.as_secs());
    link["link_token"].clone()
}

async fn spend_link(hub: &Hub, link_token: &Value) -> Answer {
    let body = json!({ "link_token": link_token });
    hub.anonymous().post("/console/session", &body).await
}

async fn open_session(hub: &Hub, caller: &Caller) -> Caller {
    let opened = spend_link(hub, &make_link(caller).await).await.data(200);
    assert_eq!(opened["expires_in_seconds"], SESSION_LIFE.as_secs());
    caller.with_key(opened["session_token"].as_str().unwrap())
}

story!(a_console_link_opens_one_session_as_its_agent, |hub| async {
    let alice = hub.agent("alice").await;
    let link = make_link(&alice).await;
    let opened = spend_link(&hub, &link).await.data(200);
    let session = alice.with_key(opened["session_token"].as_str().unwrap());
    let who = session.post("/heartbeat", &json!({})).await.json();
    assert_eq!(who["agent_id"], "alice@chorus");
    session.get("/invites").await.refused(403, "ERR_FORBIDDEN");
    // It cannot renew itself.
    let another = session.post("/console/links", &json!({})).await;
    another.refused(403, "ERR_FORBIDDEN");
    let message = spend_link(&hub, &link)
        .await
        .refused(401, "ERR_UNAUTHORIZED");
    assert!(message.contains("chorus console"), "{message}");
    // A page signs out; the key goes on.
    let ended = session.delete("/console/session").await.data(200);
    assert_eq!(ended["ended"], true);
    session
        .get("/agent/messages")
        .await
        .refused(401, "ERR_UNAUTHORIZED");
    assert_eq!(
        alice.delete("/console/session").await.data(200)["ended"],
        false
    );
});

story!(links_and_sessions_expire, |hub| async {
    let alice = hub.agent("alice").await;
    let late = make_link(&alice).await;
    hub.advance(LINK_LIFE);
    spend_link(&hub, &late)
        .await
        .refused(401, "ERR_UNAUTHORIZED");
    let session = open_session(&hub, &alice).await;
    hub.advance(SESSION_LIFE - Duration::from_secs(1));
    session.get("/agent/messages").await.data(200);
    hub.advance(Duration::from_secs(1));
    session
        .get("/agent/messages")
        .await
        .refused(401, "ERR_UNAUTHORIZED");
});

story!(a_token_is_good_for_its_own_purpose_only, |hub| async {
    // the token of a stream is part of a URL, so it must not become a session.
    let alice = hub.agent("alice").await;
    let stream = alice.post("/agent/session", &json!({})).await.data(200);
    spend_link(&hub, &stream["session_token"])
        .await
        .refused(401, "ERR_UNAUTHORIZED");
    let link = make_link(&alice).await;
    let link = link.as_str().unwrap();
    alice
        .with_key(link)
        .get("/agent/messages")
        .await
        .refused(401, "ERR_UNAUTHORIZED");
    hub.anonymous()
        .get(&format!("/agent/inbox?session={link}"))
        .await
        .refused(401, "ERR_UNAUTHORIZED");
    hub.anonymous()
        .post("/console/links", &json!({}))
        .await
        .refused(401, "ERR_UNAUTHORIZED");
    spend_link(&hub, &json!(""))
        .await
        .refused(400, "ERR_VALIDATION");
});

story!(a_session_ends_with_the_key_that_made_it, |hub| async {
    //
    let alice = hub.agent("alice").await;
    let narrow = json!({"label": "reader", "scopes": ["read"]});
    let further = alice.post("/agent/keys", &narrow).await.data(201);
    let reader = alice.with_key(further["key"].as_str().unwrap());
    let of_reader = open_session(&hub, &reader).await;
    let of_alice = open_session(&hub, &alice).await;
    // It has the scopes of its key.
    of_reader.get("/agent/messages").await.data(200);
    of_reader.get("/agent/keys").await.refused(403, "ERR_SCOPE");
    let unspent = make_link(&reader).await;
    let path = format!("/agent/keys/{}", further["id"].as_str().unwrap());
    alice.delete(&path).await.data(200);
    of_reader
        .get("/agent/messages")
        .await
        .refused(401, "ERR_UNAUTHORIZED");
    spend_link(&hub, &unspent)
        .await
        .refused(401, "ERR_UNAUTHORIZED");
    of_alice.get("/agent/messages").await.data(200);
    alice.post("/agent/keys/rotate", &json!({})).await.data(200);
    of_alice
        .get("/agent/messages")
        .await
        .refused(401, "ERR_UNAUTHORIZED");
});

story!(an_operator_signs_in_by_link_too, |hub| async {
    let session = open_session(&hub, &hub.operator()).await;
    session.get("/invites").await.data(200);
    session
        .post("/invites", &json!({"label": "by link"}))
        .await
        .data(201);
    let acts = hub.operator().activity(0).await;
    assert!(
        acts.iter()
            .any(|row| row["type"] == "operator_act" && row["data"]["act"] == "create_invite"),
        "{acts:?}"
    );
    session.delete("/console/session").await.data(200);
    session
        .get("/invites")
        .await
        .refused(401, "ERR_UNAUTHORIZED");
});

/// As many sessions as one key may have.
const SESSIONS_PER_KEY: usize = 16;

story!(
    a_key_has_few_sessions_and_the_oldest_ends_first,
    |hub| async {
        // Invariant 6
        let alice = hub.agent("alice").await;
        let narrow = json!({"label": "reader", "scopes": ["read"]});
        let further = alice.post("/agent/keys", &narrow).await.data(201);
        let reader = alice.with_key(further["key"].as_str().unwrap());
        let of_reader = open_session(&hub, &reader).await;
        let first = open_session(&hub, &alice).await;
        let mut inbox = first.stream("/agent/inbox").await;
        inbox.next("connected").await;
        let mut others = Vec::new();
        for _ in 1..SESSIONS_PER_KEY {
            hub.advance(Duration::from_secs(1));
            others.push(open_session(&hub, &alice).await);
        }
        first.get("/agent/messages").await.data(200);
        hub.advance(Duration::from_secs(1));
        others.push(open_session(&hub, &alice).await);
        first
            .get("/agent/messages")
            .await
            .refused(401, "ERR_UNAUTHORIZED");
        inbox.ended().await;
        for session in &others {
            session.get("/agent/messages").await.data(200);
        }
        // Another key has sessions of its own.
        of_reader.get("/agent/messages").await.data(200);
    }
);

/// Opens a stream with a session token, as a page does.
async fn open_page_stream(hub: &Hub, session: &Caller, path: &str) -> Stream {
    let token = session.post("/agent/session", &json!({})).await.data(200);
    let token = token["session_token"].as_str().unwrap();
    hub.anonymous()
        .stream(&format!("{path}?session={token}"))
        .await
}

story!(streams_end_when_their_page_signs_out, |hub| async {
    //
    let alice = hub.agent("alice").await;
    let room = create_channel(&alice, "room").await;
    let session = open_session(&hub, &alice).await;
    let mut by_header = session.stream("/agent/inbox").await;
    by_header.next("connected").await;
    let mut by_token = open_page_stream(&hub, &session, "/agent/inbox").await;
    let resume_token = by_token.next("connected").await.data["resume_token"].clone();
    let mut in_room = open_page_stream(&hub, &session, &format!("{room}/stream")).await;
    in_room.next("connected").await;
    let unspent = session.post("/agent/session", &json!({})).await.data(200);
    let mut of_key = alice.stream("/agent/inbox").await;
    of_key.next("connected").await;
    session.delete("/console/session").await.data(200);
    for stream in [&mut by_header, &mut by_token, &mut in_room] {
        stream.ended().await;
    }
    for token in [resume_token, unspent["session_token"].clone()] {
        let token = token.as_str().unwrap();
        hub.anonymous()
            .get(&format!("/agent/inbox?session={token}"))
            .await
            .refused(401, "ERR_UNAUTHORIZED");
    }
    // The key goes on.
    let bob = hub.agent("bob").await;
    bob.send_expecting("alice", "still here", "delivered_sse")
        .await;
    of_key.next("message").await;
});

story!(streams_end_when_their_session_expires, |hub| async {
    //
    let alice = hub.agent("alice").await;
    let session = open_session(&hub, &alice).await;
    let mut inbox = session.stream("/agent/inbox").await;
    inbox.next("connected").await;
    hub.advance(SESSION_LIFE);
    hub.maintain().await;
    inbox.ended().await;
});

story!(activity_ends_when_its_operator_signs_out, |hub| async {
    //
    let session = open_session(&hub, &hub.operator()).await;
    let mut events = session.stream("/events").await;
    events.next("connected").await;
    let mut of_key = hub.operator().stream("/events").await;
    of_key.next("connected").await;
    session.delete("/console/session").await.data(200);
    events.ended().await;
    hub.operator()
        .post("/invites", &json!({"label": "after"}))
        .await
        .data(201);
    of_key.next("activity").await;
});

story!(
    guessed_links_are_refused_without_a_lookup,
    with(|set| set.rate_limit = 10),
    |hub| async {
        // D-20: a valid link from the guessing address is refused too, which shows that none is looked up
        let alice = hub.agent("alice").await;
        let link = make_link(&alice).await;
        for number in 0..20 {
            let guess = json!(format!("cl_{number:032}"));
            let status = spend_link(&hub, &guess).await.status;
            assert!(matches!(status, 401 | 429), "{status}");
        }
        spend_link(&hub, &link)
            .await
            .refused(429, "ERR_RATE_LIMITED");
        // It was not spent by that.
        hub.advance(Duration::from_secs(60));
        spend_link(&hub, &link).await.data(200);
    }
);
