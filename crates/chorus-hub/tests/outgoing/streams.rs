//! Answers that come as events (TRN-52…54, R-37).

use crate::receiver::{Receiver, http};
use crate::{hasty, patient};
use chorus_hub::delivery::outgoing::{
    OutgoingClient, OutgoingPolicy, PostError, StreamedAnswer, WebhookAnswer,
};
use std::time::Duration;

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nConnection: close\r\n\r\n";

async fn open(out: &OutgoingClient, receiver: &Receiver) -> Result<StreamedAnswer, PostError> {
    out.post_streaming(&receiver.url(), &[], "{}".into()).await
}

/// The names of the events, and how the stream ended.
async fn read(policy: OutgoingPolicy, receiver: &Receiver) -> (Vec<String>, Result<(), PostError>) {
    let answer = open(&OutgoingClient::new(policy), receiver).await.unwrap();
    let StreamedAnswer::Events(mut events) = answer else {
        panic!("a whole answer")
    };
    let mut names = Vec::new();
    loop {
        match events.next_event().await {
            Some(Ok(event)) => names.push(event.name),
            Some(Err(why)) => return (names, Err(why)),
            None => return (names, Ok(())),
        }
    }
}

// TRN-53
#[tokio::test]
async fn events_come_in_order_as_they_were_sent() {
    let said = format!(
        "{HEAD}event: chunk\ndata: {{\"text\":\"你\"}}\n\nevent: chunk\r\ndata: b\r\n\r\nevent: done\ndata: {{}}\n\n"
    );
    let receiver = Receiver::saying(said).await;
    let answer = open(&OutgoingClient::new(patient()), &receiver)
        .await
        .unwrap();
    let StreamedAnswer::Events(mut events) = answer else {
        panic!("a whole answer")
    };
    let mut got = Vec::new();
    while let Some(event) = events.next_event().await {
        let event = event.unwrap();
        got.push((event.name, event.data));
    }
    let expected = [
        ("chunk", "{\"text\":\"你\"}"),
        ("chunk", "b"),
        ("done", "{}"),
    ];
    assert_eq!(
        got,
        expected.map(|(name, data)| (name.to_owned(), data.to_owned()))
    );
    assert!(
        receiver.heard()[0]
            .to_ascii_lowercase()
            .contains("accept: text/event-stream")
    );
}

#[tokio::test]
async fn the_first_event_is_there_before_the_stream_ends() {
    let receiver = Receiver::stalling_after(format!("{HEAD}event: chunk\ndata: a\n\n")).await;
    let StreamedAnswer::Events(mut events) = open(&OutgoingClient::new(patient()), &receiver)
        .await
        .unwrap()
    else {
        panic!("a whole answer")
    };
    assert_eq!(events.next_event().await.unwrap().unwrap().data, "a");
}

// R-29: an ordinary answer, or a refusal, comes whole
#[tokio::test]
async fn what_is_not_a_stream_comes_whole() {
    let events = "Content-Type: text/event-stream\r\n";
    for (status, kind, code) in [
        ("200 OK", "", 200),
        ("400 Bad", events, 400),
        ("302 Found", events, 302),
    ] {
        let receiver = Receiver::saying(http(status, kind, r#"{"status":"ok"}"#)).await;
        let StreamedAnswer::Whole(answer) = open(&OutgoingClient::new(patient()), &receiver)
            .await
            .unwrap()
        else {
            panic!("a stream")
        };
        assert_eq!(
            answer,
            WebhookAnswer {
                status: code,
                body: r#"{"status":"ok"}"#.into()
            }
        );
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_says_so_after_its_events() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 500\r\n\r\n";
    let receiver = Receiver::saying(format!("{head}event: chunk\ndata: a\n\nevent: do")).await;
    assert_eq!(
        read(patient(), &receiver).await,
        (vec!["chunk".into()], Err(PostError::Broken))
    );
}

#[tokio::test]
async fn an_event_without_its_blank_line_is_not_an_event() {
    let receiver = Receiver::saying(format!(
        "{HEAD}event: chunk\ndata: a\n\nevent: done\ndata: b\n"
    ))
    .await;
    assert_eq!(
        read(patient(), &receiver).await,
        (vec!["chunk".into()], Ok(()))
    );
}

#[tokio::test]
async fn a_stream_may_not_pause_for_longer_than_the_deadline() {
    let receiver = Receiver::stalling_after(format!("{HEAD}event: chunk\ndata: a\n\n")).await;
    assert_eq!(
        read(hasty(), &receiver).await,
        (vec!["chunk".into()], Err(PostError::TimedOut))
    );
}

#[tokio::test]
async fn a_stream_that_never_pauses_ends_at_its_own_deadline() {
    let receiver =
        Receiver::trickling_after(HEAD, Duration::from_millis(20), ": still here\n").await;
    let policy = OutgoingPolicy {
        stream_deadline: Duration::from_millis(300),
        ..patient()
    };
    assert_eq!(
        read(policy, &receiver).await,
        (vec![], Err(PostError::TimedOut))
    );
}

#[tokio::test]
async fn a_stream_is_bounded_as_a_whole_and_in_each_event() {
    let many = "event: chunk\ndata: abcdefgh\n\n".repeat(100);
    let receiver = Receiver::saying(format!("{HEAD}{many}")).await;
    let (_, ended) = read(
        OutgoingPolicy {
            max_stream_bytes: 1_000,
            ..patient()
        },
        &receiver,
    )
    .await;
    assert_eq!(ended, Err(PostError::TooLarge));

    let receiver = Receiver::saying(format!("{HEAD}data: {}\n\n", "a".repeat(70_000))).await;
    assert_eq!(
        read(patient(), &receiver).await,
        (vec![], Err(PostError::TooLarge))
    );
}

#[tokio::test]
async fn a_stream_that_is_not_utf8_is_broken_after_what_was_complete() {
    let mut said = HEAD.as_bytes().to_vec();
    said.extend_from_slice(b"event: chunk\ndata: a\n\ndata: \xff\n\n");
    let receiver = Receiver::saying(said).await;
    assert_eq!(
        read(patient(), &receiver).await,
        (vec!["chunk".into()], Err(PostError::Broken))
    );
}

#[tokio::test]
async fn a_dropped_stream_gives_its_place_back() {
    let receiver = Receiver::stalling_after(format!("{HEAD}event: chunk\ndata: a\n\n")).await;
    let out = OutgoingClient::new(OutgoingPolicy {
        max_in_flight: 1,
        ..patient()
    });
    for _ in 0..3 {
        let StreamedAnswer::Events(mut events) = open(&out, &receiver).await.unwrap() else {
            panic!("a whole answer")
        };
        assert_eq!(events.next_event().await.unwrap().unwrap().name, "chunk");
    }
}
