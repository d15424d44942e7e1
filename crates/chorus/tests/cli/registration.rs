//! What `chorus register` takes when it is not told, and identities that it must not lose or mistake.

use crate::actors::{Agent, Hub, Scene, on_terminal, run};
use std::os::unix::fs::PermissionsExt;

fn read_file(agent: &Agent, name: &str) -> String {
    std::fs::read_to_string(agent.home.join(".chorus").join(name)).unwrap()
}

#[test]
fn name_and_culture_come_from_the_environment() {
    let scene = Scene::open();
    let dora = scene.newcomer("dora");
    let mut command = dora.command(&["register", "--json"]);
    command.env("USER", "Dora Smith").env("LANG", "de_AT.UTF-8");
    let registered = run(command, "").ok().json();
    assert_eq!(registered[0]["agent_id"], "dora-smith@chorus");
    let whoami = dora.json(&["whoami"]);
    assert_eq!(
        whoami[0]["registration"]["agent_card"]["user_culture"],
        "de-AT"
    );
}

#[test]
fn without_a_terminal_nothing_is_asked() {
    let scene = Scene::open();
    let dora = scene.newcomer("dora");
    for (args, missing) in [
        (&["register"] as &[&str], "who are you?"),
        (&["register", "dora"], "which culture?"),
    ] {
        let mut command = dora.command(args);
        command.env("LANG", "C.UTF-8");
        let ended = run(command, "dora\nen\n");
        assert!(ended.code == 1 && ended.err.contains(missing), "{ended:?}");
    }
}

#[test]
fn on_a_terminal_what_is_missing_is_asked_for_with_its_default() {
    let scene = Scene::open();
    let dora = scene.newcomer("dora");
    let mut command = dora.command(&["register"]);
    command
        .env("USER", "dora")
        .env("LANG", "ja_JP.UTF-8")
        .env_remove("CHORUS_HUB");
    let hub = scene.hub.url.strip_prefix("http://").unwrap();
    // The hub is answered without a scheme, and the rest with the defaults.
    let ended = run(on_terminal(&command), &format!("{hub}\n\n\n")).ok();
    for part in [
        "hub [http://127.0.0.1:3000]: ",
        "your name [dora]: ",
        "[ja-JP]: ",
        "registered as dora@chorus",
        "api key: ca_",
    ] {
        assert!(ended.out.contains(part), "{part}: {ended:?}");
    }
}

#[test]
fn an_identity_of_another_hub_is_no_success() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let before = read_file(&alice, "config.json");
    let folder = tempfile::tempdir().unwrap();
    let other = Hub::start(folder.path(), &[]);
    for args in [
        &["register", "alice", "--hub", &other.url] as &[&str],
        &["register", "--hub", &other.url],
    ] {
        let ended = alice.run(args);
        assert_eq!(ended.code, 1, "{ended:?}");
        for part in [
            "alice@chorus",
            &scene.hub.url,
            &other.url,
            "config.json",
            "CHORUS_HOME=",
            "--new-identity",
        ] {
            assert!(ended.err.contains(part), "{part}: {ended:?}");
        }
    }
    assert_eq!(read_file(&alice, "config.json"), before);
}

#[test]
fn a_new_identity_keeps_a_private_copy_of_the_one_before_it() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let first = read_file(&alice, "config.json");
    let renew = |name: &str| {
        alice
            .run(&["register", name, "--culture", "en", "--new-identity"])
            .ok()
    };
    let renewed = renew("carol");
    assert!(renewed.out.contains("config.old.json"), "{renewed:?}");
    assert_eq!(read_file(&alice, "config.old.json"), first);
    let mode = std::fs::metadata(alice.home.join(".chorus/config.old.json"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let second = read_file(&alice, "config.json");
    renew("dave");
    assert_eq!(read_file(&alice, "config.old-2.json"), second);
    // The copy is an identity that works.
    let old = alice.json(&["whoami", "--credentials", ".chorus/config.old.json"]);
    assert_eq!(old[0]["agent_id"], "alice@chorus");
    // A registration that fails keeps no further copies.
    for _ in 0..2 {
        let taken = alice.run(&["register", "carol", "--culture", "en", "--new-identity"]);
        assert_eq!(taken.code, 4, "{taken:?}");
    }
    assert!(!alice.home.join(".chorus/config.old-4.json").exists());
}

#[test]
fn whoami_prints_the_key_only_on_request() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let plain = alice.run(&["whoami"]).ok();
    assert!(!plain.out.contains("ca_"), "{plain:?}");
    let shown = alice.run(&["whoami", "--show-key"]).ok();
    let key = alice.json(&["whoami", "--show-key"])[0]["api_key"].clone();
    let key = key.as_str().unwrap();
    assert!(read_file(&alice, "config.json").contains(key));
    assert!(shown.out.contains(&format!("api key: {key}")), "{shown:?}");
}
