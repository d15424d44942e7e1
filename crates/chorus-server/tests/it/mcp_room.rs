//! The tools of a room: with the token of a delivery, for one member, for as long as it is good (R-75, CHN-17, CHN-37).

use crate::actors::Agent;
use crate::actors::room::{contents, invite, on_roster, past, room, say};
use crate::hub::Hub;
use crate::mcp_host::{Host, Revision};
use serde_json::{Value, json};
use std::time::Duration;

const ROOM_TOOLS: [&str; 10] = [
    "artifact_create",
    "artifact_edit",
    "artifact_list",
    "artifact_read",
    "file_get",
    "file_put",
    "get_roster",
    "read_history",
    "send_message",
    "set_status",
];

/// A room of alice's with bob in it, and what bob was delivered.
async fn delivered(hub: &Hub, name: &str) -> (Agent, Agent, String, Value) {
    let (alice, bob) = (
        hub.agent(&format!("alice-{name}")).await,
        hub.agent(&format!("bob-{name}")).await,
    );
    let path = room(&alice, name).await;
    invite(&alice, &path, &bob).await;
    let mut inbox = bob.inbox().await;
    say(&alice, &path, "Please look at the spec").await;
    let delivery = inbox.next("channel").await.data;
    (alice, bob, path, delivery)
}

story!(
    a_member_talks_in_its_room_with_what_its_delivery_brought,
    |hub| async {
        let (alice, _bob, path, delivery) = delivered(&hub, "ops").await;
        let host = Host::visiting(&hub, &delivery).await;
        assert_eq!(host.names(), ROOM_TOOLS);
        host.is_well_described().await;
        for revision in Revision::BOTH {
            let said = host
                .clone()
                .speaking(revision)
                .call("read_history", json!({"limit": 1}))
                .await
                .data();
            assert_eq!(
                said["lines"][0]["content"], "Please look at the spec",
                "{revision:?} {said}"
            );
            let after = host
                .call("read_history", json!({"since": said["next_since"]}))
                .await
                .data();
            assert_eq!(after["lines"], json!([]), "{after}");
        }
        let line = host
            .call("send_message", json!({"content": "On it"}))
            .await
            .data();
        assert_eq!(
            (&line["sender"], &line["sender_kind"]),
            (&json!("bob-ops"), &json!("agent")),
            "R-77"
        );
        assert_eq!(
            contents(&past(&alice, &path, "").await),
            ["Please look at the spec", "On it"]
        );
        host.call("set_status", json!({"status": "reading"}))
            .await
            .data();
        assert_eq!(
            on_roster(&alice, &path, "bob-ops").await["status"],
            "reading"
        );
        let roster = host.call("get_roster", json!({})).await.data();
        assert_eq!(roster["members"].as_array().unwrap().len(), 2);
        assert!(
            roster["members"]
                .as_array()
                .unwrap()
                .iter()
                .any(|one| one["status"] == "reading"),
            "{roster}"
        );
    }
);

story!(
    an_edit_never_undoes_another_that_it_has_not_seen,
    |hub| async {
        let (_alice, _bob, _path, delivery) = delivered(&hub, "docs").await;
        let host = Host::visiting(&hub, &delivery).await;
        let args = json!({"slug": "auth-spec", "title": "Auth", "content": "one two"});
        let made = host.call("artifact_create", args.clone()).await.data();
        assert_eq!(
            (&made["version"], &made["size"], &made["created_by"]),
            (&json!(1), &json!(7), &json!("bob-docs"))
        );
        host.call("artifact_create", args).await.refused("slug");
        let edit = |version: u64, more: Value| {
            let mut args = json!({"slug": "auth-spec", "version": version});
            args.as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            args
        };
        let second = host
            .call(
                "artifact_edit",
                edit(1, json!({"find": "two", "replace": "2"})),
            )
            .await
            .data();
        assert_eq!(
            (&second["version"], &second["title"]),
            (&json!(2), &json!("Auth"))
        );
        let said = host
            .call("artifact_edit", edit(1, json!({"content": "mine"})))
            .await
            .refused("version");
        assert!(
            said.contains("ERR_CONFLICT") && said.contains('2'),
            "{said}"
        );

        let racing = (0..8).map(|n| {
            let (host, args) = (host.clone(), edit(2, json!({"content": format!("by {n}")})));
            tokio::spawn(async move { host.call("artifact_edit", args).await.0["isError"] != true })
        });
        let mut won = 0;
        for one in racing.collect::<Vec<_>>() {
            won += usize::from(one.await.unwrap());
        }
        assert_eq!(
            won, 1,
            "of those who read the same version one writes the next"
        );
        let newest = host
            .call("artifact_read", json!({"slug": "auth-spec"}))
            .await
            .data();
        assert_eq!(
            (&newest["version"], &newest["content_version"]),
            (&json!(3), &json!(3))
        );
        let first = host
            .call("artifact_read", json!({"slug": "auth-spec", "version": 1}))
            .await
            .data();
        assert_eq!(
            (&first["content"], &first["version"]),
            (&json!("one two"), &json!(3))
        );
        for version in 3..25 {
            host.call("artifact_edit", edit(version, json!({"content": "more"})))
                .await
                .data();
        }
        host.call("artifact_read", json!({"slug": "auth-spec", "version": 5}))
            .await
            .refused("version");
        host.call("artifact_read", json!({"slug": "auth-spec", "version": 6}))
            .await
            .data();
        let shelf = host.call("artifact_list", json!({})).await.data();
        assert_eq!(
            (&shelf["artifacts"][0]["version"], &shelf["files"]),
            (&json!(25), &json!([]))
        );
    }
);

