//! The SSRF guard: a hub never posts to private addresses.

use crate::support::actors::{Reply, Webhook, registration};
use serde_json::json;

const PRIVATE: [&str; 28] = [
    "http://127.0.0.1/",
    "http://127.9.9.9:8080/",
    "http://0.0.0.0/",
    "http://0.1.2.3/",
    "http://10.1.2.3/",
    "http://100.64.0.1/",
    "http://169.254.169.254/latest/",
    "http://172.16.0.1/",
    "http://192.0.0.1/",
    "http://192.168.1.1/",
    "http://198.18.0.1/",
    "http://224.0.0.1/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    "http://2130706433/",
    "http://0x7f.1/",
    "http://0177.0.0.1/",
    "http://127.1/",
    "http://[::1]/",
    "http://[::]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:10.0.0.1]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[fe80::1]/",
    "http://[fc00::1]/",
    "http://[ff02::1]/",
    "http://[2002:7f00:1::]/",
];

story!(
    a_private_endpoint_is_refused_at_registration,
    with(|set| set.hub.allow_private_endpoints = false),
    |hub| async {
        // lesson 8; failure 3
        for (number, url) in PRIVATE.iter().enumerate() {
            let mut body = registration(&format!("agent-{number}@chorus"));
            body["endpoint"] = json!(url);
            let answer = hub.anonymous().post("/register", &body).await;
            assert_eq!(answer.status, 400, "{url}: {answer:?}");
            answer.refused(400, "ERR_ENDPOINT_BLOCKED");
            body.as_object_mut().unwrap().remove("agent_card");
            hub.operator()
                .post("/agents", &body)
                .await
                .refused(400, "ERR_ENDPOINT_BLOCKED");
            let market = json!({"agent_id": format!("worker-{number}"), "agent_name": "w", "api_endpoint": url});
            let answer = hub.anonymous().post("/register", &market).await;
            assert_eq!(
                (answer.status, &answer.json()["error_code"]),
                (400, &json!("ERR_ENDPOINT_BLOCKED")),
                "{url}"
            );
        }
        assert_eq!(hub.anonymous().get("/agents").await.data(200), json!([]));
    }
);

story!(
    a_name_is_judged_at_each_connection,
    with(|set| set.hub.allow_private_endpoints = false),
    |hub| async {
        // R-38; failure 3: checked, then resolved again
        let mut webhook = Webhook::replying(Reply::ok()).await;
        let alice = hub.agent("alice").await;
        let unresolvable = hub
            .agent_with_webhook("bob", "http://no-such-host.invalid/receive")
            .await;
        let data = alice
            .send_expecting(&unresolvable.id, "hello", "failed")
            .await;
        assert_eq!(data["error_code"], "ERR_AGENT_UNREACHABLE");
        let mut body = registration("carol@chorus");
        body["endpoint"] = json!(format!("http://localhost:{}/receive", webhook.port()));
        let answer = hub.anonymous().post("/register", &body).await;
        if answer.status == 201 {
            assert_eq!(
                alice.send_expecting("carol", "hello", "failed").await["error_code"],
                "ERR_AGENT_UNREACHABLE"
            );
        } else {
            answer.refused(400, "ERR_ENDPOINT_BLOCKED");
        }
        assert!(webhook.received_nothing(), "loopback was reached by name");
    }
);

story!(
    an_endpoint_kept_from_more_trusting_days_is_judged_too,
    |hub| async {
        // failure 3: the setting holds for every connection, not only at registration
        let mut webhook = Webhook::replying(Reply::ok()).await;
        let (alice, bob) = (
            hub.agent("alice").await,
            hub.agent_with_webhook("bob", &webhook.url()).await,
        );
        alice.send_expecting(&bob.id, "reached", "delivered").await;
        webhook.next_request().await;
        hub.settings.hub.allow_private_endpoints = false;
        hub.restart().await;
        let data = hub
            .reconnect(&alice)
            .send_expecting(&bob.id, "not reached", "failed")
            .await;
        assert_eq!(data["error_code"], "ERR_AGENT_UNREACHABLE");
        assert!(webhook.received_nothing());
    }
);
