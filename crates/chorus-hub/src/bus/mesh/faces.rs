//! The mesh as the store and the streams see it: entries are told here and asked about elsewhere, streams are counted everywhere.

use super::super::words::HubId;
use super::super::{Bus, Topic};
use super::{Mesh, TAKEN, locked};
use crate::delivery::{Ending, Queue};
use crate::store::{Entry, Kind, Mark, Others, Publish};
use chorus_wire::limits;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::HashMap;
use std::collections::hash_map::Entry as Entries;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::time::Instant;

impl Publish for Mesh {
    fn listening(&self, subject: i64) -> bool {
        self.local.listening(subject) || self.peers.online(subject)
    }

    fn publish(&self, entry: &Entry) -> bool {
        if entry.kind == Kind::Notice
            && let Some(behind) = self.behind()
        {
            behind.forget(&entry.body);
        }
        self.local.publish(entry)
    }

    fn unsure(&self) {
        self.local.unsure();
    }

    fn others(&self) -> Option<&dyn Others> {
        Some(self)
    }
}

impl Others for Mesh {
    fn grew(&self) -> &Notify {
        &self.grew
    }

    fn tailed(&self, upto: i64, foreign: &[Entry]) {
        let taken: Vec<&Entry> = foreign.iter().filter(|entry| entry.accepted).collect();
        if !taken.is_empty() {
            let mut known = locked(&self.taken);
            known.extend(taken.iter().map(|entry| entry.seq));
            let over = known.len().saturating_sub(TAKEN);
            known.drain(..over);
        }
        // Its sender knew of no stream and calls it queued; it is delivered all the same.
        let waited: Vec<i64> = taken
            .iter()
            .filter(|entry| entry.via == Some(Mark::Queued))
            .map(|entry| entry.seq)
            .collect();
        if let Some(behind) = self.behind()
            && !waited.is_empty()
        {
            behind.delivered(waited);
        }
        *locked(&self.tailed_at) = Instant::now();
        self.tailed
            .send_if_modified(|at| std::mem::replace(at, upto.max(*at)) < upto);
    }

    fn tell(&self, upto: i64, entries: &[Entry]) -> BoxFuture<'static, Vec<i64>> {
        let mut asks: HashMap<HubId, Vec<i64>> = HashMap::new();
        for entry in entries {
            if entry.kind == Kind::Notice {
                for hub in self.peers.all() {
                    asks.entry(hub).or_default();
                }
            } else if entry.via.is_some() && !entry.accepted {
                self.peers
                    .listening(entry.subject)
                    .into_iter()
                    .for_each(|hub| asks.entry(hub).or_default().push(entry.seq));
            }
        }
        match self.me.upgrade() {
            Some(mesh) => async move { mesh.taken_elsewhere(upto, asks).await }.boxed(),
            None => std::future::ready(Vec::new()).boxed(),
        }
    }
}

impl Bus for Mesh {
    fn subscribe(&self, topic: Topic, queue: Arc<Queue>) -> Option<i64> {
        match topic {
            Topic::Subject(subject) => {
                let there = self.inboxes_of(subject) as usize + self.peers.streams_of(subject);
                if there >= limits::STREAMS_PER_SUBJECT {
                    return None;
                }
                let newest = self.local.subscribe(topic, queue)?;
                *locked(&self.inboxes).entry(subject).or_default() += 1;
                self.changed(subject);
                Some(newest)
            }
            // Nobody asks who else is listening there.
            Topic::Room(_) | Topic::Activity => self.local.subscribe(topic, queue),
        }
    }

    fn unsubscribe(&self, topic: Topic, queue: &Arc<Queue>) {
        self.local.unsubscribe(topic, queue);
        match topic {
            Topic::Subject(subject) => {
                if let Entries::Occupied(mut count) = locked(&self.inboxes).entry(subject) {
                    *count.get_mut() -= 1;
                    if *count.get() == 0 {
                        count.remove();
                    }
                }
                self.changed(subject);
            }
            Topic::Room(_) | Topic::Activity => {}
        }
    }

    fn online(&self, subject: i64) -> bool {
        self.local.online(subject) || self.peers.online(subject)
    }

    fn streams(&self) -> usize {
        self.local.streams() + self.peers.streams() as usize
    }

    fn end(&self, subject: i64, why: Ending) {
        self.local.end(subject, why);
    }

    fn drain(&self) {
        self.local.drain();
    }

    fn draining(&self) -> bool {
        self.local.draining()
    }

    fn changed(&self, subject: i64) {
        let mut changes = locked(&self.changes);
        changes.subjects.insert(subject);
        changes.count += 1;
        drop(changes);
        self.changed.notify_one();
    }

    fn told(&self) -> BoxFuture<'_, ()> {
        let count = locked(&self.changes).count;
        async move {
            if !self.peers.is_empty() {
                let mut told = self.told.subscribe();
                let _ =
                    tokio::time::timeout(limits::BUS_WAIT, told.wait_for(|done| *done >= count))
                        .await;
            }
        }
        .boxed()
    }

    fn is_current(&self) -> bool {
        locked(&self.tailed_at).elapsed() < limits::TAIL_STALE
    }
}