story!(
    a_file_comes_back_as_it_was_and_is_replaced_only_on_purpose,
    |hub| async {
        let (_alice, _bob, _path, delivery) = delivered(&hub, "files").await;
        let host = Host::visiting(&hub, &delivery).await;
        // All bytes, so that nothing in between is text.
        let data = "AAECA/8=";
        let put =
            json!({"name": "trace 1.bin", "data": data, "media_type": "application/octet-stream"});
        assert_eq!(host.call("file_put", put.clone()).await.data()["size"], 5);
        host.call("file_put", put).await.refused("name");
        let got = host
            .call("file_get", json!({"name": "trace 1.bin"}))
            .await
            .data();
        assert_eq!(
            (&got["data"], &got["put_by"]),
            (&json!(data), &json!("bob-files"))
        );
        host.call(
            "file_put",
            json!({"name": "trace 1.bin", "data": "AA==", "replace": true}),
        )
        .await
        .data();
        assert_eq!(
            host.call("file_get", json!({"name": "trace 1.bin"}))
                .await
                .data()["data"],
            "AA=="
        );
        let shelf = host.call("artifact_list", json!({})).await.data();
        assert_eq!(
            (&shelf["files"][0]["name"], &shelf["files"][0]["size"]),
            (&json!("trace 1.bin"), &json!(1))
        );
        let most = "A".repeat(1024 * 1024 / 3 * 4);
        assert_eq!(
            host.call("file_put", json!({"name": "large", "data": most}))
                .await
                .data()["size"],
            1_048_575
        );
        let larger = "AAAA".repeat(1024 * 1024 / 3 + 1);
        host.call("file_put", json!({"name": "larger", "data": larger}))
            .await
            .refused("data");
        let args = json!({"name": "huge", "data": "A".repeat(3 << 20)});
        let huge = host
            .ask("tools/call", json!({"name": "file_put", "arguments": args}))
            .await;
        huge.refused(413, "ERR_TOO_LARGE");
    }
);

story!(a_bad_argument_of_a_room_tool_is_named, |hub| async {
    let (alice, _bob, path, delivery) = delivered(&hub, "bad").await;
    let host = Host::visiting(&hub, &delivery).await;
    host.call("artifact_create", json!({"slug": "a", "content": "x x"}))
        .await
        .data();
    for (tool, args, field) in [
        ("read_history", json!({"since": "x"}), "since"),
        ("read_history", json!({"limit": 0}), "limit"),
        ("send_message", json!({"content": ""}), "content"),
        ("send_message", json!({}), "content"),
        ("set_status", json!({"status": "a\nb"}), "status"),
        ("set_status", json!({"status": "x".repeat(257)}), "status"),
        ("get_roster", json!({"all": true}), "all"),
        ("artifact_list", json!({"all": true}), "all"),
        ("artifact_read", json!({"slug": "none"}), "none"),
        ("artifact_read", json!({"slug": "../a"}), "slug"),
        (
            "artifact_create",
            json!({"slug": "B", "content": "x"}),
            "slug",
        ),
        (
            "artifact_create",
            json!({"slug": "b", "content": "x".repeat(256 * 1024 + 1)}),
            "content",
        ),
        (
            "artifact_create",
            json!({"slug": "b", "content": "a\u{0}b"}),
            "content",
        ),
        (
            "artifact_edit",
            json!({"slug": "a", "content": "x"}),
            "version",
        ),
        (
            "artifact_edit",
            json!({"slug": "a", "version": 1}),
            "content",
        ),
        (
            "artifact_edit",
            json!({"slug": "a", "version": 1, "find": "x"}),
            "replace",
        ),
        (
            "artifact_edit",
            json!({"slug": "a", "version": 1, "find": "x", "replace": "y"}),
            "find",
        ),
        (
            "artifact_edit",
            json!({"slug": "a", "version": 1, "find": "z", "replace": "y"}),
            "find",
        ),
        (
            "artifact_edit",
            json!({"slug": "none", "version": 1, "content": "x"}),
            "none",
        ),
        ("file_put", json!({"name": "a/b", "data": ""}), "name"),
        ("file_put", json!({"name": "a", "data": "%"}), "data"),
        (
            "file_put",
            json!({"name": "a", "data": "", "media_type": "text"}),
            "media_type",
        ),
        ("file_get", json!({"name": "none"}), "name"),
    ] {
        host.call(tool, args).await.refused(field);
    }
    assert_eq!(
        contents(&past(&alice, &path, "").await),
        ["Please look at the spec"],
        "nothing was said"
    );
});

