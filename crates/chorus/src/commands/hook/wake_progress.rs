//! What wakers and tool results have announced, in the same file as what hooks have reported (D-115).

use super::report_progress::ReportProgress;
use crate::commands::wake::host_watch;
use crate::commands::wake::schedule::WakeRecord;
use chorus_wire::cursor::Cursor;
use serde::{Deserialize, Serialize};

/// Max messages that are remembered as announced; beyond it the oldest may be announced once more.
const MAX_TOLD: usize = 1024;
/// Max wakes kept: those of an hour of many sessions.
const MAX_WAKES: usize = 512;
/// Max host processes whose threads are remembered; beyond it the oldest is forgotten and the next tool call names it.
const MAX_THREADS: usize = 64;

/// What wakers and tool results save.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SavedWakes {
    /// Messages that a wake announced without their text: hooks still report them, but no wake and no `Stop` hook tells of
    /// them again.
    announced: Vec<String>,
    /// Messages that a tool result named or showed: no wake tells of them.
    named: Vec<String>,
    /// Every message up to here was announced or needed no announcement.
    finished: Option<String>,
    wakes: Vec<(String, WakeRecord)>,
    /// Messages whose text a waker is about to show, by the mark of its process. A waker that was killed in between may not
    /// have shown them.
    unconfirmed: Vec<(String, Vec<String>)>,
    /// The Codex threads of host processes, by the mark of the process.
    threads: Vec<(String, String)>,
}

/// One wake of a session, before it happens.
pub struct PlannedWake<'a> {
    pub session: &'a str,
    pub record: WakeRecord,
    /// Messages whose text is in the wake.
    pub with_text: Vec<String>,
    /// Messages that the wake only counts.
    pub counted: Vec<String>,
    /// Every message up to here is announced with this wake.
    pub finished: Option<Cursor>,
}

impl ReportProgress {
    /// Whether a hook, a tool result or another wake has announced this message.
    pub fn is_told(&self, trace_id: &str, cursor: Option<Cursor>) -> bool {
        let wakes = &self.saved.wakes;
        let has_passed = |cursor| {
            self.announced_cursor()
                .is_some_and(|announced| cursor <= announced)
        };
        cursor.is_some_and(has_passed)
            || self.is_acknowledged(trace_id)
            || contains(&wakes.announced, trace_id)
            || contains(&wakes.named, trace_id)
    }

    /// Whether a wake has announced this message without its text.
    pub fn is_announced(&self, trace_id: &str) -> bool {
        contains(&self.saved.wakes.announced, trace_id)
    }

    pub fn finished_cursor(&self) -> Option<Cursor> {
        self.saved.wakes.finished.as_deref()?.parse().ok()
    }

    /// Where a waker begins to read: everything before it was announced. The first waker of an identity begins after what it has
    /// received, and this is saved, because what comes later may be filed before it is announced.
    pub fn start_wakes(&mut self, received: Cursor) -> chorus_client::Result<Cursor> {
        match self.finished_cursor().max(self.announced_cursor()) {
            Some(cursor) => Ok(cursor),
            None => {
                self.save_finished(received)?;
                Ok(received)
            }
        }
    }

    pub fn session_wakes(&self, session: &str) -> Vec<WakeRecord> {
        let wakes = self.saved.wakes.wakes.iter();
        wakes
            .filter(|(name, _)| name == session)
            .map(|(_, record)| record.clone())
            .collect()
    }

    /// Saves a wake before it happens, so that nothing is announced twice.
    pub fn save_wake(&mut self, wake: PlannedWake<'_>) -> chorus_client::Result<()> {
        let saved = &mut self.saved.wakes;
        saved.announced.extend(wake.counted);
        keep_newest(&mut saved.announced, MAX_TOLD);
        saved.wakes.push((wake.session.to_owned(), wake.record));
        keep_newest(&mut saved.wakes, MAX_WAKES);
        if !wake.with_text.is_empty() {
            let unconfirmed = (host_watch::own_mark(), wake.with_text.clone());
            saved.unconfirmed.push(unconfirmed);
        }
        if let Some(finished) = wake.finished {
            self.raise_finished(finished);
        }
        self.save_acknowledged(wake.with_text)
    }

