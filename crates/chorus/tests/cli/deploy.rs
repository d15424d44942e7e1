//! The front that `deploy/nginx.conf` describes, before real hubs: as it is shipped but for addresses and paths.

use crate::actors::{Hub, Ongoing, PATIENCE};
use crate::crash::{envelope, join, join_with_key};
use crate::deploy_unit::shipped;
use crate::servers::{Servers, address, await_so, free, there};
use chorus_client::Client;
use chorus_client::http::{Answer, Call};
use chorus_wire::secret::Secret;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

pub struct Front {
    nginx: Ongoing,
    pub at: SocketAddr,
    pub secure: SocketAddr,
    folder: PathBuf,
}

fn nginx() -> Option<PathBuf> {
    let places = ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"].map(PathBuf::from);
    let found = places.into_iter().find(|place| place.exists());
    if there("nginx", found.is_some()) {
        found
    } else {
        None
    }
}

fn certificate(folder: &Path) {
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "1",
        ])
        .args([
            "-subj",
            "/CN=hub.example",
            "-keyout",
            "key.pem",
            "-out",
            "cert.pem",
        ])
        .current_dir(folder)
        .output();
    assert!(
        made.unwrap().status.success(),
        "openssl makes a certificate"
    );
}

/// The shipped file with the addresses of this machine, the folder for its paths, and the lines for TLS taken in.
fn configured(folder: &Path, hubs: [SocketAddr; 3], at: SocketAddr, secure: SocketAddr) -> String {
    let there = folder.display();
    let own = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|what| format!("{what}_temp_path {there}/{what};"));
    let mut text = shipped("nginx.conf");
    for (shipped, here) in [
        ("hub-a:3000", hubs[0].to_string()),
        ("hub-b:3000", hubs[1].to_string()),
        ("hub-c:3000", hubs[2].to_string()),
        ("/var/log/nginx", there.to_string()),
        ("listen 80 ", format!("listen {at} ")),
        ("# listen 443 ", format!("listen {secure} ")),
        ("# ssl_certificate ", "ssl_certificate ".to_owned()),
        ("# ssl_certificate_key ", "ssl_certificate_key ".to_owned()),
        ("/etc/chorus", there.to_string()),
        ("http {", format!("http {{\n{}", own.join("\n"))),
    ] {
        assert!(text.contains(shipped), "{shipped}");
        text = text.replace(shipped, &here);
    }
    text
}

/// Its workers go on if it is killed.
impl Drop for Front {
    fn drop(&mut self) {
        self.nginx.signal("TERM");
        self.nginx.await_end();
    }
}

impl Front {
    pub fn start(servers: &Servers, hubs: [SocketAddr; 3]) -> Option<Self> {
        let program = nginx()?;
        let folder = servers.folder.path().join("nginx");
        std::fs::create_dir(&folder).unwrap();
        certificate(&folder);
        let (at, secure) = (free(), free());
        std::fs::write(
            folder.join("nginx.conf"),
            configured(&folder, hubs, at, secure),
        )
        .unwrap();
        let mut command = Command::new(program);
        command
            .arg("-p")
            .arg(&folder)
            .arg("-c")
            .arg(folder.join("nginx.conf"));
        command
            .arg("-g")
            .arg(format!("daemon off; pid {}/pid;", folder.display()));
        let process = Ongoing::start(command);
        await_so("nginx takes its configuration", || {
            TcpStream::connect(at).is_ok()
        });
        Some(Self {
            nginx: process,
            at,
            secure,
            folder,
        })
    }

    fn url(&self) -> String {
        format!("http://{}", self.at)
    }

    fn log(&self) -> String {
        ["access.log", "error.log"]
            .map(|name| std::fs::read_to_string(self.folder.join(name)).unwrap())
            .concat()
    }
}

/// One connection to the front, as bytes.
struct Line(TcpStream, String);

impl Line {
    fn open(at: SocketAddr, head: &str) -> Self {
        let mut socket = TcpStream::connect(at).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
            .write_all(format!("{head}\r\n\r\n").as_bytes())
            .unwrap();
        Self(socket, String::new())
    }

