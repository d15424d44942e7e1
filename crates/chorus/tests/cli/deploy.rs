//! `deploy/nginx.conf` in front of real hubs: as shipped, except for addresses and paths.

use crate::actors::{Hub, TIMEOUT};
use crate::crash::{envelope, register_client, register_with_key};
use crate::nginx::{FrontConnection, NginxFront, open_inbox};
use crate::servers::{Servers, await_condition, free_address, hub_address};
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

async fn start_two_hubs(servers: &Servers) -> [Hub; 2] {
    [
        servers.hub("a", "127.0.0.1:0"),
        servers.hub("b", "127.0.0.1:0"),
    ]
}

/// An address on which no hub listens, as after a hub was stopped.
fn unused_address() -> SocketAddr {
    free_address()
}

fn message(text: &str) -> String {
    let envelope: Value = serde_json::from_str(&envelope("alice", text).to_json()).unwrap();
    json!({"receiver_id": "bob@chorus", "envelope": envelope}).to_string()
}

fn parse_json(answer: &HttpAnswer) -> Value {
    serde_json::from_slice(&answer.body)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&answer.body)))
}

//
#[tokio::test(flavor = "multi_thread")]
async fn nginx_passes_events_on_at_once_and_keeps_idle_streams_open() {
    let Some(servers) = Servers::start() else {
        return;
    };
    let hubs = start_two_hubs(&servers).await;
    let Some(front) = NginxFront::start(
        &servers,
        [
            hub_address(&hubs[0]),
            hub_address(&hubs[1]),
            unused_address(),
        ],
    ) else {
        return;
    };
    let alice = register_client(&front.url(), "alice").await;
    let (_, key) = register_with_key(&front.url(), "bob").await;
    let mut streams = [open_inbox(front.at, &key), open_inbox(front.at, &key)];
    let sent = alice
        .send_call(ApiCall::post("/messages", message("small")))
        .await
        .unwrap();
    assert_eq!(
        (sent.status, &parse_json(&sent)["data"]["delivery"]),
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
async fn nginx_streams_callback_lines_and_logs_no_secret() {
    let Some(servers) = Servers::start() else {
        return;
    };
    let hubs = start_two_hubs(&servers).await;
    let Some(front) = NginxFront::start(
        &servers,
        [
            hub_address(&hubs[0]),
            hub_address(&hubs[1]),
            unused_address(),
        ],
    ) else {
        return;
    };
    let alice = register_client(&front.url(), "alice").await;
    let bob = register_client(&front.url(), "bob").await;
    let post = async |path: String, body: Value| {
        parse_json(
            &alice
                .send_call(ApiCall::post(path, body.to_string()))
                .await
                .unwrap(),
        )
    };
    let channel = post("/channels".into(), json!({"name": "weather"})).await;
    let channel = format!("/channels/{}", channel["data"]["id"].as_str().unwrap());
    let member = post(
        format!("{channel}/members"),
        json!({"agent_id": "bob@chorus"}),
    )
    .await;
    let name = member["data"]["name"]
        .as_str()
        .unwrap_or_else(|| panic!("{member}"));
    let accept = format!("{channel}/members/{name}/accept");
    let accepted = bob.send_call(ApiCall::post(accept, "{}".into())).await;
    assert_eq!(accepted.unwrap().status, 200);
    let callback = post(format!("{channel}/members/{name}/callback"), json!({})).await;
    let callback = callback["data"]["callback"].as_str().unwrap().to_owned();
    let path = &callback[callback.find("/channels/").unwrap()..];
    let token = callback.rsplit('/').next().unwrap();
    let mut connection = FrontConnection::open(
        front.at,
        &format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked"
        ),
    );
    for content in ["first", "second"] {
        connection.send_chunk(&format!(
            "{}\n",
            json!({"type": "message", "content": content})
        ));
        crate::faults::eventually("the line arrives while the request is open", async || {
            let past = alice
                .send_call(ApiCall::get(format!("{channel}/messages")))
                .await
                .unwrap();
            String::from_utf8(past.body).unwrap().contains(content)
        })
        .await;
    }
    connection.0.write_all(b"0\r\n\r\n").unwrap();
    connection.read_until("\"events\":2");
    await_condition("the request is logged", || {
        front.read_logs().contains("POST 200")
    });
    let log = front.read_logs();
    assert!(!log.contains(token) && !log.contains("/channels"), "{log}");
}

//
#[tokio::test(flavor = "multi_thread")]
async fn behind_nginx_large_requests_get_the_hubs_errors_and_never_disable_a_hub() {
    let Some(servers) = Servers::start() else {
        return;
    };
    let hubs = start_two_hubs(&servers).await;
    let Some(front) = NginxFront::start(
        &servers,
        [
            hub_address(&hubs[0]),
            hub_address(&hubs[1]),
            unused_address(),
        ],
    ) else {
        return;
    };
    let alice = register_client(&front.url(), "alice").await;
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
                "a large request gets an answer"
            );
        }
    }
    for size in [300_000, 3_000_000] {
        let answer = alice
            .send_call(ApiCall::post("/messages", "x".repeat(size)))
            .await
            .unwrap();
        assert_eq!(
            (answer.status, &parse_json(&answer)["error"]["code"]),
            (413, &json!("ERR_TOO_LARGE"))
        );
        let is_from_hub = parse_json(&answer)["metadata"]["timestamp"].is_string();
        assert_eq!(is_from_hub, size < 1_000_000, "{size}");
    }
    let long = ApiCall {
        headers: vec![("x-long", "x".repeat(20_000))],
        ..ApiCall::get("/agents")
    };
    let answer = alice.send_call(long).await.unwrap();
    assert_eq!(
        (answer.status, &parse_json(&answer)["error"]["code"]),
        (431, &json!("ERR_HEADERS_TOO_LARGE"))
    );
}

