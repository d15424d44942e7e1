//! The directory of agents and their public records, and what those leave out.

use crate::support::actors::{Answer, Caller, rows};
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
    // the printed names are under another host than this hub's. R-82: how each is reached.
    for row in &mut printed {
        let is_online = row["online"] == json!(true);
        row["reach"] = json!(if is_online { "turns" } else { "mail" });
        row["host_verified"] = json!(false);
    }
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

/// An agent whose card has nearly the largest size.
fn large_card(number: usize) -> serde_json::Value {
    let language = |n: usize| format!("en-x-{n:08}{}", "-aaaaaaaa".repeat(5));
    json!({"agent_card": {
        "card_version": "0.3",
        "user_culture": "en",
        "supported_languages": (0..64).map(language).collect::<Vec<_>>(),
        "about": format!("{number}{}", "x".repeat(3_800)),
    }})
}

/// The `after` of the link to the next page.
fn linked_cursor(answer: &Answer) -> Option<String> {
    let link = answer.header("link");
    let target = link.strip_prefix("<?")?.strip_suffix(">; rel=\"next\"")?;
    let cursor = target
        .split('&')
        .find_map(|pair| pair.strip_prefix("after="));
    Some(cursor.expect("an after").to_owned())
}

story!(
    a_page_of_large_cards_ends_at_its_bytes_and_the_next_one_continues,
    |hub| async {
        // R-99, TRN-34, TRN-59: all agents are listed, and an answer says when more follow
        let mut all = Vec::new();
        for number in 0..70 {
            let id = format!("large-{number:03}@chorus");
            all.push(hub.agent_with(&id, &large_card(number)).await);
        }
        let names: Vec<String> = all.iter().map(|agent| agent.id.clone()).collect();
        for path in ["/agents?", "/discover?", "/discover?format=envelope&"] {
            let is_bare = path == "/discover?";
            let mut seen: Vec<String> = Vec::new();
            let mut pages = 0;
            let mut next = Some(String::new());
            while let Some(after) = next {
                let answer = hub
                    .anonymous()
                    .get(&format!("{path}limit=500{after}"))
                    .await;
                assert!(answer.text.len() < 257 * 1024, "{}", answer.text.len());
                let cursor = if is_bare {
                    linked_cursor(&answer)
                } else {
                    assert_eq!(answer.header("link"), "");
                    let next = &answer.json()["metadata"]["next"];
                    next.as_str().map(str::to_owned)
                };
                let body = answer.json();
                let list = if is_bare { body } else { body["data"].clone() };
                let ids = rows(list);
                seen.extend(
                    ids.iter()
                        .map(|row| row["agent_id"].as_str().unwrap().to_owned()),
                );
                next = cursor.map(|cursor| format!("&after={cursor}"));
                pages += 1;
            }
            assert_eq!(seen, names, "{path}");
            assert!(pages >= 2, "{path}: {pages}");
        }
        // The cursor stands when the agent before it is gone.
        let first = hub.anonymous().get("/agents?limit=2").await.json();
        let cursor = first["metadata"]["next"].as_str().unwrap().to_owned();
        all[1]
            .delete(&format!("/agents/{}", all[1].id))
            .await
            .data(200);
        let second = hub
            .anonymous()
            .get(&format!("/agents?limit=1&after={cursor}"))
            .await
            .data(200);
        assert_eq!(second[0]["agent_id"], json!(all[2].id));
        let last = hub
            .anonymous()
            .get(&format!("/agents?after={}", all[68].id))
            .await;
        assert_eq!(last.json()["metadata"].get("next"), None, "{last:?}");
    }
);

story!(a_closed_hub_shows_its_directory_to_keys_only, |hub| async {
    let alice = hub.agent("alice").await;
    let paths = [
        "/agents",
        "/agents/alice",
        "/discover",
        "/discover?min_reputation=0",
        "/skills",
        "/economy",
        "/reputation/alice",
    ];
    let statuses = async |who: &Caller| {
        let mut statuses = Vec::new();
        for path in paths {
            statuses.push(who.get(path).await.status);
        }
        statuses
    };
    assert_eq!(statuses(&hub.anonymous()).await, [200; 7]);
    hub.operator().invite(&json!({"label": "closed"})).await;
    assert_eq!(statuses(&hub.anonymous()).await, [401; 7]);
    assert_eq!(statuses(&alice).await, [200; 7]);
    assert_eq!(statuses(&hub.operator()).await, [200; 7]);
    // Health says nothing about agents, and scrapers of this machine need no key.
    hub.anonymous().get("/health").await.data(200);
    assert_eq!(hub.anonymous().get("/metrics").await.status, 200);
});

sqlite_story!(
    a_closed_hub_shows_its_metrics_to_private_addresses_and_operators,
    with(|set| set.trusted_proxies = vec!["127.0.0.1".parse().unwrap()]),
    |hub| async {
        let scrape = async |who: &Caller, client: &str| {
            let request = who
                .request("GET", "/metrics")
                .header("x-forwarded-for", client);
            Answer::of(request).await.status
        };
        assert_eq!(scrape(&hub.anonymous(), "203.0.113.7").await, 200);
        hub.operator().invite(&json!({"label": "closed"})).await;
        assert_eq!(scrape(&hub.anonymous(), "203.0.113.7").await, 401);
        assert_eq!(scrape(&hub.anonymous(), "2001:db8::1").await, 401);
        for client in ["10.1.2.3", "192.168.7.7", "fd00::1", "127.0.0.1"] {
            assert_eq!(scrape(&hub.anonymous(), client).await, 200, "{client}");
        }
        assert_eq!(scrape(&hub.operator(), "203.0.113.7").await, 200);
    }
);
