//! Names on the command line: every spelling of a name, bare names under zsh, and the nearest names in errors.

use crate::actors::{Agent, Scene, run, text_of};
use crate::servers::is_available;
use std::process::Command;

/// Every spelling of a name that means one agent.
const SPELLINGS: [&str; 3] = ["bob", "bob@chorus", "~bob"];

//
#[test]
fn every_spelling_of_a_name_means_the_same_agent() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    alice.run(&["channel", "create", "room"]).ok();
    for name in SPELLINGS {
        alice.run(&["send", name, name]).ok();
        alice.run(&["grant", "add", name]).ok();
        alice.run(&["grant", "remove", name]).ok();
        alice.run(&["transfer", name, "1"]).ok();
        alice.run(&["contacts", "--add", name]).ok();
        alice.run(&["block", name]).ok();
        alice.run(&["unblock", name]).ok();
        alice.run(&["reputation", name]).ok();
        let status = alice.json(&["status", name]).remove(0);
        assert_eq!(status["receiver_id"], "bob@chorus", "{name}");
        let advised = alice.run(&["advise", "hello", "--nowhere", "--to", name]);
        assert!(!advised.err.contains("no agent is called"), "{advised:?}");
    }
    assert_eq!(alice.history_lines("bob@chorus").len(), 3);
    for name in SPELLINGS {
        let lines = alice.json(&["history", name]);
        assert_eq!(lines.iter().map(text_of).collect::<Vec<_>>(), SPELLINGS);
        assert_eq!(alice.json(&["history", name, "--remote"]).len(), 3);
    }
    assert_eq!(bob.json(&["balance"])[0]["balance"], 103.0);
    for name in SPELLINGS {
        assert_eq!(
            bob.json(&["balance", "--owner", name])[0]["balance"],
            103.0,
            "{name}"
        );
        alice.run(&["channel", "add", "room", name]).ok();
        bob.run(&["channel", "decline", "room"]).ok();
    }
}

//
#[test]
fn a_name_under_another_host_is_marked_in_the_list_and_to_itself() {
    let scene = Scene::open();
    let bob = scene.agent("bob");
    let listed = |agent: &Agent| agent.run(&["discover"]).ok().out;
    assert!(!listed(&bob).contains("unverified"), "{}", listed(&bob));
    let ceo = scene.newcomer("ceo");
    ceo.run(&["register", "ceo@elsewhere.example", "--culture", "en"])
        .ok();
    let out = listed(&bob);
    for line in out.lines() {
        let is_marked = line.ends_with("  unverified host");
        assert_eq!(
            is_marked,
            line.starts_with("ceo@elsewhere.example"),
            "{out}"
        );
    }
    assert_eq!(bob.json(&["discover"])[1]["host_verified"], false);
    let itself = ceo.run(&["whoami"]).ok().out;
    assert!(itself.contains(", unverified host\n"), "{itself}");
    let other = bob.run(&["whoami"]).ok().out;
    assert!(!other.contains("unverified"), "{other}");
}

//
#[test]
fn an_organisation_takes_every_spelling_of_a_member() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    scene.agent("bob");
    alice.run(&["org", "create", "acme"]).ok();
    for name in SPELLINGS {
        alice.run(&["org", "invite", "acme", name]).ok();
        alice.run(&["org", "remove", "~acme", name]).ok();
    }
    alice.run(&["roster", "alice"]).ok();
    for scope in ["org:acme", "org:~acme/members/*", "org:acme/owner", "alice"] {
        alice
            .run(&["advise", "hello", "--nowhere", "--scope", scope])
            .ok();
    }
}

