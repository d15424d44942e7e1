//! Damaged database files: the hub says what is wrong and what would be lost, and does not start before its operator accepts that
//!

use crate::actors::{Hub, chorus, run};
use crate::crash::{envelope, fetch_all_texts, register_client, register_with_key};
use chorus_client::HubClient;
use chorus_client::http::ApiCall;
use chorus_wire::secret::Secret;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Messages in the database file, and further ones that are only in the write-ahead log.
const COPIED: usize = 200;
const LOGGED: usize = 30;
const MESSAGES: usize = COPIED + LOGGED;

const HEADER_BYTES: usize = 32;
const FRAME_BYTES: usize = 24 + 4_096;

/// A data directory with acknowledged messages, whose hub was killed.
struct DeadHub {
    folder: tempfile::TempDir,
    /// The key of the messages' receiver.
    receiver_key: String,
}

impl DeadHub {
    async fn create() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut hub = Hub::start(folder.path(), &["--data-dir", "data"]);
        let (alice, sender_key) = register_with_key(&hub.url, "alice").await;
        let (_, receiver_key) = register_with_key(&hub.url, "bob").await;
        for number in 0..COPIED {
            send(&alice, number).await;
        }
        hub.process.send_signal("TERM");
        hub.process.await_exit();
        // So few that the log is not copied before the end.
        let mut hub = Hub::start(folder.path(), &["--data-dir", "data"]);
        let alice = HubClient::new(&hub.url, Some(Secret::new(sender_key))).unwrap();
        for number in COPIED..MESSAGES {
            send(&alice, number).await;
        }
        hub.process.send_signal("KILL");
        hub.process.await_exit();
        Self {
            folder,
            receiver_key,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("data").join(name)
    }

    /// Starts it, which must fail, and returns what it says.
    fn refused(&self) -> String {
        let output = run(
            Hub::command(self.folder.path(), &["--data-dir", "data"]),
            "",
        );
        assert_eq!(output.code, 1, "{output:?}");
        assert!(output.err.contains("--accept-damage"), "{}", output.err);
        output.err
    }

    fn start(&self, more: &[&str]) -> Hub {
        Hub::start(
            self.folder.path(),
            &[&["--data-dir", "data"], more].concat(),
        )
    }

    /// How many of the messages a hub on these files still has.
    async fn count_messages(&self, hub: &Hub) -> usize {
        let key = Secret::new(self.receiver_key.clone());
        let receiver = HubClient::new(&hub.url, Some(key)).unwrap();
        fetch_all_texts(&receiver).await.len()
    }
}

async fn send(client: &HubClient, number: usize) {
    let text = format!("{number} {}", "x".repeat(2_000));
    let body = json!({"receiver_id": "bob@chorus", "envelope": envelope("alice", &text)});
    let call = ApiCall::post("/messages", body.to_string());
    assert_eq!(client.send_call(call).await.unwrap().status, 202);
}

/// The frames of a log that were written since it was started again: those with the salts of its header.
fn count_frames(wal: &Path) -> usize {
    let bytes = std::fs::read(wal).unwrap();
    bytes[HEADER_BYTES..]
        .chunks_exact(FRAME_BYTES)
        .take_while(|frame| frame[8..16] == bytes[16..24])
        .count()
}

