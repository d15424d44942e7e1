//! Registrations and skills full of expensive schemas: the hub answers others meanwhile (R-99).

use crate::support_compute::{AttackedHub, OPERATOR, RunningAttack, registration};
use crate::support_watch::HubWatch;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

/// Compiled schemas may take a sixteenth of the memory, and the two that are being compiled some more.
const MAX_GROWTH_MIB: u64 = 48;
/// How often the health is asked for while the attack runs: for about five seconds.
const HEALTH_ANSWERS: usize = 100;

/// Patterns that each take milliseconds to compile; no two are the same, so that no cache helps.
fn schema_of_patterns(number: usize, count: usize) -> Value {
    let patterns =
        (0..count).map(|n| json!({"pattern": format!(r"\p{{L}}{{12}}{}", number * 100 + n)}));
    json!({"allOf": patterns.collect::<Vec<_>>()})
}

fn skill(number: usize) -> Value {
    json!({
        "skill_name": format!("s{number}"),
        "cost_per_call": 0.01,
        "input_schema": schema_of_patterns(2 * number, 32),
        "output_schema": schema_of_patterns(2 * number + 1, 32),
    })
}

/// 64 skills with 4 096 patterns in 140 KB.
fn hostile_registration() -> Value {
    let mut body = registration("mallory@chorus", None);
    body["skills"] = (0..64).map(skill).collect();
    body
}

fn assert_unharmed_during(watch: HubWatch, attack: RunningAttack) {
    watch.await_answers(HEALTH_ANSWERS);
    let rounds = attack.rounds.load(Ordering::Relaxed);
    attack.finish();
    watch.assert_unharmed(MAX_GROWTH_MIB);
    assert!(rounds > 0, "the attack was never answered");
}

#[test]
fn a_closed_hub_compiles_nothing_for_strangers() {
    let hub = AttackedHub::start(&["--memory", "256M"]);
    let client = hub.client();
    let (status, _) = client.request(
        "POST",
        "/invites",
        Some(OPERATOR),
        &json!({"label": "friends"}),
    );
    assert_eq!(status, 201);
    let body = hostile_registration();
    let watch = hub.watch();
    let attack = RunningAttack::start(4, move |_| {
        let (status, answer) = client.request("POST", "/register", None, &body);
        let code = &answer["error"]["code"];
        assert_eq!(
            (status, code),
            (403, &json!("ERR_INVITE_REQUIRED")),
            "{answer}"
        );
    });
    assert_unharmed_during(watch, attack);
}

#[test]
fn an_open_hub_refuses_too_many_patterns_before_it_compiles_one() {
    let hub = AttackedHub::start(&["--memory", "256M"]);
    let client = hub.client();
    let body = hostile_registration();
    let watch = hub.watch();
    let attack = RunningAttack::start(4, move |_| {
        let (status, answer) = client.request("POST", "/register", None, &body);
        assert_eq!(status, 400, "{answer}");
    });
    assert_unharmed_during(watch, attack);
}

#[test]
fn skills_within_the_limits_are_compiled_beside_the_requests() {
    let hub = AttackedHub::start(&["--memory", "256M"]);
    let client = hub.client();
    let key = client.register(&registration("mallory@chorus", None), None);
    let watch = hub.watch();
    let attack = RunningAttack::start(8, move |number| {
        let pattern = |n: usize| json!({"pattern": format!("^[a-z]{{1,200}}{n}$")});
        let schema =
            |from: usize| json!({"allOf": (from..from + 32).map(pattern).collect::<Vec<_>>()});
        let body = json!({"cost_per_call": 0.01, "input_schema": schema(number * 64), "output_schema": schema(number * 64 + 32)});
        let (status, answer) = client.request("PUT", "/skills/s1", Some(&key), &body);
        assert!(matches!(status, 200 | 201), "{answer}");
    });
    assert_unharmed_during(watch, attack);
}
