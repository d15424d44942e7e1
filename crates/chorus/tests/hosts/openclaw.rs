//! The gateway of OpenClaw, woken by its hook (WAK-02). The package has 640 MB with what it needs, so `./test --hosts` does not fetch
//! it: `CHORUS_TEST_OPENCLAW` names a folder with `node_modules/openclaw`. The test of the command line in `cli/wake.rs` speaks
//! the same requests with a socket of ours.

use crate::actors::{RunningProcess, Scene};
use crate::kit::{HostKit, isolate};
use crate::model::Model;
use crate::wake::{HOSTILE_TEXT, newest_turn};
use serde_json::json;
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Max time until the gateway is ready, and until a notice has become a run, on a busy machine.
const GATEWAY_TIMEOUT: Duration = Duration::from_secs(120);
const HOOK_TOKEN: &str = "a-token-for-hooks-of-this-test-only";

/// A port that nothing listens on. The gateway takes no port 0.
fn find_free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn await_until(what: &str, mut is_done: impl FnMut() -> bool) {
    let deadline = Instant::now() + GATEWAY_TIMEOUT;
    while !is_done() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

// WAK-02, WAK-06
#[test]
fn mail_wakes_the_gateway_of_openclaw_without_a_word_of_others() {
    let folder = std::env::var_os("CHORUS_TEST_OPENCLAW").map(PathBuf::from);
    let (Some(kit), Some(folder)) = (HostKit::fetched(), folder) else {
        println!("skipped: CHORUS_TEST_OPENCLAW names no folder with OpenClaw");
        return;
    };
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let model = Model::with_script(Vec::new());
    let port = find_free_port();
    let provider = json!({ "baseUrl": format!("{}/v1", model.url), "apiKey": "no-key-at-all", "api": "openai-responses",
        "models": [{ "id": "scripted", "name": "scripted", "contextWindow": 100_000, "maxTokens": 1_000 }] });
    let config = json!({
        "gateway": { "mode": "local", "bind": "loopback", "port": port, "auth": { "mode": "token", "token": "gateway" } },
        "hooks": { "enabled": true, "token": HOOK_TOKEN },
        "models": { "mode": "merge", "providers": { "scripted": provider } },
        "agents": { "defaults": { "model": { "primary": "scripted/scripted" } } },
    });
    std::fs::create_dir_all(alice.home.join(".openclaw")).unwrap();
    std::fs::write(
        alice.home.join(".openclaw/openclaw.json"),
        config.to_string(),
    )
    .unwrap();
    let mut command = kit.node();
    command.arg(folder.join("node_modules/openclaw/openclaw.mjs"));
    command.args(["gateway", "run"]);
    isolate(&mut command, &alice.home);
    command.env("OPENCLAW_SKIP_CHANNELS", "1");
    let log = std::fs::File::create(alice.home.join("gateway.log")).unwrap();
    let _gateway = RunningProcess::start_with_log(command, log);
    await_until("the gateway listens", || {
        std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
    });

    std::fs::write(alice.home.join("token"), HOOK_TOKEN).unwrap();
    let url = format!("http://127.0.0.1:{port}");
    let wake = ["wake", "--openclaw", &url, "--token-file", "token"];
    let _waker = RunningProcess::start(alice.command(&wake));
    alice.await_online("alice@chorus");
    let bob = scene.agent("bob");
    bob.run(&["send", "alice@chorus", HOSTILE_TEXT]).ok();
    let sent_at = Instant::now();
    let notice = "1 new message waits for alice@chorus, from bob@chorus";
    await_until("a run with the notice", || {
        newest_turn(&model).contains(notice)
    });
    println!("woken after {:?}", sent_at.elapsed());
    assert!(!model.requests_text().contains("trust this"));
}
