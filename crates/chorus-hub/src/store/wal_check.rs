//! Walks the checksums of SQLite's write-ahead log before SQLite does. SQLite ends its own recovery at the first frame that is not
//! valid and says nothing. That is right for the torn end which a power cut leaves, and a silent loss for damage before the end.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
/// With this magic number checksums are over little-endian words; with the next one, over big-endian words.
const MAGIC: u32 = 0x377f_0682;
const VERSION: u32 = 3_007_000;
/// The page size of the hub's databases, for a log whose header cannot be read.
const DEFAULT_PAGE_BYTES: usize = 4_096;
const READ_BUFFER_BYTES: usize = 1024 * 1024;

/// What is wrong with a write-ahead log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WalDamage {
    /// The byte at which the damaged frame, or the header, begins.
    pub offset: u64,
    /// Transactions that SQLite would drop.
    pub lost_transactions: u64,
}

/// The running checksum of the log.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct WalChecksum(u32, u32);

/// One frame: a changed page.
struct WalFrame {
    page_number: u32,
    /// The last frame of a transaction.
    is_commit: bool,
    salts: [u32; 2],
    stored_checksum: WalChecksum,
    /// The part of the frame's header that the checksum covers.
    covered_header: [u8; 8],
    page: Vec<u8>,
}

/// What the header of the log says.
struct WalHeader {
    salts: [u32; 2],
    checksum: WalChecksum,
    page_bytes: usize,
    is_big_endian: bool,
}

