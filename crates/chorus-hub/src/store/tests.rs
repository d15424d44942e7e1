//! What tests from outside cannot see of the store: write groups, sequences and times.

use super::log::{self, DeliveryState, LogHead};
use super::log_start;
use super::{
    DatabaseUrl, EntryKind, EntryPublisher, LogEntry, LogSeq, NewLogEntry, SqliteFile, Store,
    SubjectId, counters, messages,
};
use crate::{Clock, PageCaches};
use chorus_wire::{Error, ErrorCode, time::UnixMicros};
use proptest::prelude::*;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Records the published sequences; with `draining` it takes every entry.
#[derive(Default)]
struct RecordingPublisher {
    published: Mutex<Vec<LogSeq>>,
    draining: bool,
}

impl EntryPublisher for RecordingPublisher {
    fn has_draining_stream(&self, _: SubjectId) -> bool {
        self.draining
    }

    fn publish_entry(&self, entry: &LogEntry) -> bool {
        self.published.lock().unwrap().push(entry.seq);
        self.draining
    }

    fn resync_streams(&self) {}
}

fn new_message(body: &str) -> NewLogEntry {
    NewLogEntry {
        subject: SubjectId(1),
        subject_name: "bob@chorus".into(),
        kind: EntryKind::Message,
        actor: SubjectId(2),
        actor_name: "alice@chorus".into(),
        body: body.into(),
        fallback: Some(DeliveryState::Queued),
    }
}

async fn open_store(
    publisher: &Arc<RecordingPublisher>,
    clock: &Clock,
) -> (Store, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(
        dir.path(),
        DatabaseUrl::in_data_dir(dir.path(), PageCaches::MAX),
        false,
        clock.clone(),
        publisher.clone(),
    )
    .await
    .unwrap();
    (store, dir)
}

fn stopped_clock() -> Clock {
    Clock::manual_at(UnixMicros(1_774_000_000_000_000))
}

/// Invariant 4: a failed request is rolled back alone, and the others of its group are committed and published in order.
#[tokio::test]
async fn a_failed_write_is_rolled_back_alone() {
    let publisher = Arc::new(RecordingPublisher::default());
    let clock = stopped_clock();
    let (store, _dir) = open_store(&publisher, &clock).await;
    let write_one = async |name: &'static str, fail: bool| {
        let result = store.write_entries(async move |txn| {
            super::counters::write_setting(&txn.tx, name, 7).await?;
            txn.append_entry(new_message(name));
            if fail {
                Err(Error::from(ErrorCode::Forbidden))
            } else {
                Ok(())
            }
        });
        result.await
    };
    let (first, broken, last) = tokio::join!(
        write_one("first", false),
        write_one("broken", true),
        write_one("last", false)
    );
    assert_eq!(broken.unwrap_err().code, ErrorCode::Forbidden);
    let seqs: Vec<LogSeq> = [first.unwrap().1, last.unwrap().1]
        .iter()
        .flatten()
        .map(|entry| entry.seq)
        .collect();
    assert_eq!(
        seqs,
        [LogSeq(1), LogSeq(2)],
        "a rolled-back entry leaves no gap"
    );
    assert_eq!(*publisher.published.lock().unwrap(), [LogSeq(1), LogSeq(2)]);
    let settings = store.read(async |tx| {
        let mut found = Vec::new();
        for name in ["first", "broken", "last"] {
            found.push(super::counters::read_setting(tx, name).await?);
        }
        Ok(found)
    });
    assert_eq!(settings.await.unwrap(), [Some(7), None, Some(7)]);
}

/// A panic in one write fails only that write.
#[tokio::test]
async fn a_panicking_write_does_not_stop_the_writer() {
    let publisher = Arc::new(RecordingPublisher::default());
    let clock = stopped_clock();
    let (store, _dir) = open_store(&publisher, &clock).await;
    let broken = store.write::<(), _>(async |txn| {
        txn.append_entry(new_message("lost"));
        panic!("on purpose")
    });
    assert_eq!(broken.await.unwrap_err().code, ErrorCode::Internal);
    assert_eq!(
        store.append_entry(new_message("kept")).await.unwrap().seq,
        LogSeq(1)
    );
}

