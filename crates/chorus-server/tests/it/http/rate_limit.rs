//! The rate limit of one caller, and its independence from other callers.

use crate::support::actors::{Answer, Caller};
use serde_json::json;

/// Asks until refused; the refusal.
async fn exhaust(who: &Caller, path: &str) -> Answer {
    for _ in 0..60 {
        let answer = who.get(path).await;
        if answer.status == 429 {
            return answer;
        }
        assert!(answer.status < 500, "{answer:?}");
    }
    panic!("sixty requests went through a limit of twenty");
}

story!(
    a_key_has_a_bucket_of_its_own,
    with(|set| set.rate_limit = 20),
    |hub| async {
        // lesson 8; failure 24: one client never blocks the others
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let refusal = exhaust(&alice, "/agent/messages").await;
        refusal.refused(429, "ERR_RATE_LIMITED");
        let wait: u64 = refusal
            .header("retry-after")
            .parse()
            .expect("Retry-After in seconds");
        assert!((1..=60).contains(&wait), "{wait}");
        assert!(
            !refusal.header("ratelimit").is_empty()
                && !refusal.header("ratelimit-policy").is_empty(),
            "{refusal:?}"
        );
        bob.get("/agent/messages").await.data(200);
        hub.anonymous().get("/agents").await.data(200);
        alice
            .send(&bob.id, "not now")
            .await
            .refused(429, "ERR_RATE_LIMITED");
        assert!(bob.history("").await.is_empty(), "a refusal has no effect");
    }
);

story!(
    a_budget_is_counted_down_by_one_and_comes_back_in_time,
    with(|set| set.rate_limit = 20),
    |hub| async {
        // D-85: no answer shows how many hubs there are
        let alice = hub.agent("alice").await;
        for left in (0..20).rev() {
            let answer = alice.get("/agent/messages").await;
            answer.data(200);
            assert_eq!(
                answer.header("ratelimit"),
                format!("\"default\";r={left};t={}", (20 - left) * 3)
            );
            assert_eq!(answer.header("ratelimit-policy"), "\"default\";q=20;w=60");
        }
        for _ in 0..3 {
            let refusal = alice.get("/agent/messages").await;
            refusal.refused(429, "ERR_RATE_LIMITED");
            assert_eq!(
                (refusal.header("retry-after"), refusal.header("ratelimit")),
                ("3", "\"default\";r=0;t=60")
            );
        }
        hub.advance(std::time::Duration::from_secs(6));
        for status in [200, 200, 429, 429] {
            assert_eq!(alice.get("/agent/messages").await.status, status);
        }
    }
);

story!(
    requests_of_one_moment_share_a_budget,
    with(|set| set.rate_limit = 20),
    |hub| async {
        let alice = hub.agent("alice").await;
        let asked = futures_util::future::join_all(
            (0..40).map(async |_| alice.get("/agent/messages").await),
        )
        .await;
        assert_eq!(
            asked.iter().filter(|answer| answer.status == 200).count(),
            20
        );
        assert_eq!(
            asked.iter().filter(|answer| answer.status == 429).count(),
            20
        );
    }
);

story!(
    an_address_without_a_key_has_one_too,
    with(|set| set.rate_limit = 20),
    |hub| async {
        // failure 24, and guessing keys is no way round it
        let alice = hub.agent("alice").await;
        exhaust(&hub.anonymous(), "/agents")
            .await
            .refused(429, "ERR_RATE_LIMITED");
        hub.anonymous()
            .register("late@chorus")
            .await
            .refused(429, "ERR_RATE_LIMITED");
        alice.get("/agent/messages").await.data(200);
        let mut refused = 0;
        for guess in 0..40 {
            let answer = hub
                .anonymous()
                .with_key(&format!("ca_{guess:032}"))
                .get("/agent/messages")
                .await;
            assert!(matches!(answer.status, 401 | 429), "{answer:?}");
            refused += u32::from(answer.status == 429);
        }
        assert!(refused > 0, "forty guesses from one address went through");
    }
);

