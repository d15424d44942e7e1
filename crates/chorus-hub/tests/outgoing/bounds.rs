//! How many at once, in all and to one host (R-37, lesson 25).

use crate::receiver::{Receiver, http};
use crate::{hasty, patient, post};
use chorus_hub::delivery::outgoing::{OutgoingClient, OutgoingPolicy, PostError};
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Answers one request for every permit that `leave` gets.
async fn receiver_on_leave(ip: &str, leave: &Arc<Semaphore>) -> Receiver {
    let leave = leave.clone();
    let serve = move |mut stream: tokio::net::TcpStream| {
        let leave = leave.clone();
        async move {
            leave.acquire().await.unwrap().forget();
            let _ = stream.write_all(http("200 OK", "", "{}").as_bytes()).await;
            None
        }
    };
    Receiver::start(ip, serve).await
}

fn spawn_post(
    out: &OutgoingClient,
    url: String,
) -> tokio::task::JoinHandle<Result<u16, PostError>> {
    let out = out.clone();
    tokio::spawn(async move { post(&out, &url).await.map(|answer| answer.status) })
}

#[tokio::test]
async fn one_more_than_the_bound_waits_until_another_is_done() {
    let (leave, leave_other) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(3)));
    let receiver = receiver_on_leave("127.0.0.1", &leave).await;
    let other = receiver_on_leave("127.0.0.2", &leave_other).await;
    let out = OutgoingClient::new(OutgoingPolicy {
        max_in_flight: 1,
        ..patient()
    });
    let first = spawn_post(&out, receiver.url());
    receiver.has_heard(1).await;
    let second = spawn_post(&out, other.url());
    // Others get through to that receiver meanwhile, so it is not the machine that is slow.
    let unbound = OutgoingClient::new(patient());
    for _ in 0..3 {
        let meanwhile = format!("http://{}/meanwhile", other.at);
        assert_eq!(post(&unbound, &meanwhile).await.unwrap().status, 200);
    }
    let heard = other.heard();
    assert!(
        heard.iter().all(|request| request.contains("/meanwhile")),
        "the second waits for the first"
    );

    leave_other.add_permits(1);
    leave.add_permits(1);
    assert_eq!(
        (first.await.unwrap(), second.await.unwrap()),
        (Ok(200), Ok(200))
    );
}

#[tokio::test]
async fn waiting_for_a_turn_counts_against_the_deadline() {
    let never = Arc::new(Semaphore::new(0));
    let receiver = receiver_on_leave("127.0.0.1", &never).await;
    let out = OutgoingClient::new(OutgoingPolicy {
        max_in_flight: 1,
        ..hasty()
    });
    // One after the other, with a deadline each, they would take twenty deadlines.
    let under_way: Vec<_> = (0..20).map(|_| spawn_post(&out, receiver.url())).collect();
    let all = async {
        for post in under_way {
            assert_eq!(post.await.unwrap(), Err(PostError::TimedOut));
        }
    };
    timeout(hasty().deadline * 10, all)
        .await
        .expect("all end at their own deadline");
}

#[tokio::test]
async fn a_slow_host_leaves_room_for_the_others() {
    let (never, at_once) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(8)));
    let slow = receiver_on_leave("127.0.0.1", &never).await;
    let quick = receiver_on_leave("127.0.0.2", &at_once).await;
    let out = OutgoingClient::new(OutgoingPolicy {
        max_in_flight: 2,
        max_per_host: 1,
        ..patient()
    });
    let held: Vec<_> = (0..4).map(|_| spawn_post(&out, slow.url())).collect();
    slow.has_heard(1).await;
    for _ in 0..4 {
        assert_eq!(post(&out, &quick.url()).await.unwrap().status, 200);
    }
    assert_eq!(
        slow.heard().len(),
        1,
        "three wait for the slow host and hold nothing"
    );

    never.add_permits(4);
    for under_way in held {
        assert_eq!(under_way.await.unwrap(), Ok(200));
    }
}

#[tokio::test]
async fn when_too_many_wait_the_next_fails_at_once() {
    let never = Arc::new(Semaphore::new(0));
    let slow = receiver_on_leave("127.0.0.1", &never).await;
    let out = OutgoingClient::new(OutgoingPolicy {
        max_in_flight: 1,
        max_waiting: 1,
        ..patient()
    });
    let first = spawn_post(&out, slow.url());
    slow.has_heard(1).await;
    let second = spawn_post(&out, slow.url());
    tokio::task::yield_now().await;
    assert_eq!(post(&out, &slow.url()).await, Err(PostError::Busy));

    never.add_permits(2);
    assert_eq!(
        (first.await.unwrap(), second.await.unwrap()),
        (Ok(200), Ok(200))
    );
}

#[tokio::test]
async fn a_sender_that_goes_away_gives_its_place_back() {
    let leave = Arc::new(Semaphore::new(0));
    let receiver = receiver_on_leave("127.0.0.1", &leave).await;
    let out = OutgoingClient::new(OutgoingPolicy {
        max_in_flight: 1,
        ..patient()
    });
    let first = spawn_post(&out, receiver.url());
    receiver.has_heard(1).await;
    first.abort();
    leave.add_permits(2);
    assert_eq!(post(&out, &receiver.url()).await.unwrap().status, 200);
}
