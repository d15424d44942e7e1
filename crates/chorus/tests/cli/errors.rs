//! Errors that say which file, which hub and what to do next, and addresses as people type them.

use crate::acme_authority::TestAuthority;
use crate::actors::{Hub, RunningProcess, Scene, chorus, run};
use crate::authority::Authority;
use crate::servers::await_condition;
use std::net::TcpListener;

#[test]
fn a_key_that_the_hub_does_not_know_is_named_with_file_hub_and_next_step() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let file = alice.home.join(".chorus/config.json");
    let dead = std::fs::read_to_string(&file)
        .unwrap()
        .replace("\"ca_", "\"ca_x");
    std::fs::write(&file, dead).unwrap();
    for args in [
        &["whoami"] as &[&str],
        &["send", "alice", "hi"],
        &["register", "alice"],
    ] {
        let ended = alice.run(args);
        assert_eq!(ended.code, 2, "{ended:?}");
        let next = format!(
            "chorus register alice --hub {} --new-identity",
            scene.hub.url
        );
        for part in [".chorus/config.json", &scene.hub.url, &next] {
            assert!(ended.err.contains(part), "{args:?}: {ended:?}");
        }
        assert!(!ended.err.contains("Bearer"), "{ended:?}");
    }
    let json = alice.run(&["whoami", "--json"]);
    assert!(json.err.contains("ERR_UNAUTHORIZED"), "{json:?}");
}

//
#[test]
fn a_key_is_sent_to_no_other_hub_than_its_own() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    other.set_nonblocking(true).unwrap();
    let url = format!("http://{}", other.local_addr().unwrap());
    let by_variable = |args: &[&str]| {
        let mut command = alice.command(args);
        command.env("CHORUS_HUB", &url);
        run(command, "")
    };
    for ended in [
        alice.run(&["whoami", "--hub", &url]),
        by_variable(&["send", "alice", "hi"]),
        by_variable(&["listen", "--once"]),
        by_variable(&["watch", "--once"]),
        by_variable(&["console", "--print"]),
    ] {
        assert_eq!(ended.code, 1, "{ended:?}");
        for part in [
            &scene.hub.url,
            &url,
            ".chorus/config.json",
            "CHORUS_HOME=FOLDER chorus register alice --hub",
            "hub_url",
        ] {
            assert!(ended.err.contains(part), "{part}: {ended:?}");
        }
        assert!(!ended.err.contains("ca_"), "{ended:?}");
    }
    assert!(other.accept().is_err(), "a command has connected");
    // What needs no key is asked of every hub, without the key.
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::start(folder.path(), &[]);
    alice.run(&["discover", "--hub", &hub.url]).ok();
}

//
#[test]
fn another_spelling_of_the_own_hub_is_the_own_hub() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let named = scene.hub.url.replace("127.0.0.1", "localhost");
    alice.run(&["whoami", "--hub", &named]).ok();
    alice.run(&["register", "--hub", &named]).ok();
}

#[test]
fn a_hub_that_does_not_run_and_missing_credentials_get_a_next_step() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let away = alice.run(&["discover", "--hub", "http://127.0.0.1:1"]);
    assert!(
        away.code == 3 && away.err.contains("is it running? chorus serve"),
        "{away:?}"
    );
    let stranger = scene.newcomer("stranger");
    let ended = stranger.run(&["whoami"]);
    assert!(
        ended.code == 2
            && ended.err.contains(".chorus/config.json")
            && ended.err.contains("chorus register"),
        "{ended:?}"
    );
}

