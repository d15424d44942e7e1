//! Who is where, as hubs tell one another: each says that it is there, what changes at it, and all of it to who asks.

use super::super::Behind;
use super::super::peers::Book;
use super::super::words::{Ask, Heard, Here, HubId, News, Page, Place, Said, pack, unpack};
use super::{Mesh, Silence, locked, name};
use bytes::Bytes;
use chorus_wire::limits;
use futures_util::future::join_all;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash};
use std::sync::Weak;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How often a hub says that it is there.
const HERE: Duration = Duration::from_millis(500);
/// How long a hub that starts waits for the others to say that they are there, once the first one has.
const GREETING: Duration = Duration::from_millis(100);

/// What the others do not know yet.
#[derive(Default)]
pub(super) struct Changes {
    pub subjects: HashSet<i64>,
    pub heard: HashMap<i64, Option<Duration>>,
    /// How many changes there were.
    pub count: u64,
}

/// What this hub has said of itself, and in how many pieces of news.
#[derive(Default)]
pub(super) struct Own {
    book: Book,
    news: u64,
}

impl Own {
    pub fn page(&self, after: i64) -> Page {
        Page {
            news: self.news,
            places: self.book.after(after, limits::BUS_PIECE),
        }
    }

    fn say(&mut self, places: &[Place]) -> u64 {
        places.iter().for_each(|place| self.book.put(*place));
        self.news += 1;
        self.news
    }
}

/// Takes some of it out, whichever.
fn some<K: Copy + Eq + Hash, V, S: BuildHasher>(
    of: &mut HashMap<K, V, S>,
    most: usize,
) -> Vec<(K, V)> {
    let keys: Vec<K> = of.keys().take(most).copied().collect();
    keys.into_iter()
        .filter_map(|key| of.remove_entry(&key))
        .collect()
}

impl Mesh {
    pub(super) fn inboxes_of(&self, subject: i64) -> u32 {
        locked(&self.inboxes)
            .get(&subject)
            .copied()
            .unwrap_or_default()
    }

    /// An agent was heard here at this time of the steady clock, or refused a job.
    pub fn heard(&self, agent: i64, at: Option<Duration>) {
        let mut changes = locked(&self.changes);
        changes.heard.insert(agent, at);
        changes.count += 1;
        drop(changes);
        self.changed.notify_one();
    }

    fn here(&self) -> Here {
        let own = locked(&self.own);
        own.book.here(self.id, own.news)
    }

    /// Says that this hub is there, and waits a moment for the others to say the same.
    pub(super) async fn greet(&self) {
        self.say(&Said::Here(self.here())).await;
        let (until, mut quiet) = (Instant::now() + GREETING, 0);
        while Instant::now() < until && quiet < 3 {
            tokio::time::sleep(GREETING / 10).await;
            // Who answers is asked who listens there, and others may answer a little later.
            quiet = if self.peers.is_empty() || self.peers.is_learning_any() {
                0
            } else {
                quiet + 1
            };
        }
    }

    pub(super) async fn beat(me: Weak<Mesh>, mut made: watch::Receiver<u64>) {
        loop {
            let began = Instant::now();
            // A connection that was made anew has missed what was said meanwhile.
            let again = tokio::time::timeout(HERE, made.changed())
                .await
                .is_ok_and(|changed| changed.is_ok());
            let Some(mesh) = me.upgrade() else { return };
            if again {
                mesh.grew.notify_one();
            }
            if began.elapsed() > HERE * 2 {
                mesh.peers.forgive();
            }
            // Noticed here, whoever else asks.
            mesh.is_settled();
            mesh.peers.expire();
            metrics::gauge!("chorus_bus_up").set(f64::from(u8::from(mesh.is_up())));
            metrics::gauge!("chorus_hubs_known").set(mesh.others() as f64);
            mesh.say(&Said::Here(mesh.here())).await;
            for (hub, _) in mesh
                .peers
                .punctual()
                .into_iter()
                .filter(|(_, punctual)| !punctual)
            {
                mesh.briefly(Self::try_again(me.clone(), hub));
            }
        }
    }

    /// A hub that was late is asked nothing, until it answers that.
    async fn try_again(me: Weak<Mesh>, hub: HubId) {
        let Some(mesh) = me.upgrade() else { return };
        let nothing = Ask::News(News {
            hub: mesh.id,
            ..News::default()
        });
        if mesh.ask(hub, pack(&nothing)).await.is_ok() {
            mesh.peers.set_late(hub, false);
        }
    }

    /// Asks a hub whom it heard and who listens there; one that was not known is greeted then, so that it asks back.
    pub(super) async fn learn(me: Weak<Mesh>, hub: HubId, known: bool) {
        let Some(mesh) = me.upgrade() else { return };
        if !known {
            mesh.learn_heard(hub).await;
        }
        match mesh.learn_places(hub).await {
            Some((news, places)) => mesh.peers.learned(hub, news, places),
            None => return mesh.peers.unlearned(hub),
        }
        if !known {
            mesh.say(&Said::Here(mesh.here())).await;
        }
    }

