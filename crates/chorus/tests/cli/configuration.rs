//! The configuration of `chorus serve`: flags, then variables, then a file; one clear line when it cannot start.

use crate::actors::{Hub, RunningProcess, TIMEOUT, chorus, run};
use std::time::Instant;

fn list_agents(folder: &std::path::Path, hub: &Hub) -> serde_json::Value {
    let mut command = chorus(folder);
    command.args(["discover", "--json", "--hub", &hub.url]);
    serde_json::json!(run(command, "").ok().json())
}

#[test]
fn the_default_data_directory_is_in_the_working_directory() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::start(folder.path(), &[]);
    assert!(hub.url.starts_with("http://127.0.0.1:"));
    assert_eq!(list_agents(folder.path(), &hub), serde_json::json!([]));
    assert!(folder.path().join("chorus-data/chorus.db").exists());
}

#[test]
fn a_flag_overrides_a_variable_and_a_variable_overrides_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = "listen = \"127.0.0.1:0\"\ndata-dir = \"from-file\"\nhost-name = \"from-file\"\nserver-name = \"x\"\n";
    std::fs::write(folder.path().join("chorus.toml"), file).unwrap();
    let mut command = chorus(folder.path());
    command.args(["serve", "--data-dir", "from-flag"]);
    command
        .env("CHORUS_DATA_DIR", "from-variable")
        .env("CHORUS_HOST_NAME", "from-variable");
    let serving = RunningProcess::start(command);
    let url = serving
        .next_line()
        .strip_prefix("chorus listening on ")
        .unwrap()
        .to_owned();
    assert!(folder.path().join("from-flag/chorus.db").exists());
    let mut register = chorus(folder.path());
    register.args([
        "register",
        "dora",
        "--culture",
        "en",
        "--json",
        "--hub",
        &url,
    ]);
    assert_eq!(
        run(register, "").ok().json()[0]["agent_id"],
        "dora@from-variable"
    );
}

#[test]
fn a_configuration_error_is_one_line_without_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(
        path.join("typo.toml"),
        "listen = \"127.0.0.1:0\"\nlisten-adress = 1\n",
    )
    .unwrap();
    std::fs::write(
        path.join("type.toml"),
        "operator-keys = [\"hidden-one\", 7]\n",
    )
    .unwrap();
    std::fs::write(path.join("a-file"), "").unwrap();
    for (args, clue) in [
        (&["--config", "typo.toml"] as &[&str], "listen-adress"),
        (&["--config", "type.toml"], "operator-keys"),
        (&["--config", "none.toml"], "none.toml"),
        (&["--bus", "nats://127.0.0.1:1"], "--bus"),
        (&["--tls-cert", "cert.pem"], "--tls-key"),
        (&["--bus-cert", "cert.pem"], "--bus-key"),
        (
            &[
                "--database",
                "postgres://hidden:hidden@db.test/hidden?sslmode=no",
            ],
            "sslmode",
        ),
        (
            &["--tls-cert", "none.pem", "--tls-key", "none.pem"],
            "none.pem",
        ),
        (&["--host-name", "two words"], "--host-name"),
        (&["--public-url", "hub.example"], "--public-url"),
        (&["--log", "chorus=loud"], "--log"),
        (&["--otlp", "collector:4318"], "--otlp: it is the http"),
        (&["--otlp", "http://hidden:hidden@collector"], "--otlp"),
        (&["--otlp", "http://collector/?key=hidden"], "--otlp"),
        (
            &["--otlp", "http://c", "--otlp-headers", "hidden"],
            "--otlp-headers",
        ),
        (
            &["--otlp", "http://c", "--otlp-sample", "2"],
            "--otlp-sample",
        ),
        (&["--data-dir", "a-file"], "a-file"),
        (&["--listen", "192.0.2.1:1"], "192.0.2.1:1"),
    ] {
        let mut command = chorus(path);
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        if args.contains(&"--listen") {
            command = chorus(path);
            command.arg("serve");
        }
        command.args(args);
        let ended = run(command, "");
        assert_eq!(
            (ended.code, ended.out.as_str()),
            (1, ""),
            "{args:?}: {ended:?}"
        );
        assert!(
            ended.err.starts_with("chorus: ") && ended.err.lines().count() == 1,
            "{args:?}: {ended:?}"
        );
        assert!(
            ended.err.contains(clue) && !ended.err.contains("hidden"),
            "{args:?}: {ended:?}"
        );
    }
}

#[test]
fn a_second_hub_on_the_same_data_directory_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let _hub = Hub::start(folder.path(), &[]);
    let mut second = chorus(folder.path());
    second.args(["serve", "--listen", "127.0.0.1:0"]);
    let second = run(second, "");
    assert!(
        second.code == 1 && second.err.contains("another hub"),
        "{second:?}"
    );
}

// failure 18
#[test]
fn a_signal_stops_the_hub_in_time_even_with_open_streams() {
    let scene = crate::actors::Scene::open();
    let bob = scene.agent("bob");
    let _listening = bob.listen(&[]);
    bob.await_online("bob@chorus");
    let mut hub = scene.hub;
    let before = Instant::now();
    hub.process.send_signal("TERM");
    assert_eq!(hub.process.await_exit(), Some(0));
    assert!(before.elapsed().as_secs() < 5, "{:?}", before.elapsed());
    assert!(TIMEOUT.as_secs() > 5);
}

#[test]
fn completions_and_help_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    for (args, clue) in [
        (&["completions", "bash"] as &[&str], "_chorus"),
        (&["serve", "--help"], "--data-dir"),
    ] {
        let mut command = chorus(folder.path());
        command.args(args).env("CHORUS_OPERATOR_KEYS", "hidden-key");
        let ended = run(command, "").ok();
        assert!(
            ended.out.contains(clue) && !ended.out.contains("hidden-key"),
            "{args:?}"
        );
    }
}

/// `chorus serve` with this limit of open files.
fn serve_with_files(folder: &std::path::Path, files: u32, options: &str) -> std::process::Command {
    let mut command = std::process::Command::new("sh");
    let binary = env!("CARGO_BIN_EXE_chorus");
    let script = format!("ulimit -n {files}; exec {binary} serve --listen 127.0.0.1:0 {options}");
    command
        .args(["-c", &script])
        .env_clear()
        .current_dir(folder);
    command
}

#[test]
fn too_few_open_files_are_refused_with_the_number_that_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    for (files, options, needed) in [
        (513, "", "needs 576"),
        (1024, "--max-connections 1000", "needs 1512"),
    ] {
        let refused = run(serve_with_files(folder.path(), files, options), "");
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(refused.err.contains(needed), "{refused:?}");
        assert!(refused.err.contains("LimitNOFILE"), "{refused:?}");
    }
    let serving = RunningProcess::start(serve_with_files(folder.path(), 576, ""));
    assert!(serving.next_line().starts_with("chorus listening on "));
}
