//! Channel deliveries: which members receive a message, and in which format (CHN-05…17, R-73, R-77).

use crate::support::actors::remote_member::{OwnedChannel, RemoteMember, callback};
use crate::support::examples::example;
use chorus_wire::limits;
use serde_json::{Value, json};

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    keys
}

story!(
    a_delivery_has_the_printed_body_and_nothing_else,
    |hub| async {
        // CHN-05…17, CHN-35, CHN-36, CHN-40
        let room = OwnedChannel::create(&hub, "alice").await;
        let mut timber = RemoteMember::accepting(&hub).await;
        room.add_remote("timber", &timber.url()).await;
        let said = room.post_message("What's the weather in Oslo?").await;
        let heard = timber.endpoint.next_request().await;
        let head = heard.head.to_ascii_lowercase();
        assert!(
            head.starts_with("post /inbox/sk_a1b2c3d4e5f6 http/1.1\r\n"),
            "{head}"
        );
        assert!(
            head.contains("\r\ncontent-type: application/json\r\n"),
            "{head}"
        );
        for absent in ["authorization", "webhook-signature", "cookie", "referer"] {
            assert!(!head.contains(absent), "{absent}: {head}");
        }
        let (body, printed) = (heard.json(), example("channel-protocol/2-delivery.json"));
        assert_eq!(keys(&body), keys(&printed));
        for part in ["channel", "message", "mcp"] {
            assert_eq!(keys(&body[part]), keys(&printed[part]), "{part}");
        }
        assert_eq!(
            (&body["channel"]["id"], &body["channel"]["name"]),
            (&json!(room.id), &json!("ops-team"))
        );
        assert_eq!(body["channel"]["context"], "Where the team talks.");
        assert_eq!(
            (&body["message"]["id"], &body["message"]["sender"]),
            (&said["id"], &json!("alice"))
        );
        assert_eq!(body["message"]["content"], "What's the weather in Oslo?");
        // without another name the hub calls itself by the address that it listens on
        let start = format!("{}/channels/{}/inbox/tok_", hub.url, room.id);
        let token = callback(&body)
            .strip_prefix(&start)
            .expect("a callback of this hub");
        let is_url_safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        assert!(
            token.len() >= 32 && token.bytes().all(is_url_safe),
            "{token}"
        );
        assert_eq!(body["mcp"]["url"], format!("{}/mcp/{}", hub.url, room.id));
        assert_eq!(keys(&body["mcp"]["headers"]), ["Authorization"]);
        assert!(
            body["mcp"]["headers"]["Authorization"]
                .as_str()
                .unwrap()
                .starts_with("Bearer ")
        );
    }
);

story!(
    a_channel_without_a_service_names_none_in_its_deliveries,
    |hub| async {
        // CHN-09: the name is the owner's to give, and the hub puts no name of its own in its place
        let alice = hub.agent("alice").await;
        for (new, service) in [
            (json!({"name": "plain"}), Value::Null),
            (json!({"name": "named", "service": "Slack"}), json!("Slack")),
        ] {
            let made = alice.post("/channels", &new).await.data(201);
            let path = format!("/channels/{}", made["id"].as_str().unwrap());
            let mut oak = RemoteMember::accepting(&hub).await;
            let member = json!({"name": "oak", "connection": oak.url()});
            let members = format!("{path}/members");
            alice.post(&members, &member).await.data(201);
            let messages = format!("{path}/messages");
            alice
                .post(&messages, &json!({"content": "hello"}))
                .await
                .data(201);
            let delivery = oak.next_delivery().await;
            assert_eq!(
                delivery["channel"].get("service").cloned(),
                (!service.is_null()).then_some(service),
                "{delivery}"
            );
        }
    }
);

story!(
    every_delivery_has_credentials_of_its_own_under_the_name_that_the_hub_was_given,
    with(|set| set.public_url = Some("https://hub.example.com/".into())),
    |hub| async {
        // CHN-16, CHN-39
        let room = OwnedChannel::create(&hub, "alice").await;
        let (mut oak, mut elm) = (
            RemoteMember::accepting(&hub).await,
            RemoteMember::accepting(&hub).await,
        );
        room.add_remote("oak", &oak.url()).await;
        room.add_remote("elm", &elm.url()).await;
        room.post_message("one").await;
        room.post_message("two").await;
        let mut seen = Vec::new();
        for body in [
            oak.next_delivery().await,
            oak.next_delivery().await,
            elm.next_delivery().await,
            elm.next_delivery().await,
        ] {
            assert!(
                callback(&body).starts_with("https://hub.example.com/channels/ch_"),
                "{body}"
            );
            seen.push(callback(&body).to_owned());
            seen.push(body["mcp"]["headers"]["Authorization"].to_string());
        }
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 8);
    }
);

