//! Registration: the two request formats, their answers and their refusals.

use crate::support::actors::{Agent, Answer, registration};
use crate::support::examples::example;
use serde_json::json;

story!(the_printed_registration_answers_as_printed, |hub| async {
    // TRN-01, TRN-02, TRN-05, TRN-07, ENV-17…19
    let request = example("transport-profile/quick-start-1-register.http");
    let data = hub.anonymous().post("/register", &request).await.data(201);
    assert_eq!(data["agent_id"], "my-agent@chorus");
    assert_eq!(data["registration"]["agent_card"], request["agent_card"]);
    assert_eq!(
        data["registration"]["registered_at"],
        "2026-03-20T10:00:00.000000Z"
    );
    assert_eq!(data["registration"]["agent_id"], "my-agent@chorus");
});

story!(
    a_key_is_ca_and_32_hex_digits_and_works_at_once,
    |hub| async {
        // TRN-06, R-01
        let alice = hub.agent("alice").await;
        let hex = alice.key.strip_prefix("ca_").expect("a ca_ key");
        assert!(
            hex.len() == 32 && hex.bytes().all(|b| b.is_ascii_hexdigit()),
            "not 32 hex digits"
        );
        assert!(alice.history("").await.is_empty());
    }
);

story!(a_card_and_an_endpoint_may_be_left_out, |hub| async {
    // TRN-03, TRN-04, R-10
    let data = hub
        .anonymous()
        .post("/register", &json!({"agent_id": "plain@elsewhere.example"}))
        .await
        .data(201);
    assert_eq!(data["registration"]["has_endpoint"], false);
    let list = hub.anonymous().get("/discover").await.json();
    assert_eq!(
        list,
        json!([{"agent_id": "plain@elsewhere.example", "culture": null, "languages": [], "online": false, "reach": "mail", "host_verified": false}])
    );
});

story!(
    a_taken_name_is_refused_and_its_record_untouched,
    |hub| async {
        // R-11; failures 1 and 2: no agent takes over another agent's endpoint
        let alice = hub
            .agent_with_webhook("alice", "http://127.0.0.1:9/mine")
            .await;
        let mallory = hub.agent("mallory").await;
        let mut steal = registration("alice@chorus");
        steal["endpoint"] = json!("http://127.0.0.1:9/stolen");
        hub.anonymous()
            .post("/register", &steal)
            .await
            .refused(409, "ERR_AGENT_ID_TAKEN");
        mallory
            .post("/register", &steal)
            .await
            .refused(409, "ERR_AGENT_ID_TAKEN");
        let record = alice.get("/agents/alice@chorus").await.data(200);
        assert_eq!(record["endpoint"], "http://127.0.0.1:9/mine");
    }
);

story!(
    registering_again_with_the_key_updates_and_rotates_it,
    |hub| async {
        // TRN-31, R-11, R-38: the record is replaced, and no endpoint means none
        let alice = hub.agent_with_webhook("alice", "http://127.0.0.1:9/").await;
        let bob = hub.agent("bob").await;
        bob.send_expecting(&alice.id, "before", "failed").await;
        let mut update = registration(&alice.id);
        update["agent_card"]["user_culture"] = json!("ja");
        let data = alice.post("/register", &update).await.data(200);
        let renewed = Agent::new(
            &alice,
            &alice.id,
            data["api_key"].as_str().expect("a new key"),
        );
        assert_ne!(renewed.key, alice.key);
        alice
            .get("/agent/messages")
            .await
            .refused(401, "ERR_UNAUTHORIZED");
        assert_eq!(
            renewed.history("").await.len(),
            1,
            "an update never resets history"
        );
        let record = renewed.get("/agents/alice").await.data(200);
        assert_eq!(
            (
                &record["has_endpoint"],
                &record["agent_card"]["user_culture"]
            ),
            (&json!(false), &json!("ja"))
        );
        bob.send_expecting(&alice.id, "after", "queued").await;
    }
);

