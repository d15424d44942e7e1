//! The local message history: one file per peer, one JSON line per envelope (SKL-26…29).
//!
//! A line is `{"ts","dir","peer","envelope"}` and nothing else. It is written with one write under a lock on the file, so
//! that two processes never mix their lines, and synced before the caller continues. All four fields identify a line: a
//! hub never gives two messages the same timestamp, so the timestamp serves as an id.

use super::atomic_file;
use crate::{Error, Result, limits};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageDirection {
    Sent,
    Received,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HistoryLine {
    pub ts: String,
    pub dir: MessageDirection,
    pub peer: String,
    pub envelope: Box<RawValue>,
}

/// The two fields of an envelope by which a receiver recognises a repeated turn.
#[derive(Deserialize)]
struct TurnFields {
    conversation_id: Option<String>,
    turn_number: Option<u64>,
}

impl HistoryLine {
    fn turn_key(&self) -> Option<(String, u64)> {
        let turn: TurnFields = serde_json::from_str(self.envelope.get()).ok()?;
        Some((turn.conversation_id?, turn.turn_number?))
    }

    /// The envelope as canonical JSON, independent of the order of its keys.
    fn canonical_envelope(&self) -> String {
        let value = serde_json::from_str(self.envelope.get()).unwrap_or_default();
        chorus_wire::json::to_canonical_json(&value)
    }
}

/// The outcome of appending a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendOutcome {
    New,
    /// The same line exists: a replay after a crash, or another process was first.
    Known,
    /// Another line has the same sender, conversation, turn and text: the sender retried. With other words it is a
    /// corrected turn, which is new.
    SameTurn,
}

/// The folder of history files.
pub struct HistoryStore {
    folder: PathBuf,
    hasher: RandomState,
    indexes: HashMap<String, HistoryIndex>,
}

/// Hashes of the lines in the first `read_bytes` of one file.
#[derive(Default)]
struct HistoryIndex {
    read_bytes: u64,
    lines: HashSet<u64>,
    turns: HashSet<u64>,
}

impl HistoryStore {
    pub fn open_folder(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            hasher: RandomState::new(),
            indexes: HashMap::new(),
        }
    }

    /// The file of a peer (SKL-29); its name can neither leave the folder nor be hidden.
    pub fn peer_file(&self, peer: &str) -> PathBuf {
        let safe = |c: char| {
            if matches!(c, '/' | ':' | '\\') || c.is_control() {
                '_'
            } else {
                c
            }
        };
        let name: String = peer.chars().map(safe).collect();
        let name = if name.starts_with('.') {
            format!("_{name}")
        } else {
            name
        };
        self.folder.join(format!("{name}.jsonl"))
    }

    /// Appends a line unless it exists, or, for a received one, its turn exists.
    pub fn append_once(&mut self, line: &HistoryLine) -> Result<AppendOutcome> {
        let path = self.peer_file(&line.peer);
        let file_error = |e| Error::file_error(&path, e);
        let mut file = self.open_locked(&line.peer)?;
        repair_tail(&mut file).map_err(file_error)?;
        if self.indexes.len() >= limits::MAX_INDEXED_PEERS && !self.indexes.contains_key(&line.peer)
        {
            self.indexes.clear();
        }
        let mut index = self.indexes.remove(&line.peer).unwrap_or_default();
        let end = index
            .catch_up(&mut file, &self.hasher)
            .map_err(file_error)?;
        let found = index.find_line(line, &self.hasher);
        if found == AppendOutcome::New {
            index.read_bytes = end + write_line(&mut file, line).map_err(file_error)?;
            index.add_line(line, &self.hasher);
        }
        self.indexes.insert(line.peer.clone(), index);
        Ok(found)
    }

    /// The lines exchanged with `peer`, oldest first; invalid lines are skipped with a warning.
    pub fn peer_lines(&self, peer: &str) -> Result<Vec<HistoryLine>> {
        let mut lines = read_lines(&self.peer_file(peer))?;
        lines.retain(|line| line.peer == peer);
        Ok(lines)
    }

    /// The lines of all peers, oldest first.
    pub fn all_lines(&self) -> Result<Vec<HistoryLine>> {
        let entries = match std::fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(Error::file_error(&self.folder, e)),
        };
        let mut lines = Vec::new();
        for entry in entries {
            let path = entry
                .map_err(|e| Error::file_error(&self.folder, e))?
                .path();
            if path
                .extension()
                .is_some_and(|extension| extension == "jsonl")
            {
                lines.extend(read_lines(&path)?);
            }
        }
        // Other tools write other precisions, so times are compared, not texts (lesson 9).
        lines.sort_by_key(|line: &HistoryLine| chorus_wire::time::UnixMicros::parse(&line.ts));
        Ok(lines)
    }

    /// The turn after the last one of a conversation, sent or received (ENV-08).
    pub fn next_turn_number(&self, peer: &str, conversation: &str) -> Result<u64> {
        let turns = self
            .peer_lines(peer)?
            .into_iter()
            .filter_map(|line| line.turn_key());
        let last = turns
            .filter(|(id, _)| id == conversation)
            .map(|(_, turn)| turn)
            .max();
        Ok(last.unwrap_or(0).saturating_add(1))
    }

    fn open_locked(&self, peer: &str) -> Result<File> {
        let path = self.peer_file(peer);
        atomic_file::create_private_folder(&self.folder)?;
        let new = !path.exists();
        let file = atomic_file::private_options()
            .read(true)
            .append(true)
            .create(true)
            .open(&path);
        let file = file.map_err(|e| Error::file_error(&path, e))?;
        file.lock().map_err(|e| Error::file_error(&path, e))?;
        if new {
            atomic_file::sync_parent_folder(&path)?;
        }
        Ok(file)
    }
}

