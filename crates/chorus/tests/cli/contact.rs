//! `chorus block`, `unblock` and `contacts`: which agents may contact you.

use crate::actors::Scene;

//
#[test]
fn a_blocked_agent_and_a_stranger_are_refused_until_they_may_write() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let send = || bob.run(&["send", "alice@chorus", "hello"]);
    assert_eq!(
        alice.run(&["block", "bob"]).ok().out,
        "bob@chorus is blocked\n"
    );
    assert_eq!(alice.run(&["block"]).ok().out, "bob@chorus\n");
    let refused = send();
    assert!(
        refused.code == 4 && refused.err.contains("blocked"),
        "{refused:?}"
    );
    alice.run(&["unblock", "bob"]).ok();
    assert!(alice.run(&["unblock", "bob"]).ok().out.contains("was not"));
    send().ok();
    let shown = alice.json(&["contacts", "--accept-from", "contacts"]);
    assert_eq!(shown[0]["accept_from"], "contacts");
    assert_eq!(send().code, 4);
    let shown = alice.json(&["contacts", "--add", "bob"]);
    assert_eq!(shown[0]["contacts"][0]["name"], "bob@chorus");
    send().ok();
    alice.run(&["contacts", "--remove", "bob"]).ok();
    assert_eq!(send().code, 4);
    assert_eq!(alice.run(&["contacts", "--accept-from", "x"]).code, 1);
}