story!(
    a_card_keeps_its_unknown_fields_and_refuses_wrong_ones,
    |hub| async {
        // R-20, ENV-17…20, R-38
        let cases = [
            (
                json!({"card_version": "0.3", "user_culture": "pt-BR", "x-colour": [1, {"deep": null}]}),
                201,
            ),
            (json!({"user_culture": "en"}), 201),
            (json!({}), 201),
            (json!({"chorus_version": "0.2", "user_culture": "en"}), 400),
            (json!({"card_version": "0.2"}), 400),
            (json!({"card_version": 0.3}), 400),
            (
                json!({"card_version": "0.3", "user_culture": "not a tag"}),
                400,
            ),
            (json!({"card_version": "0.3", "user_culture": 5}), 400),
            (
                json!({"card_version": "0.3", "supported_languages": "en"}),
                400,
            ),
            (
                json!({"card_version": "0.3", "supported_languages": ["en", 7]}),
                400,
            ),
            (json!("card"), 400),
            (json!(null), 400),
        ];
        for (number, (card, status)) in cases.into_iter().enumerate() {
            let id = format!("card-{number}@chorus");
            let answer = hub
                .anonymous()
                .post("/register", &json!({"agent_id": id, "agent_card": card}))
                .await;
            if status == 201 {
                assert_eq!(answer.data(201)["registration"]["agent_card"], card);
            } else {
                let message = answer.refused(400, "ERR_VALIDATION");
                assert!(message.contains("agent_card"), "{message} names the field");
                hub.anonymous()
                    .get(&format!("/agents/{id}"))
                    .await
                    .refused(404, "ERR_AGENT_NOT_FOUND");
            }
        }
    }
);

story!(the_market_form_answers_bare_and_as_printed, |hub| async {
    // one key for every surface
    let id = "550e8400-e29b-41d4-a716-446655440000";
    let body = json!({"agent_id": id, "agent_name": "Ada", "owner_id": "ada-owner", "api_endpoint": "http://127.0.0.1:9",
        "skills": [{"skill_name": "adding", "cost_per_call": 0.5}]});
    let answer = hub.anonymous().post("/register", &body).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    assert!(
        answer.text.contains("\"reputation_score\":50.0"),
        "{}",
        answer.text
    );
    let bare = answer.json();
    assert_eq!(
        (&bare["status"], &bare["agent_id"]),
        (&json!("registered"), &json!(id))
    );
    assert!(bare.get("success").is_none() && bare.get("data").is_none());
    let ada = Agent::new(
        &hub.anonymous(),
        id,
        bare["api_key"].as_str().expect("a key"),
    );
    // an agent with only a UUID receives envelopes at it.
    let mut inbox = ada.inbox().await;
    hub.agent("bob")
        .await
        .send_expecting(id, "for the UUID", "delivered_sse")
        .await;
    assert_eq!(inbox.texts(1).await, ["for the UUID"]);
});

story!(
    both_forms_at_once_make_one_agent_with_both_faces,
    |hub| async {
        // wrapped, the 003 keys after
        let mut body = registration("both@chorus");
        body["agent_name"] = json!("Both");
        body["skills"] = json!([{"skill_name": "adding", "cost_per_call": 1}]);
        let answer = hub.anonymous().post("/register", &body).await;
        let data = answer.data(201);
        assert_eq!(
            (&data["agent_id"], &data["status"]),
            (&json!("both@chorus"), &json!("registered"))
        );
        assert!(
            answer.text.contains("\"reputation_score\":50.0"),
            "{}",
            answer.text
        );
        assert!(
            answer.text.find("\"registration\"") < answer.text.find("\"reputation_score\""),
            "{}",
            answer.text
        );
    }
);

story!(a_request_in_neither_form_is_refused, |hub| async {
    //
    let cases = [
        json!({}),
        json!({"agent_id": 5}),
        json!({"agent_id": "short"}),
        json!({"agent_id": "~handle", "agent_card": {}}),
        json!({"agent_id": "short", "agent_card": {"card_version": "0.3"}}),
        json!({"agent_card": {"card_version": "0.3"}}),
        json!({"agent_id": "a@b", "colour": "red"}),
        json!({"agent_id": "a@b", "endpoint": null}),
        json!({"agent_id": "a@b", "endpoint": "not a url"}),
        json!({"agent_id": "a@b", "endpoint": "ftp://127.0.0.1/"}),
        json!({"agent_id": "a@b", "endpoint": "file:///etc/hosts"}),
        json!({"agent_id": "a@b", "endpoint": "http://user:word@127.0.0.1/"}),
        json!([]),
    ];
    for body in &cases {
        hub.anonymous()
            .post("/register", body)
            .await
            .refused(400, "ERR_VALIDATION");
    }
    assert_eq!(hub.anonymous().get("/discover").await.json(), json!([]));
});