impl HistoryIndex {
    /// Indexes the lines that this or another process appended since the last call; returns the length of the file.
    fn catch_up(&mut self, file: &mut File, hasher: &RandomState) -> std::io::Result<u64> {
        let end = file.metadata()?.len();
        if end < self.read_bytes {
            // The file was truncated, so the index is no longer valid.
            *self = Self::default();
        }
        file.seek(SeekFrom::Start(self.read_bytes))?;
        for text in BufReader::new(&*file).split(b'\n') {
            if let Ok(line) = serde_json::from_slice::<HistoryLine>(&text?) {
                self.add_line(&line, hasher);
            }
        }
        self.read_bytes = end;
        Ok(end)
    }

    fn add_line(&mut self, line: &HistoryLine, hasher: &RandomState) {
        self.lines.insert(hasher.hash_one((
            &line.ts,
            line.dir,
            &line.peer,
            line.canonical_envelope(),
        )));
        if line.dir == MessageDirection::Received
            && let Some(turn) = line.turn_key()
        {
            let envelope = line.canonical_envelope();
            self.turns
                .insert(hasher.hash_one((&line.peer, turn, envelope)));
        }
    }

    fn find_line(&self, line: &HistoryLine, hasher: &RandomState) -> AppendOutcome {
        if self.lines.contains(&hasher.hash_one((
            &line.ts,
            line.dir,
            &line.peer,
            line.canonical_envelope(),
        ))) {
            return AppendOutcome::Known;
        }
        let repeated = |turn| {
            let key = (&line.peer, turn, line.canonical_envelope());
            self.turns.contains(&hasher.hash_one(key))
        };
        match (line.dir, line.turn_key()) {
            (MessageDirection::Received, Some(turn)) if repeated(&turn) => AppendOutcome::SameTurn,
            (MessageDirection::Received | MessageDirection::Sent, Some(_) | None) => {
                AppendOutcome::New
            }
        }
    }
}

/// Writes a line with one write and syncs it; returns its length.
fn write_line(file: &mut File, line: &HistoryLine) -> std::io::Result<u64> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    file.write_all(&text)?;
    file.sync_data()?;
    Ok(text.len() as u64)
}

/// Repairs a last line without a line feed. A complete one, written by another tool, gets its line feed. A torn one is
/// removed: it was never acknowledged, so its message is replayed.
fn repair_tail(file: &mut File) -> std::io::Result<()> {
    let end = file.metadata()?.len();
    let from = end.saturating_sub(limits::MAX_HISTORY_LINE_BYTES as u64);
    file.seek(SeekFrom::Start(end.saturating_sub(1)))?;
    let mut last = [0];
    if file.read(&mut last)? == 0 || last == *b"\n" {
        return Ok(());
    }
    file.seek(SeekFrom::Start(from))?;
    let mut tail = Vec::new();
    (&*file).take(end - from).read_to_end(&mut tail)?;
    let start = tail
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |at| at + 1);
    if serde_json::from_slice::<HistoryLine>(&tail[start..]).is_ok() {
        return file.write_all(b"\n");
    }
    file.set_len(from + start as u64)
}

fn read_lines(path: &Path) -> Result<Vec<HistoryLine>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::file_error(path, e)),
    };
    let mut lines = Vec::new();
    for text in BufReader::new(file).split(b'\n') {
        let text = text.map_err(|e| Error::file_error(path, e))?;
        match serde_json::from_slice(&text) {
            Ok(line) => lines.push(line),
            Err(_) if text.trim_ascii().is_empty() => {}
            Err(_) => tracing::warn!("{}: an invalid line is skipped", path.display()),
        }
    }
    Ok(lines)
}
