//! Crash story: a hub is killed repeatedly under load, and no acknowledged message is lost or doubled (R-24, R-25, R-27,
//! lessons 12, 13 and 15).

use crate::actors::{Hub, TIMEOUT};
use crate::postgres::Database;
use chorus_client::HubClient;
use chorus_client::backoff::Backoff;
use chorus_client::event_stream::EventStream;
use chorus_client::identity::RegistrationRequest;
use chorus_wire::cursor::Cursor;
use chorus_wire::envelope::{Envelope, EnvelopeDraft};
use chorus_wire::message::MessageEvent;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

const SENDERS: usize = 4;
const CRASHES: usize = 3;
/// Acknowledged sends between two crashes.
const SENDS_PER_CRASH: usize = 150;

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_messages_are_stored_once_after_kill_9_on_sqlite() {
    run_crash_story(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_messages_are_stored_once_after_kill_9_on_postgresql() {
    if let Some(database) = Database::fresh().await {
        run_crash_story(Some(&database.url)).await;
    }
}

/// The outcome of each send, as the senders know it.
#[derive(Default)]
pub struct SendRecord {
    pub acknowledged: BTreeSet<String>,
    /// Sends without an answer: stored once or not at all.
    pub unknown: BTreeSet<String>,
}

async fn run_crash_story(database: Option<&str>) {
    let folder = tempfile::tempdir().unwrap();
    let start = |listen: &str| {
        let mut options = vec!["--listen", listen];
        options.extend(database.iter().flat_map(|url| ["--database", url]));
        Hub::start(folder.path(), &options)
    };
    let mut hub = start("127.0.0.1:0");
    let address = hub.url.strip_prefix("http://").unwrap().to_owned();
    let bob = register_client(&hub.url, "bob").await;
    let live_messages = tokio::spawn(collect_messages(bob.open_inbox(Some(Cursor::START)).await));
    let record = Arc::new(Mutex::new(SendRecord::default()));
    let stop = Arc::new(AtomicBool::new(false));
    let (count, mut counted) = watch::channel(0);
    let count = Arc::new(count);
    let mut senders = Vec::new();
    for number in 0..SENDERS {
        let name = format!("sender{number}");
        let client = register_client(&hub.url, &name).await;
        senders.push(tokio::spawn(send_messages(
            client,
            name,
            record.clone(),
            count.clone(),
            stop.clone(),
        )));
    }
    for crash in 1..=CRASHES {
        wait_for_count(&mut counted, crash * SENDS_PER_CRASH).await;
        hub.process.send_signal("KILL");
        hub.process.await_exit();
        hub = start(&address);
    }
    wait_for_count(&mut counted, (CRASHES + 1) * SENDS_PER_CRASH).await;
    stop.store(true, Ordering::SeqCst);
    for sender in senders {
        sender.await.unwrap();
    }
    let record = record.lock().unwrap();
    let history = tokio::task::block_in_place(|| {
        tokio::runtime::Handle::current().block_on(fetch_all_texts(&bob))
    });
    check_history(&record, &history);
    let last = *history.last_key_value().unwrap().0;
    let streams = tokio::task::block_in_place(|| {
        tokio::runtime::Handle::current().block_on(async {
            let live = read_until_seq(live_messages, last).await;
            let replay = read_until_seq(
                tokio::spawn(collect_messages(bob.open_inbox(Some(Cursor::START)).await)),
                last,
            )
            .await;
            (live, replay)
        })
    });
    let stored: Vec<(u64, String)> = history.into_iter().collect();
    assert_eq!(
        streams.0, stored,
        "the live stream returned every message once, in order"
    );
    assert_eq!(streams.1, stored, "and so does a stream from the start");
}

pub fn check_history(record: &SendRecord, history: &BTreeMap<u64, String>) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for text in history.values() {
        *counts.entry(text).or_default() += 1;
    }
    for text in &record.acknowledged {
        assert_eq!(
            counts.get(text.as_str()),
            Some(&1),
            "{text} was acknowledged"
        );
    }
    for (text, counts) in counts {
        assert_eq!(counts, 1, "{text} is stored more than once");
        assert!(
            record.acknowledged.contains(text) || record.unknown.contains(text),
            "{text} was never sent"
        );
    }
}

/// The registration of an agent, also for a key rotation.
pub fn registration(name: &str) -> RegistrationRequest {
    RegistrationRequest {
        agent_id: format!("{name}@chorus"),
        culture: "en".into(),
        languages: vec!["en".into()],
        endpoint: None,
        endpoint_secret: None,
        invite_code: None,
        owner_id: None,
        api_endpoint: None,
    }
}

pub async fn register_client(hub: &str, name: &str) -> HubClient {
    register_with_key(hub, name).await.0
}

/// Registers an agent, and returns its key for tests that do not use the client.
pub async fn register_with_key(hub: &str, name: &str) -> (HubClient, String) {
    let registered = HubClient::new(hub, None)
        .unwrap()
        .register_agent(&registration(name))
        .await
        .unwrap();
    let key = registered.api_key.unwrap();
    let mut client = HubClient::new(hub, Some(key.clone())).unwrap();
    client.backoff = Backoff {
        first_delay: Duration::from_millis(20),
        max_delay: Duration::from_millis(400),
    };
    (client, key.expose().to_owned())
}

/// Sends messages one after the other until `stop` is set; the client retries a broken send with its idempotency key.
pub async fn send_messages(
    client: HubClient,
    name: String,
    record: Arc<Mutex<SendRecord>>,
    count: Arc<watch::Sender<usize>>,
    stop: Arc<AtomicBool>,
) {
    for number in 0.. {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        let text = format!("{name}-{number:05}");
        match client
            .send_message("bob@chorus", &envelope(&name, &text), 0)
            .await
        {
            Ok(_) => {
                record.lock().unwrap().acknowledged.insert(text);
                count.send_modify(|count| *count += 1);
            }
            Err(error) => {
                assert!(error.is_transient(), "{error:?}");
                record.lock().unwrap().unknown.insert(text);
            }
        }
    }
}

pub fn envelope(name: &str, text: &str) -> Envelope {
    let draft = EnvelopeDraft {
        chorus_version: Some("0.4".into()),
        sender_id: Some(format!("{name}@chorus")),
        original_text: Some(text.to_owned()),
        sender_culture: Some("en".into()),
        ..EnvelopeDraft::default()
    };
    draft.into_envelope().unwrap()
}

pub async fn wait_for_count(counted: &mut watch::Receiver<usize>, goal: usize) {
    let reached = tokio::time::timeout(TIMEOUT, counted.wait_for(|count| *count >= goal)).await;
    assert!(
        reached.is_ok(),
        "{goal} sends were not acknowledged in time"
    );
}

/// The sequence and text of each received message.
pub type MessageReceiver = tokio::sync::mpsc::UnboundedReceiver<(u64, String)>;

pub async fn collect_messages(mut stream: EventStream) -> MessageReceiver {
    let (message_sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let event = stream.next().await.unwrap();
            if event.name == "message" {
                let message: MessageEvent = serde_json::from_str(&event.data).unwrap();
                let sent = message_sender
                    .send((event.cursor.unwrap().seq, text_of(message.envelope.get())));
                if sent.is_err() {
                    return;
                }
            }
        }
    });
    receiver
}

/// All messages up to the sequence `last`.
pub async fn read_until_seq(
    receiver: tokio::task::JoinHandle<MessageReceiver>,
    last: u64,
) -> Vec<(u64, String)> {
    let mut receiver = receiver.await.unwrap();
    let mut all: Vec<(u64, String)> = Vec::new();
    while all.last().is_none_or(|(id, _)| *id < last) {
        let next = tokio::time::timeout(TIMEOUT, receiver.recv()).await;
        all.push(next.expect("the stream hangs").unwrap());
    }
    all
}

pub async fn fetch_all_texts(bob: &HubClient) -> BTreeMap<u64, String> {
    let mut all = BTreeMap::new();
    let mut since = String::from("0");
    loop {
        let page = bob.fetch_history(Some(&since)).await.unwrap();
        let Some(last) = page.last() else { return all };
        since = last.id.to_string();
        for row in page {
            assert!(
                all.insert(row.id, text_of(row.envelope.get())).is_none(),
                "id {} is repeated",
                row.id
            );
        }
    }
}

fn text_of(envelope: &str) -> String {
    Envelope::parse(envelope)
        .unwrap()
        .original_text()
        .to_owned()
}
