//! Packet loss under load, for longer than any timeout of a hub: acknowledged messages are stored once, and refused ones can
//! be sent again with their idempotency key (invariant 4, R-24, R-27).

use crate::actors::TIMEOUT;
use crate::crash::{
    MessageReceiver, collect_messages, fetch_all_texts, read_until_seq, register_client,
    register_with_key, wait_for_count,
};
use crate::faults::RawStream;
use crate::split::{Machine, TwoHubs, client_at, send_text, send_with_key};
use chorus_client::HubClient;
use chorus_wire::cursor::Cursor;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Acknowledged sends of one side between two steps.
const SENDS_PER_STEP: usize = 60;
/// Longer than a hub's database timeout of 15 seconds.
const OUTAGE: Duration = Duration::from_secs(20);
/// The time between two sends of one sender, to limit the number of messages.
const SEND_INTERVAL: Duration = Duration::from_millis(15);

/// The senders at one hub; each retries a message until it is accepted.
struct HubSenders {
    counted: watch::Receiver<usize>,
    refused: Arc<AtomicUsize>,
    senders: Vec<JoinHandle<Vec<String>>>,
}

impl HubSenders {
    async fn start([machine, other]: [&Machine; 2], name: &str, stop: &Arc<AtomicBool>) -> Self {
        let (count, counted) = watch::channel(0);
        let count = Arc::new(count);
        let refused = Arc::<AtomicUsize>::default();
        let mut senders = Vec::new();
        for number in 0..2 {
            let name = format!("{name}{number}");
            let (client, key) = register_with_key(machine.url(), &name).await;
            let clients = [client, client_at(other, &key)];
            senders.push(tokio::spawn(send_messages(
                clients,
                name,
                count.clone(),
                refused.clone(),
                stop.clone(),
            )));
        }
        Self {
            counted,
            refused,
            senders,
        }
    }

    async fn wait_for_progress(&mut self) {
        let goal = *self.counted.borrow() + SENDS_PER_STEP;
        wait_for_count(&mut self.counted, goal).await;
    }

    async fn wait_all_sent(self) -> Vec<String> {
        let mut all = Vec::new();
        for sender in self.senders {
            all.extend(
                tokio::time::timeout(TIMEOUT, sender)
                    .await
                    .expect("the last is sent")
                    .unwrap(),
            );
        }
        all
    }
}

/// Sends at the first hub until `stop` is set, then repeats every message that was refused once at the other hub.
async fn send_messages(
    [client, other]: [HubClient; 2],
    name: String,
    count: Arc<watch::Sender<usize>>,
    refused: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
) -> Vec<String> {
    let mut sent = Vec::new();
    let mut refused_once = BTreeSet::new();
    let mut pace = tokio::time::interval(SEND_INTERVAL);
    pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while !stop.load(Ordering::SeqCst) {
        let text = format!("{name}-{:05}", sent.len());
        loop {
            pace.tick().await;
            let answer = send_with_key(&client, &name, "bob", &text, &text)
                .await
                .expect("a hub always answers");
            if (200..300).contains(&answer.status) {
                break;
            }
            assert_eq!(
                answer.status,
                503,
                "{}",
                String::from_utf8_lossy(&answer.body)
            );
            refused.fetch_add(1, Ordering::SeqCst);
            refused_once.insert(text.clone());
        }
        sent.push(text);
        count.send_modify(|count| *count += 1);
    }
    for text in refused_once {
        let again = send_with_key(&other, &name, "bob", &text, &text)
            .await
            .unwrap();
        assert!(
            (200..300).contains(&again.status),
            "{}",
            String::from_utf8_lossy(&again.body)
        );
    }
    sent
}

async fn open_inbox(machine: &Machine, key: &str) -> JoinHandle<MessageReceiver> {
    tokio::spawn(collect_messages(
        client_at(machine, key)
            .open_inbox(Some(Cursor::START))
            .await,
    ))
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_messages_are_stored_once_after_a_long_packet_loss() {
    let Some(cluster) = TwoHubs::start() else {
        return;
    };
    let TwoHubs { near, far, .. } = &cluster;
    let (bob, key) = register_with_key(near.url(), "bob").await;
    let streams = [open_inbox(near, &key).await, open_inbox(far, &key).await];
    // One idle connection that stays open the whole time.
    let (_, carol) = register_with_key(near.url(), "carol").await;
    let mut idle_stream = RawStream::open(&far.hub, &carol);
    let stop = Arc::<AtomicBool>::default();
    let mut near_senders = HubSenders::start([near, far], "near", &stop).await;
    let mut far_senders = HubSenders::start([far, near], "far", &stop).await;
    near_senders.wait_for_progress().await;
    far_senders.wait_for_progress().await;
    far.database.drop_packets();
    far.bus.drop_packets();
    let started_at = Instant::now();
    while started_at.elapsed() < OUTAGE {
        near_senders.wait_for_progress().await;
    }
    assert!(
        far_senders.refused.load(Ordering::SeqCst) > 0,
        "the hub that is cut off refuses in time"
    );
    assert_eq!(
        near_senders.refused.load(Ordering::SeqCst),
        0,
        "the other hub refuses nothing"
    );
    far.database.restore();
    far.bus.restore();
    far_senders.wait_for_progress().await;
    near_senders.wait_for_progress().await;
    send_text(
        &register_client(near.url(), "dave").await,
        "dave",
        "carol",
        "still there",
    )
    .await;
    idle_stream.read_until("still there");
    stop.store(true, Ordering::SeqCst);
    let mut sent = near_senders.wait_all_sent().await;
    sent.extend(far_senders.wait_all_sent().await);
    let stored: Vec<(u64, String)> = fetch_all_texts(&bob).await.into_iter().collect();
    let distinct: BTreeSet<&String> = stored.iter().map(|(_, text)| text).collect();
    assert_eq!(
        (stored.len(), distinct),
        (sent.len(), sent.iter().collect()),
        "each message is stored once"
    );
    let last = stored.last().unwrap().0;
    for stream in streams {
        assert_eq!(
            read_until_seq(stream, last).await,
            stored,
            "and each stream returned it once, in order"
        );
    }
}