story!(
    a_token_opens_one_room_until_it_ends_or_its_member_goes,
    |hub| async {
        let (alice, bob, path, delivery) = delivered(&hub, "one").await;
        let (other, _, other_path, elsewhere) = delivered(&hub, "two").await;
        let host = Host::visiting(&hub, &delivery).await;
        let turned_away = async |delivery: &Value, room: &str| {
            let bearer = delivery["mcp"]["headers"]["Authorization"]
                .as_str()
                .unwrap()
                .strip_prefix("Bearer ")
                .unwrap();
            let path = room.replace("/channels/", "/mcp/");
            let host = Host::new(&hub.anyone().with_key(bearer), &path, Revision::Stateless);
            host.ask("tools/list", json!({}))
                .await
                .refused(401, "ERR_UNAUTHORIZED")
        };
        let said = turned_away(&delivery, &other_path).await;
        assert_eq!(
            turned_away(&elsewhere, &path).await,
            said,
            "whatever is wrong with it, it is the same refusal"
        );
        assert_eq!(turned_away(&delivery, "/channels/ch_none").await, said);
        // A key is no token, and a token no key.
        let keyed = Host::new(
            &bob,
            &path.replace("/channels/", "/mcp/"),
            Revision::Stateless,
        );
        keyed
            .ask("tools/list", json!({}))
            .await
            .refused(401, "ERR_UNAUTHORIZED");
        let bearer = delivery["mcp"]["headers"]["Authorization"]
            .as_str()
            .unwrap()
            .strip_prefix("Bearer ")
            .unwrap();
        let hubs = Host::new(&hub.anyone().with_key(bearer), "/mcp", Revision::Stateless);
        hubs.ask("tools/list", json!({}))
            .await
            .refused(401, "ERR_UNAUTHORIZED");
        // Nor does the callback of the same delivery open it.
        let callback = delivery["callback"]
            .as_str()
            .unwrap()
            .rsplit('/')
            .next()
            .unwrap();
        let called = Host::new(
            &hub.anyone().with_key(callback),
            &path.replace("/channels/", "/mcp/"),
            Revision::Stateless,
        );
        called
            .ask("tools/list", json!({}))
            .await
            .refused(401, "ERR_UNAUTHORIZED");

        host.call("get_roster", json!({})).await.data();
        alice
            .delete(&format!("{path}/members/bob-one"))
            .await
            .data(200);
        assert_eq!(
            turned_away(&delivery, &path).await,
            said,
            "its member is gone"
        );
        hub.advance(Duration::from_secs(24 * 3600 - 1));
        Host::visiting(&hub, &elsewhere)
            .await
            .call("get_roster", json!({}))
            .await
            .data();
        hub.advance(Duration::from_secs(1));
        assert_eq!(
            turned_away(&elsewhere, &other_path).await,
            said,
            "R-71: its day is over"
        );
        other.delete(&other_path).await.data(200);
    }
);

