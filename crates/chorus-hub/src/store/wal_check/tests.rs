//! Changed and torn write-ahead logs, made from one that SQLite wrote.

use super::*;

const FRAME_BYTES: usize = FRAME_HEADER_BYTES + DEFAULT_PAGE_BYTES;

/// A write-ahead log as SQLite leaves it after a crash, and where each of its transactions begins, in frames.
struct CrashedLog {
    folder: tempfile::TempDir,
    bytes: Vec<u8>,
    transactions: Vec<usize>,
}

impl CrashedLog {
    /// Several transactions of several frames each. The log has been started again once, so old frames follow the new ones.
    fn write() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("source.db");
        let connection = rusqlite::Connection::open(&file).unwrap();
        let settings =
            "pragma page_size = 4096; pragma journal_mode = wal; pragma wal_autocheckpoint = 0;
             create table t (a integer primary key, b blob);";
        connection.execute_batch(settings).unwrap();
        let insert = |count: usize| {
            let sql = format!(
                "with recursive n(i) as (select 1 union all select i + 1 from n where i < {count})
                 insert into t (b) select randomblob(3000) from n"
            );
            connection.execute_batch(&sql).unwrap();
        };
        for _ in 0..10 {
            insert(4);
        }
        let restart = connection.query_row("pragma wal_checkpoint(restart)", [], |_| Ok(()));
        restart.unwrap();
        let wal = folder.path().join("source.db-wal");
        let old_bytes = std::fs::metadata(&wal).unwrap().len();
        let mut transactions = Vec::new();
        let mut bytes = Vec::new();
        for _ in 0..5 {
            transactions.push(count_new_frames(&bytes));
            insert(4);
            bytes = std::fs::read(&wal).unwrap();
        }
        assert_eq!(bytes.len() as u64, old_bytes, "old frames follow");
        Self {
            folder,
            bytes,
            transactions,
        }
    }

    fn frame_start(frame: usize) -> usize {
        HEADER_BYTES + frame * FRAME_BYTES
    }

    fn frame_count(&self) -> usize {
        count_new_frames(&self.bytes)
    }

    fn check(&self, change: impl FnOnce(&mut Vec<u8>)) -> Option<WalDamage> {
        let mut bytes = self.bytes.clone();
        change(&mut bytes);
        let path = self.folder.path().join("changed.db-wal");
        std::fs::write(&path, bytes).unwrap();
        find_wal_damage(&path).unwrap()
    }
}

/// The frames with the salts of the header.
fn count_new_frames(bytes: &[u8]) -> usize {
    let frames = bytes.get(HEADER_BYTES..).unwrap_or_default();
    frames
        .chunks_exact(FRAME_BYTES)
        .filter(|frame| frame[8..16] == bytes[16..24])
        .count()
}

#[test]
fn a_whole_log_and_no_log_are_sound() {
    let log = CrashedLog::write();
    assert_eq!(log.check(|_| ()), None);
    assert_eq!(log.check(Vec::clear), None);
    let missing = log.folder.path().join("missing");
    assert_eq!(find_wal_damage(&missing).unwrap(), None);
}

#[test]
fn a_changed_byte_before_the_last_transaction_is_damage() {
    let log = CrashedLog::write();
    let last_transaction = *log.transactions.last().unwrap();
    for frame in 0..last_transaction {
        let start = CrashedLog::frame_start(frame);
        let following = log.transactions.iter().filter(|first| **first > frame);
        for byte in [3, 10, 20, 24, 2_000, FRAME_BYTES - 1] {
            let damage = log.check(|bytes| bytes[start + byte] ^= 0x10);
            let damage = damage.unwrap_or_else(|| panic!("byte {byte} of frame {frame}"));
            assert_eq!(damage.offset, start as u64);
            assert!(damage.lost_transactions >= following.clone().count() as u64);
        }
    }
}

#[test]
fn a_changed_page_of_the_last_transaction_is_damage_if_frames_follow() {
    let log = CrashedLog::write();
    let last_transaction = *log.transactions.last().unwrap();
    assert!(log.frame_count() > last_transaction + 2);
    let page = CrashedLog::frame_start(last_transaction) + FRAME_HEADER_BYTES;
    assert!(log.check(|bytes| bytes[page + 100] ^= 1).is_some());
}

#[test]
fn what_a_power_cut_leaves_is_sound() {
    let log = CrashedLog::write();
    let last_transaction = *log.transactions.last().unwrap();
    let frame_count = log.frame_count();
    for frame in last_transaction..frame_count {
        let start = CrashedLog::frame_start(frame);
        assert_eq!(log.check(|bytes| bytes.truncate(start)), None, "cut off");
        assert_eq!(
            log.check(|bytes| bytes.truncate(start + 1_000)),
            None,
            "inside a frame"
        );
        // Blocks of the disk of the unsynced transaction that were not written, also with later ones written.
        let block = start / 4_096 * 4_096;
        let lost = |bytes: &mut Vec<u8>| {
            let end = (block + 4_096).min(bytes.len());
            bytes[block.max(CrashedLog::frame_start(last_transaction))..end].fill(0);
        };
        assert_eq!(log.check(lost), None, "a lost block at frame {frame}");
    }
    assert_eq!(log.check(|bytes| bytes.fill(0)), None, "never written");
}

#[test]
fn a_damaged_header_is_damage() {
    let log = CrashedLog::write();
    for byte in [0, 9, 17, 30] {
        let damage = log.check(|bytes| bytes[byte] ^= 0x10).expect("damage");
        assert_eq!(damage.offset, 0);
        assert!(damage.lost_transactions >= log.transactions.len() as u64);
    }
}
