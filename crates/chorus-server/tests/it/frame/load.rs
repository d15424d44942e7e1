//! Frames under load, with sessions that come and go and one that does not read: none lost, duplicated or out of order.

use crate::support::actors::{Agent, STEP_TIMEOUT, advisory_text};
use crate::support::hub::{Hub, eventually, within};
use crate::support::seeded_random::SeededRandom;
use std::collections::HashSet;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

const PUBLISHERS: usize = 6;
const EACH: usize = 60;
const TOTAL: usize = PUBLISHERS * EACH;
const SESSIONS: usize = 16;

/// Every event of a session by id and text; one that resumes breaks off after a few and comes back.
async fn read(
    alice: Agent,
    name: usize,
    opened: tokio::sync::oneshot::Sender<()>,
) -> Vec<(String, String)> {
    let query = format!("?instrument=cc-editor&session=s{name}");
    let mut random = SeededRandom(0x9e37_79b9 + name as u64);
    let mut session = alice.open_session_with(&query).await;
    opened.send(()).unwrap();
    let mut seen: Vec<(String, String)> = Vec::new();
    while seen.len() < TOTAL {
        let event = session.advisory().await;
        let text = advisory_text(&event);
        seen.push((event.id.unwrap(), text));
        if name % 2 == 1 && random.below(20) == 0 {
            drop(session);
            session = alice.resume_session(&query, &seen.last().unwrap().0).await;
        }
    }
    seen
}

async fn publish(from: Agent, publisher: usize) {
    for number in 0..EACH {
        from.send_advisory("~alice", &format!("{publisher}-{number}"))
            .await;
    }
}

story!(
    under_load_every_session_hears_everything_once_and_in_order,
    |hub| async {
        // FRM-64, FRM-70, R-42, R-46: half the sessions break off at random and resume
        let alice = hub.agent("alice").await;
        let mut readers = Vec::new();
        for name in 0..SESSIONS {
            let (opened, open) = tokio::sync::oneshot::channel();
            readers.push(tokio::spawn(read(alice.clone(), name, opened)));
            open.await.unwrap();
        }
        let mut publishers = Vec::new();
        for publisher in 0..PUBLISHERS {
            // Two of them speak with the handle's own key, from two places at once.
            let from = match publisher {
                0 | 1 => alice.clone(),
                _ => {
                    let friend = hub.agent(&format!("friend-{publisher}")).await;
                    alice.grant(&friend).await;
                    friend
                }
            };
            publishers.push((from, publisher));
        }
        let publishers: Vec<_> = publishers
            .into_iter()
            .map(|(from, publisher)| tokio::spawn(publish(from, publisher)))
            .collect();
        for publisher in publishers {
            publisher.await.unwrap();
        }
        let mut first: Option<Vec<(String, String)>> = None;
        for reader in readers {
            let seen = reader.await.unwrap();
            let ids: HashSet<&str> = seen.iter().map(|(id, _)| id.as_str()).collect();
            assert_eq!(ids.len(), TOTAL, "nothing twice");
            for publisher in 0..PUBLISHERS {
                let prefix = format!("{publisher}-");
                let mine: Vec<&str> = seen
                    .iter()
                    .map(|(_, text)| text.as_str())
                    .filter(|t| t.starts_with(&prefix))
                    .collect();
                let sent: Vec<String> = (0..EACH)
                    .map(|number| format!("{publisher}-{number}"))
                    .collect();
                assert_eq!(mine, sent, "what one said in turn is heard in turn");
            }
            assert_eq!(
                first.get_or_insert_with(|| seen.clone()),
                &seen,
                "all sessions hear one order"
            );
        }
        assert!(
            alice.roster().await.len() <= SESSIONS,
            "who broke off is gone"
        );
    }
);

/// An open stream on a socket with a small buffer that is not read after the response head.
async fn unread(hub: &Hub, agent: &Agent) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(hub.addr()).await.unwrap();
    let path = agent.stream_path("?instrument=asleep&session=s1");
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\r\n",
        agent.key
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = vec![0; 1024];
    let length = stream.read(&mut head).await.unwrap();
    assert!(
        head[..length].starts_with(b"HTTP/1.1 200"),
        "{}",
        String::from_utf8_lossy(&head[..length])
    );
    stream
}

/// An advisory of about 60 KB.
fn large(alice: &Agent, text: &str) -> String {
    let frame = alice.advisory(text).to_string();
    format!(
        r#"{{"frame":{}{}}}}}"#,
        frame.strip_suffix('}').unwrap(),
        " ".repeat(60_000 - frame.len())
    )
}

/// "slow readers cut off, never slowing the others"; invariant 6. The wait is the product's own ten seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_stops_slows_no_other_and_is_cut_off() {
    let hub = Hub::fresh().await;
    let alice = hub.agent("alice").await;
    let _socket = unread(&hub, &alice).await;
    let mut awake = alice.open_session("cc-editor", "s1").await;
    for number in 0..100 {
        let answer = alice
            .post_text("/frames", large(&alice, &number.to_string()))
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let heard = within(STEP_TIMEOUT, awake.advisory_texts(1))
            .await
            .expect("the awake one hears at once");
        assert_eq!(heard, [number.to_string()]);
    }
    eventually("the sleeper is off the roster", || async {
        alice
            .roster()
            .await
            .iter()
            .all(|row| row["instrument"] != "asleep")
    })
    .await;
    assert_eq!(alice.send_advisory("~alice", "among the living").await, 1);
    assert_eq!(awake.advisory_texts(1).await, ["among the living"]);
}

memory_story!(a_frame_to_one_handle_wakes_no_other, |hub| async {
    // FRM-48: a scope reaches whom it names, however many others are there
    let (alice, mut others) = (hub.agent("alice").await, Vec::new());
    for number in 0..20 {
        let other = hub.agent(&format!("other-{number}")).await;
        let session = other.open_session("vim", "s1").await;
        others.push((other, session));
    }
    let mut session = alice.open_session("vim", "s1").await;
    assert_eq!(alice.send_advisory("~alice", "for alice").await, 1);
    assert_eq!(session.advisory_texts(1).await, ["for alice"]);
    for (other, session) in &mut others {
        assert_eq!(other.send_advisory(&other.handle(), "marker").await, 1);
        assert_eq!(session.advisory_texts(1).await, ["marker"]);
    }
});