    /// Saves that the host has taken the text of the wakes of this process.
    pub fn confirm_wakes(&mut self) -> chorus_client::Result<()> {
        self.forget_unconfirmed();
        self.write_file()
    }

    fn forget_unconfirmed(&mut self) {
        let own_mark = host_watch::own_mark();
        let unconfirmed = &mut self.saved.wakes.unconfirmed;
        unconfirmed.retain(|(process, _)| *process != own_mark);
    }

    /// What a killed waker may not have shown counts as announced: the next hook reports it, and nothing wakes for it again.
    pub(super) fn release_unconfirmed(&mut self) {
        let unconfirmed = std::mem::take(&mut self.saved.wakes.unconfirmed);
        for (process, messages) in unconfirmed {
            if host_watch::is_running(&process) {
                self.saved.wakes.unconfirmed.push((process, messages));
                continue;
            }
            let is_released = |known: &String| messages.contains(known);
            self.saved.acknowledged.retain(|known| !is_released(known));
            self.saved.wakes.announced.extend(messages);
        }
        keep_newest(&mut self.saved.wakes.announced, MAX_TOLD);
    }

    fn raise_finished(&mut self, cursor: Cursor) {
        let finished = &mut self.saved.wakes.finished;
        let before = finished.as_deref().and_then(|text| text.parse().ok());
        *finished = Some(before.unwrap_or(Cursor::START).max(cursor).to_string());
    }

    /// Takes back a wake that did not happen. Its budget stays spent: the host was tried.
    pub fn undo_wake(
        &mut self,
        trace_ids: &[String],
        finished: Option<Cursor>,
    ) -> chorus_client::Result<()> {
        let is_undone = |known: &String| trace_ids.contains(known);
        self.saved.acknowledged.retain(|known| !is_undone(known));
        self.saved.wakes.announced.retain(|known| !is_undone(known));
        self.saved.wakes.finished = finished.map(|cursor| cursor.to_string());
        self.forget_unconfirmed();
        self.write_file()
    }

    /// Saves that every message up to `cursor` was announced or needs no announcement.
    pub fn save_finished(&mut self, cursor: Cursor) -> chorus_client::Result<()> {
        self.raise_finished(cursor);
        self.write_file()
    }

    /// Saves that a tool result named these messages.
    pub fn save_named(&mut self, trace_ids: Vec<String>) -> chorus_client::Result<()> {
        let named = &mut self.saved.wakes.named;
        let before = named.len();
        let is_new = |trace_id: &String| !contains(named, trace_id);
        let new_ids: Vec<String> = trace_ids.into_iter().filter(is_new).collect();
        named.extend(new_ids);
        if named.len() == before {
            return Ok(());
        }
        keep_newest(named, MAX_TOLD);
        self.write_file()
    }

    /// Saves the thread that a host process runs.
    pub fn save_thread(&mut self, process: &str, thread: &str) -> chorus_client::Result<()> {
        let threads = &mut self.saved.wakes.threads;
        let entry = (process.to_owned(), thread.to_owned());
        if threads.contains(&entry) {
            return Ok(());
        }
        threads.push(entry);
        keep_newest(threads, MAX_THREADS);
        self.write_file()
    }

    /// The thread of a host process, if it has only one.
    pub fn single_thread(&self, process: &str) -> Option<&str> {
        let threads = self.saved.wakes.threads.iter();
        let mut of_process = threads.filter(|(known, _)| known == process);
        let (_, thread) = of_process.next()?;
        of_process.next().is_none().then_some(thread.as_str())
    }
}

fn contains(list: &[String], trace_id: &str) -> bool {
    list.iter().any(|known| known == trace_id)
}

fn keep_newest<T>(list: &mut Vec<T>, max: usize) {
    let excess = list.len().saturating_sub(max);
    list.drain(..excess);
}
