//! What `deploy/` gives to systemd, to containers and to Prometheus: accepted by them, and true of the hub.

use crate::actors::{Ongoing, PATIENCE, chorus, run};
use crate::servers::there;
use std::collections::BTreeSet;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

pub fn shipped(name: &str) -> String {
    std::fs::read_to_string(root().join("deploy").join(name)).unwrap()
}

#[test]
fn systemd_takes_the_unit_and_finds_little_that_it_leaves_open() {
    let found = Command::new("systemd-analyze")
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success());
    if !there("systemd-analyze", found) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let unit = folder.path().join("chorus.service");
    // The lines that are there to be taken in are tried with the others.
    let text =
        shipped("chorus.service").replace("/usr/local/bin/chorus", env!("CARGO_BIN_EXE_chorus"));
    let text = text
        .replace("\n#LoadCredential=", "\nLoadCredential=")
        .replace("\n#Environment=", "\nEnvironment=");
    assert!(
        text.contains("\nLoadCredential=") && text.contains("\nEnvironment=CHORUS_SEAL_KEY_FILE=")
    );
    std::fs::write(&unit, text).unwrap();
    let analyse = |words: &[&str]| {
        let mut command = Command::new("systemd-analyze");
        command.args(words).arg(&unit);
        run(command, "")
    };
    let verified = analyse(&["verify"]);
    assert_eq!(
        (verified.code, verified.err.contains("chorus.service")),
        (0, false),
        "{verified:?}"
    );
    // In tenths: 2 of 10.
    let judged = analyse(&["security", "--offline=true", "--threshold=20"]);
    assert_eq!(judged.code, 0, "{}", judged.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn systemd_is_told_when_the_hub_is_ready_and_when_it_stops() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let in_no_directory = format!("chorus-{}", std::process::id());
    let ears = [
        (path.display().to_string(), UnixDatagram::bind(&path)),
        (
            format!("@{in_no_directory}"),
            UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&in_no_directory).unwrap()),
        ),
    ];
    for (socket, ear) in ears {
        let ear = ear.unwrap();
        ear.set_read_timeout(Some(PATIENCE)).unwrap();
        let hear = || {
            let mut word = [0; 64];
            let count = ear.recv(&mut word).unwrap();
            String::from_utf8(word[..count].to_vec()).unwrap()
        };
        let mut command = chorus(folder.path());
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--log", "warn"])
            .env("NOTIFY_SOCKET", &socket);
        let mut hub = Ongoing::start(command);
        let url = hub
            .line()
            .strip_prefix("chorus listening on ")
            .unwrap()
            .to_owned();
        assert_eq!(hear(), "READY=1");
        let ready = || {
            let mut command = chorus(folder.path());
            command.args(["admin", "ready", "--hub", &url]);
            run(command, "")
        };
        assert_eq!(ready().ok().out, "ready\n");
        hub.signal("TERM");
        assert_eq!(hear(), "STOPPING=1");
        assert_eq!(hub.await_end(), Some(0));
        assert_eq!(ready().code, 3, "the check of a container fails");
    }
}

/// Words of this form in a text.
fn meters(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words
        .filter(|word| word.starts_with("chorus_"))
        .map(str::to_owned)
        .collect()
}

fn sources(folder: &Path, into: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            into.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_meter_that_is_written_about_exists() {
    let mut text = String::new();
    for name in ["chorus-hub", "chorus-server"] {
        sources(&root().join("crates").join(name).join("src"), &mut text);
    }
    let known = |name: &String| {
        text.contains(&format!(
            "\"{}\"",
            name.strip_suffix("_bucket").unwrap_or(name)
        ))
    };
    let page = std::fs::read_to_string(root().join("docs/operations.md")).unwrap();
    let written = meters(&(shipped("alerts.yml") + &page));
    assert!(written.len() >= 6, "{written:?}");
    let unknown: Vec<&String> = written.iter().filter(|name| !known(name)).collect();
    assert_eq!(unknown, Vec::<&String>::new());
}

#[test]
fn what_is_built_into_the_image_is_there_and_nothing_else_is() {
    let ignored = std::fs::read_to_string(root().join(".dockerignore")).unwrap();
    let lines: Vec<&str> = ignored
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    assert_eq!(
        lines[0], "*",
        "what is not named stays out: builds, history, keys"
    );
    let taken: Vec<&str> = lines
        .iter()
        .filter_map(|line| line.strip_prefix('!'))
        .collect();
    assert!(
        taken.iter().all(|name| root().join(name).exists()),
        "{taken:?}"
    );
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    for member in ["crates", "examples"] {
        assert!(
            manifest.contains(&format!("\"{member}")) && taken.contains(&member),
            "{member}"
        );
    }
}
