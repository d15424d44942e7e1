//! Invalid requests: unknown paths, wrong methods and oversized input are refused in JSON and have no effect.

use crate::support::actors::{Answer, STEP_TIMEOUT, registration};
use crate::support::hub::Hub;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Bytes to the hub as they are; status, head and body of what comes back before it closes.
pub async fn raw(hub: &Hub, bytes: &[u8]) -> (u16, String, String) {
    let mut socket = TcpStream::connect(hub.addr()).await.unwrap();
    // The hub may answer and close before it has read everything.
    let _ = socket.write_all(bytes).await;
    let mut answer = Vec::new();
    let reading = async {
        while let Ok(1..) = socket.read_buf(&mut answer).await {
            if complete(&answer) {
                break;
            }
        }
    };
    crate::support::hub::within(STEP_TIMEOUT, reading)
        .await
        .expect("an answer or a close");
    let text = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .unwrap_or(0);
    (status, head.to_ascii_lowercase(), body.to_owned())
}

fn complete(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer).to_ascii_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    length.is_some_and(|length: usize| body.len() >= length)
}

#[track_caller]
pub fn is_failure(body: &str, code: &str) {
    let value: Value = serde_json::from_str(body).unwrap_or_else(|e| panic!("{e}: {body:?}"));
    assert_eq!(
        (&value["success"], &value["error"]["code"]),
        (&json!(false), &json!(code)),
        "{body}"
    );
}

memory_story!(an_expectation_refuses_no_request, |hub| async {
    // D-124: RFC 9110, section 10.1.1, permits 417 for an unknown one and does not demand it
    for (name, expectation) in [("alice", "100-continue"), ("bob", "200-banana")] {
        let body = registration(&format!("{name}@chorus")).to_string();
        let request = format!(
            "POST /register HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nexpect: {expectation}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let (status, head, rest) = raw(&hub, request.as_bytes()).await;
        let is_made = status == 201 || (status == 100 && rest.starts_with("HTTP/1.1 201 "));
        assert!(is_made, "{expectation}: {head}\n{rest}");
    }
});

story!(an_unknown_path_is_a_json_404, |hub| async {
    // TRN-39, R-13, R-36; failure 26
    for path in [
        "/nothing",
        "/agents/a/b",
        "/messages/a/b/c",
        "/register/",
        "/.well-known/other",
        "//",
        "/agent/",
    ] {
        hub.anonymous()
            .get(path)
            .await
            .refused(404, "ERR_NOT_FOUND");
    }
});

story!(
    a_wrong_method_is_a_json_405_that_names_the_right_ones,
    |hub| async {
        // failure 26
        for (method, path) in [
            ("GET", "/register"),
            ("GET", "/messages"),
            ("DELETE", "/messages"),
            ("PUT", "/agents"),
            ("POST", "/health"),
            ("POST", "/agent/inbox"),
            ("POST", "/.well-known/chorus.json"),
            ("PATCH", "/agents/alice"),
        ] {
            let answer = Answer::of(hub.anonymous().request(method, path)).await;
            assert_eq!(answer.status, 405, "{method} {path}: {answer:?}");
            answer.refused(405, "ERR_METHOD_NOT_ALLOWED");
            assert!(!answer.header("allow").is_empty(), "{method} {path}");
        }
    }
);

story!(every_reply_has_a_request_id_of_its_own, |hub| async {
    let mut seen = std::collections::HashSet::new();
    for path in [
        "/health",
        "/nothing",
        "/agents",
        "/agent/inbox",
        "/.well-known/chorus.json",
        "/discover",
        "/metrics",
    ] {
        let answer = hub.anonymous().get(path).await;
        assert!(
            seen.insert(answer.header("x-request-id").to_owned()),
            "{path}: {answer:?}"
        );
    }
    assert!(!seen.contains(""));
});

story!(a_body_too_large_is_a_json_413, |hub| async {
    // failure 26
    let alice = hub.agent("alice").await;
    let body = " ".repeat(256 * 1024 + 1);
    for path in ["/messages", "/register"] {
        alice
            .post_text(path, body.clone())
            .await
            .refused(413, "ERR_TOO_LARGE");
    }
    let mut just = registration("just-fits@chorus").to_string();
    just.push_str(&" ".repeat(256 * 1024 - just.len()));
    hub.anonymous().post_text("/register", just).await.data(201);
    // Announced but never sent: refused at once, not after a deadline.
    let announced =
        b"POST /register HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999999\r\n\r\n{";
    let (status, _, text) = raw(&hub, announced).await;
    assert_eq!(status, 413);
    is_failure(&text, "ERR_TOO_LARGE");
    // Sent in chunks without an announcement.
    let mut chunked =
        b"POST /register HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for _ in 0..70 {
        chunked.extend_from_slice(format!("1000\r\n{}\r\n", " ".repeat(0x1000)).as_bytes());
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    assert_eq!(raw(&hub, &chunked).await.0, 413);
});

story!(headers_too_large_are_refused, |hub| async {
    // "Bad input": oversize headers
    let long = format!(
        "GET /health HTTP/1.1\r\nhost: localhost\r\nx-padding: {}\r\n\r\n",
        "x".repeat(20_000)
    );
    let (status, _, body) = raw(&hub, long.as_bytes()).await;
    assert_eq!(status, 431);
    is_failure(&body, "ERR_HEADERS_TOO_LARGE");
    let huge = format!(
        "GET /health HTTP/1.1\r\nhost: localhost\r\nx-padding: {}\r\n\r\n",
        "x".repeat(2_000_000)
    );
    assert!(matches!(raw(&hub, huge.as_bytes()).await.0, 0 | 400 | 431));
    let many = format!(
        "GET /health HTTP/1.1\r\nhost: localhost\r\n{}\r\n",
        "x: y\r\n".repeat(5_000)
    );
    assert!(matches!(raw(&hub, many.as_bytes()).await.0, 0 | 400 | 431));
    let address = format!(
        "GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n",
        "x".repeat(40_000)
    );
    assert!(matches!(
        raw(&hub, address.as_bytes()).await.0,
        404 | 414 | 431
    ));
    hub.anonymous().get("/health").await.data(200);
});

story!(what_is_not_http_is_refused_or_closed, |hub| async {
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"HELO hub\r\n\r\n",
        b"GET /health HTTP/9.9\r\n\r\n",
        b"POST /register HTTP/1.1\r\nhost: localhost\r\ncontent-length: nonsense\r\n\r\n",
        b"POST /register HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nZZ\r\n",
        b"POST /register HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n{}   ",
    ] {
        let (status, _, body) = raw(&hub, bytes).await;
        assert!(status == 0 || (400..=505).contains(&status) && status != 500, "{status} {body}");
    }
    hub.anonymous().get("/health").await.data(200);
});