story!(
    people_are_heard_by_all_and_agents_by_those_they_call,
    |hub| async {
        //
        let room = OwnedChannel::create(&hub, "alice").await;
        let (mut oak, mut elm) = (
            RemoteMember::accepting(&hub).await,
            RemoteMember::accepting(&hub).await,
        );
        room.add_remote("oak", &oak.url()).await;
        room.add_member(&json!({"name": "elm", "connection": elm.url(), "deliver": "mentions"}))
            .await;
        room.post_message("to whom it concerns").await;
        let delivery = oak.next_delivery().await;
        room.post_message("@Elm, and you?").await;
        assert_eq!(elm.texts(1).await, ["@Elm, and you?"]);
        assert_eq!(oak.texts(1).await, ["@Elm, and you?"]);
        oak.post_answer(&delivery, "no member in particular").await;
        oak.post_answer(&delivery, "@elm and @oak: what do we do?")
            .await;
        let answer = elm.next_delivery().await;
        assert_eq!(
            (&answer["message"]["sender"], &answer["message"]["content"]),
            (&json!("oak"), &json!("@elm and @oak: what do we do?"))
        );
        hub.maintain().await;
        assert!(
            oak.endpoint.received_nothing() && elm.endpoint.received_nothing(),
            "no member receives its own message"
        );
        let all = [
            "to whom it concerns",
            "@Elm, and you?",
            "no member in particular",
            "@elm and @oak: what do we do?",
        ];
        assert_eq!(room.message_texts().await, all);
    }
);

story!(
    agents_that_call_each_other_come_to_an_end_and_a_person_sets_them_going_again,
    |hub| async {
        // eight steps from agent to agent; the ninth message is in the history and is delivered to no member
        let room = OwnedChannel::create(&hub, "alice").await;
        let (mut oak, mut elm) = (
            RemoteMember::accepting(&hub).await,
            RemoteMember::accepting(&hub).await,
        );
        room.add_member(&json!({"name": "oak", "connection": oak.url(), "deliver": "mentions"}))
            .await;
        room.add_member(&json!({"name": "elm", "connection": elm.url(), "deliver": "mentions"}))
            .await;
        for round in 1..=2 {
            room.post_message("@oak, begin").await;
            for step in 0..8 {
                let (heard, from, to) = if step % 2 == 0 {
                    (oak.next_delivery().await, &oak, "elm")
                } else {
                    (elm.next_delivery().await, &elm, "oak")
                };
                from.post_answer(&heard, &format!("@{to} step {}", step + 1))
                    .await;
            }
            let last = oak.next_delivery().await;
            assert_eq!(last["message"]["content"], "@oak step 8");
            oak.post_answer(&last, "@elm step 9").await;
            hub.maintain().await;
            assert!(
                elm.endpoint.received_nothing() && oak.endpoint.received_nothing(),
                "round {round}"
            );
            assert_eq!(room.message_texts().await.len(), round * 10);
        }
    }
);

story!(an_old_callback_does_not_begin_a_chain_anew, |hub| async {
    // both answer everything with the first callback that they were given
    let room = OwnedChannel::create(&hub, "alice").await;
    let (mut oak, mut elm) = (
        RemoteMember::accepting(&hub).await,
        RemoteMember::accepting(&hub).await,
    );
    room.add_remote("oak", &oak.url()).await;
    room.add_remote("elm", &elm.url()).await;
    room.post_message("begin").await;
    let (first_oak, first_elm) = (oak.next_delivery().await, elm.next_delivery().await);
    oak.post_answer(&first_oak, "@elm hello").await;
    for _ in 0..4 {
        elm.next_delivery().await;
        elm.post_answer(&first_elm, "@oak hello").await;
        oak.next_delivery().await;
        oak.post_answer(&first_oak, "@elm hello").await;
    }
    hub.maintain().await;
    assert!(elm.endpoint.received_nothing() && oak.endpoint.received_nothing());
});

story!(
    a_member_of_this_hub_hears_on_its_inbox_and_answers_by_the_callback,
    |hub| async {
        //
        let room = OwnedChannel::create(&hub, "alice").await;
        let bob = hub.agent("bob").await;
        room.add_agent(&bob).await;
        let mut elm = RemoteMember::accepting(&hub).await;
        room.add_member(&json!({"name": "elm", "connection": elm.url(), "deliver": "mentions"}))
            .await;
        let said = room.post_message("are you there?").await;
        let mut inbox = bob.inbox_after("0").await;
        inbox.next("channel_invite").await;
        let event = inbox.next("channel").await;
        assert_eq!(
            (&event.data["message"]["id"], &event.data["channel"]["id"]),
            (&said["id"], &json!(room.id))
        );
        let event_type = json!({"type": "message", "content": "@elm I am"});
        assert_eq!(elm.post_event(&event.data, &event_type).await.status, 200);
        assert_eq!(elm.next_delivery().await["message"]["sender"], "bob");
        let row = room.history().await.pop().unwrap();
        assert_eq!(
            (&row["sender"], &row["sender_kind"], &row["content"]),
            (&json!("bob"), &json!("agent"), &json!("@elm I am"))
        );
    }
);

