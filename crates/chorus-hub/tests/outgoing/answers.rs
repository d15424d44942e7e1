//! Answers that are read whole.

use crate::receiver::{NameTable, Receiver, http_answer};
use crate::{OWNER, long_deadline_policy, post};
use chorus_hub::delivery::outgoing::{OutgoingClient, OutgoingPolicy, PostError};
use chorus_wire::ErrorCode;
use tokio::io::AsyncWriteExt;

// TRN-16, TRN-17: the body is sent as it was given
#[tokio::test]
async fn a_webhook_gets_one_post_with_the_body_and_the_headers_it_was_given() {
    let receiver = Receiver::answering(http_answer("200 OK", "", r#"{"status":"ok"}"#)).await;
    let client = OutgoingClient::new(long_deadline_policy());
    let url = format!("http://{}/hook/part?x=1", receiver.address);
    let answer = client
        .post(
            OWNER,
            &url,
            &[("X-Trace", "t1")],
            r#"{"envelope":{}}"#.into(),
        )
        .await
        .unwrap();

    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.protocol_reply(),
        Some(serde_json::json!({"status": "ok"}))
    );
    let requests = receiver.requests();
    assert_eq!(requests.len(), 1);
    let (head, body) = requests[0].split_once("\r\n\r\n").unwrap();
    let head = head.to_ascii_lowercase();
    assert!(head.starts_with("post /hook/part?x=1 http/1.1"), "{head}");
    let user_agent = format!("user-agent: chorus/{}", env!("CARGO_PKG_VERSION"));
    for line in [
        "content-type: application/json",
        "accept: application/json",
        "x-trace: t1",
        &user_agent,
    ] {
        assert!(
            head.lines().any(|sent_line| sent_line == line),
            "{line} in {head}"
        );
    }
    assert!(
        !head.contains("accept-encoding") && !head.contains("cookie") && !head.contains("referer"),
        "{head}"
    );
    assert_eq!(body, r#"{"envelope":{}}"#);
}

// lesson 3: SSRF by redirect
#[tokio::test]
async fn a_redirect_is_the_answer_and_is_not_followed() {
    let target = Receiver::answering(http_answer("200 OK", "", r#"{"status":"ok"}"#)).await;
    for status in [
        "301 Moved",
        "302 Found",
        "303 See Other",
        "307 Temporary",
        "308 Permanent",
    ] {
        let location = format!("Location: {}\r\n", target.url());
        let receiver =
            Receiver::answering(http_answer(status, &location, r#"{"status":"ok"}"#)).await;
        let answer = post(
            &OutgoingClient::new(long_deadline_policy()),
            &receiver.url(),
        )
        .await
        .unwrap();
        assert_eq!(answer.status.to_string(), status[..3]);
        assert_eq!(
            answer.protocol_reply(),
            None,
            "a redirect acknowledges nothing"
        );
    }
    assert!(target.requests().is_empty());
}

// R-23
#[tokio::test]
async fn a_protocol_reply_counts_with_2xx_and_4xx_and_with_nothing_else() {
    let ok = r#"{"status":"ok"}"#;
    let refused =
        r#"{"status":"error","error_code":"INVALID_ENVELOPE","detail":"missing sender_culture"}"#;
    let cases = [
        ("200 OK", ok, true),
        ("202 Accepted", ok, true),
        ("400 Bad Request", refused, true),
        ("422 Unprocessable", refused, true),
        ("500 Internal", refused, false),
        ("503 Unavailable", ok, false),
        ("200 OK", "ok", false),
        ("200 OK", "", false),
        ("200 OK", "[]", false),
        ("200 OK", r#"{"status":"fine"}"#, false),
        ("200 OK", r#"{"status":"error"}"#, false),
        ("200 OK", r#"{"status":"ok","status":"ok"}"#, false),
    ];
    for (status, body, is_reply) in cases {
        let receiver = Receiver::answering(http_answer(status, "", body)).await;
        let answer = post(
            &OutgoingClient::new(long_deadline_policy()),
            &receiver.url(),
        )
        .await
        .unwrap();
        assert_eq!(
            answer.protocol_reply().is_some(),
            is_reply,
            "{status} {body}"
        );
    }
}

#[tokio::test]
async fn a_body_that_is_not_utf8_is_an_answer_but_not_json() {
    let mut bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n{\"status\":\"ok".to_vec();
    bytes.extend_from_slice(b"\xff\xfe\"}");
    let receiver = Receiver::answering(bytes).await;
    let answer = post(
        &OutgoingClient::new(long_deadline_policy()),
        &receiver.url(),
    )
    .await
    .unwrap();
    assert_eq!(
        (
            answer.body.len(),
            answer.parse_json(),
            answer.protocol_reply()
        ),
        (17, None, None)
    );
}

#[tokio::test]
async fn a_compressed_answer_is_taken_as_the_bytes_it_is() {
    let receiver = Receiver::answering(http_answer(
        "200 OK",
        "Content-Encoding: gzip\r\n",
        "\u{1f}squeezed",
    ))
    .await;
    let answer = post(
        &OutgoingClient::new(long_deadline_policy()),
        &receiver.url(),
    )
    .await
    .unwrap();
    assert_eq!(&answer.body[..], "\u{1f}squeezed".as_bytes());
}

// Cookies would carry one sender's session into another's delivery.
#[tokio::test]
async fn a_kept_connection_serves_the_next_post_and_no_cookie_comes_back() {
    let connections = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let known = connections.clone();
    let serve = move |mut stream: tokio::net::TcpStream| {
        known.lock().unwrap().push(stream.peer_addr().unwrap());
        async move {
            stream
                .write_all(http_answer("200 OK", "Set-Cookie: s=1\r\n", "{}").as_bytes())
                .await
                .ok()?;
            Some(stream)
        }
    };
    let receiver = Receiver::start("127.0.0.1", serve).await;
    let client = OutgoingClient::new(OutgoingPolicy {
        resolver: NameTable::from_rows(&[&["127.0.0.1"]]),
        ..long_deadline_policy()
    });
    let url = format!("http://kept.test:{}/", receiver.address.port());
    for _ in 0..2 {
        assert_eq!(post(&client, &url).await.unwrap().status, 200);
    }
    let connections = connections.lock().unwrap().clone();
    assert_eq!(connections.len(), 2);
    assert_eq!(connections[0], connections[1], "one connection");
    assert!(
        !receiver.requests()[1]
            .to_ascii_lowercase()
            .contains("cookie")
    );
}

#[tokio::test]
async fn a_header_that_cannot_be_sent_is_an_error_and_nothing_is_sent() {
    let receiver = Receiver::answering(http_answer("200 OK", "", "{}")).await;
    let client = OutgoingClient::new(long_deadline_policy());
    for header in [("X-A", "one\r\nX-B: two"), ("X A", "one"), ("", "one")] {
        let sent = client
            .post(OWNER, &receiver.url(), &[header], "{}".into())
            .await;
        assert!(matches!(sent, Err(PostError::Unreachable(_))));
    }
    assert!(receiver.requests().is_empty());
}

// R-23: the codes of failed deliveries; lesson 4: webhook URLs contain secrets
#[test]
fn every_error_has_its_code_and_a_text_without_an_address() {
    let errors = [
        (PostError::Blocked, ErrorCode::AgentUnreachable),
        (
            PostError::Unreachable("its host name does not resolve"),
            ErrorCode::AgentUnreachable,
        ),
        (PostError::TimedOut, ErrorCode::Timeout),
        (PostError::TooLarge, ErrorCode::AgentUnreachable),
        (PostError::Broken, ErrorCode::AgentUnreachable),
        (PostError::Busy, ErrorCode::AgentUnreachable),
    ];
    for (error, code) in errors {
        assert_eq!(error.code(), code);
        let text = error.to_string();
        assert!(
            !text.contains("://") && !text.contains("127.") && text.len() > 20,
            "{text}"
        );
    }
}
