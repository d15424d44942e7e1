//! `Idempotency-Key` on every POST that changes something: a repetition has one effect and gets the first answer.

use crate::support::actors::market::{
    assert_market_refused, balance_and_held, job_request, register_requester, register_worker,
};
use crate::support::actors::{Agent, Answer, Caller, registration};
use crate::support::hub::{Hub, YEAR_MICROS};
use chorus_wire::limits;
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::time::Duration;

/// A key as a client makes it, and another.
const KEY: &str = "5f0f3a1e-2f6b-4a5e-9d3c-6f8b1c2d3e4f";
const OTHER_KEY: &str = "0b9d7c52-11aa-4c44-8a51-93f0f2a7e6d1";

pub async fn post_once(caller: &Caller, path: &str, key: &str, body: &Value) -> Answer {
    let request = caller
        .request("POST", path)
        .header("idempotency-key", key)
        .json(body);
    Answer::of(request).await
}

/// Posts the same again, and then another body: the first answer, and a conflict.
async fn check_repetition(caller: &Caller, path: &str, body: &Value) -> Answer {
    let first = post_once(caller, path, KEY, body).await;
    assert!((200..300).contains(&first.status), "{path}: {first:?}");
    let again = post_once(caller, path, KEY, body).await;
    assert_eq!(
        (first.status, &first.text),
        (again.status, &again.text),
        "{path}"
    );
    let mut other = body.clone();
    other["x-other"] = json!(true);
    let conflict = post_once(caller, path, KEY, &other).await;
    assert_eq!(conflict.status, 409, "{path}: {conflict:?}");
    first
}

story!(credits_are_issued_once_for_one_key, |hub| async {
    let boss = register_requester(&hub).await;
    let operator = hub.operator();
    let path = "/accounts/owner-of-boss-1/credit";
    let issue = json!({"amount": 10, "reason": "a gift"});
    let first = check_repetition(&operator, path, &issue).await;
    assert_eq!(first.json()["balance"], 110.0, "{first:?}");
    let conflict = post_once(&operator, path, KEY, &json!({"amount": 11})).await;
    assert_market_refused(&conflict, 409, "ERR_IDEMPOTENCY_CONFLICT");
    assert_eq!(balance_and_held(&hub, &boss).await, (110.0, 0.0));
    // Also when they race, at whichever hub.
    let racing = (0..10).map(|_| post_once(&operator, path, OTHER_KEY, &issue));
    let answers = join_all(racing).await;
    for answer in &answers {
        assert_eq!((answer.status, &answer.text), (200, &answers[0].text));
    }
    assert_eq!(balance_and_held(&hub, &boss).await, (120.0, 0.0));
    // What was refused is not remembered.
    let unknown = "/accounts/owner-of-later-1/credit";
    let refused = post_once(&operator, unknown, KEY, &issue).await;
    assert_market_refused(&refused, 404, "ERR_NOT_FOUND");
    register_worker(&hub, "later-1").await;
    let later = post_once(&operator, unknown, KEY, &issue).await;
    assert_eq!(later.status, 200, "{later:?}");
});

/// A channel of alice with one further member.
async fn make_channel(alice: &Agent, bob: &Agent) -> String {
    let made = check_repetition(alice, "/channels", &json!({"name": "room"})).await;
    let path = format!("/channels/{}", made.data(201)["id"].as_str().unwrap());
    let member = json!({"agent_id": bob.id});
    check_repetition(alice, &format!("{path}/members"), &member).await;
    check_repetition(bob, &format!("{path}/members/bob/accept"), &json!({})).await;
    check_repetition(bob, &format!("{path}/members/bob/callback"), &json!({})).await;
    path
}

story!(
    every_write_answers_its_repetition_as_the_first_time,
    |hub| async {
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let operator = hub.operator();
        make_channel(&alice, &bob).await;
        for path in [
            "/agent/connection",
            "/agent/session",
            "/agent/endpoint-secret",
            "/heartbeat",
        ] {
            check_repetition(&alice, path, &json!({})).await;
        }
        let key = json!({"label": "ci", "scopes": ["read"]});
        check_repetition(&alice, "/agent/keys", &key).await;
        assert_eq!(
            alice
                .get("/agent/keys")
                .await
                .data(200)
                .as_array()
                .unwrap()
                .len(),
            1
        );
        for (agent, org) in [(&alice, "acme"), (&bob, "bits")] {
            check_repetition(agent, "/orgs", &json!({"handle": org})).await;
        }
        let accord = json!({"grantee": "~bits", "grant": "address", "reaches": "*"});
        let proposed = check_repetition(&alice, "/orgs/~acme/accords", &accord).await;
        let accept = format!(
            "/orgs/~bits/accords/{}/accept",
            proposed.json()["id"].as_str().unwrap()
        );
        check_repetition(&bob, &accept, &json!({})).await;
        let invite = check_repetition(&operator, "/invites", &json!({"label": "one"})).await;
        assert!(invite.data(201)["code"].is_string(), "{invite:?}");
        assert_eq!(
            operator
                .get("/invites")
                .await
                .data(200)
                .as_array()
                .unwrap()
                .len(),
            1
        );
        let mut agent = registration("carol@chorus");
        agent["endpoint"] = json!("https://carol.example/hook");
        let registered = check_repetition(&operator, "/agents", &agent).await;
        assert!(
            registered.data(201)["api_key"].is_string(),
            "{registered:?}"
        );
        let sent = alice.send(&bob.id, "hello").await.data(202);
        let path = format!(
            "/agent/messages/{}/response",
            sent["trace_id"].as_str().unwrap()
        );
        check_repetition(&bob, &path, &json!({"status": "ok"})).await;
    }
);

