//! The ledger: credits are never created, lost or spent twice, and other owners' postings are private (R-64, R-65).

use crate::support::actors::{Agent, Answer};
use crate::support::examples::example;
use crate::support::hub::Hub;
use serde_json::{Value, json};

/// The sentence of a refusal in the jobs document's form.
#[track_caller]
fn refused(answer: &Answer, status: u16, code: &str) -> String {
    let body = answer.json();
    assert_eq!(
        (answer.status, body["error_code"].as_str()),
        (status, Some(code)),
        "{answer:?}"
    );
    assert_eq!(body.as_object().unwrap().len(), 2, "{answer:?}");
    body["error_message"]
        .as_str()
        .expect("a sentence")
        .to_owned()
}

/// An agent of the market under this owner.
async fn trader(hub: &Hub, id: &str, owner: &str) -> Agent {
    let body = json!({"agent_id": id, "agent_name": id, "owner_id": owner});
    let answer = hub.anonymous().post("/register", &body).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    Agent::new(
        &hub.anonymous().0,
        id,
        answer.json()["api_key"].as_str().unwrap(),
    )
}

fn transfer(id: &str, from: &str, to: &str, amount: &str) -> String {
    format!(r#"{{"transfer_id":"{id}","from_owner":"{from}","to_owner":"{to}","amount":{amount}}}"#)
}

async fn balance(of: &Agent, owner: &str) -> String {
    let answer = of.get(&format!("/accounts/{owner}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let text = answer.text;
    let (_, rest) = text.split_once("\"balance\":").unwrap();
    rest.split([',', '}']).next().unwrap().to_owned()
}

/// All accounts and holds sum to what was issued, and the postings rebuild them.
async fn conserved(hub: &Hub, owners: &[&str]) {
    let cents = |value: &Value| (value.as_f64().unwrap() * 100.0).round() as i64;
    let economy = hub.anonymous().get("/economy").await.json();
    let (mut there, mut rebuilt) = (0, 0);
    for owner in owners {
        let account = hub
            .operator()
            .get(&format!("/accounts/{owner}"))
            .await
            .json();
        there += cents(&account["balance"]) + cents(&account["held"]);
    }
    assert_eq!(there, cents(&economy["issued"]), "{economy}");
    for posting in hub.operator().get("/audit").await.json()["postings"]
        .as_array()
        .unwrap()
    {
        let entries = posting["entries"].as_array().unwrap();
        assert_eq!(
            entries
                .iter()
                .map(|entry| cents(&entry["amount"]))
                .sum::<i64>(),
            0,
            "{posting}"
        );
        rebuilt += entries
            .iter()
            .filter(|e| e["account"] != "issue")
            .map(|e| cents(&e["amount"]))
            .sum::<i64>();
    }
    assert_eq!(rebuilt, there);
}

story!(a_new_owner_is_granted_once_and_never_again, |hub| async {
    // R-64, R-11
    let first = trader(&hub, "first-1", "acme").await;
    assert_eq!(balance(&first, "acme").await, "100.00");
    let again = json!({"agent_id": "first-1", "owner_id": "acme", "agent_name": "renamed"});
    let answer = first.post("/register", &again).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let first = Agent::new(
        &hub.anonymous().0,
        "first-1",
        answer.json()["api_key"].as_str().unwrap(),
    );
    let second = first
        .post(
            "/register",
            &json!({"agent_id": "second-1", "owner_id": "acme"}),
        )
        .await;
    assert_eq!(second.status, 201, "{second:?}");
    assert_eq!(balance(&first, "acme").await, "100.00");
    // An agent without an owner owns itself.
    let alice = hub.agent("alice").await;
    assert_eq!(balance(&alice, "alice@chorus").await, "100.00");
    conserved(&hub, &["acme", "alice@chorus"]).await;
});

story!(
    the_printed_transfer_is_made_and_answered_as_resolved,
    |hub| async {
        // JOB-20, R-65
        let payer = trader(&hub, "payer-1", "orchestrator_owner_id").await;
        let payee = trader(&hub, "payee-1", "agent_owner_id").await;
        let printed = example("jobs-protocol/3.5-transfer.json");
        let answer = payer.post("/transfer", &printed).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let body = answer.json();
        assert_eq!(
            (&body["status"], &body["transfer"]),
            (&json!("completed"), &printed)
        );
        for part in [
            "\"amount\":0.10,",
            "\"sender_balance\":99.90",
            "\"receiver_balance\":100.10",
        ] {
            assert!(answer.text.contains(part), "{part} in {}", answer.text);
        }
        assert_eq!(balance(&payee, "agent_owner_id").await, "100.10");
        let posting = &payee.get("/audit?job_id=uuid").await.json()["postings"][0];
        assert_eq!(
            (&posting["kind"], &posting["note"]),
            (&json!("transfer"), &json!("uuid"))
        );
        conserved(&hub, &["orchestrator_owner_id", "agent_owner_id"]).await;
    }
);

story!(
    a_repeated_transfer_is_answered_again_and_not_paid_again,
    |hub| async {
        // R-65; failures 21 and 17
        let payer = trader(&hub, "payer-1", "a").await;
        let other = trader(&hub, "payer-2", "b").await;
        let first = payer
            .post_text("/transfer", transfer("t-1", "a", "b", "0.10"))
            .await;
        assert_eq!(first.status, 200, "{first:?}");
        let spelled_otherwise =
            r#"{ "amount": 0.1, "to_owner": "b", "transfer_id": "t-1", "from_owner": "a" }"#;
        for same in [
            transfer("t-1", "a", "b", "0.10"),
            spelled_otherwise.to_owned(),
        ] {
            let again = payer.post_text("/transfer", same).await;
            assert_eq!((again.status, &again.text), (200, &first.text));
        }
        let changed = payer
            .post_text("/transfer", transfer("t-1", "a", "b", "0.11"))
            .await;
        refused(&changed, 409, "ERR_TRANSFER_CONFLICT");
        // Failure 5: another owner's transfer_id blocks no transfer.
        assert_eq!(
            other
                .post_text("/transfer", transfer("t-1", "b", "a", "0.05"))
                .await
                .status,
            200
        );
        assert_eq!(
            (balance(&payer, "a").await, balance(&other, "b").await),
            ("99.95".into(), "100.05".into())
        );
        conserved(&hub, &["a", "b"]).await;
    }
);

story!(
    the_third_tenth_of_three_tenths_is_paid,
    with(|settings| {
        settings.hub.opening_grant = chorus_wire::credits::Credits::from_hundredths(30);
    }),
    |hub| async {
        // Failure 20
        let payer = trader(&hub, "payer-1", "a").await;
        trader(&hub, "payee-1", "b").await;
        for turn in ["1", "2", "3"] {
            let answer = payer
                .post_text("/transfer", transfer(turn, "a", "b", "0.10"))
                .await;
            assert_eq!(answer.status, 200, "{answer:?}");
        }
        let fourth = payer
            .post_text("/transfer", transfer("4", "a", "b", "0.01"))
            .await;
        refused(&fourth, 400, "TRANSFER_FAILED");
        // What failed left its id free.
        hub.operator()
            .post("/accounts/a/credit", &json!({"amount": 1}))
            .await;
        assert_eq!(
            payer
                .post_text("/transfer", transfer("4", "a", "b", "0.01"))
                .await
                .status,
            200
        );
        conserved(&hub, &["a", "b"]).await;
    }
);

story!(a_bad_amount_is_refused_and_posts_nothing, |hub| async {
    // R-64
    let payer = trader(&hub, "payer-1", "a").await;
    trader(&hub, "payee-1", "b").await;
    let before = hub.operator().get("/audit").await.text;
    for amount in [
        "0.105",
        "0",
        "0.00",
        "-1",
        "-0.10",
        "1e1",
        "1E-1",
        "\"1\"",
        "null",
        "true",
        "1000000000.01",
    ] {
        let answer = payer
            .post_text("/transfer", transfer("t", "a", "b", amount))
            .await;
        assert!(
            refused(&answer, 400, "ERR_VALIDATION").contains("amount"),
            "{amount}: {answer:?}"
        );
        let body = format!(r#"{{"amount":{amount}}}"#);
        let issue = hub.operator().post_text("/accounts/a/credit", body).await;
        assert!(
            refused(&issue, 400, "ERR_VALIDATION").contains("amount"),
            "{amount}: {issue:?}"
        );
    }
    for body in [
        transfer("t", "a", "b", "NaN"),
        transfer("t", "a", "b", "Infinity"),
        transfer("t", "a", "b", "1e999"),
        transfer("t", "a", "a", "1"),
        transfer("white space", "a", "b", "1"),
        r#"{"from_owner":"a","to_owner":"b","amount":1}"#.to_owned(),
        r#"{"transfer_id":"t","from_owner":"a","amount":1}"#.to_owned(),
        r#"{"transfer_id":"t","from_owner":"a","to_owner":"b","amount":1,"amount":2}"#.to_owned(),
        r#"{"transfer_id":"t","from_owner":"a","to_owner":"b","amount":1,"tip":2}"#.to_owned(),
        "[]".to_owned(),
        "{".to_owned(),
    ] {
        refused(
            &payer.post_text("/transfer", body).await,
            400,
            "ERR_VALIDATION",
        );
    }
    assert_eq!(hub.operator().get("/audit").await.text, before);
});

story!(strangers_move_and_see_nothing, |hub| async {
    // Failure 6
    let owner = trader(&hub, "owner-1", "a").await;
    let stranger = trader(&hub, "stranger-1", "b").await;
    let steal = transfer("t", "a", "b", "1.00");
    refused(
        &stranger.post_text("/transfer", steal.clone()).await,
        403,
        "ERR_FORBIDDEN",
    );
    refused(
        &hub.anonymous().post_text("/transfer", steal.clone()).await,
        401,
        "ERR_UNAUTHORIZED",
    );
    for path in ["/accounts/a", "/audit?owner_id=a", "/accounts/absent"] {
        refused(&stranger.get(path).await, 403, "ERR_FORBIDDEN");
        refused(&hub.anonymous().get(path).await, 401, "ERR_UNAUTHORIZED");
    }
    let issue = json!({"amount": 5, "reason": "for me"});
    refused(
        &owner.post("/accounts/a/credit", &issue).await,
        403,
        "ERR_FORBIDDEN",
    );
    refused(
        &hub.anonymous().post("/accounts/a/credit", &issue).await,
        401,
        "ERR_UNAUTHORIZED",
    );
    assert_eq!(
        stranger.get("/audit").await.json()["postings"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        (balance(&owner, "a").await, balance(&stranger, "b").await),
        ("100.00".into(), "100.00".into())
    );
    // A name alone is no account that can be paid.
    refused(
        &owner
            .post_text("/transfer", transfer("t", "a", "absent", "1"))
            .await,
        404,
        "ERR_NOT_FOUND",
    );
    refused(
        &hub.operator()
            .post_text("/transfer", transfer("t", "absent", "a", "1"))
            .await,
        404,
        "ERR_NOT_FOUND",
    );
});

story!(
    an_operator_issues_pays_for_others_and_sees_all,
    |hub| async {
        // R-64, R-65
        let owner = trader(&hub, "owner-1", "a").await;
        trader(&hub, "other-1", "b").await;
        let issued = hub
            .operator()
            .post(
                "/accounts/a/credit",
                &json!({"amount": 25.5, "reason": "invoice 7"}),
            )
            .await;
        assert_eq!(
            issued.text,
            r#"{"owner_id":"a","balance":125.50,"held":0.00}"#
        );
        assert_eq!(
            hub.operator()
                .post_text("/transfer", transfer("t", "a", "b", "25.50"))
                .await
                .status,
            200
        );
        assert_eq!(balance(&owner, "a").await, "100.00");
        let all = hub.operator().get("/audit?limit=2").await.json();
        let kinds: Vec<_> = all["postings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|posting| posting["kind"].clone())
            .collect();
        assert_eq!(kinds, ["transfer", "issue"]);
        let next = format!("/audit?limit=2&before={}", all["postings"][1]["id"]);
        let next = hub.operator().get(&next).await.json();
        assert!(
            next["postings"]
                .as_array()
                .unwrap()
                .iter()
                .all(|posting| posting["kind"] == "grant"),
            "{next}"
        );
        let economy = hub.anonymous().get("/economy").await;
        for part in [
            "\"issued\":225.50",
            "\"held\":0.00",
            "\"volume\":25.50",
            "chorus_credits_v1",
        ] {
            assert!(economy.text.contains(part), "{}", economy.text);
        }
        refused(
            &hub.operator()
                .post("/accounts/c/credit", &json!({"amount": 1}))
                .await,
            404,
            "ERR_NOT_FOUND",
        );
        conserved(&hub, &["a", "b"]).await;
    }
);

story!(
    of_fifty_that_race_for_ten_payments_ten_win,
    with(|settings| {
        settings.hub.opening_grant = chorus_wire::credits::Credits::from_hundredths(100);
    }),
    |hub| async {
        let payer = trader(&hub, "payer-1", "a").await;
        let payee = trader(&hub, "payee-1", "b").await;
        let races = (0..50).map(|turn| {
            payer.post_text("/transfer", transfer(&format!("t{turn}"), "a", "b", "0.10"))
        });
        let answers = futures_util::future::join_all(races).await;
        let won = answers.iter().filter(|answer| answer.status == 200).count();
        for lost in answers.iter().filter(|answer| answer.status != 200) {
            refused(lost, 400, "TRANSFER_FAILED");
        }
        assert_eq!(won, 10);
        assert_eq!(
            (balance(&payer, "a").await, balance(&payee, "b").await),
            ("0.00".into(), "2.00".into())
        );
        // One transfer_id, ten times at once: one payment.
        hub.operator()
            .post("/accounts/a/credit", &json!({"amount": 5}))
            .await;
        let same =
            (0..10).map(|_| payer.post_text("/transfer", transfer("once", "a", "b", "0.10")));
        let answers = futures_util::future::join_all(same).await;
        assert!(
            answers
                .iter()
                .all(|answer| answer.status == 200 && answer.text == answers[0].text)
        );
        assert_eq!(balance(&payer, "a").await, "4.90");
        conserved(&hub, &["a", "b"]).await;
    }
);

story!(balances_outlive_a_restart, |hub| async {
    let payer = trader(&hub, "payer-1", "a").await;
    trader(&hub, "payee-1", "b").await;
    let first = payer
        .post_text("/transfer", transfer("t", "a", "b", "40.00"))
        .await;
    hub.restart().await;
    let payer = hub.reconnect(&payer);
    assert_eq!(balance(&payer, "a").await, "60.00");
    assert_eq!(
        payer
            .post_text("/transfer", transfer("t", "a", "b", "40.00"))
            .await
            .text,
        first.text
    );
    conserved(&hub, &["a", "b"]).await;
});

story!(
    every_edge_of_the_markets_paths_answers_in_its_form,
    |hub| async {
        // R-65; failure 26
        let owner = trader(&hub, "owner-1", "a").await;
        for (method, path) in [
            ("GET", "/transfer"),
            ("DELETE", "/economy"),
            ("POST", "/audit"),
            ("PUT", "/accounts/a"),
        ] {
            refused(
                &Answer::of(owner.request(method, path)).await,
                405,
                "ERR_METHOD_NOT_ALLOWED",
            );
        }
        refused(&owner.get("/accounts/a/b/c").await, 404, "ERR_NOT_FOUND");
        refused(
            &owner.post_text("/transfer", "x".repeat(300_000)).await,
            413,
            "ERR_TOO_LARGE",
        );
        refused(
            &Answer::of(owner.request("GET", "/audit?limit=0")).await,
            400,
            "ERR_VALIDATION",
        );
        refused(
            &Answer::of(owner.request("GET", "/audit?before=x")).await,
            400,
            "ERR_VALIDATION",
        );
        let wrong_key = owner.with_key("ca_00000000000000000000000000000000");
        refused(&wrong_key.get("/accounts/a").await, 401, "ERR_UNAUTHORIZED");
    }
);
