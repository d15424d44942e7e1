//! Callback events are posted in order, retried, and never sent with a key (CHN-15, CHN-30…33).

use crate::scripted::{Answer, ScriptedServer, header};
use chorus_client::Error;
use chorus_client::backoff::Backoff;
use chorus_client::channel::{CallbackClient, OutgoingEvent, SavedCallback};
use chorus_client::files::IdentityFiles;
use chorus_wire::channel::delivery::ChannelDelivery;
use chorus_wire::secret::Secret;
use std::time::Duration;

fn callback(service: &ScriptedServer) -> CallbackClient {
    let url = Secret::new(format!(
        "{}/channels/ch_1/inbox/tok_not-a-real-one?x=1",
        service.url
    ));
    let fast_backoff = Backoff {
        first_delay: Duration::from_millis(1),
        max_delay: Duration::from_millis(5),
    };
    CallbackClient::from_url(&url)
        .unwrap()
        .with_backoff(fast_backoff)
}

fn ok() -> Answer {
    Answer::json(200, "{}")
}

fn bodies(service: &ScriptedServer) -> Vec<String> {
    let body = |request: String| {
        request
            .split_once("\r\n\r\n")
            .map(|(_, body)| body.to_owned())
            .unwrap_or_default()
    };
    service.requests().into_iter().map(body).collect()
}

#[tokio::test]
async fn an_event_is_retried_before_the_next_is_sent() {
    let broken = Answer {
        pieces: Vec::new(),
        hang: false,
    };
    let busy = Answer::head(503, "retry-after: 0\r\n", "");
    let service = ScriptedServer::start(vec![broken, busy, ok(), ok()]).await;
    let mut callback = callback(&service);
    callback.send_status("searching").await.unwrap();
    callback.send_message("found").await.unwrap();
    let status = r#"{"type":"status","status":"searching"}"#;
    assert_eq!(
        bodies(&service),
        [
            status,
            status,
            status,
            r#"{"type":"message","content":"found"}"#
        ]
    );
    let requests = service.requests();
    let keys: Vec<_> = requests
        .iter()
        .map(|request| header(request, "idempotency-key").unwrap())
        .collect();
    assert!(
        keys[0] == keys[2] && keys[2] != keys[3],
        "one key for one event"
    );
    for request in &requests {
        assert!(
            request.starts_with("POST /channels/ch_1/inbox/tok_not-a-real-one?x=1 HTTP"),
            "the URL is unchanged"
        );
        assert_eq!(header(request, "authorization"), None);
    }
}

#[tokio::test]
async fn a_dead_callback_fails_at_once_and_its_url_is_never_printed() {
    for status in [400, 404, 410, 413] {
        let body = r#"{"success":false,"error":{"code":"ERR_GONE","message":"no"}}"#;
        let service = ScriptedServer::start(vec![Answer::json(status, body)]).await;
        let error = callback(&service).send_message("x").await.unwrap_err();
        assert!(
            matches!(&error, Error::Refused(refusal) if refusal.status == status),
            "{error}"
        );
        assert_eq!(service.requests().len(), 1);
    }
    let url = Secret::new("http://127.0.0.1:9/channels/ch_1/inbox/tok_not-a-real-one");
    let fast_backoff = Backoff {
        first_delay: Duration::from_millis(1),
        max_delay: Duration::from_millis(1),
    };
    let error = CallbackClient::from_url(&url)
        .unwrap()
        .with_backoff(fast_backoff)
        .send_message("x")
        .await
        .unwrap_err();
    assert!(
        matches!(error, Error::Transport(_)) && !error.to_string().contains("tok_"),
        "{error}"
    );
    assert!(
        !format!(
            "{:?}",
            CallbackClient::from_url(&Secret::new("tok_1")).unwrap_err()
        )
        .contains("tok_1")
    );
}

// R-71
#[tokio::test]
async fn a_stream_sends_many_events_over_one_request() {
    let service = ScriptedServer::start(vec![ok()]).await;
    let mut callback = callback(&service);
    let mut stream = callback.open_stream();
    for event in [
        OutgoingEvent::new_status("writing"),
        OutgoingEvent::new_message("one\ntwo"),
        OutgoingEvent::new_status(""),
    ] {
        stream.send_event(&event).await.unwrap();
    }
    stream.finish_stream().await.unwrap();
    let requests = service.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(
        header(&requests[0], "content-type").as_deref(),
        Some("application/x-ndjson")
    );
}

#[tokio::test]
async fn a_refused_stream_returns_the_error_and_accepts_nothing_more() {
    let body = r#"{"success":false,"error":{"code":"ERR_GONE","message":"it expired"}}"#;
    let service = ScriptedServer::start(vec![Answer::json(410, body)]).await;
    let mut callback = callback(&service);
    let mut stream = callback.open_stream();
    let mut refused = None;
    for _ in 0..10_000 {
        if let Err(error) = stream
            .send_event(&OutgoingEvent::new_message("x".repeat(1024)))
            .await
        {
            refused = Some(error);
            break;
        }
    }
    assert!(refused.is_some(), "the stream never fails");
}

// A service may deliver under any channel id, so an id alone does not say whose channel it is.
#[test]
fn a_delivery_replaces_only_the_callback_of_its_own_origin() {
    let folder = tempfile::tempdir().unwrap();
    let files = IdentityFiles::beside_credentials(folder.path().join("config.json"));
    let save = |callback: &str| {
        let body = format!(
            r#"{{"channel":{{"id":"ch_board"}},"message":{{"id":"m","sender":"s","content":"c"}},"callback":"{callback}"}}"#
        );
        let delivery = ChannelDelivery::parse(body.as_bytes()).unwrap();
        SavedCallback::save_callback(&files, &delivery).unwrap();
    };
    save("https://hub.example/channels/ch_board/inbox/tok_1");
    save("https://evil.example/channels/ch_board/inbox/tok_2");
    save("https://hub.example/channels/ch_evil/inbox/tok_3");
    save("https://hub.example:8443/channels/ch_board/inbox/tok_4");
    save("https://evil.example/channels/ch_board/inbox/tok_5");
    let saved = SavedCallback::read_all(&files).unwrap();
    let found: Vec<(String, &str)> = saved
        .iter()
        .map(|saved| {
            (
                saved.origin(),
                saved.callback.expose().rsplit('/').next().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("https://hub.example", "tok_1"),
        ("https://hub.example/channels/ch_evil", "tok_3"),
        ("https://hub.example:8443", "tok_4"),
        ("https://evil.example", "tok_5"),
    ];
    assert_eq!(
        found,
        expected.map(|(origin, token)| (origin.to_owned(), token))
    );
}

// CHN-15: the URL is opaque, so what it has for authentication is used
#[tokio::test]
async fn the_user_information_of_a_callback_is_sent_as_a_header() {
    let service = ScriptedServer::start(vec![ok()]).await;
    let (_, address) = service.url.split_once("://").unwrap();
    let url = Secret::new(format!("http://user:pass@{address}/cb?x=1"));
    let mut callback = CallbackClient::from_url(&url).unwrap();
    callback.send_message("hello").await.unwrap();
    let requests = service.requests();
    assert!(requests[0].starts_with("POST /cb?x=1 HTTP"), "{requests:?}");
    assert_eq!(
        header(&requests[0], "authorization").as_deref(),
        Some("Basic dXNlcjpwYXNz")
    );
}
