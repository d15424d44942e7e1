//! Answers that are missing, slow, incomplete or endless (R-37, failure 25).

use crate::receiver::{Receiver, http_answer};
use crate::{long_deadline_policy, post, short_deadline_policy};
use chorus_hub::delivery::outgoing::{OutgoingClient, PostError};
use chorus_wire::limits::WEBHOOK_ANSWER_BYTES;
use std::time::Duration;
use tokio::time::timeout;

/// Asserts that the request times out; five seconds leave time for a busy machine.
async fn assert_times_out(receiver: &Receiver) {
    let client = OutgoingClient::new(short_deadline_policy());
    let outcome = timeout(Duration::from_secs(5), post(&client, &receiver.url()))
        .await
        .expect("ends in time");
    assert_eq!(outcome, Err(PostError::TimedOut));
}

#[tokio::test]
async fn silence_ends_at_the_deadline() {
    assert_times_out(&Receiver::stalling_after("").await).await;
}

#[tokio::test]
async fn half_a_head_ends_at_the_deadline() {
    assert_times_out(&Receiver::stalling_after("HTTP/1.1 200 OK\r\nContent-Le").await).await;
}

#[tokio::test]
async fn half_a_body_that_is_held_open_ends_at_the_deadline() {
    assert_times_out(
        &Receiver::stalling_after("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"status\"")
            .await,
    )
    .await;
}

#[tokio::test]
async fn a_trickling_head_ends_at_the_deadline() {
    assert_times_out(
        &Receiver::trickling_after("HTTP/1.1 200 OK\r\nX-A: ", Duration::from_millis(20), "a")
            .await,
    )
    .await;
}

#[tokio::test]
async fn a_trickling_body_ends_at_the_deadline() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n";
    assert_times_out(&Receiver::trickling_after(head, Duration::from_millis(20), "a").await).await;
}

#[tokio::test]
async fn endless_interim_answers_end_at_the_deadline() {
    assert_times_out(
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
    // The kernel accepts connections into the backlog, but no process reads from them.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    assert_eq!(
        post(&OutgoingClient::new(short_deadline_policy()), &url).await,
        Err(PostError::TimedOut)
    );
}

async fn assert_answer(bytes: impl Into<Vec<u8>>, expected: Result<usize, PostError>) {
    let receiver = Receiver::answering(bytes).await;
    let answer = post(
        &OutgoingClient::new(long_deadline_policy()),
        &receiver.url(),
    )
    .await;
    assert_eq!(answer.map(|answer| answer.body.len()), expected);
}

#[tokio::test]
async fn an_answer_may_be_as_long_as_the_limit_and_not_a_byte_longer() {
    let full = "a".repeat(WEBHOOK_ANSWER_BYTES);
    let over = format!("{full}a");
    let chunked = |body: &str| {
        format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
            body.len()
        )
    };
    assert_answer(http_answer("200 OK", "", &full), Ok(WEBHOOK_ANSWER_BYTES)).await;
    assert_answer(http_answer("200 OK", "", &over), Err(PostError::TooLarge)).await;
    assert_answer(chunked(&full), Ok(WEBHOOK_ANSWER_BYTES)).await;
    assert_answer(chunked(&over), Err(PostError::TooLarge)).await;
    assert_answer(
        format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{over}"),
        Err(PostError::TooLarge),
    )
    .await;
}

#[tokio::test]
async fn an_endless_answer_is_cut_at_the_size_limit_and_not_at_the_deadline() {
    const PIECE: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    let head = "HTTP/1.1 200 OK\r\n\r\n";
    let receiver = Receiver::trickling_after(head, Duration::from_micros(1), PIECE).await;
    assert_eq!(
        post(
            &OutgoingClient::new(long_deadline_policy()),
            &receiver.url()
        )
        .await,
        Err(PostError::TooLarge)
    );
}

#[tokio::test]
async fn headers_are_limited_in_bytes_and_in_lines() {
    assert_answer(
        http_answer("200 OK", &format!("X-A: {}\r\n", "a".repeat(17_000)), "{}"),
        Err(PostError::TooLarge),
    )
    .await;
    assert_answer(
        http_answer("200 OK", &"X-A: a\r\n".repeat(200), "{}"),
        Err(PostError::Broken),
    )
    .await;
    assert_answer(
        http_answer(
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
    assert_answer("", Err(PostError::Broken)).await;
    assert_answer("HTTP/1.1 200 OK\r\nContent-Len", Err(PostError::Broken)).await;
    assert_answer(
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"status\":\"ok\"}",
        Err(PostError::Broken),
    )
    .await;
    assert_answer(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nf\r\n{\"status\":",
        Err(PostError::Broken),
    )
    .await;
    assert_answer(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
        Err(PostError::Broken),
    )
    .await;
}

#[tokio::test]
async fn bytes_that_are_not_http_are_no_answer() {
    assert_answer("SSH-2.0-OpenSSH\r\n\r\n", Err(PostError::Broken)).await;
    assert_answer(
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}",
        Err(PostError::Broken),
    )
    .await;
    assert_answer(
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
        Err(PostError::Broken),
    )
    .await;
    assert_answer(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
        Err(PostError::Broken),
    )
    .await;
}

#[tokio::test]
async fn bytes_beyond_the_content_length_are_not_part_of_the_answer() {
    assert_answer(
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}and more",
        Ok(2),
    )
    .await;
}

#[tokio::test]
async fn a_closed_port_and_a_port_without_tls_are_unreachable() {
    let client = OutgoingClient::new(long_deadline_policy());
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    assert!(matches!(
        post(&client, &format!("http://{closed}/")).await,
        Err(PostError::Unreachable(_))
    ));

    let plain = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = plain.local_addr().unwrap();
    let refusing = tokio::spawn(async move {
        let (mut stream, _) = plain.accept().await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .await
            .unwrap();
    });
    assert!(matches!(
        post(&client, &format!("https://{address}/")).await,
        Err(PostError::Unreachable(_))
    ));
    refusing.await.unwrap();
}
