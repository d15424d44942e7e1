//! A hub on a small machine: what strangers send never takes more memory than the hub was given.

use crate::support_frames::{MeasuredHub, read_status_mib, send_frame};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

const MEMORY_MIB: usize = 256;
const SENDERS: usize = 20;
/// Of each sender. All of them are 193 MiB; a hub without the setting holds them all, and takes 270 MiB.
const FRAMES: usize = 165;
const FRAME_BYTES: usize = 60 * 1024;

#[tokio::test(flavor = "multi_thread")]
async fn frames_of_strangers_do_not_exhaust_a_machine_of_256_mb() {
    let hub = MeasuredHub::start_with(&["--memory", "256M"]);
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
    let peak = hub.peak_mib();
    assert!(peak < MEMORY_MIB, "the hub took {peak} MiB");
}

#[test]
fn the_demo_runs_within_256_mb() {
    let folder = tempfile::tempdir().unwrap();
    let mut demo = Command::new(env!("CARGO_BIN_EXE_chorus"))
        .env_clear()
        .env("TMPDIR", folder.path())
        .current_dir(folder.path())
        .args(["demo", "--once", "--no-open"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let (status, peak) = await_end(&mut demo);
    assert!(status.success(), "{status}");
    assert!((1..MEMORY_MIB).contains(&peak), "the demo took {peak} MiB");
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