story!(a_request_names_its_host_once, |hub| async {
    // D-124, RFC 9112 section 3.2; POST /messages does not go through the router
    let send = "content-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
    for request in [
        "GET /health HTTP/1.1\r\n\r\n",
        "GET /health HTTP/1.1\r\nhost: localhost\r\nhost: localhost\r\n\r\n",
        "GET /health HTTP/1.0\r\nhost: localhost\r\nhost: localhost\r\n\r\n",
        "GET /nothing HTTP/1.1\r\n\r\n",
        &format!("POST /messages HTTP/1.1\r\n{send}"),
        &format!("POST /messages HTTP/1.1\r\nhost: localhost\r\nhost: other\r\n{send}"),
    ] {
        let (status, head, body) = raw(&hub, request.as_bytes()).await;
        assert_eq!(status, 400, "{request}: {head} {body}");
        is_failure(&body, "ERR_VALIDATION");
        assert!(body.contains("Host"), "{body}");
    }
    let simple_check = b"GET /health HTTP/1.0\r\n\r\n";
    assert_eq!(raw(&hub, simple_check).await.0, 200);
    let once = format!("POST /messages HTTP/1.1\r\nhost: localhost\r\n{send}");
    assert_eq!(raw(&hub, once.as_bytes()).await.0, 401);
});

sqlite_story!(two_lengths_of_a_body_hide_no_request, |hub| async {
    // D-124: the chunks count, and the connection ends, so that nothing after the body can be taken for a request
    let hidden = "GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let head = "POST /register HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let chunked = "transfer-encoding: chunked\r\n";
    for lengths in [
        format!("content-length: 5\r\n{chunked}"),
        format!("{chunked}content-length: 5\r\n"),
    ] {
        let request = format!("{head}{lengths}\r\n0\r\n\r\n{hidden}");
        let mut socket = TcpStream::connect(hub.addr()).await.unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // The close may be a reset, because the hidden request is not read.
        let reading = async { while let Ok(1..) = socket.read_buf(&mut answer).await {} };
        crate::support::hub::within(STEP_TIMEOUT, reading)
            .await
            .expect("the connection is closed");
        let answer = String::from_utf8_lossy(&answer).to_ascii_lowercase();
        assert!(answer.starts_with("http/1.1 400"), "{answer}");
        assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
        assert_eq!(answer.matches("http/1.1 ").count(), 1, "{answer}");
    }
    // The same coding named twice is one.
    let body = registration("chunked@chorus").to_string();
    let size = body.len();
    let doubled = format!("{head}{chunked}{chunked}\r\n{size:x}\r\n{body}\r\n0\r\n\r\n");
    assert_eq!(raw(&hub, doubled.as_bytes()).await.0, 201);
});

