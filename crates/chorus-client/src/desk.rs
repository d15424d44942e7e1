//! The receiver's desk: each message is filed once, handed over once and answered once, across repeats and restarts.
//!
//! The order is: the line is in the history file and synced; then the message is handed over; then the cursor is saved
//! together with the debt of a reply; then the reply goes out and the debt is cleared. After a crash a message whose line
//! is there is not handed over again, and a reply that was owed is still sent.

use crate::files::history::{Appended, Dir, History, Line};
use crate::files::{Credentials, Place, State};
use crate::{Result, limits};
use chorus_wire::cursor::Cursor;
use chorus_wire::envelope::Envelope;
use chorus_wire::message::ReceiverReply;
use serde_json::value::RawValue;
use std::collections::{HashMap, VecDeque};

pub struct Desk {
    place: Place,
    history: History,
    /// None without a hub: direct exchange has no cursor.
    state: Option<State>,
    replies: Replies,
}

/// What to do with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Hand it over.
    Fresh,
    /// It was handed over before; this was, as far as we know, the answer.
    Repeat(ReceiverReply),
}

/// Who said what in which turn.
type TurnKey = (String, String, u64);

impl Desk {
    /// For messages of the hub that `who` is registered with.
    pub fn of(place: Place, who: &Credentials) -> Result<Self> {
        let state = Some(State::read(&place, who)?);
        Ok(Self {
            history: History::at(&place.history),
            place,
            state,
            replies: Replies::default(),
        })
    }

    /// For messages that peers send directly.
    pub fn direct(place: Place) -> Self {
        Self {
            history: History::at(&place.history),
            place,
            state: None,
            replies: Replies::default(),
        }
    }

    pub fn history(&mut self) -> &mut History {
        &mut self.history
    }

    pub fn cursor(&self) -> Option<Cursor> {
        self.state.as_ref()?.cursor()
    }

    /// The messages whose replies are still owed, oldest first.
    pub fn unanswered(&self) -> &[String] {
        self.state.as_ref().map_or(&[], |state| &state.unanswered)
    }

    /// Files a received message. It is durable when this returns.
    /// With `unhandled`, the cursor of a message whose handler runs only once that cursor is reached, a line that is there
    /// already is new all the same: the last run ended between the two, and the handler never ran.
    pub fn file(
        &mut self,
        ts: &str,
        peer: &str,
        envelope: Box<RawValue>,
        unhandled: Option<Cursor>,
    ) -> Result<Verdict> {
        let key = turn_key(peer, &envelope);
        if let Some(reply) = key.as_ref().and_then(|key| self.replies.get(key)) {
            return Ok(Verdict::Repeat(reply));
        }
        let line = Line {
            ts: ts.into(),
            dir: Dir::Received,
            peer: peer.into(),
            envelope,
        };
        Ok(match self.history.append_once(&line)? {
            Appended::New => Verdict::Fresh,
            Appended::Known if unhandled.is_some() && unhandled > self.cursor() => Verdict::Fresh,
            Appended::Known | Appended::SameTurn => Verdict::Repeat(ReceiverReply::ok()),
        })
    }

    /// Everything up to `cursor` is filed and handed over; `owed` is a message that now waits for its reply.
    pub fn reached(&mut self, cursor: Option<Cursor>, owed: Option<&str>) -> Result<()> {
        let Some(state) = &mut self.state else {
            return Ok(());
        };
        if let Some(cursor) = cursor {
            state.cursor = Some(cursor.to_string());
        }
        if let Some(owed) = owed {
            state.unanswered.push(owed.to_owned());
            let over = state.unanswered.len().saturating_sub(limits::REPLIES_OWED);
            state.unanswered.drain(..over);
        }
        state.save(&self.place)
    }

    /// The reply to this message is with the hub, or can never be.
    pub fn settled(&mut self, trace_id: &str) -> Result<()> {
        let Some(state) = &mut self.state else {
            return Ok(());
        };
        let before = state.unanswered.len();
        state.unanswered.retain(|owed| owed != trace_id);
        if state.unanswered.len() == before {
            Ok(())
        } else {
            state.save(&self.place)
        }
    }

    /// `reply` was this message's answer; a repeat of its turn gets it again.
    pub fn answered(&mut self, peer: &str, envelope: &RawValue, reply: &ReceiverReply) {
        if let Some(key) = turn_key(peer, envelope) {
            self.replies.put(key, reply.clone());
        }
    }
}

fn turn_key(peer: &str, envelope: &RawValue) -> Option<TurnKey> {
    let envelope = Envelope::parse(envelope.get()).ok()?;
    Some((
        peer.to_owned(),
        envelope.conversation_id()?.to_owned(),
        envelope.turn_number()?,
    ))
}

/// The latest replies; the oldest one makes room.
#[derive(Default)]
struct Replies {
    by_turn: HashMap<TurnKey, ReceiverReply>,
    order: VecDeque<TurnKey>,
}

impl Replies {
    fn get(&self, key: &TurnKey) -> Option<ReceiverReply> {
        self.by_turn.get(key).cloned()
    }

    fn put(&mut self, key: TurnKey, reply: ReceiverReply) {
        if self.by_turn.insert(key.clone(), reply).is_some() {
            return;
        }
        self.order.push_back(key);
        if self.order.len() > limits::REPLIES_KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_turn.remove(&oldest);
        }
    }
}