//
#[test]
fn an_operator_and_a_pipeline_take_every_spelling() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let _offering = bob.offer("echo", &[], &["cat"]);
    let plan =
        |agent: &str| format!("budget = 1\n[[steps]]\nskill = \"echo\"\nagent = \"{agent}\"\n");
    for name in SPELLINGS {
        scene.operator(&["admin", "credit", name, "5"]).ok();
        std::fs::write(alice.home.join("plan.toml"), plan(name)).unwrap();
        alice.run(&["pipeline", "plan.toml", "--input", "{}"]).ok();
        alice.run(&["ledger", "--owner", "alice"]).ok();
        alice.run(&["contacts", "--add", name]).ok();
        alice.run(&["contacts", "--remove", name]).ok();
    }
    assert_eq!(bob.json(&["balance"])[0]["balance"], 115.3);
    let unknown = scene.operator(&["admin", "credit", "boby", "5"]);
    assert_eq!(unknown.code, 4, "{unknown:?}");
    assert!(
        unknown.err.contains("did you mean bob@chorus?"),
        "{unknown:?}"
    );
    // A misspelt name in the last step is found before the first is paid.
    let steps = plan("bob") + &plan("boby").replace("budget = 1\n", "");
    std::fs::write(alice.home.join("plan.toml"), steps).unwrap();
    let ended = alice.run(&["pipeline", "plan.toml", "--input", "{}"]);
    assert_eq!(ended.code, 4, "{ended:?}");
    for part in ["step 2 (echo)", "did you mean bob@chorus?"] {
        assert!(ended.err.contains(part), "{ended:?}");
    }
    assert_eq!(bob.json(&["balance"])[0]["balance"], 115.3);
}

//
#[test]
fn an_unknown_name_gets_the_nearest_names_and_the_next_step() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    scene.agent("bobby");
    for args in [
        &["send", "boby", "hi"] as &[&str],
        &["history", "boby"],
        &["transfer", "boby", "1"],
        &["balance", "--owner", "boby"],
        &["status", "boby"],
        &["grant", "add", "boby"],
        &["org", "invite", "acme", "~boby"],
        &["contacts", "--add", "boby@chorus"],
        &["hire", "translate", "--budget", "1", "--agent", "boby"],
        &["reputation", "boby"],
    ] {
        let ended = alice.run(args);
        assert_eq!(ended.code, 4, "{args:?}: {ended:?}");
        for part in ["boby", "did you mean bobby@chorus?", "chorus discover"] {
            assert!(ended.err.contains(part), "{args:?}: {ended:?}");
        }
    }
    alice.run(&["channel", "create", "room"]).ok();
    let ended = alice.run(&["channel", "add", "room", "boby"]);
    assert!(
        ended.err.contains("did you mean bobby@chorus?"),
        "{ended:?}"
    );
    let stranger = alice.run(&["send", "qqqqqqq", "hi"]);
    assert!(
        stranger.code == 4 && !stranger.err.contains("did you mean"),
        "{stranger:?}"
    );
}

fn in_shell(shell: &str, agent: &Agent, script: &str) -> Command {
    let mut command = Command::new(shell);
    let binary = env!("CARGO_BIN_EXE_chorus");
    command
        .args(["-fc", &format!("chorus() {{ {binary} \"$@\"; }}\n{script}")])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", &agent.home)
        .env("CHORUS_HUB", &agent.hub)
        .current_dir(&agent.home);
    command
}

// zsh, the shell of macOS, ends a command with ~name or * before it starts.
#[test]
fn no_name_needs_a_character_that_zsh_expands() {
    let found = Command::new("zsh").arg("--version").output().is_ok();
    if !is_available("zsh", found) {
        return;
    }
    let scene = Scene::open();
    let alice = scene.agent("alice");
    scene.agent("ben");
    let script = "set -e
chorus org create acme
chorus org invite acme ben
chorus grant add ben
chorus grant list
chorus send ben hi
chorus history ben
chorus status ben
chorus transfer ben 1
chorus roster alice
chorus advise hello --nowhere --to alice
chorus advise hello --nowhere --scope org:acme
chorus channel create room
chorus channel add room ben";
    run(in_shell("zsh", &alice, script), "").ok();
}

// bash puts the home of a Unix user in the place of ~root.
#[test]
fn a_name_that_the_shell_replaced_by_a_folder_is_explained() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    for args in [
        "grant add ~root",
        "send ~root hi",
        "transfer ~root 1",
        "block ~root",
        "unblock ~root",
        "contacts --remove ~root",
        "admin --operator-key operator-key-for-tests credit ~root 1",
        "balance --owner ~root",
        "ledger --owner ~root",
        "reputation ~root",
        "history ~root",
        "status ~root",
        "roster ~root",
    ] {
        let ended = run(in_shell("bash", &alice, &format!("chorus {args}")), "");
        assert!(
            ended.code == 1 && ended.err.contains("without the ~"),
            "{ended:?}"
        );
    }
}
