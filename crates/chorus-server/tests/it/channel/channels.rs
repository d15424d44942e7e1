//! Channels: created, listed, described, deleted, and closed to agents that are not members.

use crate::support::actors::channel::{
    add_agent, channel_history, create_channel, list_members, message_contents,
    open_channel_stream, post_message,
};
use crate::support::actors::{Answer, Caller, rows};
use serde_json::{Value, json};

async fn patch(by: &Caller, path: &str, body: &Value) -> Answer {
    Answer::of(by.request("PATCH", path).json(body)).await
}

story!(
    a_room_is_made_described_and_deleted_by_its_owner,
    |hub| async {
        // CHN-07…10
        let alice = hub.agent("alice").await;
        let body = json!({"name": "ops-team", "context": "Where the team coordinates.", "service": "Example"});
        let made = alice.post("/channels", &body).await.data(201);
        let id = made["id"].as_str().unwrap();
        assert!(id.starts_with("ch_"), "{made}");
        for (key, value) in body.as_object().unwrap() {
            assert_eq!(&made[key], value, "{made}");
        }
        assert_eq!(
            (&made["owner"], &made["members"]),
            (&json!("alice@chorus"), &json!(1))
        );
        let path = format!("/channels/{id}");
        assert_eq!(alice.get(&path).await.data(200), made);
        assert_eq!(alice.get("/channels").await.data(200), json!([made]));

        let changed = patch(&alice, &path, &json!({"name": "ops", "context": null}))
            .await
            .data(200);
        assert_eq!(
            (&changed["id"], &changed["name"]),
            (&made["id"], &json!("ops")),
            "the id never changes"
        );
        assert!(
            changed.get("context").is_none(),
            "null takes away: {changed}"
        );
        assert_eq!(changed["service"], "Example", "what is absent stays");

        hub.restart().await;
        let alice = hub.reconnect(&alice);
        assert_eq!(
            alice.get(&path).await.data(200),
            changed,
            "it outlives the hub"
        );
        assert_eq!(
            alice.delete(&path).await.data(200),
            json!({"id": id, "deleted": true})
        );
        for method in ["GET", "DELETE"] {
            Answer::of(alice.request(method, &path))
                .await
                .refused(404, "ERR_NOT_FOUND");
        }
        patch(&alice, &path, &json!({"name": "x"}))
            .await
            .refused(404, "ERR_NOT_FOUND");
        alice
            .post(&format!("{path}/messages"), &json!({"content": "x"}))
            .await
            .refused(404, "ERR_NOT_FOUND");
        assert_eq!(alice.get("/channels").await.data(200), json!([]));
    }
);

story!(
    a_stranger_does_not_learn_that_there_is_a_room,
    |hub| async {
        let (alice, eve) = (hub.agent("alice").await, hub.agent("eve").await);
        let path = create_channel(&alice, "secret").await;
        let nowhere = "/channels/ch_00000000000000000000000000000000";
        for (method, rest, body) in [
            ("GET", "", Value::Null),
            ("PATCH", "", json!({"name": "x"})),
            ("DELETE", "", Value::Null),
            ("GET", "/members", Value::Null),
            ("POST", "/members", json!({"agent_id": "eve@chorus"})),
            ("DELETE", "/members/alice", Value::Null),
            ("POST", "/messages", json!({"content": "x"})),
            ("GET", "/messages", Value::Null),
            ("GET", "/stream", Value::Null),
        ] {
            let ask = async |by: &Caller, path: &str| {
                let request = by.request(method, &format!("{path}{rest}"));
                Answer::of(if body.is_null() {
                    request
                } else {
                    request.json(&body)
                })
                .await
            };
            let there = ask(&eve, &path).await.refused(404, "ERR_NOT_FOUND");
            assert_eq!(
                there,
                ask(&eve, nowhere).await.refused(404, "ERR_NOT_FOUND"),
                "{method} {rest}"
            );
            ask(&hub.anonymous(), &path)
                .await
                .refused(401, "ERR_UNAUTHORIZED");
        }
        assert_eq!(eve.get("/channels").await.data(200), json!([]));
        assert_eq!(
            alice.get(&path).await.data(200)["name"],
            "secret",
            "nothing was done"
        );
    }
);

