//! The directory of agents and their public records, and what those leave out.

use crate::support::actors::rows;
use crate::support::hub::eventually;
use serde_json::{Value, json};

story!(the_directory_is_a_bare_array_as_printed, |hub| async {
    // TRN-59, TRN-60, TRN-64, R-12, R-13
    let card = |culture: &str, languages: Value| json!({"agent_card": {"card_version": "0.3", "user_culture": culture, "supported_languages": languages}});
    let xiaov = hub
        .agent_with("xiaov@agchorus", &card("zh-CN", json!(["zh-CN", "en"])))
        .await;
    hub.agent_with("xiaoyin@agchorus", &card("en", json!(["en", "zh-CN"])))
        .await;
    let _inbox = xiaov.inbox().await;
    let mut list = rows(hub.anonymous().get("/discover").await.json());
    list.sort_by_key(|row| row["agent_id"].to_string());
    let mut printed = rows(crate::support::examples::example(
        "skill/finding-2-discover.json",
    ));
    printed.sort_by_key(|row| row["agent_id"].to_string());
    assert_eq!(list, printed);
    let wrapped = hub
        .anonymous()
        .get("/discover?format=envelope")
        .await
        .data(200);
    assert_eq!(rows(wrapped).len(), 2);
});

story!(online_is_exactly_while_an_inbox_is_open, |hub| async {
    // TRN-60; failure 10
    let bob = hub.agent("bob").await;
    let online = || async { hub.anonymous().get("/discover").await.json()[0]["online"] == true };
    assert!(!online().await);
    let first = bob.inbox().await;
    let second = bob.inbox().await;
    assert!(online().await);
    drop(first);
    eventually("one inbox is left", || async {
        hub.anonymous().get("/health").await.data(200)["inbox_connections"] == 1
    })
    .await;
    assert!(online().await);
    drop(second);
    eventually("bob is offline", || async { !online().await }).await;
});

story!(market_filters_answer_in_the_market_shape, |hub| async {
    // R-12, TRN-36
    hub.agent("alice").await;
    for query in [
        "skill=adding",
        "min_reputation=10",
        "max_cost=1",
        "skill=adding&max_cost=0.5",
    ] {
        let answer = hub.anonymous().get(&format!("/discover?{query}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(answer.json()["agents"].is_array(), "{query}: {answer:?}");
    }
});

story!(records_are_public_and_endpoints_are_not, |hub| async {
    // TRN-34, TRN-35, R-32; failure 4: a webhook URL may hold a secret
    let url = "http://127.0.0.1:9/hook?secret=hush";
    let alice = hub.agent_with_webhook("alice", url).await;
    let bob = hub.agent("bob").await;
    for who in [&*hub.anonymous(), &*bob] {
        for path in [
            "/agents",
            "/agents/alice@chorus",
            "/agents/alice",
            "/agents/~alice",
            "/discover",
            "/invite/alice",
        ] {
            let answer = who.get(path).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            assert!(!answer.text.contains("hush"), "{path} shows an endpoint");
        }
        let list = rows(who.get("/agents").await.data(200));
        let hooked: Vec<(&Value, &Value)> = list
            .iter()
            .map(|row| (&row["agent_id"], &row["has_endpoint"]))
            .collect();
        assert_eq!(
            hooked,
            [
                (&json!("alice@chorus"), &json!(true)),
                (&json!("bob@chorus"), &json!(false))
            ]
        );
        assert!(list[0]["registered_at"].is_string() && list[0].get("endpoint").is_none());
    }
    for who in [&*alice, &*hub.operator()] {
        assert_eq!(who.get("/agents/alice").await.data(200)["endpoint"], url);
    }
});

story!(an_unknown_agent_is_404, |hub| async {
    // TRN-35
    for path in ["/agents/absent@chorus", "/agents/absent", "/agents/~absent"] {
        hub.anonymous()
            .get(path)
            .await
            .refused(404, "ERR_AGENT_NOT_FOUND");
    }
    for path in ["/agents/a%20b", "/agents/%00", "/agents/%ff"] {
        let answer = hub.anonymous().get(path).await;
        assert!(matches!(answer.status, 400 | 404), "{path}: {answer:?}");
        assert_eq!(answer.json()["success"], false);
    }
});

story!(a_long_directory_comes_in_pages, |hub| async {
    // failure 25: no unbounded answers
    for number in 0..7 {
        hub.agent(&format!("agent-{number}")).await;
    }
    for path in ["/agents", "/discover?format=envelope"] {
        let join = if path.contains('?') { '&' } else { '?' };
        let mut seen: Vec<String> = Vec::new();
        loop {
            let after = seen
                .last()
                .map(|id| format!("&after={id}"))
                .unwrap_or_default();
            let page = rows(
                hub.anonymous()
                    .get(&format!("{path}{join}limit=3{after}"))
                    .await
                    .data(200),
            );
            assert!(page.len() <= 3 && seen.len() <= 7, "{seen:?}");
            if page.is_empty() {
                break;
            }
            seen.extend(
                page.iter()
                    .map(|row| row["agent_id"].as_str().unwrap().to_owned()),
            );
        }
        assert_eq!(
            seen,
            (0..7)
                .map(|n| format!("agent-{n}@chorus"))
                .collect::<Vec<_>>(),
            "{path}"
        );
    }
});