story!(
    guesses_are_refused_without_a_lookup,
    with(|set| set.rate_limit = 20),
    |hub| async {
        // An unused key is not in the key cache, like a made-up one: its refusal shows that the hub did not look it up.
        let (alice, unseen) = (hub.agent("alice").await, hub.agent("unseen").await);
        // Twice: where there are two hubs, both remember it.
        alice.get("/agent/messages").await.data(200);
        alice.get("/agent/messages").await.data(200);
        // A request without a key is no guess: clients that share the address are still served.
        let early = hub.agent("early").await;
        exhaust(&hub.anonymous(), "/agents").await;
        early.get("/agent/messages").await.data(200);
        for guess in 0..20 {
            hub.anonymous()
                .with_key(&format!("ca_{guess:032}"))
                .get("/agent/messages")
                .await;
        }
        alice.get("/agent/messages").await.data(200);
        let refusal = unseen.get("/agent/messages").await;
        refusal.refused(429, "ERR_RATE_LIMITED");
        hub.advance(std::time::Duration::from_secs(
            refusal.header("retry-after").parse().unwrap(),
        ));
        unseen.get("/agent/messages").await.data(200);
    }
);

story!(
    keys_do_not_multiply_the_budget_of_an_address,
    with(|set| {
        set.rate_limit = 10;
        set.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    }),
    |hub| async {
        // four times a key's budget over all keys of an address
        let mut agents = Vec::new();
        for number in 0..6 {
            agents.push(hub.agent(&format!("agent-{number}")).await);
        }
        let mut answered = 0;
        for agent in &agents {
            for _ in 0..10 {
                let request = agent
                    .request("GET", "/agent/messages")
                    .header("x-forwarded-for", "203.0.113.5");
                let answer = Answer::of(request).await;
                match answer.status {
                    200 => answered += 1,
                    429 => assert!(!answer.header("retry-after").is_empty()),
                    _ => panic!("{answer:?}"),
                }
            }
        }
        assert_eq!(answered, 40);
        // Another address is not concerned, and neither is an operator at this one.
        let elsewhere = agents[5]
            .request("GET", "/agents")
            .header("x-forwarded-for", "203.0.113.6");
        assert_eq!(Answer::of(elsewhere).await.status, 429, "its own budget");
        let operator = hub.operator();
        let request = operator
            .request("GET", "/activity")
            .header("x-forwarded-for", "203.0.113.5");
        Answer::of(request).await.data(200);
    }
);

story!(
    registrations_without_a_key_have_a_small_budget,
    with(|set| {
        set.rate_limit = 600;
        set.register_rate = 3;
    }),
    |hub| async {
        // 3 a minute, and 6 at once
        let alice = hub.agent("alice").await;
        for number in 1..6 {
            hub.agent(&format!("agent-{number}")).await;
        }
        let refusal = hub.anonymous().register("late@chorus").await;
        refusal.refused(429, "ERR_RATE_LIMITED");
        assert_eq!(refusal.header("retry-after"), "20");
        // Everything else goes on, also an update with the key.
        hub.anonymous().get("/agents").await.data(200);
        let update = crate::support::actors::registration("alice@chorus");
        alice.post("/register", &update).await.data(200);
        let by_operator = json!({"agent_id": "made@chorus", "endpoint": "http://127.0.0.1:9/"});
        hub.operator().post("/agents", &by_operator).await.data(201);
        hub.advance(std::time::Duration::from_secs(20));
        hub.agent("late").await;
        hub.anonymous()
            .register("later@chorus")
            .await
            .refused(429, "ERR_RATE_LIMITED");
    }
);

story!(
    probes_have_a_generous_budget_of_their_own,
    with(|set| set.rate_limit = 4),
    |hub| async {
        exhaust(&hub.anonymous(), "/agents").await;
        for _ in 0..40 {
            hub.anonymous().get("/health").await.data(200);
        }
        hub.anonymous()
            .get("/ready")
            .await
            .refused(429, "ERR_RATE_LIMITED");
    }
);

story!(off_means_off, |hub| async {
    for _ in 0..200 {
        hub.anonymous().get("/agents").await.data(200);
    }
});
