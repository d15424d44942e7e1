//! `chorus admin backup --keep N [--every TIME]`: dated copies beside a running hub, and the drill that restores one (D-109).

use crate::actors::{CommandOutput, Hub, RunningProcess, TIMEOUT, chorus, run};
use crate::crash::{
    SendRecord, check_history, collect_messages, envelope, fetch_all_texts, register_client,
    register_with_key, send_messages, wait_for_count,
};
use crate::servers::is_available;
use chorus_client::HubClient;
use chorus_wire::credits::Credits;
use chorus_wire::cursor::Cursor;
use chorus_wire::market::transfer::CreditTransfer;
use chorus_wire::secret::Secret;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

const SENDERS: usize = 3;
const GRANT: i64 = 10_000;

fn backup(folder: &Path, args: &[&str]) -> CommandOutput {
    let mut command = chorus(folder);
    command
        .args(["admin", "backup", "--data-dir", "data"])
        .args(args);
    run(command, "")
}

fn list_copies(folder: &Path) -> Vec<PathBuf> {
    let mut copies: Vec<PathBuf> = std::fs::read_dir(folder.join("copies"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    copies.sort();
    copies
}

#[test]
fn dated_copies_are_kept_up_to_a_number_and_nothing_else_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let _hub = Hub::start(folder.path(), &["--data-dir", "data"]);
    let copies = folder.path().join("copies");
    // What an interrupted command left, and what is not ours.
    std::fs::create_dir_all(copies.join("partial")).unwrap();
    std::fs::write(copies.join("partial/chorus.db.partial"), "half").unwrap();
    std::fs::create_dir_all(copies.join("chorus-notes")).unwrap();
    for expected in [2, 3, 3] {
        let made = backup(folder.path(), &["--keep", "2", "copies", "--json"]).ok();
        assert!(
            Path::new(
                &folder
                    .path()
                    .join(made.json()[0]["backup"].as_str().unwrap())
            )
            .is_dir()
        );
        assert_eq!(
            list_copies(folder.path()).len(),
            expected,
            "and chorus-notes"
        );
    }
    assert!(copies.join("chorus-notes").is_dir());
    let newest = list_copies(folder.path())
        .into_iter()
        .rev()
        .find(|path| path.file_name().unwrap() != "chorus-notes");
    let newest = newest.unwrap();
    for file in ["chorus.db", "seal.key"] {
        assert!(newest.join(file).is_file(), "{file}");
    }
    assert!(
        !newest.join("chorus.db-wal").exists(),
        "the copy is one file"
    );
}

#[test]
fn a_copy_that_cannot_be_made_says_why_and_removes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let missing = backup(folder.path(), &["--keep", "2", "copies"]);
    assert!(
        missing.code != 0 && missing.err.contains("is not there"),
        "{missing:?}"
    );
    let mut hub = Hub::start(folder.path(), &["--data-dir", "data"]);
    backup(folder.path(), &["--keep", "1", "copies"]).ok();
    let before = list_copies(folder.path());
    hub.process.send_signal("TERM");
    hub.process.await_exit();
    // A damaged database, made from the copy, which is one file: a copy is read back before it counts.
    let mut bytes = std::fs::read(before[0].join("chorus.db")).unwrap();
    bytes[8_192..].fill(0xa5);
    let data = folder.path().join("data");
    std::fs::remove_dir_all(&data).unwrap();
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("chorus.db"), bytes).unwrap();
    let damaged = backup(folder.path(), &["--keep", "1", "copies"]);
    assert!(
        damaged.code != 0 && damaged.err.contains("no copy was made"),
        "{damaged:?}"
    );
    assert_eq!(list_copies(folder.path()), before);
}

// D-109
#[test]
fn two_commands_do_not_copy_into_one_directory_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let _hub = Hub::start(folder.path(), &["--data-dir", "data"]);
    std::fs::create_dir(folder.path().join("copies")).unwrap();
    let other = std::fs::File::create(folder.path().join("copies/lock")).unwrap();
    other.try_lock().unwrap();
    let refused = backup(folder.path(), &["--keep", "1", "copies"]);
    assert!(
        refused.code != 0 && refused.err.contains("another command is copying into"),
        "{refused:?}"
    );
    assert_eq!(list_copies(folder.path()).len(), 0);
    drop(other);
    backup(folder.path(), &["--keep", "1", "copies"]).ok();
    assert_eq!(list_copies(folder.path()).len(), 1);
}