// Every refusal says what to do next, and none speaks of HTTP.
#[test]
fn a_refusal_of_the_hub_says_what_to_do_next() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let stranger = scene.newcomer("stranger");
    let unknown = "01a1df4b-a2e7-7f7c-8a70-620000000003";
    let grant = "chorus grant add bob@chorus";
    let refusals: [(&[&str], &str); 10] = [
        (&["advise", "hi", "--to", "alice"], grant),
        (&["advise", "hi", "--scope", "org:acme"], "chorus org list"),
        (&["lock", "x", "--to", "alice"], grant),
        (&["roster", "alice"], grant),
        (&["status", unknown], "chorus whoami"),
        (&["reply", unknown, "ok"], "chorus whoami"),
        (&["jobs", unknown], "chorus whoami"),
        (&["transfer", "alice", "1000000"], "chorus balance"),
        (&["transfer", "bob", "1"], "to yourself"),
        (&["channel", "history", "nowhere"], "chorus channel list"),
    ];
    for (args, step) in refusals {
        let ended = bob.run(args);
        assert!(
            ended.code != 0 && ended.err.contains(step),
            "{args:?}: {ended:?}"
        );
        for jargon in ["The sender", "There is nothing here", "_owner"] {
            assert!(!ended.err.contains(jargon), "{args:?}: {ended:?}");
        }
    }
    let taken = stranger.run(&["register", "alice", "--culture", "en"]);
    assert!(
        taken.code == 4
            && taken.err.contains("choose another one")
            && taken.err.contains(&scene.hub.url),
        "{taken:?}"
    );
    alice.run(&["contacts", "--accept-from", "contacts"]).ok();
    let shut = bob.run(&["send", "alice", "hi"]);
    assert!(
        shut.err.contains("chorus contacts --add bob@chorus"),
        "{shut:?}"
    );
    // The code stays, for programs.
    let json = bob.run(&["advise", "hi", "--to", "alice", "--json"]);
    assert!(
        json.err.contains("\"code\":\"scope-unauthorised\""),
        "{json:?}"
    );
}

#[test]
fn a_refused_endpoint_says_who_can_permit_it() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::start(folder.path(), &[]);
    let mut register = chorus(folder.path());
    register.args(["register", "alice", "--culture", "en", "--hub", &hub.url]);
    register.args(["--endpoint", "http://10.0.0.7/inbox"]);
    let refused = run(register, "");
    assert_eq!(refused.code, 4, "{refused:?}");
    for part in [&hub.url, "--allow-private-endpoints", "a public address"] {
        assert!(refused.err.contains(part), "{refused:?}");
    }
}

#[test]
fn a_hub_without_a_scheme_is_taken_as_http() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bare = scene.hub.url.strip_prefix("http://").unwrap();
    let whoami = alice.run(&["whoami", "--json", "--hub", bare]).ok().json();
    assert_eq!(whoami[0]["hub_url"], scene.hub.url);
}

#[test]
fn an_empty_and_a_too_long_message_are_refused_in_words() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    scene.agent("bob");
    let empty = alice.run(&["send", "bob", ""]);
    assert!(
        empty.code == 1 && empty.err.contains("the message is empty"),
        "{empty:?}"
    );
    let long = run(alice.command(&["send", "bob", "-"]), &"x".repeat(12_000));
    assert!(
        long.code == 1 && long.err.contains("longer than 10000 characters"),
        "{long:?}"
    );
    assert!(!long.err.contains("original_text") && !empty.err.contains("original_text"));
}

#[test]
fn serve_listens_on_a_port_in_every_form() {
    let folder = tempfile::tempdir().unwrap();
    for listen in ["0", ":0", "localhost:0", "127.0.0.1:0"] {
        let mut command = chorus(folder.path());
        command.args(["serve", "--log", "warn", "--listen", listen]);
        let hub = RunningProcess::start(command);
        let line = hub.next_line();
        assert!(
            line.starts_with("chorus listening on http://127.0.0.1:"),
            "{listen}: {line}"
        );
    }
    let mut wrong = chorus(folder.path());
    wrong.args(["serve", "--listen", "nonsense"]);
    let wrong = run(wrong, "");
    assert!(
        wrong.code == 1 && wrong.err.contains("localhost:3001"),
        "{wrong:?}"
    );
}

#[test]
fn watch_waits_for_a_hub_that_is_not_there_yet() {
    let mut scene = Scene::open();
    let alice = scene.agent("alice");
    let address = scene.hub.url.strip_prefix("http://").unwrap().to_owned();
    scene.hub.process.send_signal("TERM");
    scene.hub.process.remaining_lines();
    let command = alice.command(&["watch", "--once", "--session", "watcher"]);
    let log = alice.home.join("log");
    let watching = RunningProcess::start_with_log(command, std::fs::File::create(&log).unwrap());
    await_condition("it says that it waits", || {
        let text = std::fs::read_to_string(&log).unwrap();
        text.contains("waiting for the hub")
    });
    scene.hub = Hub::start(scene.folder.path(), &["--listen", &address]);
    await_condition("the watcher is on the roster", || {
        !alice.json(&["roster"]).is_empty()
    });
    alice.run(&["advise", "hello", "--nowhere"]).ok();
    assert!(watching.next_line().contains("hello"));
}

