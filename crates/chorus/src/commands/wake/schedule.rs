//! When a session is woken: batches, the pause between wakes, and budgets (D-115). It does no I/O and reads no clock.

use chorus_wire::cursor::Cursor;
use chorus_wire::message::MessageEvent;
use chorus_wire::time::UnixMicros;
use serde::{Deserialize, Serialize};

const SECOND: i64 = 1_000_000;
/// What comes within this time of a batch's first message belongs to it: a sender that writes three sentences as three
/// messages starts one turn.
const BATCH_WINDOW: i64 = 300_000;
/// The least time between two wakes of a session. Claude Code stops monitors that print too much.
const WAKE_PAUSE: i64 = 10 * SECOND;
/// Max wakes that one sender causes within [`SENDER_WINDOW`]: every wake costs the receiver a model's turn.
const SENDER_WAKES: usize = 6;
const SENDER_WINDOW: i64 = 600 * SECOND;
/// Max wakes of a session within [`SESSION_WINDOW`], for the same reason; `--most` sets it.
pub const SESSION_WAKES: u32 = 30;
const SESSION_WINDOW: i64 = 3_600 * SECOND;
/// Max messages that wait for a wake; beyond it the oldest is left to the next turn. A model is shown fewer.
const MAX_WAITING: usize = 200;

/// A message that may wake the session.
#[derive(Clone, Debug)]
pub struct WaitingMessage {
    /// `None` from a hub whose stream does not replay.
    pub cursor: Option<Cursor>,
    pub event: MessageEvent,
    pub arrived: UnixMicros,
}

impl WaitingMessage {
    pub fn sender(&self) -> &str {
        &self.event.sender_id
    }

    pub fn trace_id(&self) -> String {
        self.event.trace_id.to_string()
    }
}

/// A wake, as it is saved: the next process of the session has the same budgets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeRecord {
    /// Microseconds since 1970.
    pub at: i64,
    pub senders: Vec<String>,
}

/// The budgets that the last wake used up, for its text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpentBudgets {
    pub senders: Vec<String>,
    pub has_spent_session: bool,
}

pub struct WakeSchedule {
    max_wakes: usize,
    /// Oldest first.
    waiting: Vec<WaitingMessage>,
    /// The wakes of the last hour, oldest first.
    records: Vec<WakeRecord>,
}

impl WakeSchedule {
    pub fn new(max_wakes: u32, records: Vec<WakeRecord>) -> Self {
        Self {
            max_wakes: usize::try_from(max_wakes.max(1)).unwrap_or(usize::MAX),
            waiting: Vec::new(),
            records,
        }
    }

    pub fn add_message(&mut self, message: WaitingMessage) {
        let trace_id = message.event.trace_id;
        if self
            .waiting
            .iter()
            .all(|known| known.event.trace_id != trace_id)
        {
            self.waiting.push(message);
        }
        let excess = self.waiting.len().saturating_sub(MAX_WAITING);
        self.waiting.drain(..excess);
    }

    /// Takes back the messages of a wake that failed; they wait for the next one.
    pub fn put_back(&mut self, messages: Vec<WaitingMessage>) {
        let later = std::mem::replace(&mut self.waiting, messages);
        self.waiting.extend(later);
    }

    pub fn waiting_count(&self) -> usize {
        self.waiting.len()
    }

    /// When the next batch is due; `None` when nothing waits.
    pub fn next_due(&mut self, now: UnixMicros) -> Option<UnixMicros> {
        self.drop_future(now);
        let due = |message: &WaitingMessage| {
            let batch_end = message.arrived.0 + BATCH_WINDOW;
            batch_end.max(self.sender_free_at(message.sender()))
        };
        let earliest = self.waiting.iter().map(due).min()?;
        Some(UnixMicros(earliest.max(self.session_free_at())))
    }

    /// The messages of the wake that is due now. A message of a sender without budget stays.
    pub fn take_batch(&mut self, now: UnixMicros) -> Vec<WaitingMessage> {
        if self.next_due(now).is_none_or(|due| due > now) {
            return Vec::new();
        }
        let all = std::mem::take(&mut self.waiting);
        let (batch, held) = all
            .into_iter()
            .partition(|message| self.sender_free_at(message.sender()) <= now.0);
        self.waiting = held;
        batch
    }

    /// Counts a wake for its senders and for the session.
    pub fn record_wake(&mut self, now: UnixMicros, messages: &[WaitingMessage]) -> WakeRecord {
        let mut senders: Vec<String> = Vec::new();
        for message in messages {
            if !senders.iter().any(|sender| sender == message.sender()) {
                senders.push(message.sender().to_owned());
            }
        }
        let record = WakeRecord { at: now.0, senders };
        self.records.push(record.clone());
        self.records
            .retain(|record| record.at > now.0 - SESSION_WINDOW);
        record
    }

    /// Which budgets of these senders and of the session have nothing left.
    pub fn spent_budgets(&self, now: UnixMicros, record: &WakeRecord) -> SpentBudgets {
        let is_spent = |sender: &&String| self.sender_free_at(sender) > now.0 + WAKE_PAUSE;
        SpentBudgets {
            senders: record.senders.iter().filter(is_spent).cloned().collect(),
            has_spent_session: self.budget_free_at() > now.0 + WAKE_PAUSE,
        }
    }

    /// A clock that was set back must not stop the wakes until it is there again.
    fn drop_future(&mut self, now: UnixMicros) {
        self.records.retain(|record| record.at <= now.0);
        for message in &mut self.waiting {
            message.arrived = message.arrived.min(now);
        }
    }

    /// From when on the session may be woken.
    fn session_free_at(&self) -> i64 {
        let last = self.records.last();
        let pause_end = last.map_or(i64::MIN, |record| record.at + WAKE_PAUSE);
        pause_end.max(self.budget_free_at())
    }

    /// From when on the session's budget has room.
    fn budget_free_at(&self) -> i64 {
        let times: Vec<i64> = self.records.iter().map(|record| record.at).collect();
        free_at(&times, self.max_wakes, SESSION_WINDOW)
    }

    /// From when on a sender may wake the session.
    fn sender_free_at(&self, sender: &str) -> i64 {
        let of_sender = self
            .records
            .iter()
            .filter(|record| record.senders.iter().any(|known| known == sender));
        let times: Vec<i64> = of_sender.map(|record| record.at).collect();
        free_at(&times, SENDER_WAKES, SENDER_WINDOW)
    }
}

/// When a budget of `max` within `window` has room again; `times` are its uses, oldest first.
fn free_at(times: &[i64], max: usize, window: i64) -> i64 {
    match times.len().checked_sub(max) {
        Some(at) => times[at] + window,
        None => i64::MIN,
    }
}

#[cfg(test)]
mod tests;
