//! The crash story: a hub is killed under load, again and again, and nothing that it acknowledged is lost or doubled
//! (R-24, R-25, R-27, lessons 12, 13 and 15).

use crate::actors::{Hub, PATIENCE};
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
/// Acknowledged sends between one crash and the next.
const BETWEEN: usize = 150;

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_is_there_once_after_kill_9_on_sqlite() {
    story(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_is_there_once_after_kill_9_on_postgresql() {
    if let Some(database) = Database::fresh().await {
        story(Some(&database.url)).await;
    }
}

/// What the senders know.
#[derive(Default)]
pub struct Ledger {
    pub acknowledged: BTreeSet<String>,
    /// Given up without an answer: there once or not at all.
    pub unknown: BTreeSet<String>,
}

async fn story(database: Option<&str>) {
    let folder = tempfile::tempdir().unwrap();
    let start = |listen: &str| {
        let mut options = vec!["--listen", listen];
        options.extend(database.iter().flat_map(|url| ["--database", url]));
        Hub::start(folder.path(), &options)
    };
    let mut hub = start("127.0.0.1:0");
    let address = hub.url.strip_prefix("http://").unwrap().to_owned();
    let bob = join(&hub.url, "bob").await;
    let heard = tokio::spawn(hear(bob.open_inbox(Some(Cursor::START)).await));
    let (ledger, stop) = (
        Arc::new(Mutex::new(Ledger::default())),
        Arc::new(AtomicBool::new(false)),
    );
    let (count, mut counted) = watch::channel(0);
    let count = Arc::new(count);
    let mut senders = Vec::new();
    for number in 0..SENDERS {
        let name = format!("sender{number}");
        let client = join(&hub.url, &name).await;
        senders.push(tokio::spawn(send(
            client,
            name,
            ledger.clone(),
            count.clone(),
            stop.clone(),
        )));
    }
    for crash in 1..=CRASHES {
        reach(&mut counted, crash * BETWEEN).await;
        hub.process.signal("KILL");
        hub.process.await_end();
        hub = start(&address);
    }
    reach(&mut counted, (CRASHES + 1) * BETWEEN).await;
    stop.store(true, Ordering::SeqCst);
    for sender in senders {
        sender.await.unwrap();
    }
    let ledger = ledger.lock().unwrap();
    let history =
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(history(&bob)));
    judge(&ledger, &history);
    let last = *history.last_key_value().unwrap().0;
    let again = tokio::task::block_in_place(|| {
        tokio::runtime::Handle::current().block_on(async {
            let live = until(heard, last).await;
            let replay = until(
                tokio::spawn(hear(bob.open_inbox(Some(Cursor::START)).await)),
                last,
            )
            .await;
            (live, replay)
        })
    });
    let kept: Vec<(u64, String)> = history.into_iter().collect();
    assert_eq!(
        again.0, kept,
        "the stream that lived through it heard everything once, in order"
    );
    assert_eq!(again.1, kept, "and so does one that starts over");
}

pub fn judge(ledger: &Ledger, history: &BTreeMap<u64, String>) {
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for text in history.values() {
        *times.entry(text).or_default() += 1;
    }
    for text in &ledger.acknowledged {
        assert_eq!(
            times.get(text.as_str()),
            Some(&1),
            "{text} was acknowledged"
        );
    }
    for (text, times) in times {
        assert_eq!(times, 1, "{text} is there more than once");
        assert!(
            ledger.acknowledged.contains(text) || ledger.unknown.contains(text),
            "{text} was never sent"
        );
    }
}

/// As it registers, the first time and again.
pub fn newcomer(name: &str) -> RegistrationRequest {
    RegistrationRequest {
        agent_id: format!("{name}@chorus"),
        culture: "en".into(),
        languages: vec!["en".into()],
        endpoint: None,
        invite_code: None,
    }
}

pub async fn join(hub: &str, name: &str) -> HubClient {
    join_with_key(hub, name).await.0
}

/// The same, and the key for those who speak without the client.
pub async fn join_with_key(hub: &str, name: &str) -> (HubClient, String) {
    let registered = HubClient::new(hub, None)
        .unwrap()
        .register_agent(&newcomer(name))
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

/// Sends one message after the other until told to stop; a broken send is repeated under its own key by the client.
pub async fn send(
    client: HubClient,
    name: String,
    ledger: Arc<Mutex<Ledger>>,
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
                ledger.lock().unwrap().acknowledged.insert(text);
                count.send_modify(|count| *count += 1);
            }
            Err(error) => {
                assert!(error.is_transient(), "{error:?}");
                ledger.lock().unwrap().unknown.insert(text);
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

pub async fn reach(counted: &mut watch::Receiver<usize>, goal: usize) {
    let reached = tokio::time::timeout(PATIENCE, counted.wait_for(|count| *count >= goal)).await;
    assert!(
        reached.is_ok(),
        "{goal} sends were not acknowledged in time"
    );
}

/// The inbox as it is heard; ends when the receiver of what it heard is gone.
pub type Heard = tokio::sync::mpsc::UnboundedReceiver<(u64, String)>;

pub async fn hear(mut stream: EventStream) -> Heard {
    let (tell, heard) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let event = stream.next().await.unwrap();
            if event.name == "message" {
                let message: MessageEvent = serde_json::from_str(&event.data).unwrap();
                let told = tell.send((event.cursor.unwrap().seq, text_of(message.envelope.get())));
                if told.is_err() {
                    return;
                }
            }
        }
    });
    heard
}

/// Everything heard up to `last`.
pub async fn until(heard: tokio::task::JoinHandle<Heard>, last: u64) -> Vec<(u64, String)> {
    let mut heard = heard.await.unwrap();
    let mut all: Vec<(u64, String)> = Vec::new();
    while all.last().is_none_or(|(id, _)| *id < last) {
        let next = tokio::time::timeout(PATIENCE, heard.recv()).await;
        all.push(next.expect("the stream goes on").unwrap());
    }
    all
}

pub async fn history(bob: &HubClient) -> BTreeMap<u64, String> {
    let mut all = BTreeMap::new();
    let mut since = String::from("0");
    loop {
        let page = bob.fetch_history(Some(&since)).await.unwrap();
        let Some(last) = page.last() else { return all };
        since = last.id.to_string();
        for row in page {
            assert!(
                all.insert(row.id, text_of(row.envelope.get())).is_none(),
                "id {} comes twice",
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
