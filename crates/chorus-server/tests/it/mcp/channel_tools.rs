//! The tools of a channel: a member posts, edits artifacts and keeps files with its tool token (R-75, CHN-17, CHN-37).

use super::host_client::{InvalidCall, McpHost, Revision, ToolResult};
use crate::support::actors::Agent;
use crate::support::actors::channel::{
    add_agent, channel_history, create_channel, find_member, message_contents, post_message,
};
use crate::support::hub::Hub;
use serde_json::{Value, json};
use std::time::Duration;

/// After this time every hub sums up again what an owner stores (D-107).
const STORED_BYTES_REREAD: Duration = Duration::from_secs(11);

pub(super) const ROOM_TOOLS: [&str; 10] = [
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
pub(super) async fn delivered(hub: &Hub, name: &str) -> (Agent, Agent, String, Value) {
    let (alice, bob) = (
        hub.agent(&format!("alice-{name}")).await,
        hub.agent(&format!("bob-{name}")).await,
    );
    let path = create_channel(&alice, name).await;
    add_agent(&alice, &path, &bob).await;
    let mut inbox = bob.inbox().await;
    post_message(&alice, &path, "Please look at the spec").await;
    let delivery = inbox.next("channel").await.data;
    (alice, bob, path, delivery)
}

story!(
    a_member_talks_in_its_room_with_what_its_delivery_brought,
    |hub| async {
        let (alice, _bob, path, delivery) = delivered(&hub, "ops").await;
        let host = McpHost::for_delivery(&hub, &delivery).await;
        assert_eq!(host.names(), ROOM_TOOLS);
        host.is_well_described().await;
        for revision in Revision::BOTH {
            let said = host
                .clone()
                .with_revision(revision)
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
            message_contents(&channel_history(&alice, &path, "").await),
            ["Please look at the spec", "On it"]
        );
        host.call("set_status", json!({"status": "reading"}))
            .await
            .data();
        assert_eq!(
            find_member(&alice, &path, "bob-ops").await["status"],
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

/// Edits the artifact "auth-spec" at this version.
async fn edit_spec(host: &McpHost, version: u64, more: Value) -> ToolResult {
    let mut args = json!({"slug": "auth-spec", "version": version});
    args.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    host.call("artifact_edit", args).await
}

/// How many of these edits of the same version, made at once, succeed.
async fn race_edits(host: &McpHost, version: u64, count: usize) -> usize {
    let racing = (0..count).map(|n| {
        let host = host.clone();
        let more = json!({"content": format!("by {n}")});
        tokio::spawn(async move { edit_spec(&host, version, more).await.0["isError"] != true })
    });
    let mut won = 0;
    for one in racing.collect::<Vec<_>>() {
        won += usize::from(one.await.unwrap());
    }
    won
}

story!(
    an_edit_never_undoes_another_that_it_has_not_seen,
    |hub| async {
        let (_alice, _bob, _path, delivery) = delivered(&hub, "docs").await;
        let host = McpHost::for_delivery(&hub, &delivery).await;
        let args = json!({"slug": "auth-spec", "title": "Auth", "content": "one two"});
        let made = host.call("artifact_create", args.clone()).await.data();
        assert_eq!(
            (&made["version"], &made["size"], &made["created_by"]),
            (&json!(1), &json!(7), &json!("bob-docs"))
        );
        host.call("artifact_create", args).await.refused("slug");
        let second = edit_spec(&host, 1, json!({"find": "two", "replace": "2"}))
            .await
            .data();
        assert_eq!(
            (&second["version"], &second["title"]),
            (&json!(2), &json!("Auth"))
        );
        let said = edit_spec(&host, 1, json!({"content": "mine"}))
            .await
            .refused("version");
        assert!(
            said.contains("ERR_CONFLICT") && said.contains('2'),
            "{said}"
        );

        let won = race_edits(&host, 2, 8).await;
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
            edit_spec(&host, version, json!({"content": "more"}))
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
        let host = McpHost::for_delivery(&hub, &delivery).await;
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

fn invalid_message_calls() -> Vec<InvalidCall> {
    vec![
        ("read_history", json!({"since": "x"}), "since"),
        ("read_history", json!({"limit": 0}), "limit"),
        ("send_message", json!({"content": ""}), "content"),
        ("send_message", json!({}), "content"),
        ("set_status", json!({"status": "a\nb"}), "status"),
        ("set_status", json!({"status": "x".repeat(257)}), "status"),
        ("get_roster", json!({"all": true}), "all"),
    ]
}

fn invalid_artifact_and_file_calls() -> Vec<InvalidCall> {
    vec![
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
    ]
}

story!(a_bad_argument_of_a_room_tool_is_named, |hub| async {
    let (alice, _bob, path, delivery) = delivered(&hub, "bad").await;
    let host = McpHost::for_delivery(&hub, &delivery).await;
    host.call("artifact_create", json!({"slug": "a", "content": "x x"}))
        .await
        .data();
    for (tool, args, field) in invalid_message_calls()
        .into_iter()
        .chain(invalid_artifact_and_file_calls())
    {
        host.call(tool, args).await.refused(field);
    }
    assert_eq!(
        message_contents(&channel_history(&alice, &path, "").await),
        ["Please look at the spec"],
        "nothing was said"
    );
});

story!(
    artifacts_and_files_beyond_the_quota_are_refused,
    with(|set| set.hub.quotas.artifacts = 2),
    |hub| async {
        //
        let (alice, _bob, _path, delivery) = delivered(&hub, "ops").await;
        let host = McpHost::for_delivery(&hub, &delivery).await;
        let create = async |slug: &str| {
            host.call(
                "artifact_create",
                json!({"slug": slug, "content": "a text"}),
            )
            .await
        };
        create("one").await.data();
        let mut file = json!({"name": "a.txt", "data": "YQ=="});
        host.call("file_put", file.clone()).await.data();
        create("two").await.refused("quota artifacts");
        // A file that is replaced is no further one.
        file["replace"] = json!(true);
        host.call("file_put", file).await.data();
        let used = alice.get("/agent/usage").await.data(200);
        assert_eq!(used["artifacts"], json!({"used": 2, "bound": 2}));
    }
);

story!(
    artifacts_and_files_count_for_the_stored_bytes,
    with(|set| set.hub.quotas.stored_bytes = 30_000),
    |hub| async {
        // those of a room are its owner's, what a member says is its own
        let (alice, _bob, _path, delivery) = delivered(&hub, "ops").await;
        let host = McpHost::for_delivery(&hub, &delivery).await;
        let full = json!({"slug": "auth-spec", "content": "x".repeat(10_000)});
        host.call("artifact_create", full).await.data();
        // Both versions are kept.
        let second = format!("here{}", "y".repeat(10_000));
        edit_spec(&host, 1, json!({"content": second})).await.data();
        hub.advance(STORED_BYTES_REREAD);
        let more = "z".repeat(12_000);
        for refused in [
            host.call("artifact_create", json!({"slug": "more", "content": more}))
                .await,
            edit_spec(&host, 2, json!({"content": more})).await,
            edit_spec(&host, 2, json!({"find": "here", "replace": more})).await,
            host.call(
                "file_put",
                json!({"name": "more", "data": "AAAA".repeat(4_000)}),
            )
            .await,
            host.call("send_message", json!({"content": "z".repeat(31_000)}))
                .await,
        ] {
            refused.refused("quota stored_bytes");
        }
        let used = alice.get("/agent/usage").await.data(200)["stored_bytes"]["used"].clone();
        assert!((20_000..25_000).contains(&used.as_u64().unwrap()), "{used}");
        // What fits is stored.
        let small = json!({"name": "small", "data": "AAAA"});
        host.call("file_put", small).await.data();
        host.call("send_message", json!({"content": "small"}))
            .await
            .data();
    }
);
