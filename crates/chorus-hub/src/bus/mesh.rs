//! The bus of a hub among others that share its database. Each hub reads the log by itself and tells its own streams, in its
//! order; what hubs say to one another only makes them look at once, and tells who took what (D-80).

mod faces;

use super::nats::{Ear, Heard, Nats, Silence};
use super::words::{Ask, Here, HubId, News, Place, Question, Said, pack, unpack};
use super::{Behind, Local, peers};
use bytes::Bytes;
use chorus_wire::{limits, secret::Secret};
use futures_util::future::join_all;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How often a hub says that it is there.
const HERE: Duration = Duration::from_millis(500);
/// How long a hub that starts waits for the others to say that they are there, once the first one has.
const GREETING: Duration = Duration::from_millis(100);
/// Places of one answer: far below what one message may hold.
const PLACES: usize = 20_000;
/// Entries of other hubs of which it is remembered that a stream here took them: many groups of all of them.
const TAKEN: usize = 16_384;

pub(crate) struct Mesh {
    me: Weak<Mesh>,
    id: HubId,
    local: Local,
    nats: OnceLock<Arc<Nats>>,
    behind: OnceLock<Box<dyn Behind>>,
    pub(super) peers: peers::Peers,
    /// Open inboxes here, by their subject.
    inboxes: Mutex<HashMap<i64, u32>>,
    changes: Mutex<Changes>,
    changed: Notify,
    told: watch::Sender<u64>,
    grew: Notify,
    /// Up to where the log is known here, and since when.
    tailed: watch::Sender<i64>,
    tailed_at: Mutex<Instant>,
    taken: Mutex<VecDeque<i64>>,
    tasks: Mutex<JoinSet<()>>,
}