/// A server that reads every request and closes the connection; returns its address and the count of requests.
fn start_broken_server() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let request_count = Arc::<AtomicUsize>::default();
    let count = request_count.clone();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let _ = socket.read(&mut [0; 64 * 1024]);
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    (address, request_count)
}

// a request with an idempotency key may be retried, one without may not.
#[tokio::test(flavor = "multi_thread")]
async fn nginx_retries_only_requests_with_an_idempotency_key() {
    let Some(servers) = Servers::start() else {
        return;
    };
    let mut hubs = start_two_hubs(&servers).await;
    let (bad, request_count) = start_broken_server();
    let Some(front) = NginxFront::start(
        &servers,
        [hub_address(&hubs[0]), hub_address(&hubs[1]), bad],
    ) else {
        return;
    };
    let (_, key) = register_with_key(&hubs[0].url, "alice").await;
    let bob = register_client(&hubs[0].url, "bob").await;
    let alice = HubClient::new(&front.url(), Some(Secret::new(&key))).unwrap();
    hubs[1].process.send_signal("KILL");
    hubs[1].process.await_exit();
    // Sends until the request meets the broken server, which nginx skips for two seconds after each failure. Returns that
    // answer, and the number of successful answers before it.
    let ask = async |call: ApiCall| {
        let deadline = Instant::now() + TIMEOUT;
        let before = request_count.load(Ordering::SeqCst);
        let mut answered = 0;
        loop {
            let answer = alice.send_call(call.clone()).await.unwrap();
            if request_count.load(Ordering::SeqCst) > before {
                return (answer, answered);
            }
            assert!(
                answer.status < 300,
                "a stopped hub causes no error: {answer:?}"
            );
            assert!(
                Instant::now() < deadline,
                "the broken server was never asked"
            );
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
        "a request with a key is retried"
    );
    let (answer, answered) = ask(ApiCall::post("/messages", message("plain"))).await;
    assert_eq!(
        (answer.status, &parse_json(&answer)["error"]["code"]),
        (502, &json!("ERR_UNAVAILABLE"))
    );
    let texts = crate::crash::fetch_all_texts(&bob).await;
    assert_eq!(texts.values().filter(|text| *text == "keyed").count(), 1);
    assert_eq!(
        texts.values().filter(|text| *text == "plain").count(),
        answered,
        "each answered message is stored, and no other"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_nginx_an_unready_hub_still_gets_requests() {
    let Some(mut servers) = Servers::start() else {
        return;
    };
    let hubs = start_two_hubs(&servers).await;
    let Some(front) = NginxFront::start(
        &servers,
        [
            hub_address(&hubs[0]),
            hub_address(&hubs[1]),
            unused_address(),
        ],
    ) else {
        return;
    };
    let alice = register_client(&front.url(), "alice").await;
    let _bob = register_client(&front.url(), "bob").await;
    let ready = async || alice.send_call(ApiCall::get("/ready")).await.unwrap();
    assert_eq!(ready().await.status, 200);
    servers.stop_nats();
    crate::faults::eventually("both hubs report that the bus is away", async || {
        ready().await.status == 503 && ready().await.status == 503
    })
    .await;
    for turn in 0..10 {
        let answer = ready().await;
        assert_eq!(
            (answer.status, &parse_json(&answer)["error"]["message"]),
            (503, &json!("the bus is away"))
        );
        let sent = alice
            .send_call(ApiCall::post("/messages", message(&turn.to_string())))
            .await
            .unwrap();
        assert_eq!(
            sent.status,
            202,
            "messages are still accepted: {}",
            String::from_utf8_lossy(&sent.body)
        );
    }
    servers.stop_postgres();
    crate::faults::eventually("the hubs report the missing database", async || {
        ready().await.status == 503
    })
    .await;
    for _ in 0..10 {
        let answer = alice.send_call(ApiCall::get("/agents")).await.unwrap();
        assert_eq!(answer.status, 503, "the answer is the hub's own");
        assert_eq!(parse_json(&answer)["error"]["code"], "ERR_UNAVAILABLE");
    }
}

fn curl(front: &NginxFront, args: &[&str]) -> String {
    let target = args
        .last()
        .unwrap()
        .replace("FRONT", &format!("https://{}", front.secure));
    let mut command = Command::new("curl");
    command
        .args(["-sk", "--http2", "--max-time", "60"])
        .args(&args[..args.len() - 1])
        .arg(target);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn nginx_serves_tls_and_http_2_with_the_prepared_lines() {
    let Some(servers) = Servers::start() else {
        return;
    };
    let hubs = start_two_hubs(&servers).await;
    let Some(front) = NginxFront::start(
        &servers,
        [
            hub_address(&hubs[0]),
            hub_address(&hubs[1]),
            unused_address(),
        ],
    ) else {
        return;
    };
    let (_, key) = register_with_key(&front.url(), "alice").await;
    let page = curl(&front, &["-w", "%{http_version}", "FRONT/"]);
    assert!(
        page.contains("<!doctype html>") && page.ends_with('2'),
        "the console, over HTTP/2: {page}"
    );
    let bearer = format!("Authorization: Bearer {key}");
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
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

// D-82: the first hub creates the frame stream.
#[test]
fn hubs_that_start_at_once_on_an_empty_bus_all_start() {
    let Some(servers) = Servers::start() else {
        return;
    };
    let hubs = std::thread::scope(|scope| {
        let starting =
            ["a", "b", "c", "d"].map(|name| scope.spawn(|| servers.hub(name, "127.0.0.1:0")));
        starting.map(|thread| thread.join().is_ok())
    });
    assert_eq!(hubs, [true; 4]);
}