    fn say(&mut self, text: &str) {
        self.0
            .write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
            .unwrap();
    }

    /// Reads until this was said after what was awaited before; a connection that ends earlier fails the test.
    fn until(&mut self, text: &str) -> String {
        let mut buffer = [0; 4096];
        while !self.1.contains(text) {
            let count = self.0.read(&mut buffer).unwrap();
            assert!(count > 0, "it ended before {text}: {}", self.1);
            self.1.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
        let end = self.1.find(text).unwrap() + text.len();
        self.1.drain(..end).collect()
    }
}

fn inbox(at: SocketAddr, key: &str) -> Line {
    let mut line = Line::open(
        at,
        &format!("GET /agent/inbox HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer {key}"),
    );
    line.until("connected");
    line
}

async fn two(servers: &Servers) -> [Hub; 2] {
    [
        servers.hub("a", "127.0.0.1:0"),
        servers.hub("b", "127.0.0.1:0"),
    ]
}

/// Nobody is there: a hub that was taken down.
fn nobody() -> SocketAddr {
    free()
}

fn message(text: &str) -> String {
    let envelope: Value = serde_json::from_str(&envelope("alice", text).to_json()).unwrap();
    json!({"receiver_id": "bob@chorus", "envelope": envelope}).to_string()
}

fn read(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&answer.body)))
}

//
#[tokio::test(flavor = "multi_thread")]
async fn nginx_shows_an_event_when_it_is_written_and_keeps_a_stream_on_which_nothing_is_said() {
    let Some(servers) = Servers::start() else {
        return;
    };
    let hubs = two(&servers).await;
    let Some(front) = Front::start(&servers, [address(&hubs[0]), address(&hubs[1]), nobody()])
    else {
        return;
    };
    let (alice, (_, key)) = (
        join(&front.url(), "alice").await,
        join_with_key(&front.url(), "bob").await,
    );
    let mut streams = [inbox(front.at, &key), inbox(front.at, &key)];
    let sent = alice
        .ask(Call::post("/messages", message("small")))
        .await
        .unwrap();
    assert_eq!(
        (sent.status, &read(&sent)["data"]["delivery"]),
        (200, &json!("delivered_sse"))
    );
    for stream in &mut streams {
        stream.until("small");
    }
    for stream in &mut streams {
        stream.until("\n: ");
    }
    alice
        .send("bob@chorus", &envelope("alice", "later"), 0)
        .await
        .unwrap();
    for stream in &mut streams {
        stream.until("later");
    }
}

//
#[tokio::test(flavor = "multi_thread")]
async fn nginx_passes_the_lines_of_a_callback_on_one_by_one_and_writes_no_secret_down() {
    let Some(servers) = Servers::start() else {
        return;
    };
    let hubs = two(&servers).await;
    let Some(front) = Front::start(&servers, [address(&hubs[0]), address(&hubs[1]), nobody()])
    else {
        return;
    };
    let (alice, _bob) = (
        join(&front.url(), "alice").await,
        join(&front.url(), "bob").await,
    );
    let post = async |path: String, body: Value| {
        read(&alice.ask(Call::post(path, body.to_string())).await.unwrap())
    };
    let room = post("/channels".into(), json!({"name": "weather"})).await;
    let room = format!("/channels/{}", room["data"]["id"].as_str().unwrap());
    let member = post(format!("{room}/members"), json!({"agent_id": "bob@chorus"})).await;
    let name = member["data"]["name"]
        .as_str()
        .unwrap_or_else(|| panic!("{member}"));
    let callback = post(format!("{room}/members/{name}/callback"), json!({})).await;
    let callback = callback["data"]["callback"]
        .as_str()
        .unwrap_or_else(|| panic!("{callback}"))
        .to_owned();
    let (path, token) = (
        &callback[callback.find("/channels/").unwrap()..],
        callback.rsplit('/').next().unwrap(),
    );
    let mut line = Line::open(
        front.at,
        &format!(
            "POST {path} HTTP/1.1\r\nhost: hub\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked"
        ),
    );
    for said in ["first", "second"] {
        line.say(&format!(
            "{}\n",
            json!({"type": "message", "content": said})
        ));
        crate::faults::eventually("it is heard while more may follow", async || {
            let past = alice
                .ask(Call::get(format!("{room}/messages")))
                .await
                .unwrap();
            String::from_utf8(past.body).unwrap().contains(said)
        })
        .await;
    }
    line.0.write_all(b"0\r\n\r\n").unwrap();
    line.until("\"events\":2");
    await_so("it is written down", || front.log().contains("POST 200"));
    let log = front.log();
    assert!(!log.contains(token) && !log.contains("/channels"), "{log}");
}

