//! Shares of the capacity: slow receivers of one owner or at one address do not delay others (R-99,
//! D-103).

use crate::receiver::{NameTable, Receiver, http_answer};
use crate::{OWNER, long_deadline_policy};
use chorus_hub::delivery::outgoing::capacity_shares::DeliveryOwner;
use chorus_hub::delivery::outgoing::{
    DnsResolver, OutgoingClient, OutgoingPolicy, PostError, StreamedAnswer,
};
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

const NEIGHBOUR: DeliveryOwner = DeliveryOwner::numbered(2);

fn spawn_post(
    client: &OutgoingClient,
    owner: DeliveryOwner,
    url: String,
) -> JoinHandle<Result<u16, PostError>> {
    let client = client.clone();
    tokio::spawn(async move {
        let answer = client.post(owner, &url, &[], "{}".into()).await;
        answer.map(|answer| answer.status)
    })
}

async fn assert_reached(client: &OutgoingClient, owner: DeliveryOwner, url: &str) {
    let posting = client.post(owner, url, &[], "{}".into());
    let answer = timeout(long_deadline_policy().deadline / 2, posting).await;
    assert_eq!(answer.unwrap().unwrap().status, 200);
}

#[tokio::test]
async fn the_slow_receivers_of_one_owner_leave_slots_for_other_owners() {
    let tarpit = Receiver::stalling_after("").await;
    let second_tarpit = Receiver::start("127.0.0.3", |stream| async move {
        let _open = stream;
        std::future::pending().await
    })
    .await;
    let quick = Receiver::answering(http_answer("200 OK", "", "{}")).await;
    let client = OutgoingClient::new(OutgoingPolicy {
        max_in_flight: 3,
        max_per_owner: 2,
        max_per_address: 2,
        ..long_deadline_policy()
    });
    let mut slow_posts = Vec::new();
    for _ in 0..2 {
        slow_posts.push(spawn_post(&client, OWNER, second_tarpit.url()));
        slow_posts.push(spawn_post(&client, OWNER, tarpit.url()));
    }
    second_tarpit.wait_for_requests(1).await;
    assert_reached(&client, NEIGHBOUR, &quick.url()).await;
    assert_eq!(
        tarpit.requests().len() + second_tarpit.requests().len(),
        2,
        "the owner has its share"
    );
    slow_posts.iter().for_each(JoinHandle::abort);
}

#[tokio::test]
async fn the_names_of_one_address_share_its_slots() {
    let tarpit = Receiver::stalling_after("").await;
    let quick = Receiver::start("127.0.0.2", |mut stream| async move {
        let answer = http_answer("200 OK", "", "{}");
        let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, answer.as_bytes()).await;
        None
    })
    .await;
    let client = OutgoingClient::new(OutgoingPolicy {
        max_in_flight: 3,
        max_per_address: 2,
        resolver: NameTable::from_rows(&[&["127.0.0.1"]]),
        ..long_deadline_policy()
    });
    let port = tarpit.address.port();
    let slow_posts: Vec<_> = (0..6)
        .map(|n| {
            let url = format!("http://name-{n}.test:{port}/");
            spawn_post(&client, DeliveryOwner::numbered(10 + n), url)
        })
        .collect();
    tarpit.wait_for_requests(2).await;
    assert_reached(&client, NEIGHBOUR, &quick.url()).await;
    assert_eq!(tarpit.requests().len(), 2);
    slow_posts.iter().for_each(JoinHandle::abort);
}