/// Waits until the command has reported a failure with these words.
fn await_report(folder: &Path, words: &str) {
    let reported = || std::fs::read_to_string(folder.join("errors")).unwrap();
    let deadline = std::time::Instant::now() + TIMEOUT;
    while !reported().contains(words) {
        assert!(std::time::Instant::now() < deadline, "{}", reported());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// A loop goes on after a failure: here the hub's data appear only after the first attempt.
#[test]
fn copies_at_an_interval_go_on_after_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let errors = std::fs::File::create(folder.path().join("errors")).unwrap();
    let mut command = chorus(folder.path());
    command.args([
        "admin",
        "backup",
        "--data-dir",
        "data",
        "--every",
        "200ms",
        "--keep",
        "2",
        "copies",
    ]);
    let mut copying = RunningProcess::start_with_log(command, errors);
    await_report(folder.path(), "the next copy is tried in");
    let _hub = Hub::start(folder.path(), &["--data-dir", "data"]);
    for _ in 0..3 {
        assert!(copying.next_line().starts_with("copied to copies/chorus-2"));
    }
    let second = backup(folder.path(), &["--keep", "2", "data-copies"]);
    assert_eq!(second.code, 0, "another directory is free: {second:?}");
    copying.send_signal("TERM");
    assert_eq!(copying.await_exit(), Some(0));
}

/// Starts a loop of copies onto a file system of its own, of four megabytes; and that file system, as seen from here.
fn start_on_small_disk(folder: &Path) -> Option<(RunningProcess, PathBuf)> {
    let may_mount = Command::new("unshare")
        .args(["-m", "sh", "-c", "mount -t tmpfs tmpfs /mnt"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !is_available("the right to mount file systems", may_mount) {
        return None;
    }
    let disk = folder.join("copies");
    std::fs::create_dir(&disk).unwrap();
    let plain = chorus(folder);
    let mount = format!(
        "mount -t tmpfs -o size=4m tmpfs '{}' && exec \"$@\"",
        disk.display()
    );
    let mut command = Command::new("unshare");
    command
        .args(["-m", "sh", "-c", &mount, "sh"])
        .arg(plain.get_program())
        .args(["admin", "backup", "--data-dir", "data", "--every", "200ms"])
        .args(["--keep", "2", "copies"])
        .current_dir(folder);
    let errors = std::fs::File::create(folder.join("errors")).unwrap();
    let copying = RunningProcess::start_with_log(command, errors);
    let root = PathBuf::from(format!("/proc/{}/root", copying.id()));
    let seen = root.join(disk.strip_prefix("/").unwrap());
    Some((copying, seen))
}

#[test]
fn a_full_disk_is_reported_keeps_the_older_copies_and_copies_go_on_when_it_has_room() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::start(folder.path(), &["--data-dir", "data"]);
    let Some((copying, disk)) = start_on_small_disk(folder.path()) else {
        return;
    };
    copying.next_line();
    let ballast = disk.join("ballast");
    let mut file = std::fs::File::create(&ballast).unwrap();
    while file.write_all(&[0; 4_096]).is_ok() {}
    await_report(folder.path(), "bytes left, and the copy needs");
    let names = std::fs::read_dir(&disk).unwrap().map(|entry| {
        let name = entry.unwrap().file_name();
        name.into_string().unwrap()
    });
    let newest = names.filter(|name| name.starts_with("chorus-2")).max();
    let newest = newest.expect("the older copies stay");
    drop(file);
    std::fs::remove_file(&ballast).unwrap();
    loop {
        let line = copying.next_line();
        let path = line.strip_prefix("copied to copies/").unwrap();
        if path.split(',').next().unwrap() > newest.as_str() {
            break;
        }
    }
    drop(hub);
}

/// What was acknowledged when a copy was complete must be in every later copy.
struct CopyWatch {
    process: RunningProcess,
    record: Arc<Mutex<SendRecord>>,
    /// What the copy that is made now must contain.
    before: BTreeSet<String>,
}

impl CopyWatch {
    fn start(folder: &Path, record: &Arc<Mutex<SendRecord>>) -> Self {
        let mut command = chorus(folder);
        command.args([
            "admin",
            "backup",
            "--data-dir",
            "data",
            "--every",
            "100ms",
            "--keep",
            "3",
            "copies",
        ]);
        Self {
            process: RunningProcess::start(command),
            record: record.clone(),
            before: BTreeSet::new(),
        }
    }

    /// The next copy, and what it must contain.
    fn next_copy(&mut self) -> (String, BTreeSet<String>) {
        let line = tokio::task::block_in_place(|| self.process.next_line());
        let path = line.strip_prefix("copied to ").unwrap();
        let path = path.split(',').next().unwrap().to_owned();
        let acknowledged = self.record.lock().unwrap().acknowledged.clone();
        (path, std::mem::replace(&mut self.before, acknowledged))
    }
}

// R-25, invariant 7
#[tokio::test(flavor = "multi_thread")]
async fn the_newest_copy_restores_everything_acknowledged_before_it_under_load_and_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let start =
        |listen: &str| Hub::start(folder.path(), &["--data-dir", "data", "--listen", listen]);
    let mut hub = start("127.0.0.1:0");
    let address = hub.url.strip_prefix("http://").unwrap().to_owned();
    let (_, bob_key) = register_with_key(&hub.url, "bob").await;
    let record = Arc::new(Mutex::new(SendRecord::default()));
    let stop = Arc::new(AtomicBool::new(false));
    let (count, mut counted) = watch::channel(0);
    let count = Arc::new(count);
    let mut loads = Vec::new();
    let mut sender_keys = Vec::new();
    for number in 0..SENDERS {
        let name = format!("sender{number}");
        let (client, key) = register_with_key(&hub.url, &name).await;
        sender_keys.push(key);
        loads.push(tokio::spawn(pay_on(client.clone(), number, stop.clone())));
        loads.push(tokio::spawn(send_messages(
            client,
            name,
            record.clone(),
            count.clone(),
            stop.clone(),
        )));
    }
    let mut copies = CopyWatch::start(folder.path(), &record);
    for crash in 1..=2 {
        wait_for_count(&mut counted, crash * 60).await;
        copies.next_copy();
        hub.process.send_signal("KILL");
        hub.process.await_exit();
        hub = start(&address);
    }
    // The command that copies is killed too, and another one takes over.
    copies.process.send_signal("KILL");
    copies.process.await_exit();
    copies = CopyWatch::start(folder.path(), &record);
    copies.next_copy();
    wait_for_count(&mut counted, 240).await;
    let (path, expected) = copies.next_copy();
    copies.process.send_signal("TERM");
    copies.process.await_exit();
    stop.store(true, Ordering::SeqCst);
    for load in loads {
        load.await.unwrap();
    }
    let bob = client(&hub, &bob_key);
    let last_seen = *fetch_all_texts(&bob).await.last_key_value().unwrap().0;
    hub.process.send_signal("KILL");
    hub.process.await_exit();
    // The copy may be gone by now, replaced by newer ones; the newest contains at least as much.
    let newest = list_copies(folder.path()).pop().unwrap();
    assert!(newest >= folder.path().join(&path));
    drop(copies);
    let record = Arc::into_inner(record).unwrap().into_inner().unwrap();
    let drill = RestoreDrill {
        record,
        expected,
        bob_key,
        sender_keys,
        last_seen,
    };
    run_drill(folder.path(), &newest, &drill).await;
}

struct RestoreDrill {
    /// What senders know at the end.
    record: SendRecord,
    /// What was acknowledged before the copy began.
    expected: BTreeSet<String>,
    bob_key: String,
    sender_keys: Vec<String>,
    /// The last id that bob got from the lost hub.
    last_seen: u64,
}

/// Restores a copy into a fresh directory, as docs/operations.md says, and checks what is in it.
async fn run_drill(folder: &Path, copy: &Path, drill: &RestoreDrill) {
    let mut restore = std::process::Command::new("cp");
    restore.arg("-r").arg(copy).arg(folder.join("restored"));
    assert!(restore.status().unwrap().success());
    let hub = Hub::start(folder, &["--data-dir", "restored"]);
    let bob = client(&hub, &drill.bob_key);
    let texts = fetch_all_texts(&bob).await;
    let stored: BTreeSet<String> = texts.values().cloned().collect();
    assert!(!drill.expected.is_empty());
    let lost: Vec<&String> = drill.expected.difference(&stored).collect();
    assert!(
        lost.is_empty(),
        "acknowledged before the copy, and lost: {lost:?}"
    );
    let known = drill.record.acknowledged.intersection(&stored);
    let sent = SendRecord {
        acknowledged: known.cloned().collect(),
        unknown: drill.record.unknown.clone(),
    };
    check_history(&sent, &texts);
    let alice = register_client(&hub.url, "alice").await;
    let mut received = collect_messages(
        bob.open_inbox(Some(Cursor::from_log_seq(drill.last_seen)))
            .await,
    )
    .await;
    let new = envelope("alice", "new");
    alice.send_message("bob@chorus", &new, 0).await.unwrap();
    let (id, text) = tokio::time::timeout(TIMEOUT, received.recv())
        .await
        .expect("the new message arrives")
        .unwrap();
    assert!(text == "new" && id > drill.last_seen, "no id is used twice");
    check_money(&hub, &drill.sender_keys).await;
}

/// The credits of all owners are those that were granted: one opening grant each.
async fn check_money(hub: &Hub, keys: &[String]) {
    let mut sum = 0;
    for (number, key) in keys.iter().enumerate() {
        let owner = format!("sender{number}@chorus");
        let account = client(hub, key).fetch_account(&owner).await.unwrap();
        sum += account.balance.to_hundredths() + account.held.to_hundredths();
    }
    assert_eq!(sum, GRANT * SENDERS as i64);
}

/// Pays the next sender until it is told to stop.
async fn pay_on(client: HubClient, number: usize, stop: Arc<AtomicBool>) {
    let next = (number + 1) % SENDERS;
    while !stop.load(Ordering::SeqCst) {
        let transfer = CreditTransfer {
            transfer_id: chorus_client::market::random_id(),
            from_owner: format!("sender{number}@chorus"),
            to_owner: format!("sender{next}@chorus"),
            amount: Credits::from_hundredths(3),
            job_id: None,
            timestamp_utc: None,
        };
        let _ = client.transfer_credits(&transfer).await;
        // The load is a steady one, not as much as the hub can take.
        let pause = std::time::Duration::from_millis(5);
        let _ = tokio::time::timeout(pause, std::future::pending::<()>()).await;
    }
}

fn client(hub: &Hub, key: &str) -> HubClient {
    HubClient::new(&hub.url, Some(Secret::new(key))).unwrap()
}
