//! Owners of credits when agents register, leave and change owner (R-05, R-64, D-97).

use crate::support::actors::market::assert_market_refused;
use crate::support::actors::{Agent, Answer, registration};
use crate::support::hub::Hub;
use serde_json::{Value, json};

/// The owner's account as this agent sees it.
async fn account(of: &Agent, owner: &str) -> Value {
    let answer = of.get(&format!("/accounts/{owner}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

async fn pays(from: &Agent, payer: &str, to: &str, amount: f64) -> Answer {
    let id = format!("{payer}-{to}-{amount}");
    let body = json!({"transfer_id": id.replace(['@', ' '], "."), "from_owner": payer, "to_owner": to, "amount": amount});
    from.post("/transfer", &body).await
}

/// The agent registers again, with more in it; with the key that it has from then on.
async fn again(agent: &Agent, more: &Value) -> Agent {
    let mut body = json!({"agent_id": agent.id});
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let answer = agent.post("/register", &body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let told = answer.json();
    let key = told
        .get("api_key")
        .or_else(|| told["data"].get("api_key"))
        .unwrap();
    agent.with_rotated_key(key.as_str().unwrap())
}

/// An agent that the owner of another one has, too.
async fn beside(first: &Agent, id: &str, owner: &str) -> Agent {
    let mut body = registration(id);
    body["owner_id"] = json!(owner);
    let data = first.post("/register", &body).await.data(201);
    Agent::new(first, id, data["api_key"].as_str().unwrap())
}

async fn issued(hub: &Hub) -> Value {
    hub.anonymous().get("/economy").await.json()["issued"].clone()
}

story!(
    an_agent_with_a_part_in_a_removed_name_has_none_in_its_next_holder,
    |hub| async {
        // R-05, R-52, D-97
        let first = hub.agent("alice").await;
        let helper = beside(&first, "helper@chorus", "alice@chorus").await;
        assert_eq!(account(&helper, "alice@chorus").await["balance"], 100.0);
        first.delete("/agents/alice@chorus").await.data(200);
        let next = hub.agent("alice").await;
        hub.agent("thief").await;
        assert_market_refused(
            &pays(&helper, "alice@chorus", "thief@chorus", 60.0).await,
            403,
            "ERR_FORBIDDEN",
        );
        assert_market_refused(
            &helper.get("/accounts/alice@chorus").await,
            403,
            "ERR_FORBIDDEN",
        );
        assert_market_refused(
            &helper.get("/audit?owner_id=alice@chorus").await,
            403,
            "ERR_FORBIDDEN",
        );
        // R-64: a name is granted once.
        assert_eq!(account(&next, "alice@chorus").await["balance"], 0.0);
        // What the two had together is the other one's now, under its own name.
        assert_eq!(account(&helper, "helper@chorus").await["balance"], 100.0);
        assert_eq!(
            pays(&helper, "helper@chorus", "alice@chorus", 40.0)
                .await
                .status,
            200
        );
        assert_eq!(account(&next, "alice@chorus").await["balance"], 40.0);
        let own = helper.get("/audit").await.json();
        assert_eq!(own["postings"].as_array().unwrap().len(), 2, "{own}");
        assert_market_refused(
            &next.get("/accounts/helper@chorus").await,
            403,
            "ERR_FORBIDDEN",
        );
    }
);

story!(
    an_agent_that_changes_its_owner_is_granted_nothing,
    |hub| async {
        // R-64: a grant is for new agents only, or an agent could make credits by taking another name
        let mut agent = hub.agent("alice").await;
        let saver = hub.agent("saver").await;
        let before = issued(&hub).await;
        for turn in ["acme", "ajax", "apex"] {
            agent = again(
                &agent,
                &json!({"agent_card": registration("x")["agent_card"], "owner_id": turn}),
            )
            .await;
            let there = account(&agent, turn).await["balance"].as_f64().unwrap();
            if there > 0.0 {
                assert_eq!(pays(&agent, turn, "saver@chorus", there).await.status, 200);
            }
        }
        assert_eq!(issued(&hub).await, before);
        assert_eq!(
            account(&saver, "saver@chorus").await["balance"],
            200.0,
            "what there was, and no more"
        );
    }
);

story!(
    an_agent_that_owned_itself_takes_its_credits_to_the_owner_it_names,
    |hub| async {
        // D-97
        let alice = hub.agent("alice").await;
        let alice = again(
            &alice,
            &json!({"agent_card": registration("x")["agent_card"], "owner_id": "acme"}),
        )
        .await;
        assert_eq!(
            account(&alice, "acme").await,
            json!({"owner_id": "acme", "balance": 100.0, "held": 0.0})
        );
        assert_market_refused(
            &alice.get("/accounts/alice@chorus").await,
            403,
            "ERR_FORBIDDEN",
        );
        // An owner that others belong to stays theirs; who leaves it starts with nothing.
        let second = beside(&alice, "second@chorus", "acme").await;
        let alice = again(
            &alice,
            &json!({"agent_card": registration("x")["agent_card"], "owner_id": "ajax"}),
        )
        .await;
        assert_eq!(account(&alice, "ajax").await["balance"], 0.0);
        assert_eq!(account(&second, "acme").await["balance"], 100.0);
        assert_market_refused(
            &pays(&alice, "acme", "ajax", 1.0).await,
            403,
            "ERR_FORBIDDEN",
        );
    }
);

story!(
    an_owner_whose_last_key_is_lost_has_its_credits_back_by_an_operator,
    |hub| async {
        // R-06, D-97
        let body = |id: &str| json!({"agent_id": id, "agent_name": id, "owner_id": "acme"});
        let first = hub.anonymous().post("/register", &body("worker-1")).await;
        assert_eq!(first.status, 201, "{first:?}");
        hub.operator().delete("/agents/worker-1").await.data(200);
        assert_market_refused(
            &hub.anonymous().post("/register", &body("worker-1")).await,
            403,
            "ERR_OWNER_TAKEN",
        );
        let stranger = hub.agent("stranger").await;
        assert_market_refused(
            &stranger.post("/register", &body("worker-1")).await,
            403,
            "ERR_OWNER_TAKEN",
        );
        // Also where the hub requires a code of every other client.
        hub.operator().invite(&json!({"label": "closed"})).await;
        let given = hub.operator().post("/register", &body("worker-1")).await;
        assert_eq!(given.status, 201, "{given:?}");
        let agent = Agent::new(
            &hub.anonymous().0,
            "worker-1",
            given.json()["api_key"].as_str().unwrap(),
        );
        assert_eq!(account(&agent, "acme").await["balance"], 100.0);
    }
);

story!(
    a_name_that_no_database_holds_is_the_name_of_no_account,
    |hub| async {
        // R-65; never a 5xx
        let agent = hub.agent("alice").await;
        let own = agent.get("/audit?job_id=%00").await;
        assert_eq!((own.status, own.text.as_str()), (200, r#"{"postings":[]}"#));
        assert_market_refused(
            &hub.operator().get("/accounts/a%00b").await,
            404,
            "ERR_NOT_FOUND",
        );
        assert_market_refused(
            &hub.operator().get("/audit?owner_id=%00").await,
            404,
            "ERR_NOT_FOUND",
        );
        let issue = hub
            .operator()
            .post("/accounts/%00/credit", &json!({"amount": 1}))
            .await;
        assert_market_refused(&issue, 404, "ERR_NOT_FOUND");
        hub.operator()
            .delete("/invites/%00")
            .await
            .refused(404, "ERR_NOT_FOUND");
    }
);
