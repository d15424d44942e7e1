//! The files in `deploy/` for systemd, containers and Prometheus: valid, and consistent with the hub.

use crate::actors::{RunningProcess, TIMEOUT, chorus, run};
use crate::servers::is_available;
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

pub fn read_shipped(name: &str) -> String {
    std::fs::read_to_string(root().join("deploy").join(name)).unwrap()
}

#[test]
fn systemd_accepts_the_unit_and_rates_it_as_secure() {
    let found = Command::new("systemd-analyze")
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success());
    if !is_available("systemd-analyze", found) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let unit = folder.path().join("chorus.service");
    // The optional lines are tested too.
    let text = read_shipped("chorus.service").replace(
        "ExecStart=chorus ",
        concat!("ExecStart=", env!("CARGO_BIN_EXE_chorus"), " "),
    );
    let text = text
        .replace("\n#LoadCredential=", "\nLoadCredential=")
        .replace("\n#Environment=", "\nEnvironment=");
    assert!(
        text.contains("\nLoadCredential=") && text.contains("\nEnvironment=CHORUS_SEAL_KEY_FILE=")
    );
    std::fs::write(&unit, text).unwrap();
    let analyse = |args: &[&str]| {
        let mut command = Command::new("systemd-analyze");
        command.args(args).arg(&unit);
        run(command, "")
    };
    let verified = analyse(&["verify"]);
    assert_eq!(
        (verified.code, verified.err.contains("chorus.service")),
        (0, false),
        "{verified:?}"
    );
    // The threshold is in tenths: an exposure of 2 out of 10.
    let security = analyse(&["security", "--offline=true", "--threshold=20"]);
    assert_eq!(security.code, 0, "{}", security.out);
}

/// D-109
#[test]
fn systemd_accepts_the_backup_timer_and_its_command_is_one() {
    let found = Command::new("systemd-analyze")
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success());
    if !is_available("systemd-analyze", found) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let service = read_shipped("chorus-backup.service");
    let text = service.replace(
        "ExecStart=chorus ",
        concat!("ExecStart=", env!("CARGO_BIN_EXE_chorus"), " "),
    );
    std::fs::write(folder.path().join("chorus-backup.service"), text).unwrap();
    let timer = folder.path().join("chorus-backup.timer");
    std::fs::write(&timer, read_shipped("chorus-backup.timer")).unwrap();
    let mut verify = Command::new("systemd-analyze");
    verify
        .arg("verify")
        .arg(&timer)
        .arg(folder.path().join("chorus-backup.service"));
    let verified = run(verify, "");
    assert_eq!(
        (verified.code, verified.err.contains("chorus-backup")),
        (0, false),
        "{verified:?}"
    );
    // The options of the unit are those of the command: without data it fails for that reason alone.
    let line = service
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart=chorus "))
        .unwrap();
    let copies = folder.path().join("copies").display().to_string();
    let args = line
        .replace("/var/lib/chorus-backups", &copies)
        .replace("/var/lib/chorus", "nowhere");
    let mut command = chorus(folder.path());
    command.args(args.split(' '));
    let copied = run(command, "");
    assert!(copied.err.contains("is not there"), "{copied:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn systemd_is_notified_when_the_hub_is_ready_and_when_it_stops() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let abstract_name = format!("chorus-{}", std::process::id());
    let sockets = [
        (path.display().to_string(), UnixDatagram::bind(&path)),
        (
            format!("@{abstract_name}"),
            UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&abstract_name).unwrap()),
        ),
    ];
    for (socket, listener) in sockets {
        let listener = listener.unwrap();
        listener.set_read_timeout(Some(TIMEOUT)).unwrap();
        let receive = || {
            let mut buffer = [0; 64];
            let count = listener.recv(&mut buffer).unwrap();
            String::from_utf8(buffer[..count].to_vec()).unwrap()
        };
        let mut command = chorus(folder.path());
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--log", "warn"])
            .env("NOTIFY_SOCKET", &socket);
        let mut hub = RunningProcess::start(command);
        let url = hub
            .next_line()
            .strip_prefix("chorus listening on ")
            .unwrap()
            .to_owned();
        assert_eq!(receive(), "READY=1");
        let ready = || {
            let mut command = chorus(folder.path());
            command.args(["admin", "ready", "--hub", &url]);
            run(command, "")
        };
        assert_eq!(ready().ok().out, "ready\n");
        hub.send_signal("TERM");
        assert_eq!(receive(), "STOPPING=1");
        assert_eq!(hub.await_exit(), Some(0));
        assert_eq!(ready().code, 3, "the check of a container fails");
    }
}

/// The metric names in a text.
fn metric_names(text: &str) -> BTreeSet<String> {
    let args = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    args.filter(|word| word.starts_with("chorus_"))
        .map(str::to_owned)
        .collect()
}

fn read_sources(folder: &Path, into: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_sources(&path, into);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            into.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_documented_metric_exists() {
    let mut text = String::new();
    for name in ["chorus", "chorus-hub", "chorus-server"] {
        read_sources(&root().join("crates").join(name).join("src"), &mut text);
    }
    let is_defined = |name: &String| {
        text.contains(&format!(
            "\"{}\"",
            name.strip_suffix("_bucket").unwrap_or(name)
        ))
    };
    let page = std::fs::read_to_string(root().join("docs/operations.md")).unwrap();
    let documented =
        metric_names(&(read_shipped("alerts.yml") + &read_shipped("grafana.json") + &page));
    assert!(documented.len() >= 6, "{documented:?}");
    let unknown: Vec<&String> = documented.iter().filter(|name| !is_defined(name)).collect();
    assert_eq!(unknown, Vec::<&String>::new());
}

#[test]
fn the_image_contains_only_the_listed_files() {
    let ignored = std::fs::read_to_string(root().join(".dockerignore")).unwrap();
    let lines: Vec<&str> = ignored
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    assert_eq!(
        lines[0], "*",
        "unlisted files are ignored: builds, history, keys"
    );
    let included: Vec<&str> = lines
        .iter()
        .filter_map(|line| line.strip_prefix('!'))
        .collect();
    assert!(
        included.iter().all(|name| root().join(name).exists()),
        "{included:?}"
    );
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    for member in ["crates", "examples"] {
        assert!(
            manifest.contains(&format!("\"{member}")) && included.contains(&member),
            "{member}"
        );
    }
}