//
#[tokio::test(flavor = "multi_thread")]
async fn behind_nginx_the_hub_says_what_is_too_large_and_no_stranger_takes_it_out() {
    let Some(servers) = Servers::start() else {
        return;
    };
    let hubs = two(&servers).await;
    let Some(front) = Front::start(&servers, [address(&hubs[0]), address(&hubs[1]), nobody()])
    else {
        return;
    };
    let alice = join(&front.url(), "alice").await;
    let stranger = Client::new(&front.url(), None).unwrap();
    for turn in 0..20 {
        let large = Call::post("/messages", "x".repeat(1_000_000));
        let keyed = Call {
            idempotency_key: Some(format!("k{turn}")),
            ..large.clone()
        };
        for call in [large, keyed] {
            assert_eq!(
                stranger.ask(call).await.unwrap().status,
                401,
                "whoever sends much is answered"
            );
        }
    }
    for size in [300_000, 3_000_000] {
        let answer = alice
            .ask(Call::post("/messages", "x".repeat(size)))
            .await
            .unwrap();
        assert_eq!(
            (answer.status, &read(&answer)["error"]["code"]),
            (413, &json!("ERR_TOO_LARGE"))
        );
        let by_the_hub = read(&answer)["metadata"]["timestamp"].is_string();
        assert_eq!(by_the_hub, size < 1_000_000, "{size}");
    }
    let long = Call {
        headers: vec![("x-long", "x".repeat(20_000))],
        ..Call::get("/agents")
    };
    let answer = alice.ask(long).await.unwrap();
    assert_eq!(
        (answer.status, &read(&answer)["error"]["code"]),
        (431, &json!("ERR_HEADERS_TOO_LARGE"))
    );
}

/// One that takes every request and breaks off: how many it took.
fn broken() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (at, taken) = (
        listener.local_addr().unwrap(),
        Arc::<AtomicUsize>::default(),
    );
    let count = taken.clone();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let _ = socket.read(&mut [0; 64 * 1024]);
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    (at, taken)
}

