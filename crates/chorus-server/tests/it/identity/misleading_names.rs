//! Misleading names: reserved ones, ones that look like another agent's, and hosts that the hub has not verified.

use crate::support::actors::{Agent, registration};
use serde_json::json;

story!(
    a_name_that_looks_like_anothers_of_the_same_host_is_refused,
    |hub| async {
        //
        hub.agent("alice").await;
        hub.agent("mei-0").await;
        for alike in [
            "Alice@chorus",
            "a1ice@chorus",
            "alice@chorus.",
            "alice@Chorus",
            "rnei-O@chorus",
        ] {
            hub.anonymous()
                .register(alike)
                .await
                .refused(409, "ERR_NAME_CONFUSABLE");
        }
        let short = json!({"agent_id": "A1ICE", "agent_name": "A", "skills": []});
        let refused = hub.anonymous().post("/register", &short).await;
        assert_eq!(
            (refused.status, &refused.json()["error_code"]),
            (409, &json!("ERR_NAME_CONFUSABLE"))
        );
        for other in ["alice@elsewhere.example", "alice-2@chorus", "b0b@chorus"] {
            hub.anonymous().register(other).await.data(201);
        }
        hub.anonymous()
            .register("bob@chorus")
            .await
            .refused(409, "ERR_NAME_CONFUSABLE");
    }
);

story!(
    a_name_is_free_for_look_alikes_when_its_agent_is_gone,
    |hub| async {
        //
        let alice = hub.agent("alice").await;
        let answer = alice
            .post("/register", &registration("alice@chorus"))
            .await
            .data(200);
        let alice = Agent::new(&alice, &alice.id, answer["api_key"].as_str().unwrap());
        alice.delete("/agents/alice").await.data(200);
        hub.anonymous().register("a1ice@chorus").await.data(201);
        hub.anonymous()
            .register("alice@chorus")
            .await
            .refused(409, "ERR_NAME_CONFUSABLE");
    }
);

story!(reserved_names_are_for_operators, |hub| async {
    //
    for name in [
        "operator", "HUB", "0perator", "adrnin", "everyone", "chorus", "here",
    ] {
        let answer = hub.anonymous().register(&format!("{name}@chorus")).await;
        answer.refused(403, "ERR_NAME_RESERVED");
    }
    hub.anonymous()
        .register("support@elsewhere.example")
        .await
        .data(201);
    let support = json!({"agent_id": "support@chorus", "endpoint": "http://127.0.0.1:9/"});
    hub.operator().post("/agents", &support).await.data(201);
    let alice = hub.agent("alice").await;
    alice
        .post("/orgs", &json!({"handle": "security"}))
        .await
        .frame_refused(403, "forbidden", None);
});

story!(
    a_name_under_another_host_is_shown_as_unverified,
    |hub| async {
        //
        hub.agent("alice").await;
        hub.agent_with("ceo@elsewhere.example", &json!({})).await;
        let record = |name: &str| format!("/agents/{name}");
        let ceo = hub.anonymous().get(&record("ceo@elsewhere.example")).await;
        assert_eq!(ceo.data(200)["host_verified"], false);
        let alice = hub.anonymous().get(&record("alice")).await.data(200);
        assert!(alice.get("host_verified").is_none(), "{alice}");
        for path in ["/discover", "/agents"] {
            let listed = hub.anonymous().get(path).await.json();
            let listed = listed.get("data").unwrap_or(&listed).clone();
            let marks: Vec<_> = listed
                .as_array()
                .unwrap()
                .iter()
                .map(|row| (row["agent_id"].clone(), row["host_verified"].clone()))
                .collect();
            assert_eq!(
                marks,
                [
                    (json!("alice@chorus"), json!(null)),
                    (json!("ceo@elsewhere.example"), json!(false))
                ]
            );
        }
        let card = hub
            .anonymous()
            .get_as("application/json", "/invite/ceo@elsewhere.example")
            .await;
        assert_eq!(card.json()["data"]["host_verified"], false, "{card:?}");
        let mark = "data-t=\"agents.unverified\"";
        for (name, is_marked) in [("ceo@elsewhere.example", true), ("alice@chorus", false)] {
            let page = hub
                .anonymous()
                .get_as("text/html", &format!("/invite/{name}"))
                .await;
            assert_eq!(page.text.contains(mark), is_marked, "{}", page.text);
        }
    }
);

story!(
    an_organisation_has_the_name_of_its_handle_and_an_owner_id_takes_no_name,
    |hub| async {
        //
        let alice = hub.agent("alice").await;
        let made = alice.post("/orgs", &json!({"handle": "bob"})).await;
        assert_eq!(made.status, 201);
        hub.anonymous()
            .register("bob@chorus")
            .await
            .refused(409, "ERR_AGENT_ID_TAKEN");
        let market = |id: &str, owner: Option<&str>| {
            let mut body = json!({"agent_id": id, "agent_name": id, "skills": []});
            if let Some(owner) = owner {
                body["owner_id"] = json!(owner);
            }
            body
        };
        let squatter = market("squatter", Some("carol"));
        let answer = hub.anonymous().post("/register", &squatter).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        for _ in 0..2 {
            let answer = hub
                .anonymous()
                .post("/register", &market("carol", None))
                .await;
            assert_eq!(answer.status, 201, "{answer:?}");
            let carol = Agent::new(
                &hub.anonymous(),
                "carol",
                answer.json()["api_key"].as_str().unwrap(),
            );
            let account = carol.get("/accounts/carol@chorus").await;
            assert_eq!(account.status, 200, "{account:?}");
            carol.delete("/agents/carol").await.data(200);
        }
    }
);
