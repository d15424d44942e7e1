//! Calls that wait for others: limits how many of one agent wait at once, and ends a cancelled one.

use chorus_wire::limits;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The waiting calls by the address of their agent.
#[derive(Default)]
pub struct WaitingCalls {
    by_agent: Mutex<HashMap<String, Vec<WaitingEntry>>>,
    next_number: AtomicU64,
}

struct WaitingEntry {
    number: u64,
    label: CallLabel,
    cancelled: Arc<Notify>,
}

/// How a client names a call when it cancels it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallLabel {
    pub session: Option<String>,
    pub request_id: String,
}

/// One waiting call; dropping it makes room for the next.
pub struct WaitingCall<'a> {
    calls: &'a WaitingCalls,
    agent: String,
    number: u64,
    cancelled: Arc<Notify>,
}

impl WaitingCalls {
    fn lock_calls(&self) -> MutexGuard<'_, HashMap<String, Vec<WaitingEntry>>> {
        self.by_agent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` when as many calls of the agent wait as may.
    pub fn begin(&self, agent: &str, label: CallLabel) -> Option<WaitingCall<'_>> {
        let mut by_agent = self.lock_calls();
        let entries = by_agent.entry(agent.to_owned()).or_default();
        if entries.len() >= limits::TOOL_WAITS_PER_AGENT {
            return None;
        }
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let cancelled = Arc::<Notify>::default();
        entries.push(WaitingEntry {
            number,
            label,
            cancelled: cancelled.clone(),
        });
        Some(WaitingCall {
            calls: self,
            agent: agent.to_owned(),
            number,
            cancelled,
        })
    }

    /// Ends the wait that a client cancels. Two sessions that do not say who they are may have calls with one id: then neither
    /// is ended, because the other session still wants its answer.
    pub fn cancel(&self, agent: &str, label: &CallLabel) {
        let by_agent = self.lock_calls();
        let entries = by_agent.get(agent).into_iter().flatten();
        let mut named = entries.filter(|entry| entry.label == *label);
        if let (Some(entry), None) = (named.next(), named.next()) {
            entry.cancelled.notify_one();
        }
    }
}

impl WaitingCall<'_> {
    pub async fn wait_cancelled(&self) {
        self.cancelled.notified().await;
    }
}

impl Drop for WaitingCall<'_> {
    fn drop(&mut self) {
        let mut by_agent = self.calls.lock_calls();
        let Some(entries) = by_agent.get_mut(&self.agent) else {
            return;
        };
        entries.retain(|entry| entry.number != self.number);
        if entries.is_empty() {
            by_agent.remove(&self.agent);
        }
    }
}
