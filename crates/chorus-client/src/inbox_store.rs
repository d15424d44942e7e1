//! The receiver's inbox: files, handles and answers each message once, across repeats and restarts.
//!
//! The order is: write and sync the history line; handle the message; save the cursor together with the unanswered
//! trace id; send the reply; remove the trace id. After a crash a message with a history line is not handled again, and
//! an unsent reply is still sent.

use crate::files::history::{AppendOutcome, HistoryLine, HistoryStore, MessageDirection};
use crate::files::{AgentCredentials, IdentityFiles, InboxState};
use crate::{Result, limits};
use chorus_wire::cursor::Cursor;
use chorus_wire::envelope::Envelope;
use chorus_wire::message::ReceiverReply;
use serde_json::value::RawValue;
use std::collections::{HashMap, VecDeque};

pub struct InboxStore {
    files: IdentityFiles,
    history: HistoryStore,
    /// `None` without a hub: direct exchange has no cursor.
    state: Option<InboxState>,
    cached_replies: ReplyCache,
}

/// Whether a message must be handled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilingOutcome {
    /// It must be handled.
    NewMessage,
    /// It was handled before; the reply is the cached one, or `ok` when it is no longer known.
    Repeated(ReceiverReply),
}

/// Sender, conversation, turn number and the whole envelope.
type TurnKey = (String, String, u64, String);

impl InboxStore {
    /// For messages of the hub at which `credentials` are registered.
    pub fn for_agent(files: IdentityFiles, credentials: &AgentCredentials) -> Result<Self> {
        let state = Some(InboxState::read_for(&files, credentials)?);
        Ok(Self {
            history: HistoryStore::open_folder(&files.history),
            files,
            state,
            cached_replies: ReplyCache::default(),
        })
    }

    /// For messages that peers send directly.
    pub fn for_direct(files: IdentityFiles) -> Self {
        Self {
            history: HistoryStore::open_folder(&files.history),
            files,
            state: None,
            cached_replies: ReplyCache::default(),
        }
    }

    pub fn history(&mut self) -> &mut HistoryStore {
        &mut self.history
    }

    /// Up to where the messages that this agent sent are filed; `None` when that was never done.
    pub fn sent_cursor(&self) -> Option<Cursor> {
        self.state.as_ref()?.sent_cursor.as_deref()?.parse().ok()
    }

    pub fn save_sent_cursor(&mut self, cursor: Cursor) -> Result<()> {
        let Some(state) = &mut self.state else {
            return Ok(());
        };
        state.sent_cursor = Some(cursor.to_string());
        state.save(&self.files)
    }

    pub fn cursor(&self) -> Option<Cursor> {
        self.state.as_ref()?.parse_cursor()
    }

    /// Trace ids of messages whose reply is not sent yet, oldest first.
    pub fn unanswered_traces(&self) -> &[String] {
        self.state.as_ref().map_or(&[], |state| &state.unanswered)
    }

    /// Files a received message. It is durable when this returns.
    ///
    /// `unhandled` is the message's cursor when its handler runs only after that cursor is saved. A line that exists
    /// already is then still a new message: the process ended between the two steps, and the handler never ran.
    pub fn file_message(
        &mut self,
        ts: &str,
        peer: &str,
        envelope: Box<RawValue>,
        unhandled: Option<Cursor>,
    ) -> Result<FilingOutcome> {
        let key = turn_key(peer, &envelope);
        if let Some(reply) = key.as_ref().and_then(|key| self.cached_replies.get(key)) {
            return Ok(FilingOutcome::Repeated(reply));
        }
        let line = HistoryLine {
            ts: ts.into(),
            dir: MessageDirection::Received,
            peer: peer.into(),
            envelope,
        };
        let appended = self.history.append_once(&line)?;
        if self.take_printed_answer(ts) {
            return Ok(FilingOutcome::Repeated(ReceiverReply::ok()));
        }
        Ok(match appended {
            AppendOutcome::New => FilingOutcome::NewMessage,
            AppendOutcome::Known if unhandled.is_some() && unhandled > self.cursor() => {
                FilingOutcome::NewMessage
            }
            AppendOutcome::Known | AppendOutcome::SameTurn => {
                FilingOutcome::Repeated(ReceiverReply::ok())
            }
        })
    }

