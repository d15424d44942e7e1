//! Faults of the disk, the data directory and the keys beside it: the hub refuses what it cannot keep, says so, and recovers
//! without losing what it acknowledged.

use crate::actors::{Hub, RunningProcess, TIMEOUT, chorus, run};
use crate::crash::{envelope, fetch_all_texts, register_client};
use crate::servers::is_available;
use crate::split::fetch_status;
use chorus_client::HubClient;
use chorus_client::http::ApiCall;
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A hub on a file system of its own, of this many megabytes.
struct SmallDisk {
    hub: Hub,
    /// The file system, as seen from outside of the hub's mount namespace.
    folder: PathBuf,
    parent: tempfile::TempDir,
}

/// Makes a data directory as a hub that was killed left it, with its reserve.
const LEAVE_RESERVE: &str = "mkdir -m 700 disk/data && fallocate -l 16M disk/data/reserve";
/// Leaves no space on the disk.
const FILL_DISK: &str = "{ cat /dev/zero > disk/ballast; true; }";

impl SmallDisk {
    fn start(megabytes: u32) -> Option<Self> {
        Self::start_prepared(megabytes, "true")
    }

    /// Runs a script on the new disk before the hub starts on it.
    fn start_prepared(megabytes: u32, script: &str) -> Option<Self> {
        let parent = tempfile::tempdir().unwrap();
        let mut command = Self::command(parent.path(), megabytes, script)?;
        command.stderr(std::fs::File::create(parent.path().join("log")).unwrap());
        let hub = Hub::start_command(command);
        let root = PathBuf::from(format!("/proc/{}/root", hub.process.id()));
        let folder = root.join(parent.path().join("disk").strip_prefix("/").unwrap());
        Some(Self {
            hub,
            folder,
            parent,
        })
    }

