//! Packets that vanish, for longer than a hub waits for anything, while many send: what was acknowledged is there once, and what
//! was refused may be sent again under its key (law 4, R-24, R-27).

use crate::actors::PATIENCE;
use crate::crash::{Heard, hear, history, join, join_with_key, reach, until};
use crate::faults::Inbox;
use crate::split::{Land, Machine, at, once, says};
use chorus_client::HubClient;
use chorus_wire::cursor::Cursor;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Acknowledged sends of one side between one event and the next.
const BETWEEN: usize = 60;
/// Longer than a hub waits for its database, which is a quarter of a minute.
const AWAY: Duration = Duration::from_secs(20);
/// Between two sends of one sender, so that there is not too much to judge.
const PACE: Duration = Duration::from_millis(15);

/// Those who send at one hub; whatever they began, they get done.
struct Side {
    counted: watch::Receiver<usize>,
    refused: Arc<AtomicUsize>,
    senders: Vec<JoinHandle<Vec<String>>>,
}

impl Side {
    async fn start([machine, other]: [&Machine; 2], name: &str, stop: &Arc<AtomicBool>) -> Self {
        let (count, counted) = watch::channel(0);
        let (count, refused) = (Arc::new(count), Arc::<AtomicUsize>::default());
        let mut senders = Vec::new();
        for number in 0..2 {
            let name = format!("{name}{number}");
            let (client, key) = join_with_key(machine.url(), &name).await;
            let clients = [client, at(other, &key)];
            senders.push(tokio::spawn(send(
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

    async fn goes_on(&mut self) {
        let goal = *self.counted.borrow() + BETWEEN;
        reach(&mut self.counted, goal).await;
    }

    async fn all(self) -> Vec<String> {
        let mut all = Vec::new();
        for sender in self.senders {
            all.extend(
                tokio::time::timeout(PATIENCE, sender)
                    .await
                    .expect("the last is sent")
                    .unwrap(),
            );
        }
        all
    }
}

/// Sends at the first of the two until told to stop, and then whatever was refused at first once more at the other.
async fn send(
    [client, other]: [HubClient; 2],
    name: String,
    count: Arc<watch::Sender<usize>>,
    refused: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
) -> Vec<String> {
    let (mut sent, mut unsure) = (Vec::new(), BTreeSet::new());
    let mut pace = tokio::time::interval(PACE);
    pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while !stop.load(Ordering::SeqCst) {
        let text = format!("{name}-{:05}", sent.len());
        loop {
            pace.tick().await;
            let answer = once(&client, &name, "bob", &text, &text)
                .await
                .expect("a hub answers, whatever it has lost");
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
            unsure.insert(text.clone());
        }
        sent.push(text);
        count.send_modify(|count| *count += 1);
    }
    for text in unsure {
        let again = once(&other, &name, "bob", &text, &text).await.unwrap();
        assert!(
            (200..300).contains(&again.status),
            "{}",
            String::from_utf8_lossy(&again.body)
        );
    }
    sent
}

async fn listen(machine: &Machine, key: &str) -> JoinHandle<Heard> {
    tokio::spawn(hear(at(machine, key).open_inbox(Some(Cursor::START)).await))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_is_there_once_however_long_packets_vanish() {
    let Some(land) = Land::settle() else { return };
    let Land { near, far, .. } = &land;
    let (bob, key) = join_with_key(near.url(), "bob").await;
    let streams = [listen(near, &key).await, listen(far, &key).await];
    // On one connection that outlasts it all.
    let (_, carol) = join_with_key(near.url(), "carol").await;
    let mut quiet = Inbox::open(&far.hub, &carol);
    let stop = Arc::<AtomicBool>::default();
    let (mut here, mut there) = (
        Side::start([near, far], "near", &stop).await,
        Side::start([far, near], "far", &stop).await,
    );
    here.goes_on().await;
    there.goes_on().await;
    far.database.swallow();
    far.bus.swallow();
    let began = Instant::now();
    while began.elapsed() < AWAY {
        here.goes_on().await;
    }
    assert!(
        there.refused.load(Ordering::SeqCst) > 0,
        "who is cut off says so, in time"
    );
    assert_eq!(
        here.refused.load(Ordering::SeqCst),
        0,
        "and nobody else is refused"
    );
    far.database.mend();
    far.bus.mend();
    there.goes_on().await;
    here.goes_on().await;
    says(
        &join(near.url(), "dave").await,
        "dave",
        "carol",
        "still there",
    )
    .await;
    quiet.until("still there");
    stop.store(true, Ordering::SeqCst);
    let mut sent = here.all().await;
    sent.extend(there.all().await);
    let kept: Vec<(u64, String)> = history(&bob).await.into_iter().collect();
    let once: BTreeSet<&String> = kept.iter().map(|(_, text)| text).collect();
    assert_eq!(
        (kept.len(), once),
        (sent.len(), sent.iter().collect()),
        "each is there, and once"
    );
    let last = kept.last().unwrap().0;
    for stream in streams {
        assert_eq!(
            until(stream, last).await,
            kept,
            "and each stream heard it once, in order"
        );
    }
}
