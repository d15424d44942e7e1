//! Endpoints whose name server never answers: webhooks to other names arrive meanwhile (R-99, D-102).

use crate::support_compute::{
    AttackedHub, RunningAttack, registration, start_name_server, start_webhook,
};
use std::time::Duration;

/// More than the look-ups that a thread each could once make.
const ATTACK_THREADS: usize = 64;
const MAX_GROWTH_MIB: u64 = 32;

#[test]
fn names_that_are_never_answered_do_not_delay_other_webhooks() {
    let name_server = start_name_server().to_string();
    let hub = AttackedHub::start(&["--allow-private-endpoints", "--name-server", &name_server]);
    let client = hub.client();
    let mallory = client.register(&registration("mallory@chorus", None), None);
    let alice = client.register(&registration("alice@chorus", None), None);
    for n in 0..200 {
        let endpoint = format!("http://dead-{n}.example/");
        client.register(
            &registration(&format!("dead-{n}@chorus"), Some(&endpoint)),
            None,
        );
    }
    let (port, _) = start_webhook();
    let watch = hub.watch();
    let attack = RunningAttack::start(ATTACK_THREADS, move |number| {
        let receiver = format!("dead-{}@chorus", number % 200);
        let (outcome, _) = client.send_message(&mallory, "mallory@chorus", &receiver);
        assert!(outcome.starts_with("failed "), "{outcome}");
    });
    // Each with a name that the hub has not resolved before.
    for n in 0..4 {
        let receiver = format!("bob-{n}@chorus");
        let endpoint = format!("http://www-{n}.good.example:{port}/");
        client.register(&registration(&receiver, Some(&endpoint)), None);
        let (outcome, took) = client.send_message(&alice, "alice@chorus", &receiver);
        assert!(outcome.starts_with("delivered "), "{outcome}");
        assert!(took < Duration::from_secs(3), "{took:?}");
    }
    attack.finish();
    watch.assert_unharmed(MAX_GROWTH_MIB);
}