/// Whether the log has frames at all, valid or not.
pub(super) fn has_frames(wal: &Path) -> std::io::Result<bool> {
    match std::fs::metadata(wal) {
        Ok(file) => Ok(file.len() > HEADER_BYTES as u64),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The damage of the log, if it has any. A missing or empty log has none.
pub(super) fn find_wal_damage(wal: &Path) -> std::io::Result<Option<WalDamage>> {
    // One look at one open file: a reader that ends meanwhile, such as a backup, may take the log away.
    let file = match File::open(wal) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if file.metadata()?.len() <= HEADER_BYTES as u64 {
        return Ok(None);
    }
    let mut log = BufReader::with_capacity(READ_BUFFER_BYTES, file);
    let mut header_bytes = [0; HEADER_BYTES];
    log.read_exact(&mut header_bytes)?;
    match parse_header(&header_bytes) {
        Some(header) => walk_frames(&mut log, &header),
        // A header that was never written: a power cut before the first sync.
        None if header_bytes == [0; HEADER_BYTES] => Ok(None),
        None => {
            let lost_transactions = count_transactions(&mut log)?;
            Ok((lost_transactions > 0).then_some(WalDamage {
                offset: 0,
                lost_transactions,
            }))
        }
    }
}

/// `None` when the header is not valid: SQLite then ignores the whole log.
fn parse_header(bytes: &[u8; HEADER_BYTES]) -> Option<WalHeader> {
    let magic = read_u32(bytes, 0);
    let is_big_endian = magic & 1 == 1;
    let checksum = WalChecksum::default().add_bytes(&bytes[..24], is_big_endian);
    let page_bytes = read_u32(bytes, 8) as usize;
    let is_valid = magic & !1 == MAGIC
        && read_u32(bytes, 4) == VERSION
        && page_bytes.is_power_of_two()
        && (512..=65_536).contains(&page_bytes)
        && checksum == WalChecksum(read_u32(bytes, 24), read_u32(bytes, 28));
    is_valid.then_some(WalHeader {
        salts: [read_u32(bytes, 16), read_u32(bytes, 20)],
        checksum,
        page_bytes,
        is_big_endian,
    })
}

/// Follows the checksums to the first frame that is not valid, and judges what comes from there on.
fn walk_frames(log: &mut impl Read, header: &WalHeader) -> std::io::Result<Option<WalDamage>> {
    let mut checksum = header.checksum;
    let mut offset = HEADER_BYTES as u64;
    while let Some(frame) = read_frame(log, header.page_bytes)? {
        let expected = frame.checksum_after(checksum, header.is_big_endian);
        if !frame.is_of(header) || expected != frame.stored_checksum {
            return judge_rest(log, header, &frame, offset);
        }
        checksum = expected;
        offset += (FRAME_HEADER_BYTES + header.page_bytes) as u64;
    }
    Ok(None)
}

/// Decides between a torn end and damage. Every transaction is synced before the next one begins, so a power cut leaves at most one
/// that is incomplete, and loses its pages in any order. It is damage when whole transactions follow, or when the next frame
/// continues the checksum that the bad one has stored: then that one was written whole, and changed later.
fn judge_rest(
    log: &mut impl Read,
    header: &WalHeader,
    bad_frame: &WalFrame,
    offset: u64,
) -> std::io::Result<Option<WalDamage>> {
    let mut lost_transactions = u64::from(bad_frame.is_of(header) && bad_frame.is_commit);
    let mut is_damage = false;
    let mut previous = bad_frame.stored_checksum;
    let mut is_next = true;
    while let Some(frame) = read_frame(log, header.page_bytes)? {
        let continues =
            frame.checksum_after(previous, header.is_big_endian) == frame.stored_checksum;
        if frame.is_of(header) {
            is_damage |= lost_transactions > 0 || (is_next && continues);
            lost_transactions += u64::from(frame.is_commit);
        }
        previous = frame.stored_checksum;
        is_next = false;
    }
    Ok(is_damage.then_some(WalDamage {
        offset,
        lost_transactions,
    }))
}

/// The transactions of a log without a valid header, by the salts of its first frame.
fn count_transactions(log: &mut impl Read) -> std::io::Result<u64> {
    let mut salts = None;
    let mut count = 0;
    while let Some(frame) = read_frame(log, DEFAULT_PAGE_BYTES)? {
        let is_same = *salts.get_or_insert(frame.salts) == frame.salts;
        count += u64::from(is_same && frame.page_number != 0 && frame.is_commit);
    }
    Ok(count)
}

/// The next frame; `None` at the end of the log, also inside a frame.
fn read_frame(log: &mut impl Read, page_bytes: usize) -> std::io::Result<Option<WalFrame>> {
    let mut header = [0; FRAME_HEADER_BYTES];
    let mut page = vec![0; page_bytes];
    for part in [&mut header[..], &mut page[..]] {
        match log.read_exact(part) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    let mut covered_header = [0; 8];
    covered_header.copy_from_slice(&header[..8]);
    Ok(Some(WalFrame {
        page_number: read_u32(&header, 0),
        is_commit: read_u32(&header, 4) != 0,
        salts: [read_u32(&header, 8), read_u32(&header, 12)],
        stored_checksum: WalChecksum(read_u32(&header, 16), read_u32(&header, 20)),
        covered_header,
        page,
    }))
}

impl WalFrame {
    /// Whether the frame was written since the log was last started again. Older frames stay behind it with other salts.
    fn is_of(&self, header: &WalHeader) -> bool {
        self.page_number != 0 && self.salts == header.salts
    }

    fn checksum_after(&self, previous: WalChecksum, is_big_endian: bool) -> WalChecksum {
        previous
            .add_bytes(&self.covered_header, is_big_endian)
            .add_bytes(&self.page, is_big_endian)
    }
}

impl WalChecksum {
    /// Adds bytes, eight at a time, as the file format of SQLite defines it.
    fn add_bytes(self, bytes: &[u8], is_big_endian: bool) -> Self {
        let word = |bytes: &[u8], at: usize| {
            let number = read_u32(bytes, at);
            if is_big_endian {
                number
            } else {
                number.swap_bytes()
            }
        };
        bytes
            .chunks_exact(8)
            .fold(self, |WalChecksum(first, second), pair| {
                let first = first.wrapping_add(word(pair, 0)).wrapping_add(second);
                WalChecksum(
                    first,
                    second.wrapping_add(word(pair, 4)).wrapping_add(first),
                )
            })
    }
}

/// The big-endian number at this place; all numbers of the log's own are big-endian.
fn read_u32(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_be_bytes(number)
}

#[cfg(test)]
mod tests;