story!(an_address_has_one_at_and_a_plain_alphabet, |hub| async {
    // TRN-41, ENV-23, R-37: case-sensitive, at most 128 characters
    let longest = format!("{}@chorus", "a".repeat(121));
    for good in [
        "Ada@chorus",
        "Bea@chorus",
        "a.b_c-D@h.example-1",
        longest.as_str(),
    ] {
        hub.anonymous().register(good).await.data(201);
    }
    let too_long = format!("{}@chorus", "a".repeat(122));
    for bad in [
        "@chorus",
        "ada@",
        "a@b@c",
        "a b@c",
        "ä@chorus",
        "a/b@c",
        "a@b\n",
        "",
        too_long.as_str(),
    ] {
        hub.anonymous()
            .register(bad)
            .await
            .refused(400, "ERR_VALIDATION");
    }
});

story!(
    only_an_address_on_this_host_owns_a_handle,
    with(|set| set.hub.host_name = "here.example".into()),
    |hub| async {
        //
        for (id, handle) in [
            ("alice@here.example", json!("~alice")),
            ("bob@elsewhere.example", json!(null)),
            ("Carol@here.example", json!(null)),
            ("org@here.example", json!(null)),
            ("d.e@here.example", json!(null)),
        ] {
            let data = hub.anonymous().register(id).await.data(201);
            assert_eq!(data["registration"]["handle"], handle, "{id}");
        }
    }
);

story!(
    an_owner_belongs_to_the_key_that_claimed_it_first,
    |hub| async {
        //
        let market = |id: &str| json!({"agent_id": id, "agent_name": id, "owner_id": "acme"});
        let first = hub
            .anonymous()
            .post("/register", &market("worker-1"))
            .await
            .json();
        let stranger = hub.anonymous().post("/register", &market("worker-2")).await;
        assert_eq!(
            (stranger.status, &stranger.json()["error_code"]),
            (403, &json!("ERR_OWNER_TAKEN")),
            "{stranger:?}"
        );
        let other = hub.agent("other").await;
        assert_eq!(
            other.post("/register", &market("worker-2")).await.status,
            403
        );
        let owner = hub.anonymous().with_key(first["api_key"].as_str().unwrap());
        let second = owner.post("/register", &market("worker-2")).await;
        assert_eq!(second.status, 201, "{second:?}");
    }
);

story!(
    an_error_of_the_market_form_has_the_market_shape,
    |hub| async {
        //
        let answer = hub
            .anonymous()
            .post("/register", &json!({"agent_id": "w", "agent_name": 7}))
            .await;
        assert_eq!(
            (answer.status, &answer.json()["error_code"]),
            (400, &json!("ERR_VALIDATION")),
            "{answer:?}"
        );
        assert!(
            answer.json()["error_message"]
                .as_str()
                .unwrap()
                .contains("agent_name"),
            "{answer:?}"
        );
    }
);

story!(
    a_full_hub_says_so_and_still_rotates_keys,
    with(|set| set.hub.max_agents = Some(1)),
    |hub| async {
        // lesson 8, R-37
        let alice = hub.agent("alice").await;
        hub.anonymous()
            .register("bob@chorus")
            .await
            .refused(429, "ERR_REGISTRY_FULL");
        alice
            .post("/register", &registration(&alice.id))
            .await
            .data(200);
    }
);

story!(a_dead_key_registers_as_no_key_does, |hub| async {
    // `/register` needs no key, so a key that has ended stands in no way
    let alice = hub.agent("alice").await;
    let update = registration(&alice.id);
    alice.post("/register", &update).await.data(200);
    let unknown = format!("ca_{}", "0".repeat(32));
    for dead in [&alice.key, &unknown] {
        let caller = alice.with_key(dead);
        caller
            .post("/register", &update)
            .await
            .refused(409, "ERR_AGENT_ID_TAKEN");
        let name = format!("new-{}@chorus", &dead[3..9]);
        let data = caller
            .post("/register", &registration(&name))
            .await
            .data(201);
        assert!(data["api_key"].is_string());
    }
    // TRN-24: a credential that is none at all is refused
    let garbled = hub.anonymous().request("POST", "/register");
    let garbled = garbled.header("authorization", "Basic abc").json(&update);
    Answer::of(garbled).await.refused(401, "ERR_UNAUTHORIZED");
});

story!(a_dead_key_reads_public_lists_as_no_key_does, |hub| async {
    // the record of one agent refuses it, so that an agent can find out that its key has ended
    let alice = hub.agent("alice").await;
    alice
        .post("/register", &registration(&alice.id))
        .await
        .data(200);
    for path in ["/agents", "/discover", "/discover?skill=x", "/skills"] {
        assert_eq!(alice.get(path).await.status, 200, "{path}");
    }
    alice
        .get("/agents/alice")
        .await
        .refused(401, "ERR_UNAUTHORIZED");
});
