//! The front that `deploy/nginx.conf` describes, before real hubs: as shipped except for addresses and paths.

use crate::actors::{Hub, PATIENCE};
use crate::crash::{envelope, join, join_with_key};
use crate::nginx::{FrontConnection, NginxFront, open_inbox};
use crate::servers::{Servers, address, await_so, free};
use chorus_client::HubClient;
use chorus_client::http::{ApiCall, HttpAnswer};
use chorus_wire::secret::Secret;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

async fn two(servers: &Servers) -> [Hub; 2] {
    [
        servers.hub("a", "127.0.0.1:0"),
        servers.hub("b", "127.0.0.1:0"),
    ]
}

/// An address on which no hub listens, as after a hub was taken down.
fn unused_address() -> SocketAddr {
    free()
}

fn message(text: &str) -> String {
    let envelope: Value = serde_json::from_str(&envelope("alice", text).to_json()).unwrap();
    json!({"receiver_id": "bob@chorus", "envelope": envelope}).to_string()
}

fn read(answer: &HttpAnswer) -> Value {
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
    let Some(front) = NginxFront::start(
        &servers,
        [address(&hubs[0]), address(&hubs[1]), unused_address()],
    ) else {
        return;
    };
    let (alice, (_, key)) = (
        join(&front.url(), "alice").await,
        join_with_key(&front.url(), "bob").await,
    );
    let mut streams = [open_inbox(front.at, &key), open_inbox(front.at, &key)];
    let sent = alice
        .send_call(ApiCall::post("/messages", message("small")))
        .await
        .unwrap();
    assert_eq!(
        (sent.status, &read(&sent)["data"]["delivery"]),
        (200, &json!("delivered_sse"))
    );
    for stream in &mut streams {
        stream.read_until("small");
    }
    for stream in &mut streams {
        stream.read_until("\n: ");
    }
    alice
        .send_message("bob@chorus", &envelope("alice", "later"), 0)
        .await
        .unwrap();
    for stream in &mut streams {
        stream.read_until("later");
    }
}

//
#[tokio::test(flavor = "multi_thread")]
async fn nginx_passes_the_lines_of_a_callback_on_one_by_one_and_writes_no_secret_down() {
    let Some(servers) = Servers::start() else {
        return;
    };
    let hubs = two(&servers).await;
    let Some(front) = NginxFront::start(
        &servers,
        [address(&hubs[0]), address(&hubs[1]), unused_address()],
    ) else {
        return;
    };
    let (alice, _bob) = (
        join(&front.url(), "alice").await,
        join(&front.url(), "bob").await,
    );
    let post = async |path: String, body: Value| {
        read(
            &alice
                .send_call(ApiCall::post(path, body.to_string()))
                .await
                .unwrap(),
        )
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
    let mut line = FrontConnection::open(
        front.at,
        &format!(
            "POST {path} HTTP/1.1\r\nhost: hub\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked"
        ),
    );
    for said in ["first", "second"] {
        line.send_chunk(&format!(
            "{}\n",
            json!({"type": "message", "content": said})
        ));
        crate::faults::eventually("it is heard while more may follow", async || {
            let past = alice
                .send_call(ApiCall::get(format!("{room}/messages")))
                .await
                .unwrap();
            String::from_utf8(past.body).unwrap().contains(said)
        })
        .await;
    }
    line.0.write_all(b"0\r\n\r\n").unwrap();
    line.read_until("\"events\":2");
    await_so("it is written down", || {
        front.read_logs().contains("POST 200")
    });
    let log = front.read_logs();
    assert!(!log.contains(token) && !log.contains("/channels"), "{log}");
}

//
#[tokio::test(flavor = "multi_thread")]
async fn behind_nginx_the_hub_says_what_is_too_large_and_no_stranger_takes_it_out() {
    let Some(servers) = Servers::start() else {
        return;
    };
    let hubs = two(&servers).await;
    let Some(front) = NginxFront::start(
        &servers,
        [address(&hubs[0]), address(&hubs[1]), unused_address()],
    ) else {
        return;
    };
    let alice = join(&front.url(), "alice").await;
    let stranger = HubClient::new(&front.url(), None).unwrap();
    for turn in 0..20 {
        let large = ApiCall::post("/messages", "x".repeat(1_000_000));
        let keyed = ApiCall {
            idempotency_key: Some(format!("k{turn}")),
            ..large.clone()
        };
        for call in [large, keyed] {
            assert_eq!(
                stranger.send_call(call).await.unwrap().status,
                401,
                "a client that sends much is answered"
            );
        }
    }
    for size in [300_000, 3_000_000] {
        let answer = alice
            .send_call(ApiCall::post("/messages", "x".repeat(size)))
            .await
            .unwrap();
        assert_eq!(
            (answer.status, &read(&answer)["error"]["code"]),
            (413, &json!("ERR_TOO_LARGE"))
        );
        let by_the_hub = read(&answer)["metadata"]["timestamp"].is_string();
        assert_eq!(by_the_hub, size < 1_000_000, "{size}");
    }
    let long = ApiCall {
        headers: vec![("x-long", "x".repeat(20_000))],
        ..ApiCall::get("/agents")
    };
    let answer = alice.send_call(long).await.unwrap();
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
    let Some(front) = NginxFront::start(&servers, [address(&hubs[0]), address(&hubs[1]), bad])
    else {
        return;
    };
    let (_, key) = join_with_key(&hubs[0].url, "alice").await;
    let bob = join(&hubs[0].url, "bob").await;
    let alice = HubClient::new(&front.url(), Some(Secret::new(&key))).unwrap();
    hubs[1].process.signal("KILL");
    hubs[1].process.await_end();
    // Asks until the one that breaks off was met, which is left out for two seconds after each time: the answer, and how many
    // there were before it.
    let ask = async |call: ApiCall| {
        let (until, before, mut answered) =
            (Instant::now() + PATIENCE, taken.load(Ordering::SeqCst), 0);
        loop {
            let answer = alice.send_call(call.clone()).await.unwrap();
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
    assert_eq!(ask(ApiCall::get("/discover")).await.0.status, 200);
    let keyed = ApiCall {
        idempotency_key: Some("once".into()),
        ..ApiCall::post("/messages", message("keyed"))
    };
    assert!(
        ask(keyed).await.0.status < 300,
        "one under its key is sent on"
    );
    let (answer, answered) = ask(ApiCall::post("/messages", message("plain"))).await;
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
async fn behind_nginx_ready_is_the_hubs_word_and_takes_no_hub_out() {
    let Some(mut servers) = Servers::start() else {
        return;
    };
    let hubs = two(&servers).await;
    let Some(front) = NginxFront::start(
        &servers,
        [address(&hubs[0]), address(&hubs[1]), unused_address()],
    ) else {
        return;
    };
    let (alice, _bob) = (
        join(&front.url(), "alice").await,
        join(&front.url(), "bob").await,
    );
    let ready = async || alice.send_call(ApiCall::get("/ready")).await.unwrap();
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
            .send_call(ApiCall::post("/messages", message(&turn.to_string())))
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
        let answer = alice.send_call(ApiCall::get("/agents")).await.unwrap();
        assert_eq!(answer.status, 503, "it is the hub that refuses, for now");
        assert_eq!(read(&answer)["error"]["code"], "ERR_UNAVAILABLE");
    }
}

fn curl(front: &NginxFront, words: &[&str]) -> String {
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
    let Some(front) = NginxFront::start(
        &servers,
        [address(&hubs[0]), address(&hubs[1]), unused_address()],
    ) else {
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

// D-82: the frame stream is created once, by the hub that comes first.
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
