//! Streams resume: no gap, no repeat, whatever the network does to them (R-25, lessons 15 and 19).

use crate::scripted::{Answer, Scripted, header};
use chorus_client::backoff::Backoff;
use chorus_client::event_stream::EventStream;
use chorus_client::{Error, HubClient};
use chorus_wire::{cursor::Cursor, secret::Secret, sse};
use std::time::Duration;

fn client(hub: &Scripted) -> HubClient {
    let mut client = HubClient::new(&hub.url, Some(Secret::new("ca_not-a-real-key"))).unwrap();
    client.backoff = Backoff {
        first_delay: Duration::from_millis(1),
        max_delay: Duration::from_millis(5),
    };
    client
}

fn message(id: u64) -> String {
    let data = format!(r#"{{"n":{id},"text":"grüße 你好"}}"#);
    String::from_utf8(sse::format_event("message", Some(Cursor::from_log_seq(id)), &data).to_vec())
        .unwrap()
}

fn connected() -> String {
    "event: connected\nretry: 1\ndata: {}\n\n".to_owned()
}

/// The next `count` messages' ids; an answer that never comes is a failure, not a hang.
async fn heard(stream: &mut EventStream, count: usize) -> Vec<u64> {
    let mut ids = Vec::new();
    while ids.len() < count {
        let event = tokio::time::timeout(Duration::from_secs(20), stream.next())
            .await
            .expect("the stream hangs")
            .unwrap();
        if event.name == "message" {
            assert!(event.data.contains("grüße 你好"), "{}", event.data);
            ids.push(event.cursor.unwrap().seq);
        }
    }
    ids
}

// Lesson 19
#[tokio::test]
async fn events_are_whole_however_the_stream_is_cut() {
    let body = format!("{}{}: keepalive\n\n{}", connected(), message(1), message(2));
    for size in 1..=body.len() {
        let hub = Scripted::start(vec![Answer::events(&body, size).hanging()]).await;
        let mut stream = client(&hub).open_stream("/agent/inbox", None);
        assert_eq!(
            heard(&mut stream, 2).await,
            [1, 2],
            "pieces of {size} bytes"
        );
    }
}

// R-25, lesson 15: the connection breaks after every single byte in turn.
#[tokio::test]
async fn a_stream_cut_at_any_byte_goes_on_without_gap_or_repeat() {
    let first = format!("{}{}{}", connected(), message(1), message(2));
    for cut in 0..=first.len() {
        // What a hub does: after the last id the reader names, everything; before it, nothing.
        let seen = first.as_bytes()[..cut]
            .windows(2)
            .filter(|w| w == b"\n\n")
            .count()
            .saturating_sub(1) as u64;
        let rest: String = (seen + 1..=3).map(message).collect();
        let script = vec![
            Answer {
                pieces: vec![
                    Answer::events("", 1).pieces.remove(0),
                    first.as_bytes()[..cut].to_vec(),
                ],
                hang: false,
            },
            Answer::events(&format!("{}{rest}", connected()), 4096).hanging(),
        ];
        let hub = Scripted::start(script).await;
        let mut stream = client(&hub).open_stream("/agent/inbox", None);
        assert_eq!(
            heard(&mut stream, 3).await,
            [1, 2, 3],
            "cut after {cut} bytes"
        );
        let asked = hub.asked();
        assert_eq!(header(&asked[0], "last-event-id"), None);
        assert_eq!(
            header(&asked[0], "authorization").as_deref(),
            Some("Bearer ca_not-a-real-key")
        );
        assert_eq!(
            header(&asked[1], "last-event-id"),
            (seen > 0).then(|| seen.to_string()),
            "cut after {cut} bytes"
        );
    }
}

// It is about the connection: when to come back, and nothing that anybody said.
#[tokio::test]
async fn a_farewell_is_heeded_and_not_handed_out() {
    let farewell = "event: closing\nretry: 1\ndata: {\"reason\":\"shutting_down\"}\n\n";
    let first = format!("{}{}{farewell}", connected(), message(1));
    let second = format!("{}{}", connected(), message(2));
    let hub = Scripted::start(vec![
        Answer::events(&first, 64),
        Answer::events(&second, 64).hanging(),
    ])
    .await;
    let mut stream = client(&hub).open_stream("/agent/inbox", None);
    let mut names = Vec::new();
    while names.len() < 4 {
        let event = tokio::time::timeout(Duration::from_secs(20), stream.next())
            .await
            .expect("the stream hangs");
        names.push(event.unwrap().name);
    }
    assert_eq!(names, ["connected", "message", "connected", "message"]);
}

// A hub that replays too much is not believed.
#[tokio::test]
async fn what_was_heard_is_not_handed_out_again() {
    let again: String = (1..=4).map(message).collect();
    let script = vec![
        Answer::events(&format!("{}{}", message(1), message(2)), 64),
        Answer::events(&again, 64).hanging(),
    ];
    let hub = Scripted::start(script).await;
    let mut stream = client(&hub).open_stream("/agent/inbox", None);
    assert_eq!(heard(&mut stream, 4).await, [1, 2, 3, 4]);
    assert_eq!(stream.last_cursor(), Some(Cursor::from_log_seq(4)));
}

#[tokio::test]
async fn a_stream_that_falls_silent_is_opened_again() {
    let script = vec![
        Answer::events(&message(1), 64).hanging(),
        Answer::events(&message(2), 64).hanging(),
    ];
    let hub = Scripted::start(script).await;
    let mut stream = client(&hub).open_stream("/agent/inbox", None);
    stream.silence_timeout = Duration::from_millis(50);
    assert_eq!(heard(&mut stream, 2).await, [1, 2]);
    assert_eq!(
        header(&hub.asked()[1], "last-event-id").as_deref(),
        Some("1")
    );
}

// Lessons 8 and 24: busy hubs are waited for.
#[tokio::test]
async fn a_hub_that_is_busy_or_restarting_is_waited_for() {
    let script = vec![
        Answer::head(503, "retry-after: 0\r\n", "{}"),
        Answer::head(429, "retry-after: 0\r\n", "{}"),
        Answer::head(502, "", "<html>"),
        Answer::events(&message(1), 64).hanging(),
    ];
    let hub = Scripted::start(script).await;
    let mut stream = client(&hub).open_stream("/agent/inbox", Some(Cursor::from_log_seq(0)));
    assert_eq!(heard(&mut stream, 1).await, [1]);
    assert_eq!(hub.asked().len(), 4);
}

// TRN-12: a key that is no longer valid is not tried for ever.
#[tokio::test]
async fn a_refused_key_ends_the_stream() {
    let refusal = r#"{"success":false,"error":{"code":"ERR_UNAUTHORIZED","message":"no"},"metadata":{"timestamp":"x"}}"#;
    let hub = Scripted::start(vec![
        Answer::events(&message(1), 64),
        Answer::json(401, refusal),
    ])
    .await;
    let mut stream = client(&hub).open_stream("/agent/inbox", None);
    assert_eq!(heard(&mut stream, 1).await, [1]);
    let error = tokio::time::timeout(Duration::from_secs(20), stream.next())
        .await
        .unwrap()
        .unwrap_err();
    assert!(
        matches!(&error, Error::Refused(r) if r.status == 401 && r.code == "ERR_UNAUTHORIZED"),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_page_that_is_no_stream_ends_it() {
    let hub = Scripted::start(vec![Answer::head(
        200,
        "content-type: text/html\r\n",
        "<html>",
    )])
    .await;
    let error = client(&hub)
        .open_stream("/agent/inbox", None)
        .next()
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Answer(_)), "{error:?}");
}

// Cancelling a wait loses nothing.
#[tokio::test]
async fn a_wait_that_is_given_up_loses_no_event() {
    let body: String = (1..=3).map(message).collect();
    let hub = Scripted::start(vec![Answer::events(&body, 7).hanging()]).await;
    let mut stream = client(&hub).open_stream("/agent/inbox", None);
    let mut ids = heard(&mut stream, 1).await;
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    while ids.len() < 3 && tokio::time::Instant::now() < deadline {
        tokio::select! {
            biased;
            event = stream.next() => ids.push(event.unwrap().cursor.unwrap().seq),
            () = tokio::task::yield_now() => {}
        }
    }
    assert_eq!(ids, [1, 2, 3]);
}
