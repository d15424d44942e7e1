//! What a piece of work may do inside its group's transaction.

use super::counters::Deltas;
use super::log::{self, Entry, Head, Kind, Mark, NewEntry};
use super::notice::Notice;
use super::publish::Publish;
use super::{DbError, Tx};
use chorus_wire::time::Micros;

/// What the hub goes by, at hand wherever something is written.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// What the hub calls itself to the outside, without a slash at its end.
    pub public_url: String,
    /// steps from agent to agent that may follow a person's word.
    pub agent_turns: u32,
}

/// What a piece of work may do inside its group's transaction.
pub(crate) struct Txn<'t> {
    pub tx: Tx<'t>,
    pub counts: Deltas,
    pub(super) head: Head,
    pub(super) entries: Vec<Entry>,
    now: Micros,
    /// How many of the entries are in the table.
    inserted: usize,
    publish: &'t dyn Publish,
    terms: &'t Terms,
}

impl<'t> Txn<'t> {
    pub(super) fn new(
        tx: Tx<'t>,
        head: Head,
        now: Micros,
        publish: &'t dyn Publish,
        terms: Option<&'t Terms>,
    ) -> Self {
        let terms = terms.unwrap_or(&UNSAID);
        Self {
            tx,
            counts: Deltas::default(),
            head,
            entries: Vec::new(),
            now,
            inserted: 0,
            publish,
            terms,
        }
    }

    pub fn terms(&self) -> &Terms {
        self.terms
    }

    /// The time of this group.
    pub fn now(&self) -> Micros {
        self.now
    }

    /// Inserts the entries that are not in the table yet: together, since on PostgreSQL each by itself is a round trip.
    pub(super) async fn insert_new(&mut self) -> std::result::Result<(), DbError> {
        log::insert(&self.tx, &self.entries[self.inserted..]).await?;
        self.inserted = self.entries.len();
        Ok(())
    }

    /// As it stood; what came since is undone.
    pub(super) fn back_to(&mut self, before: Before) {
        let Before {
            entries,
            head,
            counts,
        } = before;
        self.entries.truncate(entries);
        (self.head, self.counts) = (head, counts);
    }

    pub(super) fn before(&self) -> Before {
        Before {
            entries: self.entries.len(),
            head: self.head,
            counts: self.counts.clone(),
        }
    }

    /// Up to which place the parts are kept.
    pub fn indexed(&self) -> i64 {
        self.head.indexed
    }

    /// Says what this write makes untrue, to hubs that remember it; a hub that has the database alone needs no telling.
    pub fn notice(&mut self, notice: &Notice) {
        if self.publish.others().is_some() && !notice.is_empty() {
            self.append(NewEntry {
                subject: log::HUB,
                subject_name: "".into(),
                kind: Kind::Notice,
                actor: log::HUB,
                actor_name: "".into(),
                body: notice.to_json().into(),
                otherwise: None,
            });
        }
    }

    /// Appends an entry at the next place; it is inserted with the others of its group, and published after the commit.
    pub fn append(&mut self, new: NewEntry) -> (i64, Micros) {
        let via = new.otherwise.map(|mark| {
            if self.publish.listening(new.subject) {
                Mark::Sse
            } else {
                mark
            }
        });
        if let Some(mark) = via {
            self.counts.message(mark);
        }
        let (seq, at) = self.head.next(self.now);
        self.entries.push(Entry {
            seq,
            subject: new.subject,
            subject_name: new.subject_name,
            kind: new.kind,
            actor: new.actor,
            actor_name: new.actor_name,
            at,
            body: new.body,
            via,
            delivered_at: None,
            accepted: false,
        });
        (seq, at)
    }
}

/// How a transaction stood before a piece of work.
pub(super) struct Before {
    pub entries: usize,
    head: Head,
    counts: Deltas,
}

/// Until the hub has said its own.
static UNSAID: Terms = Terms {
    public_url: String::new(),
    agent_turns: 0,
};
