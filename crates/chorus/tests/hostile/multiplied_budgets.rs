//! A stranger that makes itself many keys: they do not multiply what its address may ask for (R-95, finding F9).

use crate::support_compute::{AttackedHub, registration};
use serde_json::{Value, json};
use std::time::Instant;

const RATE: usize = 30;
/// How many budgets of a key an address has over all its keys.
const ADDRESS_FACTOR: usize = 4;
const KEYS: usize = 10;

#[test]
fn many_keys_of_one_address_have_four_budgets() {
    let hub = AttackedHub::start_limited(&["--rate-limit", &RATE.to_string()]);
    let client = hub.client();
    let started_at = Instant::now();
    let keys: Vec<_> = (0..KEYS)
        .map(|number| client.register(&registration(&format!("m-{number}@chorus"), None), None))
        .collect();
    let watch = hub.watch();
    let mut answered = 0;
    for key in keys.iter().flat_map(|key| [key; RATE]) {
        let (status, answer) = client.request("GET", "/agent/messages", Some(key), &Value::Null);
        match status {
            200 => answered += 1,
            429 => {}
            _ => panic!("{status}: {answer}"),
        }
    }
    // While the requests run, the budget of the address comes back by so many.
    let seconds = started_at.elapsed().as_secs() as usize + 1;
    let most = ADDRESS_FACTOR * RATE + ADDRESS_FACTOR * RATE * seconds / 60;
    println!("{answered} requests answered in {seconds} s");
    assert!((RATE..=most).contains(&answered), "{answered} of {most}");
    watch.assert_unharmed(16);
}

#[test]
fn registrations_of_one_address_have_a_small_budget() {
    let hub = AttackedHub::start_limited(&["--register-rate", "2"]);
    let client = hub.client();
    let watch = hub.watch();
    let statuses: Vec<_> = (0..50)
        .map(|number| {
            let body = registration(&format!("agent-{number}@chorus"), None);
            client.request("POST", "/register", None, &body)
        })
        .collect();
    let made = statuses.iter().filter(|(status, _)| *status == 201).count();
    // Four at once, and those that come back meanwhile.
    assert!((4..=6).contains(&made), "{made}");
    let (status, refusal) = statuses.last().unwrap();
    assert_eq!(*status, 429);
    assert_eq!(refusal["error"]["code"], json!("ERR_RATE_LIMITED"));
    watch.assert_unharmed(16);
}
