//! Resources and prompts: what an MCP host can read without a tool.

use super::host_client::{McpHost, Revision};
use serde_json::{Value, json};

/// Each way to write the address of bob leads to the conversation with him.
async fn assert_conversation_is_read(host: &McpHost) {
    for uri in [
        "chorus://conversation/bob@chorus",
        "chorus://conversation/bob%40chorus",
        "chorus://conversation/~bob",
    ] {
        let read = host.result("resources/read", json!({"uri": uri})).await;
        let rows: Value =
            serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(rows[0]["envelope"]["original_text"], "hello", "{uri}");
    }
}

story!(
    a_host_reads_the_guide_the_directory_and_a_conversation,
    |hub| async {
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        alice.send_expecting("bob@chorus", "hello", "queued").await;
        for revision in Revision::BOTH {
            let host = McpHost::of(&alice).await.with_revision(revision);
            let listed = host.result("resources/list", json!({})).await;
            let uris: Vec<&str> = listed["resources"]
                .as_array()
                .unwrap()
                .iter()
                .map(|one| one["uri"].as_str().unwrap())
                .collect();
            assert_eq!(
                uris,
                [
                    "chorus://skill/en",
                    "chorus://skill/zh-CN",
                    "chorus://directory",
                    "chorus://frames"
                ]
            );
            for uri in uris {
                let read = host.result("resources/read", json!({"uri": uri})).await;
                assert_eq!(read["contents"][0]["uri"], uri);
                assert!(
                    read["contents"][0]["text"].as_str().unwrap().len() > 20,
                    "{uri}"
                );
            }
            let templates = host.result("resources/templates/list", json!({})).await;
            assert_eq!(templates["resourceTemplates"].as_array().unwrap().len(), 2);
            assert_conversation_is_read(&host).await;
            let missing = if revision == Revision::Stateless {
                -32602
            } else {
                -32002
            };
            for uri in [
                "chorus://conversation/absent",
                "chorus://skill/xx",
                "chorus://x",
                "file:///etc/passwd",
            ] {
                assert_eq!(
                    host.error_code("resources/read", json!({"uri": uri})).await,
                    missing,
                    "{uri}"
                );
            }
        }
        let guide = McpHost::of(&bob)
            .await
            .result("resources/read", json!({"uri": "chorus://skill/en"}))
            .await;
        assert!(
            guide["contents"][0]["text"]
                .as_str()
                .unwrap()
                .contains(&hub.url),
            "with this hub's own address"
        );
    }
);

memory_story!(
    a_person_picks_a_prompt_and_the_model_gets_the_whole_task,
    |hub| async {
        let alice = hub.agent("alice").await;
        let card = json!({"agent_card": {"card_version": "0.3", "user_culture": "ja", "supported_languages": ["ja"]}});
        hub.agent_with("yuki@chorus", &card).await;
        for revision in Revision::BOTH {
            let host = McpHost::of(&alice).await.with_revision(revision);
            let listed = host.result("prompts/list", json!({})).await;
            assert_eq!(listed["prompts"].as_array().unwrap().len(), 2, "{listed}");
            let args = json!({"receiver_id": "yuki@chorus", "text": "Break a leg!"});
            let got = host
                .result(
                    "prompts/get",
                    json!({"name": "cross_cultural_message", "arguments": args}),
                )
                .await;
            let text = got["messages"][0]["content"]["text"].as_str().unwrap();
            assert!(
                text.contains("yuki@chorus")
                    && text.contains("culture is ja")
                    && text.contains("Break a leg!"),
                "{text}"
            );
            let got = host
                .result(
                    "prompts/get",
                    json!({"name": "handover", "arguments": {"scope": "~alice/cc-*"}}),
                )
                .await;
            assert!(
                got["messages"][0]["content"]["text"]
                    .as_str()
                    .unwrap()
                    .contains("~alice/cc-*")
            );
            for (name, args) in [
                ("cross_cultural_message", json!({"text": "x"})),
                ("none", json!({})),
            ] {
                assert_eq!(
                    host.error_code("prompts/get", json!({"name": name, "arguments": args}))
                        .await,
                    -32602,
                    "{name}"
                );
            }
        }
    }
);