/// What the others do not know yet.
#[derive(Default)]
struct Changes {
    subjects: HashSet<i64>,
    heard: HashMap<i64, Option<Duration>>,
    /// How many changes there were.
    count: u64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Mesh {
    pub fn new() -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            id: rand::random(),
            local: Local::new(),
            nats: OnceLock::new(),
            behind: OnceLock::new(),
            peers: peers::Peers::default(),
            inboxes: Mutex::default(),
            changes: Mutex::default(),
            changed: Notify::new(),
            told: watch::Sender::new(0),
            grew: Notify::new(),
            tailed: watch::Sender::new(0),
            tailed_at: Mutex::new(Instant::now()),
            taken: Mutex::default(),
            tasks: Mutex::default(),
        })
    }

    pub fn opened(&self, salt: u32, newest: i64) {
        self.local.opened(salt, newest);
        self.tailed.send_modify(|at| *at = newest.max(*at));
    }

    /// Joins the other hubs of this database.
    pub async fn join(&self, url: &Secret, salt: u32, behind: Box<dyn Behind>) -> Result<(), String> {
        let nats = Arc::new(Nats::connect(url, format!("chorus.{salt:06x}")).await?);
        let (all, mine) = (nats.listen("all").await?, nats.listen(&name(self.id)).await?);
        let _ = self.behind.set(behind);
        let _ = self.nats.set(nats.clone());
        self.tape_begin(&nats).await?;
        self.run(Self::listen, (all, mine));
        self.run(Self::tell_news, ());
        self.run(Self::beat, nats.made());
        self.greet().await;
        Ok(())
    }

    /// Runs for as long as the hub is there.
    pub(super) fn run<T, F>(&self, work: impl FnOnce(Weak<Mesh>, T) -> F, with: T)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        locked(&self.tasks).spawn(work(self.me.clone(), with));
    }

    /// Waits for something, within bounds, while others are heard.
    fn briefly(&self, work: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(work);
    }

    pub(super) fn nats(&self) -> Option<&Arc<Nats>> {
        self.nats.get()
    }

    pub(super) fn behind(&self) -> Option<&dyn Behind> {
        self.behind.get().map(|behind| &**behind)
    }

    /// Whether the other hubs can be reached.
    pub fn is_up(&self) -> bool {
        self.nats().is_some_and(|nats| nats.is_up())
    }

    /// How many other hubs are known.
    pub fn others(&self) -> usize {
        self.peers.all().len()
    }

    /// Frame sessions of a principal at other hubs.
    pub fn sessions_elsewhere(&self, principal: i64) -> usize {
        self.peers.sessions(principal)
    }

    /// An agent was heard here at this time of the steady clock, or refused a job.
    pub fn heard(&self, agent: i64, at: Option<Duration>) {
        let mut changes = locked(&self.changes);
        changes.heard.insert(agent, at);
        changes.count += 1;
        drop(changes);
        self.changed.notify_one();
    }

    async fn say(&self, what: &Said) {
        if let Some(nats) = self.nats() {
            nats.say("all", pack(what)).await;
        }
    }

    /// What a hub answers. One that is not there any more is forgotten at once.
    async fn ask(&self, hub: HubId, what: Bytes) -> Result<Bytes, Silence> {
        let nats = self.nats().ok_or(Silence::Late)?;
        let answer = nats.ask(&name(hub), what, limits::BUS_WAIT).await;
        if answer == Err(Silence::Nobody) {
            self.peers.gone(hub);
        }
        answer
    }

    /// What the same room of every other hub answers; those that do not are left out.
    pub async fn ask_all(&self, question: Question) -> Vec<Bytes> {
        let what = pack(&Ask::Room(question));
        let asks = self.peers.all().into_iter().map(|hub| self.ask(hub, what.clone()));
        join_all(asks).await.into_iter().flatten().collect()
    }

    fn places(&self) -> BTreeMap<i64, Place> {
        let sessions = self.behind().map(Behind::sessions).unwrap_or_default();
        let mut places: BTreeMap<i64, Place> =
            locked(&self.inboxes).iter().map(|(subject, streams)| (*subject, (*subject, *streams, 0))).collect();
        for (principal, sessions) in sessions {
            places.entry(principal).or_insert((principal, 0, 0)).2 = sessions;
        }
        places
    }

    fn inboxes_of(&self, subject: i64) -> u32 {
        locked(&self.inboxes).get(&subject).copied().unwrap_or_default()
    }

    fn here(&self) -> Here {
        let places = self.places();
        Here { hub: self.id, subjects: places.len(), sum: peers::sum(places.into_values()) }
    }

    /// Says that this hub is there, and waits a moment for the others to say the same.
    async fn greet(&self) {
        self.say(&Said::Here(self.here())).await;
        let until = Instant::now() + GREETING;
        while self.peers.is_empty() && Instant::now() < until {
            tokio::time::sleep(GREETING / 10).await;
        }
    }

    async fn beat(me: Weak<Mesh>, mut made: watch::Receiver<u64>) {
        loop {
            // A connection that was made anew has missed what was said meanwhile.
            let again = tokio::time::timeout(HERE, made.changed()).await.is_ok_and(|changed| changed.is_ok());
            let Some(mesh) = me.upgrade() else { return };
            if again {
                mesh.grew.notify_one();
            }
            mesh.peers.expire();
            metrics::gauge!("chorus_bus_up").set(f64::from(u8::from(mesh.is_up())));
            metrics::gauge!("chorus_hubs_known").set(mesh.others() as f64);
            mesh.say(&Said::Here(mesh.here())).await;
        }
    }

    async fn listen(me: Weak<Mesh>, (mut all, mut mine): (Ear, Ear)) {
        loop {
            let (heard, asked) = tokio::select! {
                heard = all.next() => (heard, false),
                asked = mine.next() => (asked, true),
            };
            let (Some(heard), Some(mesh)) = (heard, me.upgrade()) else { return };
            if asked {
                mesh.asked(heard).await;
            } else if let Some(said) = unpack(&heard.payload) {
                mesh.on(said);
            }
        }
    }

    fn on(&self, said: Said) {
        match said {
            Said::Here(here) if here.hub != self.id => {
                let known = self.peers.all().contains(&here.hub);
                if self.peers.here(here) {
                    self.briefly(Self::learn(self.me.clone(), (here.hub, known)));
                }
            }
            Said::Gone(hub) => self.peers.gone(hub),
            Said::Grew(hub, upto) if hub != self.id && upto > *self.tailed.borrow() => self.grew.notify_one(),
            Said::Here(_) | Said::Grew(..) => {}
        }
    }

    /// Asks a hub who listens there; one that was not known is greeted first, so that it asks back.
    async fn learn(me: Weak<Mesh>, (hub, known): (HubId, bool)) {
        let Some(mesh) = me.upgrade() else { return };
        let mut places: Vec<Place> = Vec::new();
        loop {
            let after = places.last().map_or(i64::MIN, |place| place.0);
            let Ok(answer) = mesh.ask(hub, pack(&Ask::Places(mesh.id, after))).await else { return };
            let Some(page) = unpack::<Vec<Place>>(&answer) else { return };
            let full = page.len() == PLACES;
            places.extend(page);
            if !full {
                break;
            }
        }
        mesh.peers.put(hub, places);
        if !known {
            mesh.say(&Said::Here(mesh.here())).await;
        }
    }

    async fn asked(&self, heard: Heard) {
        let Some(nats) = self.nats() else { return };
        match unpack(&heard.payload) {
            Some(Ask::News(news)) => {
                self.peers.change(news.hub, &news.places);
                for (agent, ago) in news.heard {
                    if let Some(behind) = self.behind() {
                        behind.heard(agent, u64::try_from(ago).ok().map(Duration::from_micros));
                    }
                }
                nats.answer(&heard, Bytes::new()).await;
            }
            Some(Ask::Places(_, after)) => {
                let places = self.places();
                let page: Vec<Place> = places.into_values().filter(|place| place.0 > after).take(PLACES).collect();
                nats.answer(&heard, pack(&page)).await;
            }
            // Those wait, and nobody else for them.
            Some(Ask::Took { upto, seqs }) => self.briefly(Self::took(self.me.clone(), (heard, upto, seqs))),
            Some(Ask::Room(question)) => self.briefly(Self::answer(self.me.clone(), (heard, question))),
            None => tracing::debug!("another hub asks what this one does not know"),
        }
    }

    async fn took(me: Weak<Mesh>, (heard, upto, seqs): (Heard, i64, Vec<i64>)) {
        let Some(mesh) = me.upgrade() else { return };
        let mut tailed = mesh.tailed.subscribe();
        if *tailed.borrow() < upto {
            mesh.grew.notify_one();
            let _ = tokio::time::timeout(limits::BUS_WAIT, tailed.wait_for(|at| *at >= upto)).await;
        }
        let mine: Vec<i64> = {
            let taken = locked(&mesh.taken);
            seqs.into_iter().filter(|seq| taken.binary_search(seq).is_ok()).collect()
        };
        if let Some(nats) = mesh.nats() {
            nats.answer(&heard, pack(&mine)).await;
        }
    }

    async fn answer(me: Weak<Mesh>, (heard, question): (Heard, Question)) {
        let Some(mesh) = me.upgrade() else { return };
        let (Some(nats), Some(behind)) = (mesh.nats(), mesh.behind()) else { return };
        if let Ok(answer) = tokio::time::timeout(limits::BUS_WAIT, behind.answer(question)).await {
            nats.answer(&heard, answer).await;
        }
    }

    /// One after the other, so that what is said last is also heard last; what gathers meanwhile goes out together.
    async fn tell_news(me: Weak<Mesh>, (): ()) {
        loop {
            let Some(mesh) = me.upgrade() else { return };
            let gathered = std::mem::take(&mut locked(&mesh.changes).subjects);
            let (heard, count) = {
                let mut changes = locked(&mesh.changes);
                (std::mem::take(&mut changes.heard), changes.count)
            };
            if !(gathered.is_empty() && heard.is_empty()) {
                let sessions = |subject| mesh.behind().map_or(0, |behind| behind.sessions_of(subject));
                let places = gathered.into_iter().map(|subject| (subject, mesh.inboxes_of(subject), sessions(subject)));
                let now = mesh.behind().map(Behind::steady).unwrap_or_default();
                let ago = |at: Option<Duration>| at.map_or(-1, |at| now.saturating_sub(at).as_micros() as i64);
                let heard = heard.into_iter().map(|(agent, at)| (agent, ago(at))).collect();
                let what = pack(&Ask::News(News { hub: mesh.id, places: places.collect(), heard }));
                let asks = mesh.peers.all().into_iter().map(|hub| mesh.ask(hub, what.clone()));
                join_all(asks).await;
            }
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

    /// Leaves: the others expect nothing more of this hub.
    pub async fn leave(&self) {
        // First: nothing that is still under way may say that this hub is there.
        locked(&self.tasks).abort_all();
        self.say(&Said::Gone(self.id)).await;
        if let Some(nats) = self.nats() {
            nats.flush().await;
        }
    }

    /// Which of these entries streams of other hubs took. Those hubs have then forgotten what the entries say is over.
    async fn taken_elsewhere(&self, upto: i64, asks: HashMap<HubId, Vec<i64>>) -> Vec<i64> {
        self.say(&Said::Grew(self.id, upto)).await;
        let asks = asks.into_iter().map(|(hub, seqs)| self.ask(hub, pack(&Ask::Took { upto, seqs })));
        let answers = join_all(asks).await;
        answers.into_iter().flatten().filter_map(|answer| unpack::<Vec<i64>>(&answer)).flatten().collect()
    }
}

fn name(hub: HubId) -> String {
    format!("hub.{hub:016x}")
}