    /// The command that mounts the disk at `disk` in this folder, runs the script there, and becomes the hub.
    fn command(parent: &Path, megabytes: u32, script: &str) -> Option<Command> {
        let may_mount = Command::new("unshare")
            .args(["-m", "sh", "-c", "mount -t tmpfs tmpfs /mnt"])
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        if !is_available("the right to mount file systems", may_mount) {
            return None;
        }
        std::fs::create_dir(parent.join("disk")).unwrap();
        let serve = Hub::command(parent, &["--data-dir", "disk/data"]);
        let mount = format!(
            "mount -t tmpfs -o size={megabytes}m tmpfs disk && {script} 2>/dev/null && exec \"$@\""
        );
        let mut command = Command::new("unshare");
        command
            .args(["-m", "sh", "-c", &mount, "sh"])
            .arg(serve.get_program())
            .args(serve.get_args())
            .current_dir(parent)
            .env_clear()
            .envs(
                serve
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        Some(command)
    }

    /// How many lines of the hub's log say that writes were not committed.
    fn count_refusal_lines(&self) -> usize {
        let log = std::fs::read_to_string(self.parent.path().join("log")).unwrap();
        log.matches("a write group was not committed").count()
    }

    fn has_reserve(&self) -> bool {
        self.folder.join("data/reserve").exists()
    }

    /// Fills the disk except for this many megabytes.
    fn fill_except(&self, megabytes: u64) -> PathBuf {
        let path = self.folder.join("ballast");
        let mut ballast = std::fs::File::create(&path).unwrap();
        let mut length: u64 = 0;
        while ballast.write_all(&[0; 1 << 20]).is_ok() {
            length += 1;
            assert!(length < 1_024, "this is not the small disk");
        }
        ballast.set_len((length - megabytes) << 20).unwrap();
        path
    }
}

/// Sends until one send is refused; returns how many were acknowledged. Each is tried once.
async fn send_until_refused(client: &HubClient, first: usize, most: usize) -> usize {
    let padding = "x".repeat(3_000);
    for number in 0..most {
        let text = format!("{} {padding}", first + number);
        let body = json!({"receiver_id": "bob@chorus", "envelope": envelope("alice", &text)});
        let call = ApiCall::post("/messages", body.to_string());
        let answer = client.send_call(call).await.unwrap();
        if answer.status == 503 {
            return number;
        }
        assert!(matches!(answer.status, 200 | 202), "{}", answer.status);
    }
    most
}

/// Sends until the disk is full. Returns the file that takes most of it, and how many messages the hub took.
async fn fill_disk(disk: &SmallDisk, sender: &HubClient) -> (PathBuf, usize) {
    let ballast = disk.fill_except(6);
    let mut sent = 0;
    // The reserve and the log's own space are used first; then nothing is left.
    await_async("the disk is full for good", async || {
        sent += send_until_refused(sender, sent, 2_000).await;
        fetch_status(sender, "/ready").await == 503
    })
    .await;
    (ballast, sent)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_reported_and_heals_without_a_restart() {
    let Some(disk) = SmallDisk::start(112) else {
        return;
    };
    let alice = register_client(&disk.hub.url, "alice").await;
    let bob = register_client(&disk.hub.url, "bob").await;
    assert_eq!(fetch_status(&alice, "/ready").await, 200);
    let (ballast, mut sent) = fill_disk(&disk, &alice).await;
    assert_eq!(fetch_status(&alice, "/health").await, 200, "reads go on");
    // One line a second about the same failure, however many writes it fails.
    let lines_before = disk.count_refusal_lines();
    let refusing_since = Instant::now();
    for _ in 0..300 {
        sent += send_until_refused(&alice, sent, 1).await;
    }
    let seconds = refusing_since.elapsed().as_secs() as usize;
    let lines = disk.count_refusal_lines() - lines_before;
    assert!(lines <= seconds + 5, "{lines} lines in {seconds} s");
    assert!(disk.count_refusal_lines() > 0);
    std::fs::File::options()
        .write(true)
        .open(&ballast)
        .unwrap()
        .set_len(1)
        .unwrap();
    await_async("the hub writes again", async || {
        fetch_status(&alice, "/ready").await == 200
    })
    .await;
    // Far more than the write-ahead log of the freed space holds.
    let after = send_until_refused(&alice, sent, 3_000).await;
    assert_eq!(after, 3_000, "the disk is not eaten by the log again");
    sent += after;
    let numbers: Vec<usize> = fetch_all_texts(&bob)
        .await
        .into_values()
        .map(|text| text.split(' ').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(
        numbers,
        (0..sent).collect::<Vec<_>>(),
        "each once, in order"
    );
}

/// An operator who frees a little of a full disk has to get the hub back.
#[tokio::test(flavor = "multi_thread")]
async fn a_little_freed_space_is_enough() {
    // A write-ahead log that could not be copied back would take the space that is freed.
    let Some(disk) = SmallDisk::start(112) else {
        return;
    };
    let alice = register_client(&disk.hub.url, "alice").await;
    register_client(&disk.hub.url, "bob").await;
    let (ballast, mut sent) = fill_disk(&disk, &alice).await;
    let ballast = std::fs::File::options().write(true).open(&ballast).unwrap();
    let length = ballast.metadata().unwrap().len();
    ballast.set_len(length - (8 << 20)).unwrap();
    let goal = sent + 300;
    await_async(
        "three hundred messages fit into eight megabytes",
        async || {
            sent += send_until_refused(&alice, sent, goal.saturating_sub(sent)).await;
            sent >= goal
        },
    )
    .await;
}

/// The disk has too little space to take the reserve again, so that of the hub before has to be known.
#[tokio::test(flavor = "multi_thread")]
async fn the_reserve_of_the_hub_before_is_given_up_too() {
    let Some(disk) = SmallDisk::start_prepared(60, LEAVE_RESERVE) else {
        return;
    };
    let alice = register_client(&disk.hub.url, "alice").await;
    register_client(&disk.hub.url, "bob").await;
    assert!(disk.has_reserve());
    fill_disk(&disk, &alice).await;
    assert!(!disk.has_reserve(), "its space is used");
}

/// An operator who restarts a hub whose disk is full has to get one that runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_hub_starts_on_a_full_disk_in_the_space_of_its_reserve() {
    let script = format!("{LEAVE_RESERVE} && {FILL_DISK}");
    let Some(disk) = SmallDisk::start_prepared(40, &script) else {
        return;
    };
    let alice = register_client(&disk.hub.url, "alice").await;
    assert_eq!(fetch_status(&alice, "/ready").await, 200);
    assert!(!disk.has_reserve());
}

/// SQLite's own words name another cause, or none.
#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_cannot_start_on_a_full_disk_says_so() {
    let parent = tempfile::tempdir().unwrap();
    let Some(command) = SmallDisk::command(parent.path(), 20, FILL_DISK) else {
        return;
    };
    let output = run(command, "");
    assert_eq!(output.code, 1, "{output:?}");
    assert!(
        output.err.contains("the disk of disk/data is full (")
            && output.err.contains("free at least 16 MB"),
        "{output:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_whose_data_directory_was_moved_stops() {
    let folder = tempfile::tempdir().unwrap();
    let log = std::fs::File::create(folder.path().join("log")).unwrap();
    let command = Hub::command(folder.path(), &["--data-dir", "data"]);
    let mut process = RunningProcess::start_with_log(command, log);
    assert!(process.next_line().starts_with("chorus listening on "));
    std::fs::rename(folder.path().join("data"), folder.path().join("moved")).unwrap();
    assert_eq!(process.await_exit(), Some(1));
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    assert!(
        log.contains("the data directory was moved or deleted"),
        "{log}"
    );
    let moved = Hub::start(folder.path(), &["--data-dir", "moved"]);
    drop(moved);
}

/// The exit code and standard error of a hub that does not start.
fn start_refused(folder: &Path) -> String {
    let mut command = Hub::command(folder, &["--data-dir", "data"]);
    command.stdin(Stdio::null());
    let output = run(command, "");
    assert_eq!(output.code, 1, "{output:?}");
    output.err
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_seal_key_is_refused_until_an_operator_gives_it_up() {
    // a new key would seal what no later hub can read.
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("data/seal.key");
    let serve = || Hub::start(folder.path(), &["--data-dir", "data"]);
    let stop = |mut hub: Hub| {
        hub.process.send_signal("TERM");
        hub.process.await_exit();
    };
    stop(serve());
    let old_key = std::fs::read_to_string(&key).unwrap();
    std::fs::remove_file(&key).unwrap();
    let refusal = start_refused(folder.path());
    assert!(
        refusal.contains("seal.key") && refusal.contains("forget-seal-key"),
        "{refusal}"
    );
    assert!(!key.exists(), "no key was made up");
    std::fs::write(&key, "11".repeat(32)).unwrap();
    let refusal = start_refused(folder.path());
    assert!(refusal.contains("sealed with another key"), "{refusal}");
    std::fs::write(&key, &old_key).unwrap();
    stop(serve());
    std::fs::remove_file(&key).unwrap();
    let mut forget = chorus(folder.path());
    forget.args(["admin", "forget-seal-key", "--data-dir", "data"]);
    run(forget, "").ok();
    stop(serve());
    assert_ne!(std::fs::read_to_string(&key).unwrap(), old_key);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_is_not_read_does_not_stop_the_hub() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = chorus(folder.path());
    command.args([
        "serve",
        "--log",
        "debug",
        "--rate-limit",
        "0",
        "--listen",
        "127.0.0.1:0",
    ]);
    // A pipe that stays unread until the end of the test.
    command.stderr(Stdio::piped());
    let hub = Hub::start_command(command);
    let client = register_client(&hub.url, "alice").await;
    // More lines than the hub keeps (16 384) and a pipe holds (64 KiB).
    for _ in 0..18_000 {
        let status = tokio::time::timeout(TIMEOUT, fetch_status(&client, "/agent/messages")).await;
        assert_eq!(status.expect("the hub answers"), 200);
    }
    // An operator has to learn that lines are missing.
    await_async("the dropped lines are counted", async || {
        let answer = client.send_call(ApiCall::get("/metrics")).await.unwrap();
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        let mut lines = text.lines();
        lines.any(|line| line.starts_with("chorus_log_lines_dropped_total "))
    })
    .await;
}

/// Waits until an asynchronous condition is true.
async fn await_async(description: &str, mut condition: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !condition().await {
        assert!(Instant::now() < deadline, "never: {description}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
