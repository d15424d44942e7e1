//! Deliveries: who hears what in a room, and in what form it comes to them (CHN-05…17, R-73, R-77).

use crate::actors::elsewhere::{Elsewhere, Room, callback};
use crate::examples::example;
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
        let room = Room::of(&hub, "alice").await;
        let mut timber = Elsewhere::well(&hub).await;
        room.add("timber", &timber.url()).await;
        let said = room.says("What's the weather in Oslo?").await;
        let heard = timber.endpoint.hears().await;
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
        assert!(
            token.len() >= 32 && token.bytes().all(|b| b.is_ascii_hexdigit()),
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
    every_delivery_has_credentials_of_its_own_under_the_name_that_the_hub_was_given,
    with(|set| set.public_url = Some("https://hub.example.com/".into())),
    |hub| async {
        // CHN-16, CHN-39
        let room = Room::of(&hub, "alice").await;
        let (mut oak, mut elm) = (Elsewhere::well(&hub).await, Elsewhere::well(&hub).await);
        room.add("oak", &oak.url()).await;
        room.add("elm", &elm.url()).await;
        room.says("one").await;
        room.says("two").await;
        let mut seen = Vec::new();
        for body in [
            oak.hears().await,
            oak.hears().await,
            elm.hears().await,
            elm.hears().await,
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
        let room = Room::of(&hub, "alice").await;
        let (mut oak, mut elm) = (Elsewhere::well(&hub).await, Elsewhere::well(&hub).await);
        room.add("oak", &oak.url()).await;
        room.add_like(&json!({"name": "elm", "connection": elm.url(), "deliver": "mentions"}))
            .await;
        room.says("to whom it concerns").await;
        let delivery = oak.hears().await;
        room.says("@Elm, and you?").await;
        assert_eq!(elm.texts(1).await, ["@Elm, and you?"]);
        assert_eq!(oak.texts(1).await, ["@Elm, and you?"]);
        oak.answers(&delivery, "nobody in particular").await;
        oak.answers(&delivery, "@elm and @oak: what do we do?")
            .await;
        let answer = elm.hears().await;
        assert_eq!(
            (&answer["message"]["sender"], &answer["message"]["content"]),
            (&json!("oak"), &json!("@elm and @oak: what do we do?"))
        );
        hub.maintain().await;
        assert!(
            oak.endpoint.heard_nothing() && elm.endpoint.heard_nothing(),
            "nobody hears itself"
        );
        let all = [
            "to whom it concerns",
            "@Elm, and you?",
            "nobody in particular",
            "@elm and @oak: what do we do?",
        ];
        assert_eq!(room.said().await, all);
    }
);

story!(
    agents_that_call_each_other_come_to_an_end_and_a_person_sets_them_going_again,
    |hub| async {
        // eight steps from agent to agent; the ninth word is in the history and wakes nobody
        let room = Room::of(&hub, "alice").await;
        let (mut oak, mut elm) = (Elsewhere::well(&hub).await, Elsewhere::well(&hub).await);
        room.add_like(&json!({"name": "oak", "connection": oak.url(), "deliver": "mentions"}))
            .await;
        room.add_like(&json!({"name": "elm", "connection": elm.url(), "deliver": "mentions"}))
            .await;
        for round in 1..=2 {
            room.says("@oak, begin").await;
            for step in 0..8 {
                let (heard, from, to) = if step % 2 == 0 {
                    (oak.hears().await, &oak, "elm")
                } else {
                    (elm.hears().await, &elm, "oak")
                };
                from.answers(&heard, &format!("@{to} step {}", step + 1))
                    .await;
            }
            let last = oak.hears().await;
            assert_eq!(last["message"]["content"], "@oak step 8");
            oak.answers(&last, "@elm step 9").await;
            hub.maintain().await;
            assert!(
                elm.endpoint.heard_nothing() && oak.endpoint.heard_nothing(),
                "round {round}"
            );
            assert_eq!(room.said().await.len(), round * 10);
        }
    }
);

story!(an_old_callback_does_not_begin_a_chain_anew, |hub| async {
    // both answer everything with the first callback that they were given
    let room = Room::of(&hub, "alice").await;
    let (mut oak, mut elm) = (Elsewhere::well(&hub).await, Elsewhere::well(&hub).await);
    room.add("oak", &oak.url()).await;
    room.add("elm", &elm.url()).await;
    room.says("begin").await;
    let (first_oak, first_elm) = (oak.hears().await, elm.hears().await);
    oak.answers(&first_oak, "@elm hello").await;
    for _ in 0..4 {
        elm.hears().await;
        elm.answers(&first_elm, "@oak hello").await;
        oak.hears().await;
        oak.answers(&first_oak, "@elm hello").await;
    }
    hub.maintain().await;
    assert!(elm.endpoint.heard_nothing() && oak.endpoint.heard_nothing());
});

story!(
    a_member_of_this_hub_hears_on_its_inbox_and_answers_by_the_callback,
    |hub| async {
        //
        let room = Room::of(&hub, "alice").await;
        let bob = hub.agent("bob").await;
        room.invite(&bob).await;
        let mut elm = Elsewhere::well(&hub).await;
        room.add_like(&json!({"name": "elm", "connection": elm.url(), "deliver": "mentions"}))
            .await;
        let said = room.says("are you there?").await;
        let event = bob.inbox_after("0").await.next("channel").await;
        assert_eq!(
            (&event.data["message"]["id"], &event.data["channel"]["id"]),
            (&said["id"], &json!(room.id))
        );
        let event_type = json!({"type": "message", "content": "@elm I am"});
        assert_eq!(elm.posts(&event.data, &event_type).await.status, 200);
        assert_eq!(elm.hears().await["message"]["sender"], "bob");
        let row = room.history().await.pop().unwrap();
        assert_eq!(
            (&row["sender"], &row["sender_kind"], &row["content"]),
            (&json!("bob"), &json!("agent"), &json!("@elm I am"))
        );
    }
);

story!(structured_content_goes_beside_the_text, |hub| async {
    //
    let room = Room::of(&hub, "alice").await;
    let mut oak = Elsewhere::well(&hub).await;
    room.add("oak", &oak.url()).await;
    let parts =
        json!([{"text": "a"}, {"url": "https://a.example/p.png", "mediaType": "image/png"}]);
    room.owner
        .post(
            &room.path("/messages"),
            &json!({"content": "see", "parts": parts}),
        )
        .await
        .data(201);
    assert_eq!(oak.hears().await["message"]["parts"], parts);
});

story!(
    a_member_added_with_a_secret_can_check_who_posts,
    |hub| async {
        // CHN-34: Standard Webhooks
        let room = Room::of(&hub, "alice").await;
        let mut oak = Elsewhere::well(&hub).await;
        let secret = "whsec_dGhpcyBpcyBub3QgYSByZWFsIHNlY3JldA==";
        let member = json!({"name": "oak", "connection": oak.url(), "signing_secret": secret});
        assert_eq!(room.add_like(&member).await["signed"], true);
        let said = room.says("hello").await;
        let heard = oak.endpoint.hears().await;
        let header = |name: &str| {
            let head = heard.head.lines().find_map(|line| {
                line.split_once(": ")
                    .filter(|(found, _)| found.eq_ignore_ascii_case(name))
            });
            head.unwrap_or_else(|| panic!("{name}: {}", heard.head))
                .1
                .to_owned()
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
        let new =
            json!({"name": label, "service": label, "context": "\\".repeat(limits::CONTEXT_CHARS)});
        let made = alice.post("/channels", &new).await.data(201);
        let room = Room {
            id: made["id"].as_str().unwrap().to_owned(),
            owner: alice,
        };
        let data = bob.post("/agent/connection", &json!({})).await.data(200);
        room.add(
            &"b".repeat(limits::MEMBER_NAME_CHARS),
            data["connection_string"].as_str().unwrap(),
        )
        .await;
        let most = "é".repeat(limits::SAID_CHARS - 2);
        room.says(&most).await;
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
    let room = Room::of(&hub, "alice").await;
    let mut oak = Elsewhere::that(&hub, |turn| {
        if turn == 0 {
            crate::actors::Reply::typed(503, "text/plain", "")
        } else {
            crate::actors::Reply::ok()
        }
    })
    .await;
    room.add("oak", &oak.url()).await;
    room.says("one").await;
    oak.hears().await;
    room.says("two").await;
    room.owner
        .delete(&room.path("/members/oak"))
        .await
        .data(200);
    hub.advance(std::time::Duration::from_secs(600));
    hub.maintain().await;
    assert!(oak.endpoint.heard_nothing());
});

story!(
    an_address_inside_is_refused,
    with(|set| set.hub.allow_private_endpoints = false),
    |hub| async {
        let room = Room::of(&hub, "alice").await;
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
