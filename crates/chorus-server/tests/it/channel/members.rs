//! Channel members: added by connection string or by name, listed, and removed (CHN-01…03, R-74, R-78).

use crate::support::actors::channel::{
    add_agent, add_remote, channel_history, create_channel, find_member, list_members,
    open_channel_stream, post_message,
};
use crate::support::actors::{Answer, Webhook};
use chorus_wire::limits;
use serde_json::{Value, json};
use std::time::Duration;

/// The fixtures' secret; it must not be found again anywhere.
const SECRET: &str = "sk_fixture";
/// The same, for signatures: base64 of 24 zeros.
const SIGNING: &str = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

story!(
    a_remote_agent_is_added_by_one_url_and_the_url_is_never_shown_again,
    |hub| async {
        let alice = hub.agent("alice").await;
        let path = create_channel(&alice, "ops").await;
        let agent = Webhook::replying(crate::support::actors::Reply::ok()).await;
        let url = format!("{}/inbox/{SECRET}", agent.url());
        let body = json!({"connection": url, "name": "timber", "deliver": "mentions", "signing_secret": SIGNING});
        let answer = alice.post(&format!("{path}/members"), &body).await;
        let member = answer.data(201);
        assert_eq!(
            (
                &member["name"],
                &member["kind"],
                &member["deliver"],
                &member["status"]
            ),
            (
                &json!("timber"),
                &json!("agent"),
                &json!("mentions"),
                &Value::Null
            )
        );
        assert_eq!(
            (&member["via"], &member["presence"]),
            (&json!("connection"), &json!("unknown"))
        );
        assert_eq!(
            (&member["signed"], &member["unreachable"]),
            (&json!(true), &json!(false))
        );
        let everything = [
            answer.text,
            json!(list_members(&alice, &path).await).to_string(),
            json!(channel_history(&alice, &path, "").await).to_string(),
            json!(hub.operator().activity(0).await).to_string(),
            alice.get(&path).await.text,
        ];
        for text in everything {
            assert!(
                !text.contains(SECRET) && !text.contains(SIGNING),
                "R-74: {text}"
            );
        }
        let kept = std::fs::read(hub.dir.path().join("chorus.db")).unwrap_or_default();
        let log = std::fs::read(hub.dir.path().join("chorus.db-wal")).unwrap_or_default();
        for bytes in [kept, log] {
            assert!(
                !bytes
                    .windows(SECRET.len())
                    .any(|part| part == SECRET.as_bytes()),
                "R-78: it is sealed"
            );
        }
    }
);

story!(
    an_agent_of_this_hub_comes_in_by_any_of_its_names,
    |hub| async {
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let path = create_channel(&alice, "ops").await;
        let member = add_agent(&alice, &path, &bob).await;
        assert_eq!(
            (&member["name"], &member["via"], &member["agent_id"]),
            (&json!("bob"), &json!("inbox"), &json!("bob@chorus"))
        );
        assert_eq!(
            (&member["kind"], &member["deliver"], &member["presence"]),
            (&json!("agent"), &json!("all"), &json!("offline"))
        );
        let _inbox = bob.inbox().await;
        assert_eq!(
            find_member(&alice, &path, "bob").await["presence"],
            "online"
        );
        for name in ["bob", "~bob", "bob@chorus"] {
            let answer = alice
                .post(
                    &format!("{path}/members"),
                    &json!({"agent_id": name, "name": "b2"}),
                )
                .await;
            answer.refused(409, "ERR_CONFLICT");
        }
        alice
            .post(&format!("{path}/members"), &json!({"agent_id": "absent"}))
            .await
            .refused(404, "ERR_AGENT_NOT_FOUND");
        let owner = find_member(&alice, &path, "alice").await;
        assert_eq!(
            (&owner["kind"], &owner["via"], &owner["deliver"]),
            (&json!("person"), &json!("owner"), &json!("none"))
        );
    }
);

story!(a_name_is_one_members_until_it_leaves, |hub| async {
    // 409
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let path = create_channel(&alice, "ops").await;
    let url = format!("https://agent.example.com/inbox/{SECRET}");
    add_remote(&alice, &path, "Timber", &url).await.data(201);
    for taken in ["timber", "TIMBER", "alice"] {
        add_remote(&alice, &path, taken, &url)
            .await
            .refused(409, "ERR_CONFLICT");
    }
    let body = json!({"agent_id": bob.id, "name": "timber"});
    alice
        .post(&format!("{path}/members"), &body)
        .await
        .refused(409, "ERR_CONFLICT");
    let other = create_channel(&alice, "other").await;
    add_remote(&alice, &other, "timber", &url).await.data(201);
    alice
        .delete(&format!("{path}/members/timber"))
        .await
        .data(200);
    alice
        .post(&format!("{path}/members"), &body)
        .await
        .data(201);
    assert_eq!(list_members(&alice, &path).await.len(), 2);
});

