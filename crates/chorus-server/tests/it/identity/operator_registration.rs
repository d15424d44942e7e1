//! Registration of agents by an operator.

use crate::support::actors::Agent;
use crate::support::examples::example;
use serde_json::json;

story!(an_operator_registers_and_updates_as_printed, |hub| async {
    // TRN-28, TRN-30, TRN-31
    let request = example("transport-profile/6.3-register.http");
    let first = hub.operator().post("/agents", &request).await.data(201);
    // the record is `data` itself, and the keys of other registrations come after it
    let record = |data: &serde_json::Value| data["registration"].clone();
    for (key, value) in record(&first).as_object().unwrap() {
        assert_eq!(&first[key], value, "{key}");
    }
    assert_eq!(first["agent_id"], "alice@chorus.example");
    assert_eq!(first["endpoint"], request["endpoint"]);
    let alice = Agent::new(
        &hub.anonymous(),
        "alice@chorus.example",
        first["api_key"].as_str().expect("a new agent's key"),
    );
    let mut update = request.clone();
    update["endpoint"] = json!("https://alice.example/elsewhere");
    let second = hub.operator().post("/agents", &update).await.data(200);
    assert_eq!(
        record(&second)["registered_at"],
        record(&first)["registered_at"]
    );
    assert_eq!(second["endpoint"], update["endpoint"]);
    assert!(
        second.get("api_key").is_none_or(serde_json::Value::is_null),
        "an update shows no key"
    );
    let seen = alice.get("/agents/alice@chorus.example").await.data(200);
    assert_eq!(seen["endpoint"], "https://alice.example/elsewhere");
});

story!(
    an_operators_registration_needs_address_and_endpoint,
    |hub| async {
        // TRN-29
        for body in [
            json!({"agent_id": "a@b"}),
            json!({"endpoint": "http://127.0.0.1:9/"}),
            json!({"agent_id": "short", "endpoint": "http://127.0.0.1:9/"}),
            json!({"agent_id": "a@b", "endpoint": "nowhere"}),
            json!({"agent_id": "a@b", "endpoint": "http://127.0.0.1:9/", "agent_card": {"chorus_version": "0.2"}}),
        ] {
            hub.operator()
                .post("/agents", &body)
                .await
                .refused(400, "ERR_VALIDATION");
        }
        assert_eq!(hub.anonymous().get("/agents").await.data(200), json!([]));
    }
);

story!(only_operators_use_the_operator_route, |hub| async {
    // failure 1
    let alice = hub.agent("alice").await;
    hub.agent_with_webhook("bob", "http://127.0.0.1:9/bob")
        .await;
    let body = json!({"agent_id": "bob@chorus", "endpoint": "http://127.0.0.1:9/alice"});
    alice
        .post("/agents", &body)
        .await
        .refused(403, "ERR_FORBIDDEN");
    hub.anonymous()
        .post("/agents", &body)
        .await
        .refused(401, "ERR_UNAUTHORIZED");
    let record = hub.operator().get("/agents/bob").await.data(200);
    assert_eq!(record["endpoint"], "http://127.0.0.1:9/bob");
});
