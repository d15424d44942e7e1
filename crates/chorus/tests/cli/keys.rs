//! `chorus keys`: further keys, and a new key for the registration.

use super::actors::Scene;
use serde_json::json;

//
#[test]
fn further_keys_are_created_listed_and_revoked() {
    let scene = Scene::open();
    let (alice, bob) = (scene.agent("alice"), scene.agent("bob"));
    assert_eq!(bob.json(&["keys", "list"]).len(), 0);
    let args = [
        "keys",
        "create",
        "build server",
        "--scope",
        "send",
        "--expires",
        "30d",
    ];
    let made = &bob.json(&args)[0];
    let key = made["key"].as_str().unwrap();
    let id = made["id"].as_str().unwrap();
    assert_eq!(made["scopes"], json!(["send"]));
    let credentials = bob.home.join("build-server.json");
    let identity = json!({"agent_id": "bob@chorus", "api_key": key, "hub_url": scene.hub.url});
    std::fs::write(&credentials, identity.to_string()).unwrap();
    let with = ["--credentials", credentials.to_str().unwrap()];
    bob.run(&[&with[..], &["send", "alice@chorus", "built"]].concat())
        .ok();
    let refused = bob.run(&[&with[..], &["history", "--remote"]].concat());
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(
        refused.err.contains("read"),
        "it names the scope: {refused:?}"
    );
    assert_eq!(alice.json(&["history", "--remote"]).len(), 1);
    let listed = bob.run(&["keys", "list"]).ok().out;
    assert!(
        listed.contains(id) && listed.contains("build server"),
        "{listed}"
    );
    assert!(!listed.contains(key), "a key is shown once");
    assert_eq!(bob.run(&["keys", "create", "x", "--scope", "all"]).code, 1);
    bob.run(&["keys", "revoke", id]).ok();
    assert_eq!(bob.run(&["keys", "revoke", id]).code, 4);
    let dead = bob.run(&[&with[..], &["send", "alice@chorus", "again"]].concat());
    assert_eq!(dead.code, 2, "{dead:?}");
}

//
#[test]
fn a_rotation_replaces_the_key_in_the_credential_file() {
    let scene = Scene::open();
    let bob = scene.agent("bob");
    let file = bob.home.join(".chorus/config.json");
    let before = std::fs::read_to_string(&file).unwrap();
    bob.run(&["connection"]).ok();
    let rotated = &bob.json(&["keys", "rotate"])[0];
    assert_eq!(rotated["agent_id"], "bob@chorus");
    let after = std::fs::read_to_string(&file).unwrap();
    assert_ne!(before, after);
    bob.run(&["whoami"]).ok();
    assert_eq!(
        bob.json(&["connection"])[0]["new"],
        true,
        "the old one ended with its key"
    );
    // The old key is dead, also for a rotation: the new one has been used.
    std::fs::write(&file, &before).unwrap();
    assert_eq!(bob.run(&["keys", "rotate"]).code, 2);
    std::fs::write(&file, &after).unwrap();
    // An answer that was lost: the file still has the old key, and the command is run again.
    bob.run(&["keys", "rotate"]).ok();
    std::fs::write(&file, &after).unwrap();
    bob.run(&["keys", "rotate"]).ok();
    bob.run(&["whoami"]).ok();
    let kept = &bob.json(&["keys", "rotate", "--overlap", "1h"])[0];
    assert!(kept["old_key_until"].is_string(), "{kept}");
}