story!(
    only_the_owner_and_the_member_itself_remove_a_member,
    |hub| async {
        //
        let (alice, bob, carol) = (
            hub.agent("alice").await,
            hub.agent("bob").await,
            hub.agent("carol").await,
        );
        let path = create_channel(&alice, "ops").await;
        add_agent(&alice, &path, &bob).await;
        add_agent(&alice, &path, &carol).await;
        let mut stream = open_channel_stream(&alice, &path).await;
        bob.delete(&format!("{path}/members/carol"))
            .await
            .refused(403, "ERR_FORBIDDEN");
        bob.delete(&format!("{path}/members/alice"))
            .await
            .refused(403, "ERR_FORBIDDEN");
        alice
            .delete(&format!("{path}/members/absent"))
            .await
            .refused(404, "ERR_NOT_FOUND");
        alice
            .delete(&format!("{path}/members/alice"))
            .await
            .refused(409, "ERR_CONFLICT");
        assert_eq!(
            bob.delete(&format!("{path}/members/bob")).await.data(200),
            json!({"name": "bob", "removed": true})
        );
        bob.get(&path).await.refused(404, "ERR_NOT_FOUND");
        alice
            .delete(&format!("{path}/members/Carol"))
            .await
            .data(200);
        carol
            .post(&format!("{path}/messages"), &json!({"content": "x"}))
            .await
            .refused(404, "ERR_NOT_FOUND");
        for (name, change, by) in [("bob", "left", "bob"), ("carol", "removed", "alice")] {
            let told = stream.next("member").await.data;
            assert_eq!(
                (&told["name"], &told["change"], &told["sender"]),
                (&json!(name), &json!(change), &json!(by))
            );
        }
        let lines = channel_history(&alice, &path, "").await;
        let changes: Vec<&Value> = lines.iter().map(|line| &line["change"]).collect();
        assert_eq!(
            changes,
            ["joined", "joined", "left", "removed"],
            "who came and went is history"
        );
    }
);

/// A connection string that is accepted.
const CONNECTION: &str = "https://agent.example.com/inbox/x";

/// A request to add a member, and what its refusal names.
fn invalid_members() -> Vec<(Value, &'static str)> {
    let url = CONNECTION;
    vec![
        (json!({}), "connection"),
        (json!({"connection": url}), "name"),
        (
            json!({"connection": url, "agent_id": "bob", "name": "b"}),
            "exactly one",
        ),
        (
            json!({"connection": "agent.example.com", "name": "b"}),
            "connection",
        ),
        (
            json!({"connection": "ftp://a.example/x", "name": "b"}),
            "connection",
        ),
        (
            json!({"connection": "https://u:p@a.example/x", "name": "b"}),
            "connection",
        ),
        (
            json!({"connection": format!("https://a.example/{}", "x".repeat(2_048)), "name": "b"}),
            "connection",
        ),
        (json!({"connection": url, "name": "a b"}), "name"),
        (json!({"connection": url, "name": "@b"}), "name"),
        (json!({"connection": url, "name": "operator"}), "name"),
        (
            json!({"connection": url, "name": "b", "deliver": "none"}),
            "deliver",
        ),
        (
            json!({"connection": url, "name": "b", "deliver": 1}),
            "deliver",
        ),
        (json!({"connection": url, "name": "b", "role": "x"}), "role"),
    ]
}

/// The same for the secret that signs the deliveries to a member.
fn invalid_signing_secrets() -> Vec<(Value, &'static str)> {
    let url = CONNECTION;
    vec![
        (
            json!({"agent_id": "alice", "signing_secret": SIGNING}),
            "signing_secret",
        ),
        // What a member's own library could not read would sign nothing that it can check.
        (
            json!({"connection": url, "name": "b", "signing_secret": 7}),
            "signing_secret",
        ),
        (
            json!({"connection": url, "name": "b", "signing_secret": ""}),
            "signing_secret",
        ),
        (
            json!({"connection": url, "name": "b", "signing_secret": "whsec_open sesame, and more of it"}),
            "signing_secret",
        ),
        (
            json!({"connection": url, "name": "b", "signing_secret": "whsec_c2hvcnQ="}),
            "signing_secret",
        ),
        (
            json!({"connection": url, "name": "b", "signing_secret": &SIGNING[..SIGNING.len() - 1]}),
            "signing_secret",
        ),
        (
            json!({"connection": url, "name": "b", "signing_secret": format!("whsec_{}", "A".repeat(88))}),
            "signing_secret",
        ),
    ]
}

