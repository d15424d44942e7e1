//! Randomly mutated requests: the hub answers each with a valid response and goes on.

use crate::support::actors::{Answer, registration};
use crate::support::seeded_random::SeededRandom;

const SCRAPS: [&str; 16] = [
    "\"",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "null",
    "-1e309",
    "\\u0000",
    "\\ud800",
    "\u{0}",
    "é",
    "\u{feff}",
    "'; drop table",
    "%00",
];

/// `text` with a few bytes dropped, doubled, swapped or replaced by scraps.
fn bend(text: &str, random: &mut SeededRandom) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len());
        match random.below(5) {
            0 => drop(bytes.remove(at)),
            1 => bytes.insert(at, bytes[at]),
            2 => bytes[at] = random.below(256) as u8,
            3 => bytes.truncate(at + 1),
            _ => drop(bytes.splice(at..at, SCRAPS[random.below(SCRAPS.len())].bytes())),
        }
    }
    bytes
}

story!(no_bent_request_is_a_5xx_or_anything_but_json, |hub| async {
    // "Bad input": a clear error, never a 5xx, never a hang
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let mut random = SeededRandom(0x2545_f491_4f6c_dd1d);
    let bodies = [
        ("/messages", alice.message(&bob.id, "hello there").to_string()),
        ("/register", registration("new@chorus").to_string()),
        (
            "/register",
            r#"{"agent_id":"w-1","agent_name":"W","owner_id":"o","skills":[{"skill_name":"s","cost_per_call":0.10}]}"#
                .to_owned(),
        ),
        ("/invites", r#"{"label":"x","max_uses":2,"expires_at":"2027-01-01T00:00:00Z"}"#.to_owned()),
    ];
    for _ in 0..60 {
        for (path, body) in &bodies {
            let bent = bend(body, &mut random);
            let shown = String::from_utf8_lossy(&bent).into_owned();
            let answer = alice.post_text(path, bent).await;
            assert!(
                (200..500).contains(&answer.status),
                "{path} {shown}: {answer:?}"
            );
            answer.json();
        }
    }
    alice
        .send_expecting(&bob.id, "and it goes on", "queued")
        .await;
});

story!(no_bent_path_is_a_5xx, |hub| async {
    let alice = hub.agent("alice").await;
    let mut random = SeededRandom(0x9e37_79b9_7f4a_7c15);
    let paths = [
        "/agents/alice@chorus",
        "/invite/alice",
        "/agent/messages?since=5&limit=2",
        "/messages/0189f7ea-ae2c-7809-8aeb-b819cf5e9e7f",
    ];
    for _ in 0..40 {
        for path in paths {
            let bent: String = bend(path, &mut random)
                .iter()
                .skip(1)
                .map(|b| {
                    if b.is_ascii_graphic() && *b != b'#' {
                        char::from(*b).to_string()
                    } else {
                        format!("%{b:02x}")
                    }
                })
                .collect();
            let answer = Answer::of(alice.request("GET", &format!("/{bent}"))).await;
            assert!((200..500).contains(&answer.status), "/{bent}: {answer:?}");
        }
    }
    hub.anonymous().get("/health").await.data(200);
});
