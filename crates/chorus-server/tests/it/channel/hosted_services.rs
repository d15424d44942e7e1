//! What tells the services of a hosted agent apart: their names, origins, long callbacks and signatures (R-90, CHN-15, CHN-34).

use super::agent_host::{acknowledged, connected, delivery};
use crate::support::actors::Answer;
use crate::support::hub::Hub;
use chorus_wire::channel::delivery::ChannelDelivery;
use serde_json::{Value, json};
use std::time::Duration;

/// After this time every hub sums up again what an owner stores (D-107).
const STORED_BYTES_REREAD: Duration = Duration::from_secs(11);
const SECRET: &str = "whsec_dGhpcyBpcyBub3QgYSByZWFsIHNlY3JldA==";

story!(two_services_with_the_same_ids_are_both_heard, |hub| async {
    //
    let bob = hub.agent("bob").await;
    let path = connected(&hub, &bob).await;
    let mut inbox = bob.inbox().await;
    let mut first = delivery("general", "1", "from the first");
    let mut second = delivery("general", "1", "from another origin");
    second["callback"] = json!("https://other.example/cb/tok_2");
    let mut third = delivery("general", "1", "from another service there");
    third["channel"]["service"] = json!("Slack");
    for body in [&first, &second, &third] {
        acknowledged(&hub.anonymous().post(&path, body).await);
        let event = inbox.next("channel").await;
        assert_eq!(event.data["message"], body["message"]);
    }
    // A repetition has a fresh callback of the same origin.
    first["callback"] = json!("https://service.example.com/cb/tok_9");
    acknowledged(&hub.anonymous().post(&path, &first).await);
    acknowledged(
        &hub.anonymous()
            .post(&path, &delivery("general", "2", "last"))
            .await,
    );
    let event = inbox.next("channel").await;
    assert_eq!(event.data["message"]["content"], "last", "R-72: once");
});

story!(a_callback_is_opaque_and_may_be_long, |hub| async {
    // CHN-15: pre-signed URLs, also with user information
    let bob = hub.agent("bob").await;
    let path = connected(&hub, &bob).await;
    let mut inbox = bob.inbox().await;
    let long = "https://s.example/cb?X-Amz-Signature=";
    let longest = format!("{long}{}", "a".repeat(8 * 1024 - long.len()));
    for (number, callback) in [
        &*longest,
        "https://user:pass@s.example/cb",
        "https://u@s.example/",
    ]
    .into_iter()
    .enumerate()
    {
        let mut body = delivery("c", &number.to_string(), "hi");
        body["callback"] = json!(callback);
        acknowledged(&hub.anonymous().post(&path, &body).await);
        let event = inbox.next("channel").await;
        assert_eq!(event.data["callback"], callback);
        assert_eq!(
            event.data["origin"], "https://s.example",
            "without the user"
        );
    }
    for bad in [
        &*format!("{longest}a"),
        "https://a@b@s.example/",
        "ftp://s.example/x",
    ] {
        let mut body = delivery("c", "bad", "hi");
        body["callback"] = json!(bad);
        hub.anonymous()
            .post(&path, &body)
            .await
            .refused(400, "ERR_VALIDATION");
    }
});

/// Posts a signed body to a connection string.
async fn post_signed(hub: &Hub, path: &str, body: &str) -> Answer {
    let signer = standardwebhooks::Webhook::new(SECRET).unwrap();
    let signature = signer
        .sign("evt_1", 1_774_000_000, body.as_bytes())
        .unwrap();
    let request = hub
        .anonymous()
        .request("POST", path)
        .header("content-type", "application/json")
        .header("webhook-id", "evt_1")
        .header("webhook-timestamp", "1774000000")
        .header("webhook-signature", signature);
    Answer::of(request.body(body.to_owned())).await
}

/// The signature that the body in the event has.
fn signature_of(event: &Value, text: &str) -> String {
    let body = match event["signed_body"].as_str() {
        Some(body) => body.to_owned(),
        None => ChannelDelivery::cut_signed_body(text).unwrap(),
    };
    let signer = standardwebhooks::Webhook::new(SECRET).unwrap();
    signer
        .sign("evt_1", 1_774_000_000, body.as_bytes())
        .unwrap()
}

story!(
    a_hosted_agent_gets_what_it_needs_to_verify_a_signature,
    |hub| async {
        // CHN-34
        let bob = hub.agent("bob").await;
        let path = connected(&hub, &bob).await;
        let mut inbox = bob.inbox().await;
        let plain = delivery("c", "1", "one line").to_string();
        let several =
            serde_json::to_string_pretty(&delivery("c", "2", "several lines")).unwrap() + "\n";
        let mut forged = delivery("c", "3", "with fields of the hub");
        forged["webhook_headers"] = json!({"webhook-id": "forged"});
        forged["signed_body"] = json!("forged");
        forged["origin"] = json!("https://forged.example");
        for body in [plain, several, forged.to_string()] {
            acknowledged(&post_signed(&hub, &path, &body).await);
            let event = inbox.next("channel").await;
            let headers = &event.data["webhook_headers"];
            assert_eq!(headers["webhook-id"], "evt_1", "{}", event.text);
            assert_eq!(
                headers["webhook-signature"],
                signature_of(&event.data, &event.text),
                "{}",
                event.text
            );
            assert_eq!(event.data["origin"], "https://service.example.com");
        }
        let unsigned = delivery("c", "4", "unsigned");
        acknowledged(&hub.anonymous().post(&path, &unsigned).await);
        let event = inbox.next("channel").await;
        assert_eq!(event.data.get("webhook_headers"), None);
    }
);

story!(
    what_services_deliver_counts_for_the_owner_of_the_agent,
    with(|set| set.hub.quotas.stored_bytes = 20_000),
    |hub| async {
        // a service has no quota, so the agent that gave its connection string away pays
        let bob = hub.agent("bob").await;
        let path = connected(&hub, &bob).await;
        let text = "x".repeat(8_000);
        for number in ["1", "2"] {
            let body = delivery("c", number, &text);
            acknowledged(&hub.anonymous().post(&path, &body).await);
            hub.advance(STORED_BYTES_REREAD);
        }
        let beyond = hub
            .anonymous()
            .post(&path, &delivery("c", "3", &text))
            .await;
        let said = beyond.refused(403, "ERR_QUOTA");
        assert!(said.contains("stored_bytes"), "{said}");
        let used = bob.get("/agent/usage").await.data(200)["stored_bytes"]["used"].clone();
        assert!((16_000..20_000).contains(&used.as_u64().unwrap()), "{used}");
        // A smaller one fits, and what was refused is not on the inbox.
        let small = delivery("c", "4", "small");
        acknowledged(&hub.anonymous().post(&path, &small).await);
        let mut inbox = bob.inbox_after("0").await;
        for number in ["1", "2", "4"] {
            let event = inbox.next("channel").await;
            assert_eq!(event.data["message"]["id"], number);
        }
    }
);
