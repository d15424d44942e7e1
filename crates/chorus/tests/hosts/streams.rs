//! Published readers of event streams hear every message once and in time: through a burst, and when the hub is killed.

use crate::actors::{Hub, OPERATOR, RunningProcess, Scene};
use crate::http::{call, serve};
use crate::kit::{HostKit, PythonKit, isolate, read_key};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Max time until a reader has heard the next event, reconnections included.
const TIMEOUT: Duration = Duration::from_secs(60);
const BURST: usize = 200;
const BURST_SENDERS: usize = 8;

fn streams_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hosts/streams")
}

/// A hub that is killed and started again on the same address, and two agents.
struct StreamScene {
    scene: Scene,
    sender_key: String,
    reader_key: String,
    options: Vec<String>,
}

impl StreamScene {
    fn open(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        options.extend(["--operator-key".to_owned(), OPERATOR.to_owned()]);
        let hub = Hub::start(folder.path(), &borrow(&options));
        options.extend(["--listen".to_owned(), hub.url.replace("http://", "")]);
        let scene = Scene { folder, hub };
        let sender_key = read_key(&scene.agent("alice"));
        let reader_key = read_key(&scene.agent("bob"));
        Self {
            scene,
            sender_key,
            reader_key,
            options,
        }
    }

    fn url(&self) -> &str {
        &self.scene.hub.url
    }

    fn kill_and_restart(&mut self) {
        self.scene.hub.process.send_signal("KILL");
        self.scene.hub.process.await_exit();
        self.scene.hub = Hub::start(self.scene.folder.path(), &borrow(&self.options));
    }

    fn send(&self, text: &str) {
        send_text(self.url(), &self.sender_key, text);
    }

    /// Messages of 10 kB from several connections at once.
    fn send_burst(&self, name: &str, count: usize, padding: usize) {
        let url = self.url();
        let key = &self.sender_key;
        std::thread::scope(|scope| {
            for sender in 0..BURST_SENDERS {
                scope.spawn(move || {
                    for number in (sender..count).step_by(BURST_SENDERS) {
                        let text = format!("{name}{number} {}", "x".repeat(padding));
                        send_text(url, key, &text);
                    }
                });
            }
        });
    }

    /// The first words of all messages, in the order of the hub.
    fn sent_words(&self) -> Vec<String> {
        let history = call(
            self.url(),
            &self.reader_key,
            "GET",
            "/agent/messages",
            &Value::Null,
        );
        let history = serde_json::from_str::<Value>(join_chunks(&history).as_str()).unwrap();
        let rows = history["data"].as_array().unwrap();
        let text = |row: &Value| {
            row["envelope"]["original_text"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        rows.iter()
            .map(|row| text(row).split(' ').next().unwrap().to_owned())
            .collect()
    }
}

fn borrow(options: &[String]) -> Vec<&str> {
    options.iter().map(String::as_str).collect()
}

fn send_text(hub: &str, key: &str, text: &str) {
    let envelope = json!({"chorus_version": "0.4", "sender_id": "alice@chorus", "original_text": text, "sender_culture": "en"});
    let message = json!({"receiver_id": "bob@chorus", "envelope": envelope});
    call(hub, key, "POST", "/messages", &message);
}

/// A long history comes in chunks.
fn join_chunks(body: &str) -> String {
    if body.starts_with('{') {
        return body.to_owned();
    }
    let mut joined = String::new();
    let mut rest = body;
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            break;
        }
        joined.push_str(&after[..size]);
        rest = &after[size + 2..];
    }
    joined
}

/// What a reader reports: `connected`, and `message` with the first word of its text.
struct Reader<'a> {
    next_line: Box<dyn Fn() -> String + 'a>,
    heard: Vec<String>,
}

impl<'a> Reader<'a> {
    fn new(next_line: impl Fn() -> String + 'a) -> Self {
        Self {
            next_line: Box::new(next_line),
            heard: Vec::new(),
        }
    }

    fn await_connected(&self) {
        assert_eq!((self.next_line)(), "connected");
    }

    /// Waits until this many messages were heard.
    fn hear(&mut self, count: usize) {
        while self.heard.len() < count {
            let line = (self.next_line)();
            if let Some(word) = line.strip_prefix("message ") {
                self.heard.push(word.to_owned());
            } else {
                assert_eq!(line, "connected");
            }
        }
    }
}

/// The story that every reader goes through.
fn exercise(scene: &mut StreamScene, mut reader: Reader<'_>) {
    reader.await_connected();
    // It has heard nothing yet, and resumes from the id of `connected`.
    scene.kill_and_restart();
    scene.send("m1");
    scene.send("m2");
    reader.hear(2);
    // In time: nothing comes after it that could push it out of a buffer.
    scene.send("alone");
    reader.hear(3);
    scene.send_burst("big", BURST, 9_900);
    reader.hear(3 + BURST);
    scene.kill_and_restart();
    scene.send("last");
    reader.hear(4 + BURST);
    assert_eq!(reader.heard, scene.sent_words());
}

fn start_reader(scene: &StreamScene, mut program: Command, args: &[&str]) -> RunningProcess {
    isolate(&mut program, scene.scene.folder.path());
    program
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .args(args)
        .stderr(Stdio::inherit());
    RunningProcess::start(program)
}

fn exercise_program(program: Command, script: &str, more: &[&str]) {
    let mut scene = StreamScene::open(&[]);
    let script = streams_folder().join(script).display().to_string();
    let url = scene.url().to_owned();
    let key = scene.reader_key.clone();
    let args = [&[script.as_str(), &url, &key], more].concat();
    let process = start_reader(&scene, program, &args);
    exercise(&mut scene, Reader::new(|| process.next_line()));
}

