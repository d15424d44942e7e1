//! What a channel keeps, with a key: artifacts, files, and the deliveries of a member.

use crate::mcp::host_client::McpHost;
use crate::support::actors::Answer;
use crate::support::actors::remote_member::{OwnedChannel, RemoteMember};
use crate::support::hub::Hub;
use serde_json::{Value, json};

/// Sends a PATCH with this agent's key.
async fn patch(room: &OwnedChannel, path: &str, body: &Value) -> Answer {
    Answer::of(room.owner.request("PATCH", &room.path(path)).json(body)).await
}

/// A member that was delivered one message, and its tools.
async fn host_of_member(hub: &Hub, room: &OwnedChannel) -> McpHost {
    let mut oak = RemoteMember::accepting(hub).await;
    room.add_remote("oak", &oak.url()).await;
    room.post_message("begin").await;
    McpHost::for_delivery(hub, &oak.next_delivery().await).await
}

story!(
    people_write_artifacts_and_the_channel_is_told,
    |hub| async {
        //
        let room = OwnedChannel::create(&hub, "alice").await;
        let host = host_of_member(&hub, &room).await;
        let new = json!({"slug": "spec", "title": "Spec", "content": "one two"});
        let made = room
            .owner
            .post(&room.path("/artifacts"), &new)
            .await
            .data(201);
        assert_eq!(
            (&made["version"], &made["created_by"]),
            (&json!(1), &json!("alice"))
        );
        room.owner
            .post(&room.path("/artifacts"), &new)
            .await
            .refused(409, "ERR_CONFLICT");
        let edit = json!({"slug": "spec", "version": 1, "find": "two", "replace": "2"});
        host.call("artifact_edit", edit).await.data();
        let stale = json!({"version": 1, "content": "mine"});
        patch(&room, "/artifacts/spec", &stale)
            .await
            .refused(409, "ERR_CONFLICT");
        let whole = json!({"version": 2, "content": "three"});
        assert_eq!(
            patch(&room, "/artifacts/spec", &whole).await.data(200)["version"],
            3
        );
        for bad in [
            json!({"version": 3}),
            json!({"version": 3, "content": "x", "find": "y"}),
            json!({"version": 3, "find": "y"}),
            json!({"content": "x"}),
        ] {
            patch(&room, "/artifacts/spec", &bad)
                .await
                .refused(400, "ERR_VALIDATION");
        }
        let lines = room.history().await;
        let told: Vec<_> = lines
            .iter()
            .filter(|row| row["type"] == "artifact")
            .map(|row| (&row["sender"], &row["name"], &row["version"]))
            .collect();
        let line = |sender: &str, version: u64| (json!(sender), json!("spec"), json!(version));
        let expected = [line("alice", 1), line("oak", 2), line("alice", 3)];
        assert_eq!(
            told,
            expected
                .iter()
                .map(|(a, b, c)| (a, b, c))
                .collect::<Vec<_>>()
        );
        let read = room
            .owner
            .get(&room.path("/artifacts/spec"))
            .await
            .data(200);
        assert_eq!(read["content"], "three");
        let stranger = hub.agent("mallory").await;
        stranger
            .post(&room.path("/artifacts"), &new)
            .await
            .refused(404, "ERR_NOT_FOUND");
    }
);

story!(people_fetch_the_files_that_agents_put, |hub| async {
    //
    let room = OwnedChannel::create(&hub, "alice").await;
    let host = host_of_member(&hub, &room).await;
    let file = json!({"name": "page é.html", "media_type": "text/html", "data": "PGI+aGk8L2I+"});
    host.call("file_put", file).await.data();
    let path = room.path("/files/page%20%C3%A9.html");
    let answer = room.owner.get_as("*/*", &path).await;
    assert_eq!((answer.status, &*answer.text), (200, "<b>hi</b>"));
    assert_eq!(answer.header("content-type"), "application/octet-stream");
    assert_eq!(answer.header("content-disposition"), "attachment");
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    let line = room.history().await.pop().unwrap();
    assert_eq!(
        (&line["type"], &line["name"], &line["sender"]),
        (&json!("file"), &json!("page é.html"), &json!("oak"))
    );
    room.owner
        .get(&room.path("/files/none"))
        .await
        .refused(404, "ERR_NOT_FOUND");
    hub.agent("mallory")
        .await
        .get(&path)
        .await
        .refused(404, "ERR_NOT_FOUND");
});

story!(
    what_a_member_hears_can_be_changed_without_removing_it,
    |hub| async {
        //
        let room = OwnedChannel::create(&hub, "alice").await;
        let mut oak = RemoteMember::accepting(&hub).await;
        room.add_remote("oak", &oak.url()).await;
        let bob = hub.agent("bob").await;
        room.add_agent(&bob).await;
        let mentions = json!({"deliver": "mentions"});
        assert_eq!(
            patch(&room, "/members/OAK", &mentions).await.data(200)["deliver"],
            "mentions"
        );
        room.post_message("one").await;
        room.post_message("@oak two").await;
        assert_eq!(oak.texts(1).await, ["@oak two"]);
        let path = room.path("/members/bob");
        let as_bob = async |body: &Value, path: &str| {
            Answer::of(bob.request("PATCH", path).json(body)).await
        };
        assert_eq!(
            as_bob(&mentions, &path).await.data(200)["deliver"],
            "mentions"
        );
        as_bob(&mentions, &room.path("/members/oak"))
            .await
            .refused(403, "ERR_FORBIDDEN");
        patch(&room, "/members/alice", &mentions)
            .await
            .refused(409, "ERR_CONFLICT");
        for bad in [json!({"deliver": "none"}), json!({}), json!({"name": "x"})] {
            patch(&room, "/members/oak", &bad)
                .await
                .refused(400, "ERR_VALIDATION");
        }
    }
);

story!(
    structured_content_goes_with_every_way_of_speaking,
    |hub| async {
        // R-76, BEYOND-04
        let room = OwnedChannel::create(&hub, "alice").await;
        let host = host_of_member(&hub, &room).await;
        let parts = json!([{"data": {"rows": [1, 2]}}]);
        let said = host
            .call("send_message", json!({"content": "see", "parts": parts}))
            .await
            .data();
        assert_eq!(said["parts"], parts);
        let alice = McpHost::of(&room.owner).await;
        let args = json!({"channel_id": room.id, "content": "see", "parts": parts});
        assert_eq!(
            alice.call("channel_post", args).await.data()["parts"],
            parts
        );
        let bad = json!({"content": "see", "parts": [{"text": "a", "data": 1}]});
        assert_eq!(host.call("send_message", bad).await.0["isError"], true);
    }
);
