//! Direct exchange of envelopes between agents without a hub (TRN-44, ENV-12…14).

use chorus_client::allowed_peers::AllowedPeers;
use chorus_client::direct::{self, PostedEnvelope};
use chorus_client::{Error, HubClient};
use chorus_wire::envelope::Envelope;
use chorus_wire::message::ReceiverReply;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

const HELLO: &str = r#"{"chorus_version":"0.4","sender_id":"alice@chorus.example","original_text":"下午一起喝杯咖啡?","sender_culture":"zh-CN"}"#;

const JSON_TYPE: &str = "content-type: application/json";

/// Starts a receiver that answers every envelope with `reply`.
async fn start_receiver(reply: ReceiverReply) -> (String, mpsc::Receiver<Envelope>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/receive", listener.local_addr().unwrap());
    let (posted_sender, mut posted) = mpsc::channel::<PostedEnvelope>(8);
    let (envelope_sender, received) = mpsc::channel(8);
    let (shutdown_sender, shutdown) = watch::channel(false);
    let allowed_peers = AllowedPeers::new(listener.local_addr().unwrap(), None);
    tokio::spawn(direct::serve_direct(
        listener,
        allowed_peers,
        posted_sender,
        shutdown,
    ));
    tokio::spawn(async move {
        let _keep_running = shutdown_sender;
        while let Some(PostedEnvelope { envelope, answer }) = posted.recv().await {
            let _ = envelope_sender.send(envelope).await;
            let _ = answer.send(reply.clone());
        }
    });
    (url, received)
}

/// Sends one raw request of an agent and returns the status and the body.
async fn send_raw(url: &str, method: &str, body: &[u8]) -> (u16, String) {
    send_with_head(url, method, &["host: localhost", JSON_TYPE], body).await
}

async fn send_with_head(url: &str, method: &str, head: &[&str], body: &[u8]) -> (u16, String) {
    let address = url
        .strip_prefix("http://")
        .unwrap()
        .split('/')
        .next()
        .unwrap()
        .to_owned();
    let mut socket = TcpStream::connect(&address).await.unwrap();
    let head = format!(
        "{method} /any/path HTTP/1.1\r\n{}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        head.join("\r\n"),
        body.len()
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    // A refusing server may close before it has read everything.
    let _ = socket.write_all(body).await;
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).unwrap();
    let status = answer
        .split(' ')
        .nth(1)
        .and_then(|s| s.parse().ok())
        .unwrap_or(0);
    (
        status,
        answer
            .split("\r\n\r\n")
            .nth(1)
            .unwrap_or_default()
            .to_owned(),
    )
}

