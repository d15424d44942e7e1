//! Keys: which agent each acts for, where it is refused, and that no response or file shows it.

use crate::support::actors::{Answer, Caller, registration};
use crate::support::hub::{Hub, OPERATOR_KEY};
use serde_json::json;

const AGENT_ROUTES: [(&str, &str); 9] = [
    ("POST", "/messages"),
    ("GET", "/agent/inbox"),
    ("GET", "/agent/messages"),
    ("POST", "/agent/session"),
    ("POST", "/agent/endpoint-secret"),
    ("GET", "/agent/usage"),
    ("DELETE", "/agents/alice@chorus"),
    (
        "POST",
        "/agent/messages/01890000-0000-7000-8000-000000000000/response",
    ),
    (
        "POST",
        "/agent/messages/01890000-0000-7000-8000-000000000000/shown",
    ),
];

const OPERATOR_ROUTES: [(&str, &str); 6] = [
    ("POST", "/agents"),
    ("POST", "/invites"),
    ("GET", "/invites"),
    ("DELETE", "/invites/one"),
    ("GET", "/activity"),
    ("GET", "/events"),
];

async fn ask(who: &Caller, (method, path): (&str, &str)) -> Answer {
    Answer::of(who.request(method, path).json(&json!({}))).await
}

story!(without_a_valid_key_every_closed_route_is_401, |hub| async {
    // TRN-12, TRN-13, TRN-24
    hub.agent("alice").await;
    let unknown = hub.anonymous().with_key(&format!("ca_{}", "0".repeat(32)));
    let garbled = hub.anonymous().with_key("nonsense");
    for route in AGENT_ROUTES.into_iter().chain(OPERATOR_ROUTES) {
        for who in [&*hub.anonymous(), &unknown, &garbled] {
            ask(who, route).await.refused(401, "ERR_UNAUTHORIZED");
        }
    }
    for credential in ["Basic abc", "Bearer", "Bearer ", "ca_", "Bearer  x y"] {
        let request = hub
            .anonymous()
            .request("GET", "/agent/messages")
            .header("authorization", credential);
        Answer::of(request).await.refused(401, "ERR_UNAUTHORIZED");
    }
});

story!(an_agent_key_is_never_an_operator_key, |hub| async {
    // failures 1 and 4
    let alice = hub.agent("alice").await;
    for route in OPERATOR_ROUTES {
        ask(&alice, route).await.refused(403, "ERR_FORBIDDEN");
    }
});

story!(an_operator_has_no_inbox_and_no_history, |hub| async {
    // TRN-12: these need an agent's key
    for path in ["/agent/inbox", "/agent/messages"] {
        let answer = hub.operator().get(path).await;
        assert!(matches!(answer.status, 401 | 403), "{answer:?}");
        answer.refused(
            answer.status,
            if answer.status == 401 {
                "ERR_UNAUTHORIZED"
            } else {
                "ERR_FORBIDDEN"
            },
        );
    }
});

story!(a_key_sends_only_as_its_own_agent, |hub| async {
    // another's or an unregistered sender_id
    let alice = hub.agent("alice").await;
    let bob = hub.agent("bob").await;
    for sender in ["bob@chorus", "absent@chorus", "Alice@chorus"] {
        let body = json!({"receiver_id": bob.id, "envelope": crate::support::actors::envelope(sender, "forged")});
        alice
            .post("/messages", &body)
            .await
            .refused(403, "ERR_SENDER_MISMATCH");
    }
    assert!(bob.history("").await.is_empty());
});

story!(a_replaced_key_is_dead_everywhere_at_once, |hub| async {
    // a stolen key ends with its rotation
    let alice = hub.agent("alice").await;
    alice
        .post(
            "/register",
            &crate::support::actors::registration(&alice.id),
        )
        .await
        .data(200);
    for route in AGENT_ROUTES {
        ask(&alice, route).await.refused(401, "ERR_UNAUTHORIZED");
    }
    alice
        .post(
            "/register",
            &crate::support::actors::registration(&alice.id),
        )
        .await
        // it is as no key there
        .refused(409, "ERR_AGENT_ID_TAKEN");
});

story!(a_key_outlives_a_restart, |hub| async {
    let alice = hub.agent("alice").await;
    hub.restart().await;
    assert!(hub.reconnect(&alice).history("").await.is_empty());
});

story!(no_listing_shows_a_key, |hub| async {
    // R-32, invariant 12
    let alice = hub.agent("alice").await;
    let operator = hub.operator();
    for path in [
        "/agents",
        "/agents/alice",
        "/discover",
        "/invite/alice",
        "/health",
        "/activity",
        "/metrics",
    ] {
        for who in [&*hub.anonymous(), &*alice, &*operator] {
            let text = who.get(path).await.text;
            assert!(
                !text.contains(&alice.key) && !text.contains(OPERATOR_KEY),
                "{path} shows a key"
            );
        }
    }
});

/// keys, codes and tokens are stored hashed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_data_directory_holds_no_secret_in_the_clear() {
    let mut hub = Hub::fresh().await;
    let alice = hub.agent("alice").await;
    let token = alice.post("/agent/session", &json!({})).await.data(200)["session_token"].clone();
    let code = hub.operator().invite(&json!({"label": "one"})).await["code"].clone();
    hub.stop().await;
    let secrets = [
        alice.key.as_str(),
        token.as_str().unwrap(),
        code.as_str().unwrap(),
        OPERATOR_KEY,
    ];
    let mut files = 0;
    for file in std::fs::read_dir(hub.dir.path()).unwrap().flatten() {
        // The engine removes its side files when the last reader closes, which may be now.
        let Ok(bytes) = std::fs::read(file.path()) else {
            continue;
        };
        files += 1;
        for secret in secrets {
            let tail = secret.rsplit('_').next().unwrap().as_bytes();
            assert!(
                !bytes.windows(tail.len()).any(|w| w == tail),
                "{:?} holds a secret",
                file.path()
            );
        }
    }
    assert!(files > 0, "the data directory is empty");
}

story!(
    a_token_asked_for_while_its_key_is_rotated_opens_nothing,
    |hub| async {
        // a client with a stolen key asks without a pause, and must lose access with the key
        for round in 0..4 {
            let alice = hub.agent(&format!("alice-{round}")).await;
            let asked = (0..40).map(|_| Answer::of(alice.request("POST", "/agent/session")));
            let again = registration(&alice.id);
            let rotated = alice.post("/register", &again);
            let (asked, rotated) =
                futures_util::future::join(futures_util::future::join_all(asked), rotated).await;
            rotated.data(200);
            for answer in asked.into_iter().filter(|answer| answer.status == 200) {
                let token = answer.data(200)["session_token"]
                    .as_str()
                    .unwrap()
                    .to_owned();
                let opened = Answer::of(
                    hub.anonymous()
                        .request("GET", &format!("/agent/inbox?session={token}")),
                )
                .await;
                opened.refused(401, "ERR_UNAUTHORIZED");
            }
        }
    }
);