story!(a_job_of_one_key_is_requested_and_paid_once, |hub| async {
    let (boss, worker) = (
        register_requester(&hub).await,
        register_worker(&hub, "worker-1").await,
    );
    let mut request = job_request("x");
    request.as_object_mut().unwrap().remove("job_id");
    let job = check_repetition(&boss, "/jobs", &request).await;
    assert_eq!(balance_and_held(&hub, &boss).await, (99.85, 0.15));
    let path = format!("/jobs/{}", job.json()["job_id"].as_str().unwrap());
    let result =
        json!({"status": "SUCCESS", "output_data": {"entities": [1]}, "execution_cost": 0.10});
    check_repetition(&worker, &format!("{path}/result"), &result).await;
    let transfer = json!({"transfer_id": "t-1", "from_owner": "owner-of-boss-1", "to_owner": "owner-of-worker-1", "amount": 1});
    check_repetition(&boss, "/transfer", &transfer).await;
    assert_eq!(balance_and_held(&hub, &boss).await, (98.9, 0.0));
});

story!(a_frame_of_one_key_is_emitted_once, |hub| async {
    let alice = hub.agent("alice").await;
    let mut session = alice.open_session("vim", "s1").await;
    let handle = alice.handle();
    let body = json!({"scope": handle, "frame": alice.advisory_to(&handle, "once")});
    check_repetition(&alice, "/frames", &body).await;
    alice.send_advisory(&handle, "last").await;
    assert_eq!(
        session.advisory().await.data["payload"]["advisory_text"],
        "once"
    );
    assert_eq!(
        session.advisory().await.data["payload"]["advisory_text"],
        "last"
    );
});

story!(
    keys_of_one_caller_or_route_say_nothing_to_another,
    |hub| async {
        // Failure 5
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let body = json!({"name": "room"});
        let mut ids = Vec::new();
        for caller in [&alice, &bob] {
            let made = post_once(caller, "/channels", KEY, &body).await.data(201);
            ids.push(made["id"].clone());
        }
        assert_ne!(ids[0], ids[1]);
        post_once(&alice, "/agent/session", KEY, &json!({}))
            .await
            .data(200);
        // After a day the key counts as new.
        hub.advance(limits::IDEMPOTENCY_RETENTION + Duration::from_secs(1));
        hub.maintain().await;
        let later = post_once(&alice, "/channels", KEY, &body).await.data(201);
        assert_ne!(later["id"], ids[0]);
    }
);

story!(
    a_registration_whose_answer_was_lost_is_repeated,
    |hub| async {
        let stranger = hub.anonymous();
        let body = registration("dora@chorus");
        let first = check_repetition(&stranger, "/register", &body).await;
        let key = first.data(201)["api_key"].as_str().unwrap().to_owned();
        let dora = Agent::new(&stranger.0, "dora@chorus", &key);
        assert_eq!(dora.get("/agent/messages").await.status, 200);
        // Only the key of the request proves that the client is the same, so it must not be guessed.
        let guessable = post_once(&stranger, "/register", "1", &registration("erin@chorus")).await;
        let sentence = guessable.refused(400, "ERR_VALIDATION");
        assert!(sentence.contains("Idempotency-Key"), "{sentence}");
        // And not for long.
        hub.advance(limits::REGISTRATION_ANSWER_RETENTION + Duration::from_secs(1));
        post_once(&stranger, "/register", KEY, &body)
            .await
            .refused(409, "ERR_AGENT_ID_TAKEN");
        // Racing requests make one agent.
        let frank = registration("frank@chorus");
        let racing = (0..6).map(|_| post_once(&stranger, "/register", OTHER_KEY, &frank));
        let answers = join_all(racing).await;
        for answer in &answers {
            assert_eq!((answer.status, &answer.text), (201, &answers[0].text));
        }
        // An agent registers another under its owner, also once.
        let mut hired = registration("hired@chorus");
        hired["invite_code"] = Value::Null;
        hired.as_object_mut().unwrap().remove("invite_code");
        let first = check_repetition(&dora, "/register", &hired).await;
        assert_eq!(first.status, 201);
    }
);