/// times strictly increase while the clock stands still, and a time leads to its sequence.
#[tokio::test]
async fn a_time_finds_the_sequence_before_it() {
    let publisher = Arc::new(RecordingPublisher::default());
    let clock = stopped_clock();
    let (store, _dir) = open_store(&publisher, &clock).await;
    let mut times = Vec::new();
    for round in 0..40 {
        times.push(store.append_entry(new_message("{}")).await.unwrap().at);
        if round % 3 == 0 {
            clock.advance(Duration::from_micros(5));
        }
    }
    assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
    for (index, at) in times.iter().enumerate() {
        let at = *at;
        let just_after = UnixMicros(at.0 + 1);
        let found = store.read(async move |tx| {
            Ok((
                log_start::find_seq_before(tx, at).await?,
                log_start::find_seq_before(tx, just_after).await?,
            ))
        });
        assert_eq!(
            found.await.unwrap(),
            (LogSeq(index as i64), LogSeq(index as i64 + 1))
        );
    }
    let early = UnixMicros(0);
    let late = UnixMicros(i64::MAX);
    let found = store.read(async move |tx| {
        Ok((
            log_start::find_seq_before(tx, early).await?,
            log_start::find_seq_before(tx, late).await?,
        ))
    });
    assert_eq!(found.await.unwrap(), (LogSeq(0), LogSeq(40)));
}

/// Invariants 4 and 6: a closed store refuses writes at once, with a retryable error.
#[tokio::test]
async fn a_closed_store_refuses_writes() {
    let publisher = Arc::new(RecordingPublisher::default());
    let clock = stopped_clock();
    let (store, _dir) = open_store(&publisher, &clock).await;
    store.append_entry(new_message("{}")).await.unwrap();
    store.close().await;
    assert_eq!(
        store
            .append_entry(new_message("{}"))
            .await
            .unwrap_err()
            .code,
        ErrorCode::Unavailable
    );
}

/// The delivery state is decided when the entry is appended: a draining stream makes it `sse`.
#[tokio::test]
async fn a_draining_stream_makes_a_message_delivered() {
    let clock = stopped_clock();
    for (draining, state) in [(false, DeliveryState::Queued), (true, DeliveryState::Sse)] {
        let publisher = Arc::new(RecordingPublisher {
            draining,
            ..RecordingPublisher::default()
        });
        let (store, _dir) = open_store(&publisher, &clock).await;
        let entry = store.append_entry(new_message("{}")).await.unwrap();
        assert_eq!((entry.delivery, entry.accepted), (Some(state), draining));
    }
}

/// a stream may have read a queued message from the log, and said so, before its state is corrected to `sse`.
#[tokio::test]
async fn a_message_that_was_read_before_its_correction_counts_once() {
    let publisher = Arc::new(RecordingPublisher::default());
    let (store, _dir) = open_store(&publisher, &stopped_clock()).await;
    let seq = store.append_entry(new_message("{}")).await.unwrap().seq;
    for (from, to) in [
        (DeliveryState::Queued, DeliveryState::Sse),
        (DeliveryState::Sse, DeliveryState::Queued),
    ] {
        let changed = store
            .write(async move |txn| {
                messages::mark_messages_delivered(txn, &[seq]).await?;
                Ok(messages::change_delivery_state(txn, seq, from, to).await?)
            })
            .await;
        assert!(changed.unwrap());
        let counters = store
            .read(async move |tx| Ok(counters::read_counters(tx).await?))
            .await
            .unwrap();
        assert_eq!((counters.delivered, counters.queued), (1, 0), "{to:?}");
    }
}

/// D-83
#[test]
fn a_slow_answer_does_not_set_the_clock() {
    let server_time = UnixMicros(1_774_000_000_000_000);
    let estimate_after =
        |millis| super::sync_clock::estimate_now(server_time, Duration::from_millis(millis));
    assert_eq!(estimate_after(0), Some(server_time));
    assert_eq!(
        estimate_after(200),
        Some(server_time.saturating_add(Duration::from_millis(100))),
        "the server read its clock halfway through the round trip"
    );
    assert_eq!(estimate_after(5_000), None);
}

