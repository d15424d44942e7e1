//! `chorus channel post` says which mentions reach no member.

use crate::actors::Scene;
use crate::channel::create_channel;
use serde_json::json;

// the message is posted, and the sender learns that a name in it is no joined member's.
#[test]
fn a_mention_that_reaches_no_member_is_warned_of() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    create_channel(&alice, "ops team");
    let post = |text: &str| alice.run(&["channel", "post", "ops team", text]).ok();
    alice
        .run(&["channel", "add", "ops team", "bob@chorus"])
        .ok();
    let invited = post("@bob hello");
    assert!(invited.err.contains("@bob"), "{invited:?}");
    bob.run(&["channel", "accept", "ops team"]).ok();
    let known = post("@Bob what is the weather? Write to alice@chorus.");
    assert_eq!(known.err, "", "{known:?}");
    let unknown = post("@timber and @bob, what is the weather?");
    assert!(unknown.out.contains("@timber and @bob"), "{unknown:?}");
    assert_eq!(
        unknown.err,
        "no joined member of ops team is called @timber; its members: chorus channel show 'ops team'\n"
    );
    let history = alice.json(&["channel", "history", "ops team", "--limit", "1"]);
    assert_eq!(history[0]["mentions"], json!(["bob"]));
    // A program compares the mentions of the row; its standard error stays for errors.
    let program = alice.run(&["channel", "post", "ops team", "@timber", "--json"]);
    assert_eq!(program.ok().err, "");
}