#[test]
fn a_certificate_that_is_not_trusted_is_explained_with_a_next_step() {
    let folder = tempfile::tempdir().unwrap();
    let Some(authority) = Authority::new(folder.path(), "authority") else {
        return;
    };
    let start = |name: &str, alternative: &str| {
        let signed = authority.sign_certificate(name, alternative);
        let (cert, key) = (signed.cert.display(), signed.key.display());
        let data = folder.path().join(format!("{name}-data"));
        std::fs::create_dir(&data).unwrap();
        let options = [
            "--tls-cert",
            &cert.to_string(),
            "--tls-key",
            &key.to_string(),
        ];
        Hub::start(&data, &options)
    };
    let register = |hub: &Hub, root: Option<&str>, command: &str| {
        let mut command_line = chorus(folder.path());
        command_line.args([command, "--hub", &hub.url]);
        if command == "register" {
            command_line.args(["alice", "--culture", "en"]);
        }
        if let Some(root) = root {
            command_line.env("SSL_CERT_FILE", root);
        }
        run(command_line, "")
    };
    let hub = start("hub", "IP:127.0.0.1");
    let root = authority.root();
    let refused = register(&hub, None, "register");
    assert_eq!(refused.code, 3, "{refused:?}");
    for part in ["does not trust its issuer", "export SSL_CERT_FILE=cert.pem"] {
        assert!(refused.err.contains(part), "{refused:?}");
    }
    let checked = register(&hub, None, "doctor");
    assert!(
        checked.out.contains("SSL_CERT_FILE=cert.pem"),
        "{checked:?}"
    );
    let misnamed = start("misnamed", "DNS:hub.test");
    let refused = register(&misnamed, Some(&root), "register");
    assert!(
        refused
            .err
            .contains("use a name that is in the certificate"),
        "{refused:?}"
    );
    register(&hub, Some(&root), "register").ok();
}

#[test]
fn a_hire_without_a_worker_and_a_release_without_a_claim_say_how_to_go_on() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let hire = ["hire", "translate", "--budget", "1"];
    for (args, next) in [
        (&hire as &[&str], "with --board the job waits for a worker"),
        (&["lock", "a.rs", "--release"], "chorus locks"),
    ] {
        let refused = alice.run(args);
        assert_eq!(refused.code, 4, "{args:?}: {refused:?}");
        assert!(refused.err.contains(next), "{args:?}: {refused:?}");
    }
}

#[test]
fn a_certificate_that_is_out_of_date_is_explained_with_a_next_step() {
    let folder = tempfile::tempdir().unwrap();
    let authority = TestAuthority::new();
    let root = folder.path().join("root.pem");
    std::fs::write(&root, authority.root_pem()).unwrap();
    let day = 24 * 3600;
    for (name, days, cause) in [
        (
            "expired",
            (-2, -1),
            "ask the operator of the hub to renew it",
        ),
        ("early", (1, 2), "set the clock of this machine"),
    ] {
        let data = folder.path().join(name);
        std::fs::create_dir(&data).unwrap();
        let (cert, key) = authority.sign_for("127.0.0.1", days.0 * day, days.1 * day);
        std::fs::write(data.join("cert.pem"), cert).unwrap();
        std::fs::write(data.join("key.pem"), key).unwrap();
        let hub = Hub::start(&data, &["--tls-cert", "cert.pem", "--tls-key", "key.pem"]);
        let saved = serde_json::json!({ "agent_id": "alice@chorus", "api_key": "k".repeat(40), "hub_url": hub.url });
        std::fs::write(data.join("me.json"), saved.to_string()).unwrap();
        for args in [
            &["discover", "--hub", &hub.url] as &[&str],
            &["register", "bob", "--culture", "en", "--hub", &hub.url],
            &["listen", "--credentials", "me.json"],
            &["watch", "--credentials", "me.json"],
        ] {
            let mut command = chorus(&data);
            command.args(args).env("SSL_CERT_FILE", &root);
            let refused = run(command, "");
            assert_eq!(refused.code, 3, "{args:?}: {refused:?}");
            assert!(refused.err.contains(cause), "{args:?}: {refused:?}");
        }
    }
}
