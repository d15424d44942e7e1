//! The store's promises that cannot be seen from outside: groups, places and times.

use super::log::{self, DeliveryState, LogHead};
use super::{EntryKind, EntryPublisher, LogEntry, NewLogEntry, Store};
use crate::Clock;
use chorus_wire::{Code, Error, time::UnixMicros};
use proptest::prelude::*;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Hears what is published, and takes it when told to.
#[derive(Default)]
struct Ear {
    heard: Mutex<Vec<i64>>,
    draining: bool,
}

impl EntryPublisher for Ear {
    fn has_draining_stream(&self, _: i64) -> bool {
        self.draining
    }

    fn publish_entry(&self, entry: &LogEntry) -> bool {
        self.heard.lock().unwrap().push(entry.seq);
        self.draining
    }

    fn resync_streams(&self) {}
}

fn message(body: &str) -> NewLogEntry {
    NewLogEntry {
        subject: 1,
        subject_name: "bob@chorus".into(),
        kind: EntryKind::Message,
        actor: 2,
        actor_name: "alice@chorus".into(),
        body: body.into(),
        fallback: Some(DeliveryState::Queued),
    }
}

async fn open(ear: &Arc<Ear>, clock: &Clock) -> (Store, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), None, clock.clone(), ear.clone())
        .await
        .unwrap();
    (store, dir)
}

fn held() -> Clock {
    Clock::manual_at(UnixMicros(1_774_000_000_000_000))
}

/// Law 4: one failed piece of work undoes itself, and the others of its group are committed and published in order.
#[tokio::test]
async fn a_failed_write_undoes_itself_and_nothing_else() {
    let (ear, clock) = (Arc::new(Ear::default()), held());
    let (store, _dir) = open(&ear, &clock).await;
    let set = async |name: &'static str, fail: bool| {
        let work = store.write_entries(async move |txn| {
            super::counters::write_setting(&txn.tx, name, 7).await?;
            txn.append_entry(message(name));
            if fail {
                Err(Error::from(Code::Forbidden))
            } else {
                Ok(())
            }
        });
        work.await
    };
    let (first, broken, last) =
        tokio::join!(set("first", false), set("broken", true), set("last", false));
    assert_eq!(broken.unwrap_err().code, Code::Forbidden);
    let seqs: Vec<i64> = [first.unwrap().1, last.unwrap().1]
        .iter()
        .flatten()
        .map(|entry| entry.seq)
        .collect();
    assert_eq!(seqs, [1, 2], "a rolled-back entry leaves no gap");
    assert_eq!(*ear.heard.lock().unwrap(), [1, 2]);
    let settings = store.read(async |tx| {
        let mut found = Vec::new();
        for name in ["first", "broken", "last"] {
            found.push(super::counters::read_setting(tx, name).await?);
        }
        Ok(found)
    });
    assert_eq!(settings.await.unwrap(), [Some(7), None, Some(7)]);
}

/// A bug in one write is that write's problem.
#[tokio::test]
async fn a_panicking_write_leaves_the_writer_alive() {
    let (ear, clock) = (Arc::new(Ear::default()), held());
    let (store, _dir) = open(&ear, &clock).await;
    let broken = store.write::<(), _>(async |txn| {
        txn.append_entry(message("lost"));
        panic!("on purpose")
    });
    assert_eq!(broken.await.unwrap_err().code, Code::Internal);
    assert_eq!(store.append_entry(message("kept")).await.unwrap().seq, 1);
}

/// times strictly increase while the clock stands still, and the time finds the place.
#[tokio::test]
async fn an_instant_finds_the_place_before_it() {
    let (ear, clock) = (Arc::new(Ear::default()), held());
    let (store, _dir) = open(&ear, &clock).await;
    let mut times = Vec::new();
    for round in 0..40 {
        times.push(store.append_entry(message("{}")).await.unwrap().at);
        if round % 3 == 0 {
            clock.advance(Duration::from_micros(5));
        }
    }
    assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
    for (place, at) in times.iter().enumerate() {
        let (at, after) = (*at, UnixMicros(at.0 + 1));
        let found = store.read(async move |tx| {
            Ok((
                log::find_seq_before(tx, at).await?,
                log::find_seq_before(tx, after).await?,
            ))
        });
        assert_eq!(found.await.unwrap(), (place as i64, place as i64 + 1));
    }
    let (early, late) = (UnixMicros(0), UnixMicros(i64::MAX));
    let found = store.read(async move |tx| {
        Ok((
            log::find_seq_before(tx, early).await?,
            log::find_seq_before(tx, late).await?,
        ))
    });
    assert_eq!(found.await.unwrap(), (0, 40));
}