// one under its key may be sent again, one without may not.
#[tokio::test(flavor = "multi_thread")]
async fn nginx_sends_only_those_again_that_a_hub_would_know_again() {
    let Some(servers) = Servers::start() else {
        return;
    };
    let mut hubs = two(&servers).await;
    let (bad, taken) = broken();
    let Some(front) = Front::start(&servers, [address(&hubs[0]), address(&hubs[1]), bad]) else {
        return;
    };
    let (_, key) = join_with_key(&hubs[0].url, "alice").await;
    let bob = join(&hubs[0].url, "bob").await;
    let alice = Client::new(&front.url(), Some(Secret::new(&key))).unwrap();
    hubs[1].process.signal("KILL");
    hubs[1].process.await_end();
    // Asks until the one that breaks off was met, which is left out for two seconds after each time: the answer, and how many
    // there were before it.
    let ask = async |call: Call| {
        let (until, before, mut answered) =
            (Instant::now() + PATIENCE, taken.load(Ordering::SeqCst), 0);
        loop {
            let answer = alice.ask(call.clone()).await.unwrap();
            if taken.load(Ordering::SeqCst) > before {
                return (answer, answered);
            }
            assert!(
                answer.status < 300,
                "a hub that is gone is not noticed: {answer:?}"
            );
            assert!(Instant::now() < until, "it was never met");
            answered += 1;
        }
    };
    assert_eq!(ask(Call::get("/discover")).await.0.status, 200);
    let keyed = Call {
        idempotency_key: Some("once".into()),
        ..Call::post("/messages", message("keyed"))
    };
    assert!(
        ask(keyed).await.0.status < 300,
        "one under its key is sent on"
    );
    let (answer, answered) = ask(Call::post("/messages", message("plain"))).await;
    assert_eq!(
        (answer.status, &read(&answer)["error"]["code"]),
        (502, &json!("ERR_UNAVAILABLE"))
    );
    let texts = crate::crash::history(&bob).await;
    assert_eq!(texts.values().filter(|text| *text == "keyed").count(), 1);
    assert_eq!(
        texts.values().filter(|text| *text == "plain").count(),
        answered,
        "each that was answered, and no other"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_nginx_ready_is_the_hubs_word_and_takes_nobody_out() {
    let Some(mut servers) = Servers::start() else {
        return;
    };
    let hubs = two(&servers).await;
    let Some(front) = Front::start(&servers, [address(&hubs[0]), address(&hubs[1]), nobody()])
    else {
        return;
    };
    let (alice, _bob) = (
        join(&front.url(), "alice").await,
        join(&front.url(), "bob").await,
    );
    let ready = async || alice.ask(Call::get("/ready")).await.unwrap();
    assert_eq!(ready().await.status, 200);
    servers.nats_down();
    crate::faults::eventually("both say that the bus is away", async || {
        ready().await.status == 503 && ready().await.status == 503
    })
    .await;
    for turn in 0..10 {
        let answer = ready().await;
        assert_eq!(
            (answer.status, &read(&answer)["error"]["message"]),
            (503, &json!("the bus is away"))
        );
        let sent = alice
            .ask(Call::post("/messages", message(&turn.to_string())))
            .await
            .unwrap();
        assert_eq!(
            sent.status,
            202,
            "messages go on: {}",
            String::from_utf8_lossy(&sent.body)
        );
    }
    servers.postgres_down();
    crate::faults::eventually("the database is missed", async || {
        ready().await.status == 503
    })
    .await;
    for _ in 0..10 {
        let answer = alice.ask(Call::get("/agents")).await.unwrap();
        assert_eq!(answer.status, 503, "it is the hub that refuses, for now");
        assert_eq!(read(&answer)["error"]["code"], "ERR_UNAVAILABLE");
    }
}

fn curl(front: &Front, words: &[&str]) -> String {
    let target = words
        .last()
        .unwrap()
        .replace("FRONT", &format!("https://{}", front.secure));
    let mut command = Command::new("curl");
    command
        .args(["-sk", "--http2", "--max-time", "60"])
        .args(&words[..words.len() - 1])
        .arg(target);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn nginx_offers_tls_and_http_2_with_the_lines_that_are_there_for_it() {
    let Some(servers) = Servers::start() else {
        return;
    };
    let hubs = two(&servers).await;
    let Some(front) = Front::start(&servers, [address(&hubs[0]), address(&hubs[1]), nobody()])
    else {
        return;
    };
    let (_, key) = join_with_key(&front.url(), "alice").await;
    let page = curl(&front, &["-w", "%{http_version}", "FRONT/"]);
    assert!(
        page.contains("<!doctype html>") && page.ends_with('2'),
        "the console, over HTTP/2: {page}"
    );
    let (bearer, call) = (
        format!("Authorization: Bearer {key}"),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
    );
    let accept = "Accept: application/json, text/event-stream";
    let tools = curl(
        &front,
        &[
            "-H",
            &bearer,
            "-H",
            accept,
            "-H",
            "MCP-Protocol-Version: 2025-11-25",
            "--json",
            &call.to_string(),
            "FRONT/mcp",
        ],
    );
    assert!(tools.contains("chorus_send"), "{tools}");
}

// D-82: the memory of frames is made once, by whoever comes first.
#[test]
fn hubs_that_start_together_on_nothing_all_start() {
    let Some(servers) = Servers::start() else {
        return;
    };
    let hubs = std::thread::scope(|scope| {
        let starting =
            ["a", "b", "c", "d"].map(|name| scope.spawn(|| servers.hub(name, "127.0.0.1:0")));
        starting.map(|one| one.join().is_ok())
    });
    assert_eq!(hubs, [true; 4]);
}