story!(
    a_member_reads_and_speaks_and_only_the_owner_changes,
    |hub| async {
        let (alice, bob, carol) = (
            hub.agent("alice").await,
            hub.agent("bob").await,
            hub.agent("carol").await,
        );
        let path = create_channel(&alice, "ops").await;
        add_agent(&alice, &path, &bob).await;
        assert_eq!(bob.get(&path).await.data(200)["members"], 2);
        assert_eq!(rows(bob.get("/channels").await.data(200)).len(), 1);
        post_message(&bob, &path, "here").await;
        assert_eq!(
            message_contents(&channel_history(&bob, &path, "").await),
            ["here"]
        );
        patch(&bob, &path, &json!({"name": "x"}))
            .await
            .refused(403, "ERR_FORBIDDEN");
        bob.delete(&path).await.refused(403, "ERR_FORBIDDEN");
        bob.post(&format!("{path}/members"), &json!({"agent_id": carol.id}))
            .await
            .refused(403, "ERR_FORBIDDEN");
        assert_eq!(list_members(&alice, &path).await.len(), 2);
    }
);

story!(
    operators_keep_rooms_of_their_own_and_may_enter_every_one,
    |hub| async {
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let (operator, hers) = (hub.operator(), create_channel(&alice, "hers").await);
        let own = create_channel(&operator, "house").await;
        let shown = operator.get(&own).await.data(200);
        assert_eq!(
            (&shown["owner"], &shown["members"]),
            (&Value::Null, &json!(0))
        );
        add_agent(&operator, &own, &bob).await;
        let line = post_message(&operator, &own, "all well?").await;
        assert_eq!(
            (&line["sender"], &line["sender_kind"]),
            (&json!("operator"), &json!("person")),
            "R-77"
        );
        alice.get(&own).await.refused(404, "ERR_NOT_FOUND");

        post_message(&alice, &hers, "hello").await;
        assert_eq!(
            message_contents(&channel_history(&operator, &hers, "").await),
            ["hello"]
        );
        let mut stream = open_channel_stream(&operator, &hers).await;
        post_message(&alice, &hers, "again").await;
        assert_eq!(stream.next("message").await.data["content"], "again");
        let names: Vec<Value> = rows(operator.get("/channels").await.data(200))
            .iter()
            .map(|c| c["name"].clone())
            .collect();
        assert_eq!(names, ["hers", "house"]);
        operator.delete(&hers).await.data(200);
        alice.get(&hers).await.refused(404, "ERR_NOT_FOUND");
    }
);

story!(a_list_goes_on_after_the_last_room_of_a_page, |hub| async {
    let alice = hub.agent("alice").await;
    for number in 0..5 {
        create_channel(&alice, &format!("room {number}")).await;
    }
    let (mut names, mut after) = (Vec::new(), String::new());
    loop {
        let page = rows(
            alice
                .get(&format!("/channels?limit=2{after}"))
                .await
                .data(200),
        );
        let Some(last) = page.last() else { break };
        assert!(page.len() <= 2);
        after = format!("&after={}", last["id"].as_str().unwrap());
        names.extend(
            page.iter()
                .map(|channel| channel["name"].as_str().unwrap().to_owned()),
        );
    }
    assert_eq!(names, ["room 0", "room 1", "room 2", "room 3", "room 4"]);
    alice
        .get("/channels?after=ch_x")
        .await
        .refused(404, "ERR_NOT_FOUND");
});

