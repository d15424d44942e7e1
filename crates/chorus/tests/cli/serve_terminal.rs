//! What `chorus serve` prints on a terminal, and the operator key that it makes at its first start.

use crate::actors::{Hub, RunningProcess, chorus, on_terminal, run};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

fn serve(folder: &Path, options: &[&str]) -> Command {
    let mut command = chorus(folder);
    command.args(["serve", "--listen", "0"]).args(options);
    command
}

fn read_key(folder: &Path) -> String {
    let text = std::fs::read_to_string(folder.join("chorus-data/operator.key")).unwrap();
    text.trim().to_owned()
}

fn list_invites(folder: &Path, hub: &str, key: &str) -> i32 {
    let mut command = chorus(folder);
    command
        .args(["admin", "invites", "list", "--hub", hub])
        .env("CHORUS_OPERATOR_KEY", key);
    run(command, "").code
}

#[test]
fn the_first_start_makes_an_operator_key_that_no_log_has() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let start = || {
        let file = std::fs::File::options()
            .create(true)
            .append(true)
            .open(&log)
            .unwrap();
        let mut command = serve(folder.path(), &[]);
        command.stderr(file);
        Hub::start_command(command)
    };
    let hub = start();
    let key = read_key(folder.path());
    let mode = std::fs::metadata(folder.path().join("chorus-data/operator.key"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(list_invites(folder.path(), &hub.url, &key), 0);
    assert_eq!(list_invites(folder.path(), &hub.url, &"x".repeat(67)), 4);
    hub.process.send_signal("TERM");
    assert!(hub.process.remaining_lines().is_empty());
    let hub = start();
    assert_eq!(read_key(folder.path()), key, "a second start keeps it");
    assert_eq!(list_invites(folder.path(), &hub.url, &key), 0);
    hub.process.send_signal("TERM");
    hub.process.remaining_lines();
    let log = std::fs::read_to_string(log).unwrap();
    assert_eq!(log.matches("an operator key was made").count(), 1, "{log}");
    assert!(log.contains("operator.key") && !log.contains(&key), "{log}");
}

#[test]
fn a_hub_that_is_given_operators_makes_no_key() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["--operator-key", "operator-key-for-tests"];
    let _hub = Hub::start_command(serve(folder.path(), &options));
    assert!(!folder.path().join("chorus-data/operator.key").exists());
}

#[test]
fn the_welcome_comes_before_the_log_on_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let hub = RunningProcess::start(on_terminal(&serve(folder.path(), &[])));
    let first = hub.next_line();
    assert!(first.starts_with("chorus listening on "), "{first}");
    let mut lines = vec![first];
    while !lines.last().unwrap().contains("Ctrl-C") {
        lines.push(hub.next_line());
    }
    let welcome = lines.join("\n");
    assert!(!welcome.contains("INFO"), "{welcome}");
}

#[test]
fn a_terminal_is_told_where_to_look_and_how_to_register() {
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        let command = serve(folder.path(), &["--log", "info"]);
        let hub = RunningProcess::start(on_terminal(&command));
        let mut lines = Vec::new();
        while !lines
            .last()
            .is_some_and(|line: &String| line.contains("Ctrl-C"))
        {
            lines.push(hub.next_line());
        }
        (hub, lines.join("\n"))
    };
    let (hub, first) = start();
    let key = read_key(folder.path());
    // Lines of the log may come before it.
    let listening = |line: &str| {
        line.trim()
            .strip_prefix("chorus listening on ")
            .map(str::to_owned)
    };
    let url = first.lines().find_map(listening).unwrap();
    for part in [
        format!("console    {url}"),
        format!("chorus register NAME --hub {url}"),
        "look       chorus console, as your agent".to_owned(),
        "chorus init --target claude-user".to_owned(),
        "chorus doctor".to_owned(),
        format!("{key}  (shown once;"),
    ] {
        assert!(first.contains(&part), "{part}: {first}");
    }
    assert!(!first.contains("chorus demo"), "it has a hub of its own");
    assert!(!first.contains('\u{1b}'), "NO_COLOR is set: {first:?}");
    hub.send_signal("TERM");
    hub.remaining_lines();
    // The pseudo-terminal may outlive its hub for a moment, and the data directory is locked so long.
    drop(hub);
    let (_hub, second) = start();
    assert!(
        second.contains("operator.key") && !second.contains(&key),
        "{second}"
    );
}