// ENV-13, ENV-15
#[tokio::test]
async fn a_posted_envelope_arrives_unchanged_and_is_answered_ok() {
    let (url, mut received) = start_receiver(ReceiverReply::ok()).await;
    let envelope = Envelope::parse(HELLO).unwrap();
    assert_eq!(
        direct::send_direct(&url, &envelope, 0).await.unwrap(),
        ReceiverReply::ok()
    );
    assert_eq!(received.recv().await.unwrap(), envelope);
    let (status, body) = send_raw(
        &url,
        "POST",
        format!(r#"{{"envelope":{HELLO}}}"#).as_bytes(),
    )
    .await;
    assert_eq!((status, body.as_str()), (200, r#"{"status":"ok"}"#));
}

// R-91
#[tokio::test]
async fn a_web_page_cannot_post_an_envelope() {
    let (url, mut received) = start_receiver(ReceiverReply::ok()).await;
    let port = url.rsplit_once(':').unwrap().1.split('/').next().unwrap();
    let body = format!(r#"{{"envelope":{HELLO}}}"#);
    let own_host = format!("host: 127.0.0.1:{port}");
    let other_port = "origin: http://127.0.0.1:1".to_owned();
    for (status, extra) in [
        (415, vec![own_host.as_str()]),
        (415, vec![&own_host, "content-type: text/plain"]),
        (
            415,
            vec![&own_host, "content-type: text/plain; a=application/json"],
        ),
        (415, vec![&own_host, JSON_TYPE, "content-type: text/plain"]),
        (
            403,
            vec![&own_host, JSON_TYPE, "origin: https://evil.example"],
        ),
        (403, vec![&own_host, JSON_TYPE, "origin: null"]),
        (403, vec![&own_host, JSON_TYPE, &other_port]),
        (403, vec![JSON_TYPE, "host: rebind.evil.example"]),
        (403, vec![JSON_TYPE, "host: localhost.evil.example"]),
        (
            403,
            vec![JSON_TYPE, "host: localhost", "host: evil.example"],
        ),
    ] {
        let (answered, answer) = send_with_head(&url, "POST", &extra, body.as_bytes()).await;
        assert_eq!(answered, status, "{extra:?}: {answer}");
        assert!(
            answer.contains(r#""status":"error""#),
            "{extra:?}: {answer}"
        );
    }
    assert!(received.try_recv().is_err(), "nothing was passed on");
    let own_origin = format!("origin: http://localhost:{port}");
    for extra in [
        vec![
            own_host.as_str(),
            "content-type: Application/JSON; charset=utf-8",
        ],
        vec!["host: [::1]", "content-type: application/envelope+json"],
        vec![&own_host, JSON_TYPE, &own_origin],
    ] {
        let (answered, answer) = send_with_head(&url, "POST", &extra, body.as_bytes()).await;
        assert_eq!(answered, 200, "{extra:?}: {answer}");
    }
}

// ENV-01, ENV-02, ENV-12, ENV-14
#[tokio::test]
async fn an_invalid_envelope_is_refused_with_a_protocol_error() {
    let (url, mut received) = start_receiver(ReceiverReply::ok()).await;
    let without = HELLO.replace(r#","sender_culture":"zh-CN""#, "");
    let (status, body) = send_raw(
        &url,
        "POST",
        format!(r#"{{"envelope":{without}}}"#).as_bytes(),
    )
    .await;
    let printed =
        r#"{"status":"error","error_code":"INVALID_ENVELOPE","detail":"missing sender_culture"}"#;
    assert_eq!((status, body.as_str()), (400, printed));
    let other = HELLO.replace("0.4", "0.9");
    for (body, code) in [
        (format!(r#"{{"envelope":{other}}}"#), "UNSUPPORTED_VERSION"),
        (HELLO.to_owned(), "INVALID_ENVELOPE"),
        ("{".to_owned(), "INVALID_ENVELOPE"),
        (
            format!(r#"{{"envelope":{HELLO},"receiver_id":"x"}}"#),
            "INVALID_ENVELOPE",
        ),
        ("[".repeat(5_000), "INVALID_ENVELOPE"),
        (r#"{"envelope":null}"#.to_owned(), "INVALID_ENVELOPE"),
    ] {
        let (status, answer) = send_raw(&url, "POST", body.as_bytes()).await;
        assert_eq!(status, 400, "{body}");
        assert!(answer.contains(code), "{body} → {answer}");
    }
    let (status, answer) = send_raw(&url, "POST", b"\xff\xfe{}").await;
    assert!(
        status == 400 && answer.contains("INVALID_ENVELOPE"),
        "{answer}"
    );
    let (status, _) = send_raw(&url, "GET", b"").await;
    assert_eq!(status, 405);
    assert!(
        received.try_recv().is_err(),
        "no invalid envelope reaches the agent"
    );
}

// R-37
#[tokio::test]
async fn an_oversize_request_is_refused() {
    let (url, _received) = start_receiver(ReceiverReply::ok()).await;
    let (status, _) = send_raw(
        &url,
        "POST",
        &vec![b' '; chorus_wire::limits::BODY_BYTES + 1],
    )
    .await;
    assert_eq!(status, 413);
}

// R-23: a refusal is an answer, not an outage.
#[tokio::test]
async fn a_receivers_refusal_reaches_the_sender() {
    let refusal = ReceiverReply::error("ADAPTATION_FAILED", "no words for it");
    let (url, _received) = start_receiver(refusal.clone()).await;
    assert_eq!(
        direct::send_direct(&url, &Envelope::parse(HELLO).unwrap(), 3)
            .await
            .unwrap(),
        refusal
    );
}

// TRN-25
#[tokio::test]
async fn an_unreachable_peer_is_a_transport_error() {
    let closed = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let error = direct::send_direct(
        &format!("http://{closed}/receive"),
        &Envelope::parse(HELLO).unwrap(),
        0,
    )
    .await
    .unwrap_err();
    assert!(matches!(error, Error::Transport(_)), "{error:?}");
    assert!(HubClient::new("not a url", None).is_err());
}

// Answers in progress are written before the receiver stops.
#[tokio::test]
async fn a_stopping_receiver_still_answers_accepted_envelopes() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/receive", listener.local_addr().unwrap());
    let (posted_sender, mut posted) = mpsc::channel::<PostedEnvelope>(8);
    let (shutdown_sender, shutdown) = watch::channel(false);
    let allowed_peers = AllowedPeers::new(listener.local_addr().unwrap(), None);
    let receiving = tokio::spawn(direct::serve_direct(
        listener,
        allowed_peers,
        posted_sender,
        shutdown,
    ));
    let sending = tokio::spawn(async move {
        direct::send_direct(&url, &Envelope::parse(HELLO).unwrap(), 0).await
    });
    let accepted = posted.recv().await.unwrap();
    shutdown_sender.send_replace(true);
    accepted.answer.send(ReceiverReply::ok()).unwrap();
    tokio::time::timeout(std::time::Duration::from_secs(20), receiving)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(sending.await.unwrap().unwrap(), ReceiverReply::ok());
}