story!(
    a_request_is_not_repeated_because_the_clock_leaped,
    |hub| async {
        // D-123
        let alice = hub.agent("alice").await;
        let stranger = hub.anonymous();
        let room = json!({"name": "room"});
        let erin = registration("erin@chorus");
        let made = post_once(&alice, "/channels", KEY, &room).await;
        let registered = post_once(&stranger, "/register", KEY, &erin).await;
        registered.data(201);
        hub.leap(YEAR_MICROS);
        for _ in 0..2 {
            let again = post_once(&alice, "/channels", KEY, &room).await;
            assert_eq!((again.status, &again.text), (made.status, &made.text));
            let again = post_once(&stranger, "/register", KEY, &erin).await;
            assert_eq!((again.status, &again.text), (201, &registered.text));
            hub.maintain().await;
        }
        // The answer to a stranger has a key in it: also now it is not kept for longer than documented.
        let frank = registration("frank@chorus");
        let answer = post_once(&stranger, "/register", OTHER_KEY, &frank).await;
        answer.data(201);
        hub.advance(limits::REGISTRATION_ANSWER_RETENTION + Duration::from_secs(1));
        for (key, body) in [(KEY, &erin), (OTHER_KEY, &frank)] {
            post_once(&stranger, "/register", key, body)
                .await
                .refused(409, "ERR_AGENT_ID_TAKEN");
        }
        let again = post_once(&alice, "/channels", KEY, &room).await;
        assert_eq!(again.text, made.text, "24 hours have not passed");
    }
);

story!(a_key_that_means_nothing_is_refused, |hub| async {
    let alice = hub.agent("alice").await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let sentence = post_once(&alice, "/mcp", KEY, &call)
        .await
        .refused(400, "ERR_VALIDATION");
    assert!(sentence.contains("tool"), "{sentence}");
    // A malformed one is refused everywhere.
    post_once(&alice, "/channels", "a b", &json!({"name": "room"}))
        .await
        .refused(400, "ERR_VALIDATION");
});

/// Every file of the database.
fn read_database(hub: &Hub) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in std::fs::read_dir(hub.dir.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() && path.to_string_lossy().contains("chorus.db") {
            bytes.extend(std::fs::read(path).unwrap());
        }
    }
    bytes
}

sqlite_story!(keys_in_remembered_answers_are_sealed, |hub| async {
    //
    let stranger = hub.anonymous();
    let first = post_once(&stranger, "/register", KEY, &registration("dora@chorus")).await;
    let registered = first.data(201)["api_key"].as_str().unwrap().to_owned();
    let invite = post_once(&hub.operator(), "/invites", KEY, &json!({"label": "x"})).await;
    let code = invite.data(201)["code"].as_str().unwrap().to_owned();
    let database = read_database(&hub);
    let contains = |text: &str| {
        database
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    };
    assert!(contains("dora@chorus"), "the database was not read");
    for secret in [registered, code] {
        let (_, random) = secret.split_once('_').unwrap();
        assert!(!contains(random), "a secret is readable in the database");
    }
});

story!(remembered_answers_count_for_their_owner, |hub| async {
    //
    let alice = hub.agent("alice").await;
    let stored = async || {
        let usage = alice.get("/agent/usage").await.data(200);
        usage["stored_bytes"]["used"].as_u64().unwrap()
    };
    let before = stored().await;
    post_once(&alice, "/channels", KEY, &json!({"name": "room"}))
        .await
        .data(201);
    let after = stored().await;
    assert!(after > before, "{before} {after}");
    hub.advance(limits::IDEMPOTENCY_RETENTION + Duration::from_secs(1));
    hub.maintain().await;
    assert!(stored().await < after);
});

sqlite_story!(
    the_document_shows_the_key_on_every_post_that_takes_one,
    |hub| async {
        let document = hub.anonymous().get("/openapi.json").await.json();
        let paths = document["paths"].as_object().unwrap();
        let posts = paths.iter().filter(|(_, item)| item.get("post").is_some());
        let mut count = 0;
        for (path, item) in posts {
            let parameters = item["post"]["parameters"].as_array();
            let shown = parameters
                .into_iter()
                .flatten()
                .any(|parameter| parameter["$ref"] == "#/components/parameters/IdempotencyKey");
            assert_eq!(shown, !path.starts_with("/mcp"), "{path}");
            assert!(
                !shown || item["post"]["responses"].get("409").is_some(),
                "{path}"
            );
            count += 1;
        }
        assert!(count > 20, "{count}");
    }
);