    /// Files an answer that its reader is shown outside of a listener. It is durable when this returns, and the next listener
    /// passes it.
    pub fn file_printed_answer(
        &mut self,
        ts: &str,
        peer: &str,
        envelope: Box<RawValue>,
    ) -> Result<()> {
        let line = HistoryLine {
            ts: ts.into(),
            dir: MessageDirection::Received,
            peer: peer.into(),
            envelope,
        };
        self.history.append_once(&line)?;
        let Some(state) = &mut self.state else {
            return Ok(());
        };
        state.printed_answers.push(ts.to_owned());
        let excess = state
            .printed_answers
            .len()
            .saturating_sub(limits::MAX_PRINTED_ANSWERS);
        state.printed_answers.drain(..excess);
        state.save(&self.files)
    }

    /// Whether a message was an answer that `send --wait` printed. A hub never gives two messages the same time.
    pub fn is_printed_answer(&self, ts: &str) -> bool {
        let state = self.state.as_ref();
        state.is_some_and(|state| state.printed_answers.iter().any(|known| known == ts))
    }

    /// The same, asked once: what it forgets is saved with the cursor that passes the message.
    fn take_printed_answer(&mut self, ts: &str) -> bool {
        let is_printed = self.is_printed_answer(ts);
        if let Some(state) = self.state.as_mut().filter(|_| is_printed) {
            state.printed_answers.retain(|known| known != ts);
        }
        is_printed
    }

    /// Saves that everything up to `cursor` is filed and handled; `unanswered` is a message that now waits for its reply.
    pub fn save_progress(
        &mut self,
        cursor: Option<Cursor>,
        unanswered: Option<&str>,
    ) -> Result<()> {
        let Some(state) = &mut self.state else {
            return Ok(());
        };
        if let Some(cursor) = cursor {
            state.cursor = Some(cursor.to_string());
        }
        if let Some(unanswered) = unanswered {
            state.unanswered.push(unanswered.to_owned());
            let excess = state
                .unanswered
                .len()
                .saturating_sub(limits::MAX_UNANSWERED_REPLIES);
            state.unanswered.drain(..excess);
        }
        state.save(&self.files)
    }

    /// Forgets a message whose reply was sent, or can never be sent.
    pub fn mark_answered(&mut self, trace_id: &str) -> Result<()> {
        let Some(state) = &mut self.state else {
            return Ok(());
        };
        let count_before = state.unanswered.len();
        state.unanswered.retain(|unanswered| unanswered != trace_id);
        if state.unanswered.len() == count_before {
            Ok(())
        } else {
            state.save(&self.files)
        }
    }

    /// Keeps the reply to a message; a repeat of its turn gets it again.
    pub fn cache_reply(&mut self, peer: &str, envelope: &RawValue, reply: &ReceiverReply) {
        if let Some(key) = turn_key(peer, envelope) {
            self.cached_replies.insert(key, reply.clone());
        }
    }
}

fn turn_key(peer: &str, envelope: &RawValue) -> Option<TurnKey> {
    let envelope = Envelope::parse(envelope.get()).ok()?;
    Some((
        peer.to_owned(),
        envelope.conversation_id()?.to_owned(),
        envelope.turn_number()?,
        envelope.to_json(),
    ))
}

/// The latest replies; a full cache evicts the oldest.
#[derive(Default)]
struct ReplyCache {
    by_turn: HashMap<TurnKey, ReceiverReply>,
    order: VecDeque<TurnKey>,
}

impl ReplyCache {
    fn get(&self, key: &TurnKey) -> Option<ReceiverReply> {
        self.by_turn.get(key).cloned()
    }

    fn insert(&mut self, key: TurnKey, reply: ReceiverReply) {
        if self.by_turn.insert(key.clone(), reply).is_some() {
            return;
        }
        self.order.push_back(key);
        if self.order.len() > limits::MAX_CACHED_REPLIES
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_turn.remove(&oldest);
        }
    }
}
