//! Every act of an operator leaves an activity entry with label, act, target and address.

use crate::support::actors::{Answer, Caller, registration, rows};
use crate::support::hub::OPERATOR_KEY;
use chorus_wire::secret::Secret;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The operations that take an operator's key and change something, with the act that each records.
const ACTS: [(&str, &str); 19] = [
    ("add_channel_member", "add_member"),
    ("create_artifact", "create_artifact"),
    ("create_channel", "create_channel"),
    ("create_console_link", "create_console_link"),
    ("create_invite", "create_invite"),
    ("create_persistent_callback", "create_callback"),
    ("delete_channel", "delete_channel"),
    ("edit_artifact", "edit_artifact"),
    ("issue_credits", "credit"),
    ("open_registration", "open_registration"),
    ("post_channel_message", "post_message"),
    ("register_agent_as_operator", "register"),
    ("remove_channel_member", "remove_member"),
    ("revoke_invite", "revoke_invite"),
    ("send_message", "send_as"),
    ("transfer_credits", "transfer"),
    ("unregister_agent", "unregister"),
    ("update_channel", "change_channel"),
    ("update_channel_member", "change_member"),
];

async fn list_acts(operator: &Caller) -> Vec<Value> {
    let entries = rows(operator.get("/activity?limit=1000").await.data(200));
    let acts = entries
        .into_iter()
        .filter(|entry| entry["type"] == "operator_act");
    acts.map(|entry| entry["data"].clone()).collect()
}

fn act_and_target(act: &Value) -> (&str, String) {
    let target = act["target"].as_str().unwrap().to_owned();
    (act["act"].as_str().unwrap(), target)
}

async fn move_credits(operator: &Caller) {
    let credit = json!({"amount": 5, "reason": "a gift"});
    let issued = operator
        .post("/accounts/alice@chorus/credit", &credit)
        .await;
    assert!(issued.status < 300, "{issued:?}");
    let transfer = json!({"transfer_id": "t-1", "from_owner": "alice@chorus", "to_owner": "bob@chorus", "amount": 1});
    let moved = operator.post("/transfer", &transfer).await;
    assert!(moved.status < 300, "{moved:?}");
}

/// Makes a channel, does everything in it that an operator can, and deletes it; returns its id.
async fn run_a_channel(operator: &Caller) -> String {
    let room = crate::support::actors::channel::create_channel(operator, "desk").await;
    let id = room.trim_start_matches("/channels/").to_owned();
    let renamed = operator
        .request("PATCH", &room)
        .json(&json!({"name": "front desk"}));
    Answer::of(renamed).await.data(200);
    let remote = json!({"name": "oak", "connection": "http://127.0.0.1:1/inbox/sk_00112233"});
    for (path, body) in [
        ("members", remote),
        ("members/oak/callback", json!({})),
        ("messages", json!({"content": "hello"})),
        ("artifacts", json!({"slug": "plan", "content": "one"})),
    ] {
        operator
            .post(&format!("{room}/{path}"), &body)
            .await
            .data(201);
    }
    for (path, body) in [
        ("artifacts/plan", json!({"version": 1, "content": "two"})),
        ("members/oak", json!({"deliver": "mentions"})),
    ] {
        let change = operator.request("PATCH", &format!("{room}/{path}"));
        Answer::of(change.json(&body)).await.data(200);
    }
    operator
        .delete(&format!("{room}/members/oak"))
        .await
        .data(200);
    operator.delete(&room).await.data(200);
    id
}

story!(
    every_act_of_an_operator_leaves_a_trace,
    with(|settings| settings.hub.operator_keys =
        vec![Secret::new(format!("night-shift:{OPERATOR_KEY}"))]),
    |hub| async {
        let operator = hub.operator();
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let agent = json!({"agent_id": "carol@chorus", "endpoint": "http://127.0.0.1:9/x",
            "agent_card": registration("x")["agent_card"]});
        operator.post("/agents", &agent).await.data(201);
        operator
            .post("/messages", &alice.message(&bob.id, "in your name"))
            .await
            .data(202);
        let invite = operator.invite(&json!({"label": "one"})).await;
        let invite = invite["id"].as_str().unwrap().to_owned();
        operator
            .delete(&format!("/invites/{invite}"))
            .await
            .data(200);
        operator.delete("/invites").await.data(200);
        move_credits(&operator).await;
        let id = run_a_channel(&operator).await;
        operator.post("/console/links", &json!({})).await.data(200);
        operator.delete("/agents/bob").await.data(200);

        let acts = list_acts(&operator).await;
        let expected = [
            ("register", "carol@chorus".to_owned()),
            ("send_as", "alice@chorus".to_owned()),
            ("create_invite", invite.clone()),
            ("revoke_invite", invite),
            ("open_registration", String::new()),
            ("credit", "alice@chorus".to_owned()),
            ("transfer", "alice@chorus".to_owned()),
            ("create_channel", id.clone()),
            ("change_channel", id.clone()),
            ("add_member", format!("{id} oak")),
            ("create_callback", format!("{id} oak")),
            ("post_message", id.clone()),
            ("create_artifact", format!("{id} plan")),
            ("edit_artifact", format!("{id} plan")),
            ("change_member", format!("{id} oak")),
            ("remove_member", format!("{id} oak")),
            ("delete_channel", id),
            ("create_console_link", String::new()),
            ("unregister", "bob@chorus".to_owned()),
        ];
        let found: Vec<(&str, String)> = acts.iter().map(act_and_target).collect();
        assert_eq!(found, expected);
        let recorded: BTreeSet<&str> = found.iter().map(|(act, _)| *act).collect();
        assert_eq!(recorded, ACTS.iter().map(|(_, act)| *act).collect());
        for act in &acts {
            assert_eq!(
                (&act["label"], &act["address"]),
                (&json!("night-shift"), &json!("127.0.0.1"))
            );
        }
        // What an agent does is no act of an operator.
        alice.delete("/agents/alice").await.data(200);
        assert_eq!(list_acts(&operator).await.len(), expected.len());
    }
);

/// a new route for operators must be in the story above.
#[tokio::test]
async fn every_operation_that_an_operator_may_change_something_with_is_known() {
    let document = chorus_server::openapi_document("http://127.0.0.1");
    let document: Value = serde_json::from_slice(&document).unwrap();
    let mut taking: BTreeSet<&str> = BTreeSet::new();
    for (_, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let alternatives = operation["security"].as_array().unwrap();
            let takes_operator = alternatives
                .iter()
                .any(|keys| keys.get("operator_key").is_some());
            if takes_operator && method != "get" {
                taking.insert(operation["operationId"].as_str().unwrap());
            }
        }
    }
    let mut known: BTreeSet<&str> = ACTS.iter().map(|(operation, _)| *operation).collect();
    // The same act as `register_agent_as_operator`.
    known.insert("register_agent");
    // Signs a page out; nothing of the hub changes.
    known.insert("end_console_session");
    assert_eq!(taking, known);
}