story!(structured_content_goes_beside_the_text, |hub| async {
    //
    let room = OwnedChannel::create(&hub, "alice").await;
    let mut oak = RemoteMember::accepting(&hub).await;
    room.add_remote("oak", &oak.url()).await;
    let parts =
        json!([{"text": "a"}, {"url": "https://a.example/p.png", "mediaType": "image/png"}]);
    room.owner
        .post(
            &room.path("/messages"),
            &json!({"content": "see", "parts": parts}),
        )
        .await
        .data(201);
    assert_eq!(oak.next_delivery().await["message"]["parts"], parts);
});

story!(
    a_member_added_with_a_secret_can_check_who_posts,
    |hub| async {
        // CHN-34: Standard Webhooks
        let room = OwnedChannel::create(&hub, "alice").await;
        let mut oak = RemoteMember::accepting(&hub).await;
        let secret = "whsec_dGhpcyBpcyBub3QgYSByZWFsIHNlY3JldA==";
        let member = json!({"name": "oak", "connection": oak.url(), "signing_secret": secret});
        assert_eq!(room.add_member(&member).await["signed"], true);
        let said = room.post_message("hello").await;
        let heard = oak.endpoint.next_request().await;
        let header = |name: &str| {
            heard
                .header(name)
                .unwrap_or_else(|| panic!("{name}: {}", heard.head))
        };
        assert_eq!(header("webhook-id"), said["id"].as_str().unwrap());
        let seconds: i64 = header("webhook-timestamp").parse().unwrap();
        let ours = standardwebhooks::Webhook::new(secret).unwrap();
        assert_eq!(
            header("webhook-signature"),
            ours.sign(&header("webhook-id"), seconds, heard.text.as_bytes())
                .unwrap()
        );
    }
);

story!(
    the_longest_word_in_the_most_talkative_room_is_taken_by_a_hosting_hub,
    |hub| async {
        // every text as long as it may be, of characters that take two as JSON
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let label = "\"".repeat(limits::LABEL_CHARS);
        let new = json!({"name": label, "service": label, "context": "\\".repeat(limits::CHANNEL_CONTEXT_CHARS)});
        let made = alice.post("/channels", &new).await.data(201);
        let room = OwnedChannel {
            id: made["id"].as_str().unwrap().to_owned(),
            owner: alice,
        };
        let data = bob.post("/agent/connection", &json!({})).await.data(200);
        room.add_remote(
            &"b".repeat(limits::MEMBER_NAME_CHARS),
            data["connection_string"].as_str().unwrap(),
        )
        .await;
        let most = "é".repeat(limits::CHANNEL_MESSAGE_CHARS - 2);
        room.post_message(&most).await;
        let event = bob.inbox_after("0").await.next("channel").await;
        assert_eq!(event.data["message"]["content"], json!(most));
        assert!(
            event.text.chars().count() <= limits::DELIVERY_CHARS - 2 * limits::URL_CHARS,
            "{}",
            event.text.len()
        );
    }
);

story!(who_is_removed_is_delivered_nothing_more, |hub| async {
    //
    let room = OwnedChannel::create(&hub, "alice").await;
    let mut oak = RemoteMember::scripted(&hub, |turn| {
        if turn == 0 {
            crate::support::actors::Reply::typed(503, "text/plain", "")
        } else {
            crate::support::actors::Reply::ok()
        }
    })
    .await;
    room.add_remote("oak", &oak.url()).await;
    room.post_message("one").await;
    oak.next_delivery().await;
    room.post_message("two").await;
    room.owner
        .delete(&room.path("/members/oak"))
        .await
        .data(200);
    hub.advance(std::time::Duration::from_secs(600));
    hub.maintain().await;
    assert!(oak.endpoint.received_nothing());
});

story!(
    an_address_inside_is_refused,
    with(|set| set.hub.allow_private_endpoints = false),
    |hub| async {
        let room = OwnedChannel::create(&hub, "alice").await;
        for url in [
            "http://127.0.0.1:9/inbox/sk_x",
            "http://10.0.0.1/inbox/sk_x",
            "http://[::1]/inbox/sk_x",
        ] {
            let answer = room
                .owner
                .post(
                    &room.path("/members"),
                    &json!({"name": "oak", "connection": url}),
                )
                .await;
            let said = answer.refused(400, "ERR_ENDPOINT_BLOCKED");
            assert!(!said.contains("sk_x"), "{said}");
        }
    }
);