/// An address that never answers, put in front, must not hide the tarpit's.
#[tokio::test]
async fn every_address_of_a_name_is_counted() {
    let tarpit = Receiver::stalling_after("").await;
    let quick = Receiver::start("127.0.0.2", |mut stream| async move {
        let answer = http_answer("200 OK", "", "{}");
        let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, answer.as_bytes()).await;
        None
    })
    .await;
    let rows: Vec<[String; 2]> = (0..6)
        .map(|n| [format!("127.0.1.{n}"), "127.0.0.1".to_owned()])
        .collect();
    let rows: Vec<Vec<&str>> = rows
        .iter()
        .map(|row| row.iter().map(String::as_str).collect())
        .collect();
    let rows: Vec<&[&str]> = rows.iter().map(Vec::as_slice).collect();
    let client = OutgoingClient::new(OutgoingPolicy {
        max_in_flight: 3,
        max_per_address: 2,
        resolver: NameTable::from_rows(&rows),
        ..long_deadline_policy()
    });
    let port = tarpit.address.port();
    let slow_posts: Vec<_> = (0..6)
        .map(|n| {
            let url = format!("http://name-{n}.test:{port}/");
            spawn_post(&client, DeliveryOwner::numbered(10 + n), url)
        })
        .collect();
    tarpit.wait_for_requests(2).await;
    assert_reached(&client, NEIGHBOUR, &quick.url()).await;
    slow_posts.iter().for_each(JoinHandle::abort);
}

#[tokio::test]
async fn streams_have_shares_too() {
    let endless = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: open\n\n";
    let slow = Receiver::stalling_after(endless).await;
    let quick = Receiver::start("127.0.0.2", |mut stream| async move {
        let answer = http_answer("200 OK", "", "{}");
        let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, answer.as_bytes()).await;
        None
    })
    .await;
    let client = OutgoingClient::new(OutgoingPolicy {
        max_in_flight: 2,
        max_per_owner: 1,
        max_per_address: 1,
        ..long_deadline_policy()
    });
    let held = client
        .post_streaming(OWNER, &slow.url(), &[], "{}".into())
        .await;
    assert!(matches!(held, Ok(StreamedAnswer::Events(_))));
    let second = {
        let (client, url) = (client.clone(), slow.url());
        tokio::spawn(async move {
            client
                .post_streaming(OWNER, &url, &[], "{}".into())
                .await
                .map(drop)
        })
    };
    // Each round trip gives the owner's second stream the time to open.
    for _ in 0..50 {
        let answer = client
            .post_streaming(NEIGHBOUR, &quick.url(), &[], "{}".into())
            .await;
        assert!(matches!(answer, Ok(StreamedAnswer::Whole(answer)) if answer.status == 200));
    }
    assert!(!second.is_finished(), "the owner's second stream waits");
    second.abort();
    drop(held);
}

/// The waiting line is shared as well: otherwise one owner could fill it, and others would be
/// refused.
#[tokio::test]
async fn one_owner_cannot_fill_the_waiting_line() {
    let tarpit = Receiver::stalling_after("").await;
    let quick = Receiver::start("127.0.0.2", |mut stream| async move {
        let answer = http_answer("200 OK", "", "{}");
        let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, answer.as_bytes()).await;
        None
    })
    .await;
    let client = OutgoingClient::new(OutgoingPolicy {
        max_in_flight: 2,
        max_per_owner: 1,
        max_waiting: 16,
        ..long_deadline_policy()
    });
    let slow_posts: Vec<_> = (0..40)
        .map(|_| spawn_post(&client, OWNER, tarpit.url()))
        .collect();
    tarpit.wait_for_requests(1).await;
    assert_reached(&client, NEIGHBOUR, &quick.url()).await;
    slow_posts.iter().for_each(JoinHandle::abort);
}

// Names such as localhost come from the hosts file, without a name server.
#[tokio::test]
async fn the_resolver_of_the_hub_knows_the_hosts_file() {
    let receiver = Receiver::answering(http_answer("200 OK", "", "{}")).await;
    let nowhere = "127.0.0.1:9".parse().unwrap();
    let client = OutgoingClient::new(OutgoingPolicy {
        resolver: Arc::new(DnsResolver::new(vec![nowhere])),
        ..long_deadline_policy()
    });
    let url = format!("http://localhost:{}/", receiver.address.port());
    assert_reached(&client, OWNER, &url).await;
}