/// Changes one byte of a file.
fn flip_byte(file: &Path, at: usize) {
    let mut bytes = std::fs::read(file).unwrap();
    bytes[at] ^= 0x20;
    std::fs::write(file, bytes).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_database_file_beside_a_full_log_is_refused() {
    let dead = DeadHub::create().await;
    let database = dead.path("chorus.db");
    let wal = dead.path("chorus.db-wal");
    let log_bytes = std::fs::read(&wal).unwrap();
    assert!(!log_bytes.is_empty());
    std::fs::write(&database, "").unwrap();
    let refusal = dead.refused();
    assert!(refusal.contains("chorus.db is damaged"), "{refusal}");
    std::fs::remove_file(&database).unwrap();
    let refusal = dead.refused();
    assert!(refusal.contains("chorus.db is damaged"), "{refusal}");
    assert_eq!(
        std::fs::read(&wal).unwrap(),
        log_bytes,
        "nothing was touched"
    );
    let hub = dead.start(&["--accept-damage"]);
    register_client(&hub.url, "alice").await;
    drop(hub);
    let kept = std::fs::read_dir(dead.folder.path().join("data"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.to_string_lossy().contains("chorus.db-wal.damaged-"))
        .expect("a copy of the log is kept");
    assert_eq!(std::fs::read(kept).unwrap(), log_bytes);
}

/// Opening the empty database file would alone throw the log away.
#[tokio::test(flavor = "multi_thread")]
async fn no_command_opens_a_damaged_database() {
    let dead = DeadHub::create().await;
    let wal = dead.path("chorus.db-wal");
    let log_bytes = std::fs::read(&wal).unwrap();
    std::fs::write(dead.path("chorus.db"), "").unwrap();
    let commands: [&[&str]; 3] = [
        &["restored", "--data-dir", "data"],
        &["forget-seal-key", "--data-dir", "data"],
        &["backup", "--data-dir", "data", "copy"],
    ];
    for args in commands {
        let mut command = chorus(dead.folder.path());
        command.arg("admin").args(args);
        let output = run(command, "");
        assert!(
            output.code != 0 && output.err.contains("chorus.db is damaged"),
            "{args:?}: {output:?}"
        );
        assert_eq!(std::fs::read(&wal).unwrap(), log_bytes, "{args:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_byte_in_the_log_is_refused_and_its_ids_are_not_given_out_again() {
    let dead = DeadHub::create().await;
    let wal = dead.path("chorus.db-wal");
    let frames = count_frames(&wal);
    assert!(frames > LOGGED, "{frames} frames");
    let middle = HEADER_BYTES + frames / 2 * FRAME_BYTES + 1_000;
    flip_byte(&wal, middle);
    let refusal = dead.refused();
    assert!(
        refusal.contains("chorus.db-wal is damaged") && refusal.contains("transactions are lost"),
        "{refusal}"
    );
    let whole = std::fs::read(&wal).unwrap();
    flip_byte(&wal, middle);
    let mut hub = dead.start(&[]);
    assert_eq!(
        dead.count_messages(&hub).await,
        MESSAGES,
        "nothing was lost by refusing"
    );
    hub.process.send_signal("KILL");
    hub.process.await_exit();
    std::fs::write(&wal, whole).unwrap();
    dead.refused();
    let hub = dead.start(&["--accept-damage"]);
    let left = dead.count_messages(&hub).await;
    assert!(left < MESSAGES, "{left}");
    let carol = register_client(&hub.url, "carol").await;
    let body = json!({"receiver_id": "carol@chorus", "envelope": envelope("carol", "after")});
    let call = ApiCall::post("/messages", body.to_string());
    assert_eq!(carol.send_call(call).await.unwrap().status, 202);
    let texts = fetch_all_texts(&carol).await;
    assert!(
        texts.keys().all(|id| *id > 1_000_000_000),
        "clients may have seen the lost ids: {texts:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torn_end_of_the_log_is_normal() {
    let dead = DeadHub::create().await;
    let wal = dead.path("chorus.db-wal");
    let mut bytes = std::fs::read(&wal).unwrap();
    // A frame of the same log that was written in part.
    let end = HEADER_BYTES + count_frames(&wal) * FRAME_BYTES;
    let mut torn = bytes[end - FRAME_BYTES..end - 2_000].to_vec();
    torn[30] ^= 1;
    bytes.truncate(end);
    bytes.extend(torn);
    std::fs::write(&wal, bytes).unwrap();
    let hub = dead.start(&[]);
    assert_eq!(dead.count_messages(&hub).await, MESSAGES);
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_pages_are_refused() {
    let dead = DeadHub::create().await;
    let data = dead.folder.path().join("data");
    let mut backup = chorus(dead.folder.path());
    backup.args(["admin", "backup", "--data-dir", "data", "copy"]);
    run(backup, "").ok();
    // A copy is one file.
    std::fs::remove_dir_all(&data).unwrap();
    std::fs::rename(dead.folder.path().join("copy"), &data).unwrap();
    let database = dead.path("chorus.db");
    let mut bytes = std::fs::read(&database).unwrap();
    let pages = bytes.len() / 4_096;
    assert!(pages > 100, "{pages} pages");
    for page in pages / 2..pages / 2 + 20 {
        bytes[page * 4_096..(page + 1) * 4_096].fill(0xa5);
    }
    std::fs::write(&database, bytes).unwrap();
    let refusal = dead.refused();
    assert!(
        refusal.contains("chorus.db is damaged: table "),
        "{refusal}"
    );
    let hub = dead.start(&["--accept-damage"]);
    register_client(&hub.url, "carol").await;
}