/// A program that goes on reading the database file must not make the write-ahead log fill the disk.
#[tokio::test]
async fn writes_are_refused_while_a_reader_keeps_too_much_of_the_log_from_being_copied() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(super::DATABASE_FILE);
    let file = SqliteFile {
        path: path.clone(),
        page_caches: PageCaches::MAX,
        max_uncopied_pages: 100,
    };
    let publisher = Arc::new(RecordingPublisher::default());
    let database = DatabaseUrl::Sqlite(file);
    let store = Store::open(dir.path(), database, false, stopped_clock(), publisher)
        .await
        .unwrap();
    store.append_entry(new_message("{}")).await.unwrap();
    let reader = rusqlite::Connection::open(&path).unwrap();
    reader.execute_batch("begin").unwrap();
    let count = "select count(*) from log";
    let read: i64 = reader.query_row(count, [], |row| row.get(0)).unwrap();
    assert!(read > 0, "it holds a snapshot");
    let mut refusal = None;
    for _ in 0..50_000 {
        refusal = store.append_entry(new_message("{}")).await.err();
        if refusal.is_some() {
            break;
        }
    }
    let refusal = refusal.expect("writes are refused");
    assert_eq!(refusal.code, ErrorCode::Unavailable);
    let cause = refusal.cause.unwrap_or_default();
    assert!(cause.contains("the write-ahead log is full"), "{cause}");
    reader.execute_batch("commit").unwrap();
    let writing_again = async {
        while store.append_entry(new_message("{}")).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), writing_again)
        .await
        .expect("the log is copied, and writes go on");
}

/// A failed backup is an error and leaves no file that looks like a backup.
#[tokio::test]
async fn a_backup_of_a_locked_database_fails() {
    let from = tempfile::tempdir().unwrap();
    let to = tempfile::tempdir().unwrap();
    let lock_holder = rusqlite::Connection::open(from.path().join(super::DATABASE_FILE)).unwrap();
    lock_holder
        .execute_batch("create table t (a); pragma locking_mode = exclusive; begin exclusive;")
        .unwrap();
    assert!(super::backup_database(from.path(), &to.path().join("copy")).is_err());
    assert!(!to.path().join("copy").join(super::DATABASE_FILE).exists());
}

/// other users of the machine can read neither messages nor endpoints.
#[tokio::test]
async fn the_database_and_its_backup_are_readable_by_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let publisher = Arc::new(RecordingPublisher::default());
    let parent = tempfile::tempdir().unwrap();
    let data_dir = parent.path().join("data");
    let backup_dir = parent.path().join("copy");
    let store = Store::open(
        &data_dir,
        DatabaseUrl::in_data_dir(&data_dir, PageCaches::MAX),
        false,
        stopped_clock(),
        publisher,
    )
    .await
    .unwrap();
    store.append_entry(new_message("{}")).await.unwrap();
    super::backup_database(&data_dir, &backup_dir).unwrap();
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&data_dir), mode(&backup_dir)), (0o700, 0o700));
    for file in [
        data_dir.join(super::DATABASE_FILE),
        data_dir.join("chorus.db-wal"),
        backup_dir.join(super::DATABASE_FILE),
    ] {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

proptest! {
    /// `id`, `timestamp` and `trace_id` sort alike, and a trace id contains its sequence.
    #[test]
    fn trace_ids_sort_like_sequences_and_times(
        steps in prop::collection::vec(-5_000i64..5_000, 1..60),
        salt in any::<u32>(),
        start in 0i64..4_000_000_000_000_000,
    ) {
        let mut head = LogHead { seq: LogSeq(41), at: start, ..LogHead::default() };
        let mut now = start;
        let mut last: Option<(uuid::Uuid, String)> = None;
        for step in steps {
            now += step;
            let (seq, at) = head.allocate_seq(UnixMicros(now));
            let id = log::compute_trace_id(seq, at, salt);
            prop_assert_eq!(log::trace_id_seq(&id), seq);
            prop_assert_eq!(id.get_version_num(), 7);
            prop_assert_eq!(id.get_variant(), uuid::Variant::RFC4122);
            let current = (id, at.to_string());
            if let Some((id, at)) = &last {
                prop_assert!(*id < current.0 && id.to_string() < current.0.to_string());
                prop_assert!(*at < current.1);
            }
            last = Some(current);
        }
    }
}
