//! The hub's own resolver against a name server of the test: limits, cache, shares (R-99, D-102).

use crate::receiver::{Receiver, http_answer};
use crate::{OWNER, long_deadline_policy};
use chorus_hub::delivery::outgoing::capacity_shares::DeliveryOwner;
use chorus_hub::delivery::outgoing::{DnsResolver, OutgoingClient, OutgoingPolicy, PostError};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::time::{Instant, timeout};

/// Answers every name with 127.0.0.1, except names that begin with `dead`, which it ignores.
struct NameServer {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    serving: tokio::task::JoinHandle<()>,
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl NameServer {
    async fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let names = asked.clone();
        let serving = tokio::spawn(async move {
            let mut packet = [0; 512];
            while let Ok((length, client)) = socket.recv_from(&mut packet).await {
                let query = &packet[..length];
                let name = question_name(query);
                names.lock().unwrap().push(name.clone());
                if !name.starts_with("dead") {
                    let _ = socket.send_to(&answer_packet(query), client).await;
                }
            }
        });
        Self {
            address,
            asked,
            serving,
        }
    }

    fn asked_for(&self, name: &str) -> usize {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|known| *known == name).count()
    }
}

/// The end of the question's name: labels with their lengths, then a zero.
fn name_end(query: &[u8]) -> usize {
    let mut at = 12;
    while query[at] != 0 {
        at += usize::from(query[at]) + 1;
    }
    at
}

fn question_name(query: &[u8]) -> String {
    let mut at = 12;
    let mut labels = Vec::new();
    while query[at] != 0 {
        let length = usize::from(query[at]);
        labels.push(String::from_utf8_lossy(&query[at + 1..at + 1 + length]).to_lowercase());
        at += length + 1;
    }
    labels.join(".")
}

/// An A record for a question of type A, an empty answer for any other.
fn answer_packet(query: &[u8]) -> Vec<u8> {
    let question_end = name_end(query) + 5;
    let is_address_question = query[question_end - 4..question_end - 2] == [0, 1];
    let mut packet = query[..2].to_vec();
    packet.extend([
        0x81,
        0x80,
        0,
        1,
        0,
        u8::from(is_address_question),
        0,
        0,
        0,
        0,
    ]);
    packet.extend(&query[12..question_end]);
    if is_address_question {
        packet.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        packet.extend(Ipv4Addr::LOCALHOST.octets());
    }
    packet
}

fn client_asking(server: &NameServer) -> OutgoingClient {
    OutgoingClient::new(OutgoingPolicy {
        resolver: Arc::new(DnsResolver::new(vec![server.address])),
        ..long_deadline_policy()
    })
}

#[tokio::test]
async fn an_answer_is_cached() {
    let server = NameServer::start().await;
    let receiver = Receiver::answering(http_answer("200 OK", "Connection: close\r\n", "{}")).await;
    let client = client_asking(&server);
    let url = format!("http://known.example:{}/", receiver.address.port());
    for _ in 0..5 {
        let answer = client.post(OWNER, &url, &[], "{}".into()).await;
        assert_eq!(answer.unwrap().status, 200);
    }
    assert_eq!(
        server.asked_for("known.example"),
        2,
        "once for IPv4 and once for IPv6"
    );
}

#[tokio::test]
async fn a_name_server_that_does_not_answer_costs_two_seconds_once() {
    let server = NameServer::start().await;
    let client = client_asking(&server);
    let started = Instant::now();
    for _ in 0..10 {
        let answer = client
            .post(OWNER, "http://dead.example/", &[], "{}".into())
            .await;
        assert!(matches!(answer, Err(PostError::Unreachable(_))));
    }
    assert!(started.elapsed() < Duration::from_secs(4));
}

#[tokio::test]
async fn names_that_are_never_answered_do_not_delay_the_names_of_other_owners() {
    let server = NameServer::start().await;
    let receiver = Receiver::answering(http_answer("200 OK", "", "{}")).await;
    let client = client_asking(&server);
    let mut posts = Vec::new();
    // Twelve owners, each with more dead names than its share. The shares of all of them leave look-ups to others; what their
    // posts could take without shares is more than there are look-ups at once.
    for n in 0..480 {
        let client = client.clone();
        let owner = DeliveryOwner::numbered(10 + n % 12);
        posts.push(tokio::spawn(async move {
            let url = format!("http://dead-{n}.example/");
            client.post(owner, &url, &[], "{}".into()).await.map(drop)
        }));
    }
    let first = async {
        while server.asked.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(10), first).await.unwrap();
    let url = format!("http://good.example:{}/", receiver.address.port());
    let posting = client.post(OWNER, &url, &[], "{}".into());
    let answer = timeout(Duration::from_secs(3), posting).await;
    assert_eq!(answer.unwrap().unwrap().status, 200);
    posts.iter().for_each(tokio::task::JoinHandle::abort);
}