story!(what_is_wrong_with_a_member_is_named, |hub| async {
    let alice = hub.agent("alice").await;
    let path = create_channel(&alice, "ops").await;
    for (body, field) in invalid_members()
        .into_iter()
        .chain(invalid_signing_secrets())
    {
        let answer = alice.post(&format!("{path}/members"), &body).await;
        let said = answer.refused(400, "ERR_VALIDATION");
        assert!(said.contains(field), "{body}: {said}");
        assert!(
            !said.contains("agent.example.com"),
            "R-74: no part of the URL is repeated: {said}"
        );
        assert!(!said.contains("sesame") && !said.contains("AAAA"), "{said}");
    }
    assert_eq!(list_members(&alice, &path).await.len(), 1);
});

story!(
    a_connection_on_a_private_address_is_refused_unless_allowed,
    with(|set| set.hub.allow_private_endpoints = false),
    |hub| async {
        let alice = hub.agent("alice").await;
        let path = create_channel(&alice, "ops").await;
        for host in [
            "127.0.0.1",
            "localhost",
            "[::1]",
            "10.0.0.8",
            "169.254.169.254",
            "[::ffff:127.0.0.1]",
            "2130706433",
        ] {
            let url = format!("http://{host}/inbox/{SECRET}");
            let said = add_remote(&alice, &path, "inside", &url)
                .await
                .refused(400, "ERR_ENDPOINT_BLOCKED");
            assert!(!said.contains(SECRET), "{said}");
        }
        add_remote(&alice, &path, "outside", "https://8.8.8.8/inbox/x")
            .await
            .data(201);
        assert_eq!(list_members(&alice, &path).await.len(), 2);
    }
);

story!(
    a_status_is_shown_until_it_is_old_and_an_agent_presents_itself,
    |hub| async {
        // CHN-27, R-76
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let path = create_channel(&alice, "ops").await;
        add_agent(&alice, &path, &bob).await;
        let mut inbox = bob.inbox().await;
        post_message(&alice, &path, "what is the weather?").await;
        let delivery = inbox.next("channel").await.data;
        let callback = delivery["callback"]
            .as_str()
            .unwrap()
            .strip_prefix(&hub.url)
            .unwrap()
            .to_owned();
        let agent = json!({"name": "Bob the forecaster", "avatar": "https://a.example/b.png", "capabilities": ["weather"]});
        let event = json!({"type": "status", "status": "searching weather data", "agent": agent});
        assert_eq!(hub.anonymous().post(&callback, &event).await.status, 200);
        let shown = find_member(&alice, &path, "bob").await;
        assert_eq!(
            (&shown["status"], &shown["agent"]),
            (&json!("searching weather data"), &agent)
        );
        hub.advance(limits::STATUS_TTL - Duration::from_secs(1));
        assert_eq!(
            find_member(&alice, &path, "bob").await["status"],
            "searching weather data"
        );
        hub.advance(Duration::from_secs(1));
        let shown = find_member(&alice, &path, "bob").await;
        assert_eq!(
            (&shown["status"], &shown["agent"]),
            (&Value::Null, &agent),
            "it ages out, the agent stays who it is"
        );
        let lines = channel_history(&alice, &path, "").await;
        let said = lines
            .iter()
            .find(|line| line["type"] == "status")
            .expect("what was done is history");
        assert_eq!(
            (&said["status"], &said["sender"]),
            (&json!("searching weather data"), &json!("bob"))
        );
    }
);

story!(a_room_has_room_for_so_many_and_says_so, |hub| async {
    let alice = hub.agent("alice").await;
    let path = create_channel(&alice, "ops").await;
    for number in 1..limits::MEMBERS_PER_CHANNEL {
        add_remote(
            &alice,
            &path,
            &format!("m{number}"),
            "https://agent.example.com/inbox/x",
        )
        .await
        .data(201);
    }
    let answer: Answer = add_remote(
        &alice,
        &path,
        "one-more",
        "https://agent.example.com/inbox/x",
    )
    .await;
    assert!(answer.refused(409, "ERR_CONFLICT").contains("256"));
    alice.delete(&format!("{path}/members/m7")).await.data(200);
    add_remote(
        &alice,
        &path,
        "one-more",
        "https://agent.example.com/inbox/x",
    )
    .await
    .data(201);
});
