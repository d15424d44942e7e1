//! Access to the tools of a channel: by tool token for one member, or by key at the hub's own tools (R-75, CHN-17, CHN-37).

use super::channel_tools::delivered;
use super::host_client::{McpHost, Revision};
use crate::support::actors::channel::{create_channel, invite_agent, message_contents};
use crate::support::actors::{Caller, rows};
use crate::support::hub::Hub;
use serde_json::{Value, json};
use std::time::Duration;

/// The tool token of a delivery.
fn tool_token(delivery: &Value) -> &str {
    delivery["mcp"]["headers"]["Authorization"]
        .as_str()
        .unwrap()
        .strip_prefix("Bearer ")
        .unwrap()
}

/// Where the tools of a channel are.
fn mcp_path(channel: &str) -> String {
    channel.replace("/channels/", "/mcp/")
}

/// The refusal of a caller whose credential does not open these tools.
async fn assert_tools_refused(caller: &Caller, path: &str) -> String {
    McpHost::new(caller, path, Revision::Stateless)
        .ask("tools/list", json!({}))
        .await
        .refused(401, "ERR_UNAUTHORIZED")
}

story!(
    a_token_opens_one_room_until_it_ends_or_its_member_goes,
    |hub| async {
        let (alice, bob, path, delivery) = delivered(&hub, "one").await;
        let (other, _, other_path, elsewhere) = delivered(&hub, "two").await;
        let host = McpHost::for_delivery(&hub, &delivery).await;
        let turned_away = async |delivery: &Value, room: &str| {
            assert_tools_refused(
                &hub.anonymous().with_key(tool_token(delivery)),
                &mcp_path(room),
            )
            .await
        };
        let said = turned_away(&delivery, &other_path).await;
        assert_eq!(
            turned_away(&elsewhere, &path).await,
            said,
            "whatever is wrong with it, it is the same refusal"
        );
        assert_eq!(turned_away(&delivery, "/channels/ch_none").await, said);
        // A key is no token, and a token no key.
        assert_tools_refused(&bob, &mcp_path(&path)).await;
        assert_tools_refused(&hub.anonymous().with_key(tool_token(&delivery)), "/mcp").await;
        // Nor does the callback of the same delivery open it.
        let callback = delivery["callback"]
            .as_str()
            .unwrap()
            .rsplit('/')
            .next()
            .unwrap();
        assert_tools_refused(&hub.anonymous().with_key(callback), &mcp_path(&path)).await;

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
        McpHost::for_delivery(&hub, &elsewhere)
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

/// An agent that is no member reads and writes nothing of this channel.
async fn assert_stranger_refused(hub: &Hub, id: &str) {
    let stranger = McpHost::of(&hub.agent("eve").await).await;
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
            .error_code(
                "resources/read",
                json!({"uri": format!("chorus://channel/{id}/history")})
            )
            .await,
        -32602
    );
}

story!(
    a_channel_member_with_a_key_uses_the_hubs_own_tools,
    |hub| async {
        let (alice, bob, path, _delivery) = delivered(&hub, "keys").await;
        let id = path.strip_prefix("/channels/").unwrap();
        let (owner, member) = (McpHost::of(&alice).await, McpHost::of(&bob).await);
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
            message_contents(read["lines"].as_array().unwrap()),
            ["A person's word", "An agent's"]
        );
        let after = json!({"channel_id": id, "since": read["lines"][0]["cursor"]});
        assert_eq!(
            message_contents(
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
        assert_stranger_refused(&hub, id).await;
    }
);

story!(
    what_a_room_kept_goes_with_it_and_outlives_a_restart,
    |hub| async {
        let (alice, _bob, path, delivery) = delivered(&hub, "kept").await;
        let host = McpHost::for_delivery(&hub, &delivery).await;
        host.call(
            "artifact_create",
            json!({"slug": "plan", "content": "first"}),
        )
        .await
        .data();
        hub.restart().await;
        let host = McpHost::new(
            &hub.anonymous().with_key(tool_token(&delivery)),
            &mcp_path(&path),
            Revision::Handshake,
        );
        let read = host
            .result(
                "tools/call",
                json!({"name": "artifact_read", "arguments": {"slug": "plan"}}),
            )
            .await;
        assert_eq!(read["structuredContent"]["content"], "first");
        hub.reconnect(&alice).delete(&path).await.data(200);
        host.ask("tools/list", json!({}))
            .await
            .refused(401, "ERR_UNAUTHORIZED");
    }
);

story!(
    guessed_tool_tokens_are_refused_without_a_lookup,
    with(|set| set.rate_limit = 10),
    |hub| async {
        // D-20: a valid token from the guessing address is refused too, which shows that none is looked up
        let (_alice, _bob, _path, delivery) = delivered(&hub, "guessed").await;
        let host = McpHost::for_delivery(&hub, &delivery).await;
        for number in 0..20 {
            let stranger = hub.anonymous().with_key(&format!("mcp_{number:032}"));
            let guess = McpHost::new(&stranger, "/mcp/ch_none", Revision::Stateless);
            let status = guess.ask("tools/list", json!({})).await.status;
            assert!(matches!(status, 401 | 429), "{status}");
        }
        host.ask("tools/list", json!({}))
            .await
            .refused(429, "ERR_RATE_LIMITED");
        hub.advance(Duration::from_secs(60));
        assert_eq!(host.ask("tools/list", json!({})).await.status, 200);
    }
);

story!(
    a_token_spends_the_budget_of_its_agent,
    with(|set| set.rate_limit = 8),
    |hub| async {
        let (_alice, bob, _path, delivery) = delivered(&hub, "busy").await;
        let host = McpHost::for_delivery(&hub, &delivery).await;
        let mut statuses = Vec::new();
        for _ in 0..8 {
            statuses.push(host.ask("tools/list", json!({})).await.status);
        }
        assert_eq!((statuses[0], statuses[7]), (200, 429), "{statuses:?}");
        bob.get("/agent/messages")
            .await
            .refused(429, "ERR_RATE_LIMITED");
        // Other clients at this address keep their budget; a wrong token is counted there.
        let stranger = hub
            .anonymous()
            .with_key("mcp_00000000000000000000000000000000");
        let guess = McpHost::new(&stranger, "/mcp/ch_none", Revision::Stateless);
        let mut answers = Vec::new();
        for _ in 0..7 {
            answers.push(guess.ask("tools/list", json!({})).await.status);
        }
        assert_eq!(
            answers,
            [401, 401, 401, 401, 401, 401, 429],
            "two registrations and six guesses"
        );
    }
);

memory_story!(an_agent_answers_its_invitations_with_a_tool, |hub| async {
    //
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let host = McpHost::of(&bob).await;
    for (name, decline) in [("one", false), ("two", true)] {
        let path = create_channel(&alice, name).await;
        let id = path.strip_prefix("/channels/").unwrap();
        invite_agent(&alice, &path, &bob).await;
        let listed = host.call("channel_list", json!({})).await.data();
        let channel = rows(listed["channels"].clone()).pop().unwrap();
        assert_eq!(
            (&channel["id"], &channel["membership"]),
            (&json!(id), &json!("invited"))
        );
        let args = json!({"channel_id": id, "decline": decline});
        let answered = host.call("channel_join", args).await.data();
        assert_eq!(answered, json!({"channel_id": id, "joined": !decline}));
        assert_eq!(bob.get(&path).await.status, if decline { 404 } else { 200 });
    }
    host.call("channel_join", json!({"channel_id": "ch_none"}))
        .await
        .refused("channel_id");
});

memory_story!(
    what_a_host_reads_as_the_hubs_own_words_has_no_text_of_others,
    |hub| async {
        //
        let (_, _, _, delivery) = delivered(&hub, "obey-the-owner").await;
        let host = McpHost::for_delivery(&hub, &delivery)
            .await
            .with_revision(Revision::Handshake);
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "story", "version": "1"}});
        let met = host.result("initialize", hello).await;
        assert!(met["instructions"].is_string(), "{met}");
        assert!(!met.to_string().contains("obey-the-owner"), "{met}");
    }
);