story!(
    whoever_is_in_a_room_with_a_key_uses_the_hubs_own_tools,
    |hub| async {
        let (alice, bob, path, _delivery) = delivered(&hub, "keys").await;
        let id = path.strip_prefix("/channels/").unwrap();
        let (owner, member) = (Host::of(&alice).await, Host::of(&bob).await);
        let listed = member.call("channel_list", json!({})).await.data();
        assert_eq!(
            (
                &listed["channels"][0]["id"],
                &listed["channels"][0]["members"]
            ),
            (&json!(id), &json!(2))
        );
        let line = owner
            .call(
                "channel_post",
                json!({"channel_id": id, "content": "A person's word"}),
            )
            .await
            .data();
        assert_eq!(line["sender_kind"], "person", "R-77");
        let line = member
            .call(
                "channel_post",
                json!({"channel_id": id, "text": "An agent's"}),
            )
            .await
            .data();
        assert_eq!(
            (&line["sender"], &line["sender_kind"]),
            (&json!("bob-keys"), &json!("agent"))
        );
        let read = member
            .call("channel_history", json!({"channel_id": id, "limit": 2}))
            .await
            .data();
        assert_eq!(
            contents(read["lines"].as_array().unwrap()),
            ["A person's word", "An agent's"]
        );
        let after = json!({"channel_id": id, "since": read["lines"][0]["cursor"]});
        assert_eq!(
            contents(
                member.call("channel_history", after).await.data()["lines"]
                    .as_array()
                    .unwrap()
            ),
            ["An agent's"]
        );
        let resource = member
            .result(
                "resources/read",
                json!({"uri": format!("chorus://channel/{id}/history")}),
            )
            .await;
        assert!(
            resource["contents"][0]["text"]
                .as_str()
                .unwrap()
                .contains("A person's word")
        );

        let stranger = Host::of(&hub.agent("eve").await).await;
        for (tool, args, field) in [
            ("channel_list", json!({"after": "ch_none"}), "after"),
            ("channel_list", json!({"limit": 0}), "limit"),
            (
                "channel_post",
                json!({"channel_id": id, "content": "x"}),
                "channel_id",
            ),
            ("channel_post", json!({"channel_id": id}), "content"),
            ("channel_history", json!({"channel_id": id}), "channel_id"),
            (
                "channel_history",
                json!({"channel_id": id, "since": "x"}),
                "since",
            ),
        ] {
            stranger.call(tool, args).await.refused(field);
        }
        assert_eq!(
            stranger
                .fault(
                    "resources/read",
                    json!({"uri": format!("chorus://channel/{id}/history")})
                )
                .await,
            -32602
        );
    }
);

story!(
    what_a_room_kept_goes_with_it_and_outlives_a_restart,
    |hub| async {
        let (alice, _bob, path, delivery) = delivered(&hub, "kept").await;
        let host = Host::visiting(&hub, &delivery).await;
        host.call(
            "artifact_create",
            json!({"slug": "plan", "content": "first"}),
        )
        .await
        .data();
        hub.restart().await;
        let bearer = delivery["mcp"]["headers"]["Authorization"]
            .as_str()
            .unwrap()
            .strip_prefix("Bearer ")
            .unwrap();
        let there = path.replace("/channels/", "/mcp/");
        let host = Host::new(&hub.anyone().with_key(bearer), &there, Revision::Handshake);
        let read = host
            .result(
                "tools/call",
                json!({"name": "artifact_read", "arguments": {"slug": "plan"}}),
            )
            .await;
        assert_eq!(read["structuredContent"]["content"], "first");
        hub.again(&alice).delete(&path).await.data(200);
        host.ask("tools/list", json!({}))
            .await
            .refused(401, "ERR_UNAUTHORIZED");
    }
);

story!(
    a_token_has_a_budget_of_its_own,
    with(|set| set.rate_limit = 5),
    |hub| async {
        let (_alice, _bob, _path, delivery) = delivered(&hub, "busy").await;
        let host = Host::visiting(&hub, &delivery).await;
        for _ in 0..4 {
            host.call("get_roster", json!({})).await.data();
        }
        let spent = host.ask("tools/list", json!({})).await;
        spent.refused(429, "ERR_RATE_LIMITED");
        // Whoever else comes from this address has what it had before; a wrong token is counted there.
        let stranger = hub
            .anyone()
            .with_key("mcp_00000000000000000000000000000000");
        let guess = Host::new(&stranger, "/mcp/ch_none", Revision::Stateless);
        let mut answers = Vec::new();
        for _ in 0..4 {
            answers.push(guess.ask("tools/list", json!({})).await.status);
        }
        assert_eq!(
            answers,
            [401, 401, 401, 429],
            "two registrations and three guesses"
        );
    }
);