/// Laws 4 and 6: a closed store refuses at once, with an error that may be tried again.
#[tokio::test]
async fn a_closed_store_refuses_writes() {
    let (ear, clock) = (Arc::new(Ear::default()), held());
    let (store, _dir) = open(&ear, &clock).await;
    store.append_entry(message("{}")).await.unwrap();
    store.close().await;
    assert_eq!(
        store.append_entry(message("{}")).await.unwrap_err().code,
        Code::Unavailable
    );
}

/// The mark is decided at commit: a listener makes it a delivery.
#[tokio::test]
async fn a_draining_listener_makes_it_a_delivery() {
    let clock = held();
    for (draining, mark) in [(false, DeliveryState::Queued), (true, DeliveryState::Sse)] {
        let ear = Arc::new(Ear {
            draining,
            ..Ear::default()
        });
        let (store, _dir) = open(&ear, &clock).await;
        let entry = store.append_entry(message("{}")).await.unwrap();
        assert_eq!((entry.delivery, entry.accepted), (Some(mark), draining));
    }
}

/// D-83
#[test]
fn a_late_answer_about_the_time_sets_no_clock() {
    let said = UnixMicros(1_774_000_000_000_000);
    let after = |millis| super::writer::estimate_now(said, Duration::from_millis(millis));
    assert_eq!(after(0), Some(said));
    assert_eq!(
        after(200),
        Some(said.saturating_add(Duration::from_millis(100))),
        "it was said halfway"
    );
    assert_eq!(after(5_000), None);
}

/// A copy that could not be made is an error, and nothing that looks like a copy.
#[tokio::test]
async fn a_backup_of_a_database_that_is_held_says_so() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let holder = rusqlite::Connection::open(from.path().join(super::DATABASE_FILE)).unwrap();
    holder
        .execute_batch("create table t (a); pragma locking_mode = exclusive; begin exclusive;")
        .unwrap();
    assert!(super::backup_database(from.path(), &to.path().join("copy")).is_err());
    assert!(!to.path().join("copy").join(super::DATABASE_FILE).exists());
}

/// messages and endpoints are nobody else's on the machine.
#[tokio::test]
async fn the_database_and_its_copy_are_readable_by_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let (ear, clock, parent) = (
        Arc::new(Ear::default()),
        held(),
        tempfile::tempdir().unwrap(),
    );
    let (home, copy) = (parent.path().join("data"), parent.path().join("copy"));
    let store = Store::open(&home, None, clock, ear).await.unwrap();
    store.append_entry(message("{}")).await.unwrap();
    super::backup_database(&home, &copy).unwrap();
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&home), mode(&copy)), (0o700, 0o700));
    for file in [
        home.join(super::DATABASE_FILE),
        home.join("chorus.db-wal"),
        copy.join(super::DATABASE_FILE),
    ] {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

proptest! {
    /// `id`, `timestamp` and `trace_id` sort alike, and a trace id tells its place.
    #[test]
    fn trace_ids_sort_like_places_and_times(
        steps in prop::collection::vec(-5_000i64..5_000, 1..60),
        salt in any::<u32>(),
        start in 0i64..4_000_000_000_000_000,
    ) {
        let (mut head, mut now) = (LogHead { seq: 41, at: start, ..LogHead::default() }, start);
        let mut last: Option<(uuid::Uuid, String)> = None;
        for step in steps {
            now += step;
            let (seq, at) = head.allocate_seq(UnixMicros(now));
            let id = log::compute_trace_id(seq, at, salt);
            prop_assert_eq!(log::trace_id_seq(&id), seq);
            prop_assert_eq!(id.get_version_num(), 7);
            prop_assert_eq!(id.get_variant(), uuid::Variant::RFC4122);
            let text = (id, at.to_string());
            if let Some((id, at)) = &last {
                prop_assert!(*id < text.0 && id.to_string() < text.0.to_string());
                prop_assert!(*at < text.1);
            }
            last = Some(text);
        }
    }
}
