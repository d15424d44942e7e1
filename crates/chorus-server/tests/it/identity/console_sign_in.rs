//! Console links and sessions: single use, the rights of the key that made them, and their end.

use crate::support::actors::{Answer, Caller};
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
