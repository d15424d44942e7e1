//! Limits on requests in flight, in total and to one address (R-37, failure 25).

use crate::receiver::{Receiver, http_answer};
use crate::{long_deadline_policy, post, short_deadline_policy};
use chorus_hub::delivery::outgoing::{OutgoingClient, OutgoingPolicy, PostError};
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Answers one request for every permit that is added to `permits`.
async fn receiver_with_permits(ip: &str, permits: &Arc<Semaphore>) -> Receiver {
    let permits = permits.clone();
    let serve = move |mut stream: tokio::net::TcpStream| {
        let permits = permits.clone();
        async move {
            permits.acquire().await.unwrap().forget();
            let _ = stream
                .write_all(http_answer("200 OK", "", "{}").as_bytes())
                .await;
            None
        }
    };
    Receiver::start(ip, serve).await
}

fn spawn_post(
    client: &OutgoingClient,
    url: String,
) -> tokio::task::JoinHandle<Result<u16, PostError>> {
    let client = client.clone();
    tokio::spawn(async move { post(&client, &url).await.map(|answer| answer.status) })
}

#[tokio::test]
async fn a_request_above_the_limit_waits_for_a_slot() {
    let permits = Arc::new(Semaphore::new(0));
    let other_permits = Arc::new(Semaphore::new(3));
    let receiver = receiver_with_permits("127.0.0.1", &permits).await;
    let other = receiver_with_permits("127.0.0.2", &other_permits).await;
    let client = OutgoingClient::new(OutgoingPolicy {
        max_in_flight: 1,
        ..long_deadline_policy()
    });
    let first = spawn_post(&client, receiver.url());
    receiver.wait_for_requests(1).await;
    let second = spawn_post(&client, other.url());
    // Requests of another client reach that receiver meanwhile, so the machine is not just slow.
    let unlimited = OutgoingClient::new(long_deadline_policy());
    for _ in 0..3 {
        let meanwhile = format!("http://{}/meanwhile", other.address);
        assert_eq!(post(&unlimited, &meanwhile).await.unwrap().status, 200);
    }
    let requests = other.requests();
    assert!(
        requests
            .iter()
            .all(|request| request.contains("/meanwhile")),
        "the second waits for the first"
    );

    other_permits.add_permits(1);
    permits.add_permits(1);
    assert_eq!(
        (first.await.unwrap(), second.await.unwrap()),
        (Ok(200), Ok(200))
    );
}

#[tokio::test]
async fn waiting_for_a_slot_counts_against_the_deadline() {
    let slow_permits = Arc::new(Semaphore::new(0));
    let receiver = receiver_with_permits("127.0.0.1", &slow_permits).await;
    let client = OutgoingClient::new(OutgoingPolicy {
        max_in_flight: 1,
        ..short_deadline_policy()
    });
    // If each deadline began only with its slot, all together would take twenty deadlines.
    let posts: Vec<_> = (0..20)
        .map(|_| spawn_post(&client, receiver.url()))
        .collect();
    let all = async {
        for post in posts {
            assert_eq!(post.await.unwrap(), Err(PostError::TimedOut));
        }
    };
    timeout(short_deadline_policy().deadline * 10, all)
        .await
        .expect("all end at their own deadline");
}

#[tokio::test]
async fn a_slow_address_leaves_slots_for_other_addresses() {
    let slow_permits = Arc::new(Semaphore::new(0));
    let quick_permits = Arc::new(Semaphore::new(8));
    let slow = receiver_with_permits("127.0.0.1", &slow_permits).await;
    let quick = receiver_with_permits("127.0.0.2", &quick_permits).await;
    let client = OutgoingClient::new(OutgoingPolicy {
        max_in_flight: 2,
        max_per_address: 1,
        ..long_deadline_policy()
    });
    let slow_posts: Vec<_> = (0..4).map(|_| spawn_post(&client, slow.url())).collect();
    slow.wait_for_requests(1).await;
    for _ in 0..4 {
        assert_eq!(post(&client, &quick.url()).await.unwrap().status, 200);
    }
    assert_eq!(
        slow.requests().len(),
        1,
        "three wait for the slow address and hold no slot"
    );

    slow_permits.add_permits(4);
    for slow_post in slow_posts {
        assert_eq!(slow_post.await.unwrap(), Ok(200));
    }
}

#[tokio::test]
async fn when_too_many_wait_the_next_fails_at_once() {
    let slow_permits = Arc::new(Semaphore::new(0));
    let slow = receiver_with_permits("127.0.0.1", &slow_permits).await;
    let client = OutgoingClient::new(OutgoingPolicy {
        max_in_flight: 1,
        max_waiting: 1,
        ..long_deadline_policy()
    });
    let first = spawn_post(&client, slow.url());
    slow.wait_for_requests(1).await;
    let second = spawn_post(&client, slow.url());
    tokio::task::yield_now().await;
    assert_eq!(post(&client, &slow.url()).await, Err(PostError::Busy));

    slow_permits.add_permits(2);
    assert_eq!(
        (first.await.unwrap(), second.await.unwrap()),
        (Ok(200), Ok(200))
    );
}

#[tokio::test]
async fn a_cancelled_post_frees_its_slot() {
    let permits = Arc::new(Semaphore::new(0));
    let receiver = receiver_with_permits("127.0.0.1", &permits).await;
    let client = OutgoingClient::new(OutgoingPolicy {
        max_in_flight: 1,
        ..long_deadline_policy()
    });
    let first = spawn_post(&client, receiver.url());
    receiver.wait_for_requests(1).await;
    first.abort();
    permits.add_permits(2);
    assert_eq!(post(&client, &receiver.url()).await.unwrap().status, 200);
}