#[test]
fn requests_with_sseclient_hears_every_message_in_time() {
    if let Some(kit) = PythonKit::fetched() {
        exercise_program(kit.program("python"), "requests_client.py", &[]);
    }
}

#[test]
fn httpx_sse_hears_every_message_in_time() {
    if let Some(kit) = PythonKit::fetched() {
        exercise_program(kit.program("python"), "httpx_client.py", &[]);
    }
}

#[test]
fn npm_eventsource_hears_every_message_in_time() {
    if let Some(kit) = HostKit::fetched() {
        let module = kit.modules().join("eventsource/dist/index.js");
        let module = module.display().to_string();
        exercise_program(kit.node(), "eventsource_client.mjs", &[&module]);
    }
}

/// A browser without a screen, which is killed when the test ends.
struct Browser(Child);

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start_browser(folder: &Path, page: &str) -> Option<Browser> {
    let profile = folder.join("profile");
    let mut chromium = Command::new("chromium");
    isolate(&mut chromium, folder);
    chromium
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
        ])
        .args([
            "--no-first-run",
            "--no-proxy-server",
            "--disable-background-networking",
        ])
        .arg("--remote-debugging-port=0")
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(page)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    match chromium.spawn() {
        Ok(child) => Some(Browser(child)),
        Err(_) => {
            assert!(
                std::env::var_os("CI").is_none(),
                "chromium is needed to read a stream in a browser"
            );
            println!("skipped: chromium is missing");
            None
        }
    }
}

/// Serves the page once it is known, and passes on what it reports.
fn serve_page() -> (
    String,
    std::sync::Arc<std::sync::OnceLock<String>>,
    Receiver<String>,
) {
    let (lines, heard) = channel();
    let page = std::sync::Arc::<std::sync::OnceLock<String>>::default();
    let shared_page = page.clone();
    let address = serve(move |request, stream| {
        let body = match request.path() {
            "/heard" => {
                let _ = lines.send(String::from_utf8_lossy(&request.body).into_owned());
                ""
            }
            _ => shared_page.get().map_or("", String::as_str),
        };
        let length = body.len();
        let _ = write!(
            stream,
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/html\r\ncontent-length: {length}\r\n\r\n{body}"
        );
    });
    (format!("http://{address}"), page, heard)
}

// its session token is spent by the first connection
#[test]
fn a_browser_hears_every_message_in_time() {
    if HostKit::fetched().is_none() {
        return;
    }
    let (origin, page, heard) = serve_page();
    let mut scene = StreamScene::open(&["--cors-origin", &origin]);
    let session = call(
        scene.url(),
        &scene.reader_key,
        "POST",
        "/agent/session",
        &json!({}),
    );
    let session: Value = serde_json::from_str(&session).unwrap();
    let text = std::fs::read_to_string(streams_folder().join("page.html")).unwrap();
    let text = text.replace("__HUB__", scene.url()).replace(
        "__TOKEN__",
        session["data"]["session_token"].as_str().unwrap(),
    );
    page.set(text).unwrap();
    let Some(_browser) = start_browser(scene.scene.folder.path(), &origin) else {
        return;
    };
    let next_line = || heard.recv_timeout(TIMEOUT).expect("a report in time");
    exercise(&mut scene, Reader::new(next_line));
}

/// What one read of `fetch` brings to a slow reader does not depend on the hub: Node joins the chunks that wait, up to its default
/// high-water mark and one more. That is 16 KiB up to Node 20 and 64 KiB from 22 on, which alone fills the bridge's buffer.
/// docs/envelope.md has the same option for users.
const SMALL_READS: &str = "--import=data:text/javascript,import{setDefaultHighWaterMark}from'node:stream';setDefaultHighWaterMark(false,16384)";

/// One life of the public bridge: recovery from its state, then live.
fn start_bridge(scene: &StreamScene, kit: &HostKit) -> RunningProcess {
    let script = streams_folder().join("public_client.mjs");
    let state = scene.scene.folder.path().join("bridge.json");
    let args = [
        SMALL_READS,
        script.to_str().unwrap(),
        scene.url(),
        &scene.reader_key,
        "bob@chorus",
        state.to_str().unwrap(),
    ];
    start_reader(scene, kit.node(), &args)
}

// history asked once, a buffer of 64 000 characters, a cursor that a live message moves
#[test]
fn the_public_bridge_recovers_everything_and_survives_a_burst() {
    let Some(kit) = HostKit::fetched() else {
        return;
    };
    let mut scene = StreamScene::open(&[]);
    scene.send_burst("queued", 1_500, 10);
    let bridge = start_bridge(&scene, &kit);
    let mut reader = Reader::new(|| bridge.next_line());
    reader.hear(1_500);
    scene.send("live");
    reader.hear(1_501);
    scene.send_burst("big", BURST, 9_900);
    reader.hear(1_501 + BURST);
    assert_eq!(reader.heard, scene.sent_words());
    drop(reader);
    drop(bridge);
    scene.kill_and_restart();
    for text in ["missed1", "missed2", "missed3"] {
        scene.send(text);
    }
    let bridge = start_bridge(&scene, &kit);
    let mut reader = Reader::new(|| bridge.next_line());
    reader.hear(3);
    assert_eq!(reader.heard, ["missed1", "missed2", "missed3"]);
}
