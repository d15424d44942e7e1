//! Answers that are event streams (TRN-52…54, R-37).

use crate::receiver::{Receiver, http_answer};
use crate::{OWNER, long_deadline_policy, short_deadline_policy};
use chorus_hub::delivery::outgoing::{
    OutgoingClient, OutgoingPolicy, PostError, StreamedAnswer, WebhookAnswer,
};
use std::time::Duration;

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nConnection: close\r\n\r\n";

async fn open_stream(
    client: &OutgoingClient,
    receiver: &Receiver,
) -> Result<StreamedAnswer, PostError> {
    client
        .post_streaming(OWNER, &receiver.url(), &[], "{}".into())
        .await
}

/// The names of the events, and how the stream ended.
async fn read_events(
    policy: OutgoingPolicy,
    receiver: &Receiver,
) -> (Vec<String>, Result<(), PostError>) {
    let answer = open_stream(&OutgoingClient::new(policy), receiver)
        .await
        .unwrap();
    let StreamedAnswer::Events(mut events) = answer else {
        panic!("a whole answer")
    };
    let mut names = Vec::new();
    loop {
        match events.next_event().await {
            Some(Ok(event)) => names.push(event.name),
            Some(Err(error)) => return (names, Err(error)),
            None => return (names, Ok(())),
        }
    }
}

// TRN-53
#[tokio::test]
async fn events_come_in_order_as_they_were_sent() {
    let answer_bytes = format!(
        "{HEAD}event: chunk\ndata: {{\"text\":\"你\"}}\n\nevent: chunk\r\ndata: b\r\n\r\nevent: done\ndata: {{}}\n\n"
    );
    let receiver = Receiver::answering(answer_bytes).await;
    let answer = open_stream(&OutgoingClient::new(long_deadline_policy()), &receiver)
        .await
        .unwrap();
    let StreamedAnswer::Events(mut events) = answer else {
        panic!("a whole answer")
    };
    let mut received = Vec::new();
    while let Some(event) = events.next_event().await {
        let event = event.unwrap();
        received.push((event.name, event.data));
    }
    let expected = [
        ("chunk", "{\"text\":\"你\"}"),
        ("chunk", "b"),
        ("done", "{}"),
    ];
    assert_eq!(
        received,
        expected.map(|(name, data)| (name.to_owned(), data.to_owned()))
    );
    assert!(
        receiver.requests()[0]
            .to_ascii_lowercase()
            .contains("accept: text/event-stream")
    );
}

#[tokio::test]
async fn the_first_event_is_there_before_the_stream_ends() {
    let receiver = Receiver::stalling_after(format!("{HEAD}event: chunk\ndata: a\n\n")).await;
    let StreamedAnswer::Events(mut events) =
        open_stream(&OutgoingClient::new(long_deadline_policy()), &receiver)
            .await
            .unwrap()
    else {
        panic!("a whole answer")
    };
    assert_eq!(events.next_event().await.unwrap().unwrap().data, "a");
}

// R-29: an ordinary answer, or a refusal, is read whole
#[tokio::test]
async fn an_answer_that_is_not_a_stream_is_read_whole() {
    let event_stream = "Content-Type: text/event-stream\r\n";
    for (status, header, code) in [
        ("200 OK", "", 200),
        ("400 Bad", event_stream, 400),
        ("302 Found", event_stream, 302),
    ] {
        let receiver = Receiver::answering(http_answer(status, header, r#"{"status":"ok"}"#)).await;
        let StreamedAnswer::Whole(answer) =
            open_stream(&OutgoingClient::new(long_deadline_policy()), &receiver)
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
async fn a_stream_that_breaks_off_is_an_error_after_its_events() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 500\r\n\r\n";
    let receiver = Receiver::answering(format!("{head}event: chunk\ndata: a\n\nevent: do")).await;
    assert_eq!(
        read_events(long_deadline_policy(), &receiver).await,
        (vec!["chunk".into()], Err(PostError::Broken))
    );
}

#[tokio::test]
async fn an_event_without_its_blank_line_is_not_an_event() {
    let receiver = Receiver::answering(format!(
        "{HEAD}event: chunk\ndata: a\n\nevent: done\ndata: b\n"
    ))
    .await;
    assert_eq!(
        read_events(long_deadline_policy(), &receiver).await,
        (vec!["chunk".into()], Ok(()))
    );
}

#[tokio::test]
async fn a_stream_may_not_pause_for_longer_than_the_deadline() {
    let receiver = Receiver::stalling_after(format!("{HEAD}event: chunk\ndata: a\n\n")).await;
    assert_eq!(
        read_events(short_deadline_policy(), &receiver).await,
        (vec!["chunk".into()], Err(PostError::TimedOut))
    );
}

#[tokio::test]
async fn a_stream_that_never_pauses_ends_at_its_own_deadline() {
    let receiver =
        Receiver::trickling_after(HEAD, Duration::from_millis(20), ": still here\n").await;
    let policy = OutgoingPolicy {
        stream_deadline: Duration::from_millis(300),
        ..long_deadline_policy()
    };
    assert_eq!(
        read_events(policy, &receiver).await,
        (vec![], Err(PostError::TimedOut))
    );
}

#[tokio::test]
async fn a_stream_is_limited_as_a_whole_and_in_each_event() {
    let many = "event: chunk\ndata: abcdefgh\n\n".repeat(100);
    let receiver = Receiver::answering(format!("{HEAD}{many}")).await;
    let (_, outcome) = read_events(
        OutgoingPolicy {
            max_stream_bytes: 1_000,
            ..long_deadline_policy()
        },
        &receiver,
    )
    .await;
    assert_eq!(outcome, Err(PostError::TooLarge));

    let receiver = Receiver::answering(format!("{HEAD}data: {}\n\n", "a".repeat(70_000))).await;
    assert_eq!(
        read_events(long_deadline_policy(), &receiver).await,
        (vec![], Err(PostError::TooLarge))
    );
}

#[tokio::test]
async fn a_stream_that_is_not_utf8_is_an_error_after_its_complete_events() {
    let mut answer_bytes = HEAD.as_bytes().to_vec();
    answer_bytes.extend_from_slice(b"event: chunk\ndata: a\n\ndata: \xff\n\n");
    let receiver = Receiver::answering(answer_bytes).await;
    assert_eq!(
        read_events(long_deadline_policy(), &receiver).await,
        (vec!["chunk".into()], Err(PostError::Broken))
    );
}

#[tokio::test]
async fn a_dropped_stream_frees_its_slot() {
    let receiver = Receiver::stalling_after(format!("{HEAD}event: chunk\ndata: a\n\n")).await;
    let client = OutgoingClient::new(OutgoingPolicy {
        max_in_flight: 1,
        ..long_deadline_policy()
    });
    for _ in 0..3 {
        let StreamedAnswer::Events(mut events) = open_stream(&client, &receiver).await.unwrap()
        else {
            panic!("a whole answer")
        };
        assert_eq!(events.next_event().await.unwrap().unwrap().name, "chunk");
    }
}