    pub(super) fn take_news(&self, news: News) {
        self.peers.change(&news);
        for (agent, ago) in news.heard {
            if let Some(behind) = self.behind() {
                behind.heard(agent, u64::try_from(ago).ok().map(Duration::from_micros));
            }
        }
    }

    /// News of a hub that this one does not know yet.
    pub(super) async fn meet(me: Weak<Mesh>, news: News) -> Bytes {
        let Some(mesh) = me.upgrade() else {
            return Bytes::new();
        };
        if mesh.peers.learn(news.hub) {
            Self::learn(me, news.hub, false).await;
        }
        while mesh.peers.is_learning(news.hub) {
            tokio::time::sleep(GREETING / 10).await;
        }
        mesh.take_news(news);
        Bytes::new()
    }

    async fn learn_places(&self, hub: HubId) -> Option<(u64, Vec<Place>)> {
        let (mut news, mut places) = (None, Vec::<Place>::new());
        loop {
            let after = places.last().map_or(i64::MIN, |place| place.0);
            let answer = self
                .ask(hub, pack(&Ask::Places(self.id, after)))
                .await
                .ok()?;
            let page = unpack::<Page>(&answer)?;
            let news = *news.get_or_insert(page.news);
            let last = page.places.len() < limits::BUS_PIECE;
            places.extend(page.places);
            if last {
                return Some((news, places));
            }
        }
    }

    /// who fell silent before this hub knew anybody is not there for it either.
    async fn learn_heard(&self, hub: HubId) {
        let Some(behind) = self.behind() else { return };
        let mut after = i64::MIN;
        loop {
            let Ok(answer) = self.ask(hub, pack(&Ask::Heard(after))).await else {
                return;
            };
            let Some(page) = unpack::<Vec<Heard>>(&answer) else {
                return;
            };
            for (agent, ago) in &page {
                behind.heard_before(*agent, u64::try_from(*ago).ok().map(Duration::from_micros));
            }
            match page.last() {
                Some((agent, _)) if page.len() >= limits::BUS_PIECE => after = *agent,
                Some(_) | None => return,
            }
        }
    }

    /// One after the other, so that what is said last is also heard last; what gathers meanwhile goes out together.
    pub(super) async fn tell_news(me: Weak<Mesh>, (): ()) {
        loop {
            let Some(mesh) = me.upgrade() else { return };
            let (news, count) = mesh.gather();
            if let Some(news) = news {
                mesh.spread(pack(&Ask::News(news))).await;
            }
            if let Some(count) = count {
                mesh.told.send_replace(count);
                if locked(&mesh.changes).count == count {
                    tokio::select! {
                        () = mesh.changed.notified() => {}
                        // So that a hub that is gone is not kept by its own news.
                        () = tokio::time::sleep(HERE) => {}
                    }
                }
            }
        }
    }

    /// The next news, if there are any; and up to which change everything is in them.
    fn gather(&self) -> (Option<News>, Option<u64>) {
        let mut changes = locked(&self.changes);
        let subjects: Vec<i64> = changes
            .subjects
            .iter()
            .take(limits::BUS_PIECE)
            .copied()
            .collect();
        for subject in &subjects {
            changes.subjects.remove(subject);
        }
        let heard = some(&mut changes.heard, limits::BUS_PIECE);
        let count =
            (changes.subjects.is_empty() && changes.heard.is_empty()).then_some(changes.count);
        drop(changes);
        if subjects.is_empty() && heard.is_empty() {
            return (None, count);
        }
        let sessions = |subject| {
            self.behind()
                .map_or(0, |behind| behind.sessions_of(subject))
        };
        let places: Vec<Place> = subjects
            .into_iter()
            .map(|subject| (subject, self.inboxes_of(subject), sessions(subject)))
            .collect();
        let now = self.behind().map(Behind::steady).unwrap_or_default();
        let ago =
            |at: Option<Duration>| at.map_or(-1, |at| now.saturating_sub(at).as_micros() as i64);
        let heard = heard
            .into_iter()
            .map(|(agent, at)| (agent, ago(at)))
            .collect();
        let number = locked(&self.own).say(&places);
        (
            Some(News {
                hub: self.id,
                number,
                places,
                heard,
            }),
            count,
        )
    }

    /// Tells all, and waits until they know: but for none twice that did not answer in time.
    async fn spread(&self, what: Bytes) {
        let tell = |(hub, punctual): (HubId, bool)| {
            let what = what.clone();
            async move {
                if !punctual {
                    self.say_to(hub, what).await;
                } else if self.ask(hub, what).await == Err(Silence::Late) {
                    self.peers.set_late(hub, true);
                }
            }
        };
        join_all(self.peers.punctual().into_iter().map(tell)).await;
    }

    async fn say_to(&self, hub: HubId, what: Bytes) {
        if let Some(nats) = self.nats() {
            nats.say(&name(hub), what).await;
        }
    }
}
