//! Streams resume without a gap or a repeat after any network failure (R-25, lessons 15 and 19).

use crate::scripted::{Answer, ScriptedServer, header};
use chorus_client::backoff::Backoff;
use chorus_client::event_stream::EventStream;
use chorus_client::{Error, HubClient};
use chorus_wire::{cursor::Cursor, message::GapEvent, secret::Secret, sse};
use std::time::Duration;

fn client(hub: &ScriptedServer) -> HubClient {
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

/// Reads the ids of the next `count` messages; panics after a timeout instead of hanging.
async fn read_message_ids(stream: &mut EventStream, count: usize) -> Vec<u64> {
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

// R-25: the cursor moves past the gap, so that a new connection does not hear of it again.
#[tokio::test]
async fn a_gap_is_an_event_to_resume_from() {
    let gap = "event: gap\nid: 9\ndata: {\"from\":4,\"to\":9}\n\n";
    let first = format!("{}{gap}", connected());
    let second = format!("{}{}", connected(), message(10));
    let hub = ScriptedServer::start(vec![
        Answer::events(&first, first.len()),
        Answer::events(&second, second.len()).hanging(),
    ])
    .await;
    let mut stream = client(&hub).open_stream("/agent/inbox", Some(Cursor::from_log_seq(4)));
    let event = loop {
        let event = stream.next().await.unwrap();
        if event.name != "connected" {
            break event;
        }
    };
    assert_eq!(event.parse_gap(), Some(GapEvent { from: 4, to: 9 }));
    assert_eq!(stream.last_cursor(), Some(Cursor::from_log_seq(9)));
    assert_eq!(read_message_ids(&mut stream, 1).await, [10]);
}

// failure 19
#[tokio::test]
async fn events_are_complete_for_any_chunk_size() {
    let body = format!("{}{}: keepalive\n\n{}", connected(), message(1), message(2));
    for size in 1..=body.len() {
        let hub = ScriptedServer::start(vec![Answer::events(&body, size).hanging()]).await;
        let mut stream = client(&hub).open_stream("/agent/inbox", None);
        assert_eq!(
            read_message_ids(&mut stream, 2).await,
            [1, 2],
            "pieces of {size} bytes"
        );
    }
}

// R-25, lesson 15: the connection breaks after every single byte in turn.
#[tokio::test]
async fn a_stream_cut_at_any_byte_resumes_without_gap_or_repeat() {
    let first = format!("{}{}{}", connected(), message(1), message(2));
    for cut in 0..=first.len() {
        // As a hub replays: everything after the last id that the client names.
        let complete_events = first.as_bytes()[..cut]
            .windows(2)
            .filter(|w| w == b"\n\n")
            .count()
            .saturating_sub(1) as u64;
        let rest: String = (complete_events + 1..=3).map(message).collect();
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
        let hub = ScriptedServer::start(script).await;
        let mut stream = client(&hub).open_stream("/agent/inbox", None);
        assert_eq!(
            read_message_ids(&mut stream, 3).await,
            [1, 2, 3],
            "cut after {cut} bytes"
        );
        let requests = hub.requests();
        assert_eq!(header(&requests[0], "last-event-id"), None);
        assert_eq!(
            header(&requests[0], "authorization").as_deref(),
            Some("Bearer ca_not-a-real-key")
        );
        assert_eq!(
            header(&requests[1], "last-event-id"),
            (complete_events > 0).then(|| complete_events.to_string()),
            "cut after {cut} bytes"
        );
    }
}

// `closing` is about the connection: when to reconnect. It is not an event for the caller.
#[tokio::test]
async fn a_closing_event_is_obeyed_and_not_returned() {
    let closing = "event: closing\nretry: 1\ndata: {\"reason\":\"shutting_down\"}\n\n";
    let first = format!("{}{}{closing}", connected(), message(1));
    let second = format!("{}{}", connected(), message(2));
    let hub = ScriptedServer::start(vec![
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

// Even if a hub replays too much.
#[tokio::test]
async fn a_replayed_event_is_not_returned_again() {
    let replay: String = (1..=4).map(message).collect();
    let script = vec![
        Answer::events(&format!("{}{}", message(1), message(2)), 64),
        Answer::events(&replay, 64).hanging(),
    ];
    let hub = ScriptedServer::start(script).await;
    let mut stream = client(&hub).open_stream("/agent/inbox", None);
    assert_eq!(read_message_ids(&mut stream, 4).await, [1, 2, 3, 4]);
    assert_eq!(stream.last_cursor(), Some(Cursor::from_log_seq(4)));
}

#[tokio::test]
async fn a_silent_stream_is_reopened() {
    let script = vec![
        Answer::events(&message(1), 64).hanging(),
        Answer::events(&message(2), 64).hanging(),
    ];
    let hub = ScriptedServer::start(script).await;
    let mut stream = client(&hub).open_stream("/agent/inbox", None);
    stream.silence_timeout = Duration::from_millis(50);
    assert_eq!(read_message_ids(&mut stream, 2).await, [1, 2]);
    assert_eq!(
        header(&hub.requests()[1], "last-event-id").as_deref(),
        Some("1")
    );
}

// Lessons 8 and 24.
#[tokio::test]
async fn the_stream_waits_for_a_busy_or_restarting_hub() {
    let script = vec![
        Answer::head(503, "retry-after: 0\r\n", "{}"),
        Answer::head(429, "retry-after: 0\r\n", "{}"),
        Answer::head(502, "", "<html>"),
        Answer::events(&message(1), 64).hanging(),
    ];
    let hub = ScriptedServer::start(script).await;
    let mut stream = client(&hub).open_stream("/agent/inbox", Some(Cursor::from_log_seq(0)));
    assert_eq!(read_message_ids(&mut stream, 1).await, [1]);
    assert_eq!(hub.requests().len(), 4);
}

// TRN-12: an invalid key is not retried.
#[tokio::test]
async fn a_refused_key_ends_the_stream() {
    let refusal = r#"{"success":false,"error":{"code":"ERR_UNAUTHORIZED","message":"no"},"metadata":{"timestamp":"x"}}"#;
    let hub = ScriptedServer::start(vec![
        Answer::events(&message(1), 64),
        Answer::json(401, refusal),
    ])
    .await;
    let mut stream = client(&hub).open_stream("/agent/inbox", None);
    assert_eq!(read_message_ids(&mut stream, 1).await, [1]);
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
async fn an_answer_that_is_no_event_stream_ends_the_stream() {
    let hub = ScriptedServer::start(vec![Answer::head(
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

// `next` is cancel-safe.
#[tokio::test]
async fn cancelling_next_loses_no_event() {
    let body: String = (1..=3).map(message).collect();
    let hub = ScriptedServer::start(vec![Answer::events(&body, 7).hanging()]).await;
    let mut stream = client(&hub).open_stream("/agent/inbox", None);
    let mut ids = read_message_ids(&mut stream, 1).await;
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