story!(what_is_wrong_with_a_room_is_named, |hub| async {
    let alice = hub.agent("alice").await;
    let path = create_channel(&alice, "ops").await;
    let long = "x".repeat(257);
    for (body, field) in [
        (json!({}), "name"),
        (json!({"name": ""}), "name"),
        (json!({"name": 7}), "name"),
        (json!({"name": long}), "name"),
        (json!({"name": "a\u{0}b"}), "name"),
        (
            json!({"name": "x", "context": "y".repeat(4_097)}),
            "context",
        ),
        (json!({"name": "x", "context": "bell\u{7}"}), "context"),
        (json!({"name": "x", "service": ""}), "service"),
        (json!({"name": "x", "topic": "y"}), "topic"),
    ] {
        let said = alice
            .post("/channels", &body)
            .await
            .refused(400, "ERR_VALIDATION");
        assert!(said.contains(field), "{body}: {said}");
    }
    for (body, field) in [
        (json!({}), "name"),
        (json!({"name": null}), "name"),
        (json!({"owner": "eve"}), "owner"),
    ] {
        let said = patch(&alice, &path, &body)
            .await
            .refused(400, "ERR_VALIDATION");
        assert!(said.contains(field), "{body}: {said}");
    }
    assert_eq!(rows(alice.get("/channels").await.data(200)).len(), 1);
});

story!(a_deleted_room_ends_its_streams_with_a_word, |hub| async {
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let (path, other) = (
        create_channel(&alice, "ops").await,
        create_channel(&alice, "other").await,
    );
    add_agent(&alice, &path, &bob).await;
    let (mut hers, mut his, mut theirs) = (
        open_channel_stream(&alice, &path).await,
        open_channel_stream(&bob, &path).await,
        open_channel_stream(&hub.operator(), &path).await,
    );
    let mut elsewhere = open_channel_stream(&alice, &other).await;
    alice.delete(&path).await.data(200);
    for stream in [&mut hers, &mut his, &mut theirs] {
        assert_eq!(
            stream.next("closing").await.data["reason"],
            "channel_deleted"
        );
        assert!(stream.any().await.is_none());
    }
    post_message(&alice, &other, "still here").await;
    assert_eq!(
        elsewhere.next("message").await.data["content"],
        "still here"
    );
});

story!(
    an_owner_that_unregisters_leaves_its_rooms_to_the_operators,
    |hub| async {
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let path = create_channel(&alice, "ops").await;
        add_agent(&alice, &path, &bob).await;
        let mut hers = open_channel_stream(&alice, &path).await;
        let mut his = open_channel_stream(&bob, &path).await;
        alice.delete("/agents/alice@chorus").await.data(200);
        assert_eq!(
            hers.ended().await.last().unwrap().data["reason"],
            "unregistered"
        );
        let gone = his.next("member").await.data;
        assert_eq!(
            (&gone["name"], &gone["change"], &gone["sender"]),
            (&json!("alice"), &json!("left"), &json!("hub"))
        );
        let again = hub.agent("alice").await;
        again.get(&path).await.refused(404, "ERR_NOT_FOUND");
        assert_eq!(bob.get(&path).await.data(200)["owner"], Value::Null);
        post_message(&bob, &path, "who is there?").await;
        assert_eq!(
            patch(&hub.operator(), &path, &json!({"name": "kept"}))
                .await
                .data(200)["name"],
            "kept"
        );
    }
);

story!(
    operators_hear_that_there_are_rooms_and_not_what_is_said_there,
    |hub| async {
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let path = create_channel(&alice, "ops").await;
        add_agent(&alice, &path, &bob).await;
        post_message(&alice, &path, "between us").await;
        alice.delete(&format!("{path}/members/bob")).await.data(200);
        alice.delete(&path).await.data(200);
        let activity = hub.operator().activity(0).await;
        let kinds: Vec<&str> = activity
            .iter()
            .filter_map(|row| row["type"].as_str())
            .collect();
        for kind in [
            "channel_created",
            "channel_member_added",
            "channel_member_removed",
            "channel_deleted",
        ] {
            assert!(kinds.contains(&kind), "{kinds:?}");
        }
        assert!(!json!(activity).to_string().contains("between us"));
    }
);