story!(a_failed_request_has_no_partial_effect, |hub| async {
    // "Bad input": a body that stops half-way registers no agent
    let body = registration("half@chorus").to_string();
    let mut socket = TcpStream::connect(hub.addr()).await.unwrap();
    let head = format!(
        "POST /register HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    socket
        .write_all(format!("{head}{}", &body[..body.len() - 1]).as_bytes())
        .await
        .unwrap();
    drop(socket);
    hub.anonymous()
        .get("/agents/half@chorus")
        .await
        .refused(404, "ERR_AGENT_NOT_FOUND");
});

story!(no_secret_is_echoed_by_an_error, |hub| async {
    // invariant 12
    let guess = "ca_not-a-real-key-but-somebodys-guess";
    let caller = hub.anonymous().with_key(guess);
    for path in [
        "/agent/messages",
        "/nothing",
        "/agent/inbox?session=cs_my-guess",
        "/agent/inbox?token=my-guess",
    ] {
        let answer = caller.get(path).await;
        assert!(!answer.text.contains("guess"), "{path}: {}", answer.text);
    }
});

story!(
    a_head_request_answers_like_get_without_a_body,
    |hub| async {
        let bob = hub.agent("bob").await;
        for path in ["/health", "/agents", "/agent/messages", "/agent/inbox"] {
            let answer = Answer::of(bob.request("HEAD", path)).await;
            assert_eq!(
                (answer.status, answer.text.as_str()),
                (200, ""),
                "{path}: {answer:?}"
            );
        }
        let bare = Answer::of(bob.request("POST", "/agent/session")).await;
        assert!(
            bare.data(200)["session_token"].is_string(),
            "a request without a body needs none"
        );
    }
);

sqlite_story!(
    what_the_parser_refuses_is_a_json_error_that_names_the_cause,
    |hub| async {
        // TRN-39, failure 26
        let long = "x".repeat(100_000);
        let long_line = format!("GET /{long} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        let long_head =
            format!("GET /health HTTP/1.1\r\nhost: localhost\r\nx-long: {long}\r\n\r\n");
        for (request, status, code, cause) in [
            ("G@(T / HTTP/1.1\r\n\r\n", 400, "ERR_VALIDATION", "method"),
            (
                "GET /health HTTP/9.9\r\n\r\n",
                400,
                "ERR_VALIDATION",
                "version",
            ),
            (
                "GET /health HTTP/1.1\r\nhost hub\r\n\r\n",
                400,
                "ERR_VALIDATION",
                "header",
            ),
            (long_line.as_str(), 414, "ERR_URI_TOO_LONG", "path"),
            (long_head.as_str(), 431, "ERR_HEADERS_TOO_LARGE", "headers"),
        ] {
            let (found, head, body) = raw(&hub, request.as_bytes()).await;
            assert_eq!(found, status, "{head} {body}");
            is_failure(&body, code);
            assert!(body.contains(cause), "{body}");
            assert!(
                head.contains("content-type: application/json") && head.contains("x-request-id: "),
                "{head}"
            );
        }
        // A good request before the malformed one is answered, and the next connection is served.
        let both = b"GET /ready HTTP/1.1\r\nhost: localhost\r\n\r\nnonsense\r\n\r\n";
        assert_eq!(raw(&hub, both).await.0, 200);
        hub.anonymous().get("/health").await.data(200);
    }
);

sqlite_story!(
    a_head_that_never_ends_is_refused_before_it_takes_much_memory,
    |hub| async {
        // with a buffer of the HTTP library's own size, a connection could hold 400 KB
        let padding = "x".repeat(chorus_wire::limits::CONNECTION_BUFFER_BYTES);
        let head = format!("GET /health HTTP/1.1\r\nhost: localhost\r\nx-padding: {padding}");
        let (status, _, body) = raw(&hub, head.as_bytes()).await;
        assert_eq!(status, 431, "{body}");
        is_failure(&body, "ERR_HEADERS_TOO_LARGE");
    }
);

story!(a_key_in_the_url_is_refused_on_every_route, |hub| async {
    //
    let alice = hub.agent("alice").await;
    for path in ["/agent/messages", "/agent/inbox", "/agents", "/health"] {
        let message = alice
            .get(&format!("{path}?token=my-guess"))
            .await
            .refused(400, "ERR_DEPRECATED");
        assert!(message.contains("/agent/session"), "{path}: {message}");
    }
    // A parameter whose name only begins like it is another one.
    alice.get("/agents?tokens=1").await.data(200);
});

story!(
    a_frame_error_names_the_parameter_or_header_at_fault,
    |hub| async {
        // FRM-88
        let alice = hub.agent("alice").await;
        let answers = [
            (
                "filter",
                alice
                    .get("/handles/~alice/stream?filter=kind:x&filter=kind:y")
                    .await,
            ),
            ("token", alice.get("/handles/~alice/stream?token=x").await),
            // The same name, written otherwise.
            ("token", alice.get("/handles/~alice/stream?%74oken=x").await),
        ];
        for (field, answer) in answers {
            assert_eq!(
                (answer.status, answer.json()),
                (
                    400,
                    json!({"code": "field-invalid", "field": field, "message": answer.json()["message"]})
                )
            );
        }
    }
);

story!(
    a_client_without_a_key_is_told_so_before_its_query_is_read,
    |hub| async {
        // TRN-24
        for path in [
            "/agent/messages?limit=0",
            "/activity?limit=0",
            "/events?since=x",
        ] {
            hub.anonymous()
                .get(path)
                .await
                .refused(401, "ERR_UNAUTHORIZED");
        }
    }
);
