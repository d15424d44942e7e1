//! Answers that do not come, come slowly, come in part, or never end (R-37, lesson 25).

use crate::receiver::{Receiver, http};
use crate::{hasty, patient, post};
use chorus_hub::delivery::outgoing::{OutgoingClient, PostError};
use chorus_wire::limits::WEBHOOK_ANSWER_BYTES;
use std::time::Duration;
use tokio::time::timeout;

/// The deadline of `hasty` is kept, with room for a busy machine.
async fn times_out(receiver: &Receiver) {
    let out = OutgoingClient::new(hasty());
    let ended = timeout(Duration::from_secs(5), post(&out, &receiver.url()))
        .await
        .expect("ends in time");
    assert_eq!(ended, Err(PostError::TimedOut));
}

#[tokio::test]
async fn silence_ends_at_the_deadline() {
    times_out(&Receiver::stalling_after("").await).await;
}

#[tokio::test]
async fn half_a_head_ends_at_the_deadline() {
    times_out(&Receiver::stalling_after("HTTP/1.1 200 OK\r\nContent-Le").await).await;
}

#[tokio::test]
async fn half_a_body_that_is_held_open_ends_at_the_deadline() {
    times_out(
        &Receiver::stalling_after("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"status\"")
            .await,
    )
    .await;
}

#[tokio::test]
async fn a_trickling_head_ends_at_the_deadline() {
    times_out(
        &Receiver::trickling_after("HTTP/1.1 200 OK\r\nX-A: ", Duration::from_millis(20), "a")
            .await,
    )
    .await;
}

#[tokio::test]
async fn a_trickling_body_ends_at_the_deadline() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n";
    times_out(&Receiver::trickling_after(head, Duration::from_millis(20), "a").await).await;
}

#[tokio::test]
async fn endless_interim_answers_end_at_the_deadline() {
    times_out(
        &Receiver::trickling_after(
            "",
            Duration::from_millis(20),
            "HTTP/1.1 103 Early Hints\r\n\r\n",
        )
        .await,
    )
    .await;
}

#[tokio::test]
async fn a_connection_that_is_never_accepted_ends_at_the_deadline() {
    // A full backlog: connections are made by the kernel, and nobody ever reads from them.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    assert_eq!(
        post(&OutgoingClient::new(hasty()), &url).await,
        Err(PostError::TimedOut)
    );
}

async fn is(bytes: impl Into<Vec<u8>>, expected: Result<usize, PostError>) {
    let receiver = Receiver::saying(bytes).await;
    let answer = post(&OutgoingClient::new(patient()), &receiver.url()).await;
    assert_eq!(answer.map(|answer| answer.body.len()), expected);
}

#[tokio::test]
async fn an_answer_may_be_as_long_as_the_bound_and_not_a_byte_longer() {
    let full = "a".repeat(WEBHOOK_ANSWER_BYTES);
    let over = format!("{full}a");
    let chunked = |body: &str| {
        format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
            body.len()
        )
    };
    is(http("200 OK", "", &full), Ok(WEBHOOK_ANSWER_BYTES)).await;
    is(http("200 OK", "", &over), Err(PostError::TooLarge)).await;
    is(chunked(&full), Ok(WEBHOOK_ANSWER_BYTES)).await;
    is(chunked(&over), Err(PostError::TooLarge)).await;
    is(
        format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{over}"),
        Err(PostError::TooLarge),
    )
    .await;
}

#[tokio::test]
async fn an_endless_answer_is_cut_at_the_bound_and_not_at_the_deadline() {
    const DROP: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    let head = "HTTP/1.1 200 OK\r\n\r\n";
    let receiver = Receiver::trickling_after(head, Duration::from_micros(1), DROP).await;
    assert_eq!(
        post(&OutgoingClient::new(patient()), &receiver.url()).await,
        Err(PostError::TooLarge)
    );
}

#[tokio::test]
async fn headers_are_bounded_in_bytes_and_in_lines() {
    is(
        http("200 OK", &format!("X-A: {}\r\n", "a".repeat(17_000)), "{}"),
        Err(PostError::TooLarge),
    )
    .await;
    is(
        http("200 OK", &"X-A: a\r\n".repeat(200), "{}"),
        Err(PostError::Broken),
    )
    .await;
    is(
        http(
            "200 OK",
            &format!("X-A: {}\r\n", "a".repeat(1_000_000)),
            "{}",
        ),
        Err(PostError::Broken),
    )
    .await;
}

#[tokio::test]
async fn an_answer_that_ends_early_is_no_answer() {
    is("", Err(PostError::Broken)).await;
    is("HTTP/1.1 200 OK\r\nContent-Len", Err(PostError::Broken)).await;
    is(
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"status\":\"ok\"}",
        Err(PostError::Broken),
    )
    .await;
    is(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nf\r\n{\"status\":",
        Err(PostError::Broken),
    )
    .await;
    is(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
        Err(PostError::Broken),
    )
    .await;
}

#[tokio::test]
async fn what_is_not_http_is_no_answer() {
    is("SSH-2.0-OpenSSH\r\n\r\n", Err(PostError::Broken)).await;
    is(
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}",
        Err(PostError::Broken),
    )
    .await;
    is(
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
        Err(PostError::Broken),
    )
    .await;
    is(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
        Err(PostError::Broken),
    )
    .await;
}

#[tokio::test]
async fn bytes_beyond_the_promised_length_are_not_the_answer() {
    is(
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}and more",
        Ok(2),
    )
    .await;
}

#[tokio::test]
async fn a_closed_port_and_a_door_without_tls_are_unreachable() {
    let out = OutgoingClient::new(patient());
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    assert!(matches!(
        post(&out, &format!("http://{closed}/")).await,
        Err(PostError::Unreachable(_))
    ));

    let plain = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = plain.local_addr().unwrap();
    let refusing = tokio::spawn(async move {
        let (mut stream, _) = plain.accept().await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .await
            .unwrap();
    });
    assert!(matches!(
        post(&out, &format!("https://{at}/")).await,
        Err(PostError::Unreachable(_))
    ));
    refusing.await.unwrap();
}
