//! A hub on a small machine: neither strangers nor ordinary use take more memory than the hub was given.

use crate::support_frames::{MeasuredHub, call, read_status_mib, send_frame};
use chorus_client::HubClient;
use chorus_client::http::ApiCall;
use serde_json::{Value, json};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

const MEMORY_MIB: usize = 256;
const SENDERS: usize = 20;
/// Of each sender. All of them are 193 MiB; a hub without the setting holds them all, and takes 270 MiB.
const FRAMES: usize = 165;
const FRAME_BYTES: usize = 60 * 1024;

/// The program with a hard limit of what it may allocate. More is refused by the kernel, and ends the process: unlike a
/// control group, this needs no rights.
fn limited_chorus() -> Command {
    let mut command = Command::new("sh");
    let script = format!("ulimit -d {} && exec \"$0\" \"$@\"", MEMORY_MIB * 1024);
    command.args(["-c", &script, env!("CARGO_BIN_EXE_chorus")]);
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_of_strangers_do_not_exhaust_a_machine_of_256_mb() {
    let hub = MeasuredHub::start_with(&["--memory", "256M"]);
    let watch = hub.watch();
    let mut senders = tokio::task::JoinSet::new();
    for number in 0..SENDERS {
        let client = hub.register(&format!("stranger-{number}")).await;
        let handle = format!("~stranger-{number}");
        senders.spawn(async move {
            for _ in 0..FRAMES {
                send_frame(&client, &handle, &handle, &handle, FRAME_BYTES).await;
            }
        });
    }
    while let Some(sent) = senders.join_next().await {
        sent.unwrap();
    }
    watch.assert_unharmed(MEMORY_MIB as u64);
    let peak = hub.peak_mib();
    assert!(peak < MEMORY_MIB, "the hub took {peak} MiB");
}

/// Pairs of agents: one writes, the other receives.
const PAIRS: usize = 20;
/// Of each sender, as long as texts may be: 40 MB in all, more than the caches of a hub of this size hold.
const MESSAGES: usize = 200;
const MESSAGE_CHARS: usize = 10_000;
/// What docs/operations.md says of such a load.
const LOAD_MIB: usize = 192;

//
#[tokio::test(flavor = "multi_thread")]
async fn a_burst_of_messages_is_delivered_on_a_machine_of_256_mb() {
    let hub = MeasuredHub::start_command(limited_chorus(), &["--memory", "256M"]);
    let mut pairs = tokio::task::JoinSet::new();
    for pair in 0..PAIRS {
        let sender = hub.register(&format!("sender-{pair}")).await;
        let receiver = hub.register(&format!("receiver-{pair}")).await;
        pairs.spawn(async move {
            // Every second receiver hears live; the others read everything afterwards, as agents that were away.
            if pair % 2 == 0 {
                tokio::join!(send_messages(&sender, pair), receive_messages(&receiver)).1
            } else {
                send_messages(&sender, pair).await;
                receive_messages(&receiver).await
            }
        });
    }
    let expected: Vec<usize> = (0..MESSAGES).collect();
    while let Some(received) = pairs.join_next().await {
        assert_eq!(received.unwrap(), expected, "once each, and in order");
    }
    let peak = hub.peak_mib();
    println!("the hub took {peak} MiB");
    assert!(peak < LOAD_MIB, "the hub took {peak} MiB");
}

async fn send_messages(client: &HubClient, pair: usize) {
    for number in 0..MESSAGES {
        let text = format!("{number:x<MESSAGE_CHARS$}");
        let envelope = json!({
            "chorus_version": "0.4",
            "sender_id": format!("sender-{pair}@chorus"),
            "original_text": text,
            "sender_culture": "en",
        });
        let receiver = format!("receiver-{pair}@chorus");
        let message = json!({ "receiver_id": receiver, "envelope": envelope });
        call(client, ApiCall::post("/messages", message.to_string())).await;
    }
}

/// The numbers of the messages in the inbox, from its beginning.
async fn receive_messages(client: &HubClient) -> Vec<usize> {
    let mut inbox = client.open_inbox("0".parse().ok()).await;
    let mut numbers = Vec::new();
    while numbers.len() < MESSAGES {
        let event = inbox.next().await.unwrap();
        if event.name == "message" {
            let message: Value = serde_json::from_str(&event.data).unwrap();
            let text = message["envelope"]["original_text"].as_str().unwrap();
            numbers.push(text.trim_end_matches('x').parse().unwrap());
        }
    }
    numbers
}

/// What docs/operations.md says of the demo: a hub and its agents in one process.
const DEMO_MIB: usize = 128;

//
#[test]
fn the_demo_runs_on_a_machine_of_256_mb() {
    let folder = tempfile::tempdir().unwrap();
    let mut demo = limited_chorus()
        .env_clear()
        .env("TMPDIR", folder.path())
        .current_dir(folder.path())
        .args(["demo", "--once", "--no-open"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let (status, peak) = await_end(&mut demo);
    println!("the demo took {peak} MiB");
    assert!(status.success(), "{status}");
    assert!((1..DEMO_MIB).contains(&peak), "the demo took {peak} MiB");
}

/// Waits until the process has ended: its status, and the most memory that it took.
fn await_end(process: &mut Child) -> (ExitStatus, usize) {
    let mut peak = 0;
    loop {
        peak = peak.max(read_status_mib(process.id(), "VmHWM:").unwrap_or_default());
        if let Some(status) = process.try_wait().unwrap() {
            return (status, peak);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
