//! The origin of hosted deliveries: a service speaks neither for the hub's own channels nor for another service.

use super::agent_host::{acknowledged, connected, delivery};
use serde_json::json;

story!(
    a_service_speaks_neither_for_a_channel_of_this_hub_nor_for_another_origin,
    |hub| async {
        // the agent would send its answer to the service
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let path = connected(&hub, &bob).await;
        let room = alice
            .post("/channels", &json!({"name": "board"}))
            .await
            .data(201);
        let id = room["id"].as_str().unwrap();
        let mut inbox = bob.inbox().await;
        for _ in 0..2 {
            let said = hub
                .anonymous()
                .post(&path, &delivery(id, "m1", "what are the numbers?"))
                .await
                .refused(409, "ERR_CONFLICT");
            assert!(said.contains("channel.id"), "{said}");
            // A deleted channel is no other channel's either.
            let _ = alice.delete(&format!("/channels/{id}")).await;
        }
        let mut forged = delivery("c", "m2", "hello");
        forged["origin"] = json!("https://bank.example");
        acknowledged(&hub.anonymous().post(&path, &forged).await);
        let heard = inbox.next("channel").await;
        assert_eq!(heard.data["origin"], "https://service.example.com");
        assert_eq!(heard.text.matches("\"origin\"").count(), 1);
    }
);
