//! The bus of a hub among others that share its database. Each hub reads the log by itself and tells its own streams, in its
//! order; what hubs say to one another only makes them look at once, and tells who took what (D-80).

mod faces;
mod presence;
mod spends;

use super::nats::{Ear, Heard, Nats, Silence};
use super::words::{Alike, Ask, HubId, Question, Said, pack, unpack};
use super::{Behind, Local, peers};
use bytes::Bytes;
use chorus_wire::{limits, secret::Secret};
use futures_util::future::{join_all, try_join_all};
use presence::{Changes, Own};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How long after the bus was away it takes until every hub has said again that it is there: two beats.
const SETTLED: Duration = Duration::from_secs(1);
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
    own: Mutex<Own>,
    changes: Mutex<Changes>,
    changed: Notify,
    told: watch::Sender<u64>,
    grew: Notify,
    /// Rung when the memory that hubs share may not be the one that is read.
    pub(super) doubted: Notify,
    /// Places for questions that wait here (law 6).
    answers: Arc<Semaphore>,
    /// Which connection to the bus was last seen, and since when.
    connection: Mutex<(u64, Instant)>,
    /// Up to where the log is known here, and since when.
    tailed: watch::Sender<i64>,
    tailed_at: Mutex<Instant>,
    taken: Mutex<VecDeque<i64>>,
    spends: spends::Spends,
    tasks: Mutex<JoinSet<()>>,
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
            own: Mutex::default(),
            changes: Mutex::default(),
            changed: Notify::new(),
            told: watch::Sender::new(0),
            grew: Notify::new(),
            doubted: Notify::new(),
            answers: Arc::new(Semaphore::new(limits::BUS_ANSWERS)),
            connection: Mutex::new((0, Instant::now())),
            tailed: watch::Sender::new(0),
            tailed_at: Mutex::new(Instant::now()),
            taken: Mutex::default(),
            spends: spends::Spends::default(),
            tasks: Mutex::default(),
        })
    }

    pub fn opened(&self, salt: u32, newest: i64) {
        self.local.opened(salt, newest);
        self.tailed.send_modify(|at| *at = newest.max(*at));
    }

    /// Joins the other hubs of this database.
    pub async fn join(
        &self,
        bus: (&Secret, &super::BusFiles),
        salt: u32,
        behind: Box<dyn Behind>,
    ) -> Result<(), String> {
        let nats = Arc::new(Nats::connect(bus.0, bus.1, format!("chorus.{salt:06x}")).await?);
        let (all, mine) = (
            nats.listen("all").await?,
            nats.listen(&name(self.id)).await?,
        );
        let _ = self.behind.set(behind);
        let _ = self.nats.set(nats.clone());
        self.tape_begin(&nats).await?;
        self.run(Self::listen, (all, mine));
        self.run(Self::tell_news, ());
        self.run(Self::beat, nats.made());
        if let Some(budgets) = self.behind().and_then(Behind::budgets) {
            self.run(Self::tell_spends, budgets);
        }
        self.greet().await;
        self.compare().await
    }

    /// D-87: a hub that could not read what those beside it write does not begin to write.
    async fn compare(&self) -> Result<(), String> {
        let mine = self.behind().map(Behind::alike).unwrap_or_default();
        for hub in self.peers.all() {
            // One that is too old to know the question says nothing, and is believed to be alike.
            let answer = self.ask(hub, pack(&Ask::Alike)).await.unwrap_or_default();
            if let Some(setting) = unpack::<Alike>(&answer).and_then(|theirs| mine.unlike(&theirs))
            {
                return Err(format!(
                    "a hub that is already running on this database has another {setting}"
                ));
            }
        }
        Ok(())
    }

    /// Runs for as long as the hub is there.
    pub(super) fn run<T, F>(&self, work: impl FnOnce(Weak<Mesh>, T) -> F, with: T)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        locked(&self.tasks).spawn(work(self.me.clone(), with));
    }

    /// Does something while others are heard; whoever calls it knows how many of these there are at once.
    fn briefly(&self, work: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(work);
    }

    /// Answers when there is something to say, while others are heard. Who finds no place to wait is told so at once.
    async fn when_ready<F>(&self, heard: Heard, work: impl FnOnce(Weak<Mesh>) -> F)
    where
        F: Future<Output = Bytes> + Send + 'static,
    {
        let (Some(nats), Ok(place)) = (
            self.nats().cloned(),
            self.answers.clone().try_acquire_owned(),
        ) else {
            return self.answer(&heard, Bytes::new()).await;
        };
        let work = work(self.me.clone());
        tokio::spawn(async move {
            let answer = tokio::time::timeout(limits::BUS_WAIT, work)
                .await
                .unwrap_or_default();
            nats.answer(&heard, answer).await;
            drop(place);
        });
    }

    async fn answer(&self, heard: &Heard, what: Bytes) {
        if let Some(nats) = self.nats() {
            nats.answer(heard, what).await;
        }
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

    /// False for a moment after the bus was away: whoever else it was away for may not be back yet.
    fn is_settled(&self) -> bool {
        let made = self.nats().map_or(0, |nats| *nats.made().borrow());
        let mut connection = locked(&self.connection);
        if connection.0 != made {
            *connection = (made, Instant::now());
        }
        // The first one is made before there is anything to be claimed, and the others say at once that they are there.
        made <= 1 || connection.1.elapsed() >= SETTLED
    }

    /// How many other hubs are known.
    pub fn others(&self) -> usize {
        self.peers.all().len()
    }

    /// Frame sessions of a principal at other hubs.
    pub fn sessions_elsewhere(&self, principal: i64) -> usize {
        self.peers.sessions(principal)
    }

    async fn say(&self, what: &Said) {
        if let Some(nats) = self.nats() {
            nats.say("all", pack(what)).await;
        }
    }

    /// What a hub answers. One that is not there any more is forgotten at once; but when the bus itself was away, whoever is
    /// not there yet may be about to come back.
    async fn ask(&self, hub: HubId, what: Bytes) -> Result<Bytes, Silence> {
        self.ask_within(hub, what, limits::BUS_WAIT).await
    }

    async fn ask_within(
        &self,
        hub: HubId,
        what: Bytes,
        within: Duration,
    ) -> Result<Bytes, Silence> {
        let nats = self.nats().ok_or(Silence::Late)?;
        match nats.ask(&name(hub), what, within).await {
            Err(Silence::Nobody) if self.is_settled() => {
                self.peers.gone(hub);
                Err(Silence::Nobody)
            }
            Err(Silence::Nobody) => Err(Silence::Late),
            answer => answer,
        }
    }

    /// What the same room of every other hub answers. Nobody is left out who is there: one that does not answer is asked until
    /// it does or is gone, and when it is neither, nothing is claimed (D-93).
    pub async fn ask_all<T>(
        &self,
        question: Question,
        read: impl Fn(&[u8]) -> Option<T> + Copy,
    ) -> Result<Vec<(HubId, T)>, Silence> {
        let until = Instant::now() + limits::BUS_COUNT;
        while !self.is_settled() {
            if !self.is_up() || Instant::now() >= until {
                return Err(Silence::Late);
            }
            tokio::time::sleep(limits::BUS_AGAIN).await;
        }
        if !self.is_up() {
            return Err(Silence::Late);
        }
        let what = pack(&Ask::Room(question));
        let asks = self
            .peers
            .all()
            .into_iter()
            .map(|hub| self.ask_until(hub, what.clone(), until, read));
        Ok(try_join_all(asks).await?.into_iter().flatten().collect())
    }

    /// What one of them answers when it is asked on.
    pub async fn ask_on<T>(
        &self,
        hub: HubId,
        question: Question,
        read: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<T, Silence> {
        let answer = self
            .ask_until(
                hub,
                pack(&Ask::Room(question)),
                Instant::now() + limits::BUS_COUNT,
                read,
            )
            .await?;
        answer.map(|(_, answer)| answer).ok_or(Silence::Nobody)
    }

    async fn ask_until<T>(
        &self,
        hub: HubId,
        what: Bytes,
        until: Instant,
        read: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<Option<(HubId, T)>, Silence> {
        loop {
            let answer = self.ask(hub, what.clone()).await;
            if let Some(read) = answer.ok().and_then(|answer| read(&answer)) {
                return Ok(Some((hub, read)));
            }
            if !self.is_up() || Instant::now() >= until {
                return Err(Silence::Late);
            }
            if !self.peers.knows(hub) {
                return Ok(None);
            }
            tokio::time::sleep(limits::BUS_AGAIN).await;
        }
    }

    async fn listen(me: Weak<Mesh>, (mut all, mut mine): (Ear, Ear)) {
        loop {
            let (heard, asked) = tokio::select! {
                heard = all.next() => (heard, false),
                asked = mine.next() => (asked, true),
            };
            let (Some(heard), Some(mesh)) = (heard, me.upgrade()) else {
                return;
            };
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
                let known = self.peers.knows(here.hub);
                if self.peers.here(here) && self.peers.learn(here.hub) {
                    self.briefly(Self::learn(self.me.clone(), here.hub, known));
                }
            }
            Said::Gone(hub) => self.peers.gone(hub),
            Said::Grew(hub, upto) if hub != self.id && upto > *self.tailed.borrow() => {
                self.grew.notify_one()
            }
            Said::Spent(hub, debts) if hub != self.id => self.learn_debts(&debts),
            Said::Here(_) | Said::Grew(..) | Said::Spent(..) => {}
        }
    }

    async fn asked(&self, heard: Heard) {
        match unpack(&heard.payload) {
            Some(Ask::News(news)) if self.peers.knows(news.hub) => {
                self.take_news(news);
                self.answer(&heard, Bytes::new()).await;
            }
            // It waits until it is known: then whoever comes to it is counted by everybody.
            Some(Ask::News(news)) => self.when_ready(heard, |me| Self::meet(me, news)).await,
            Some(Ask::Places(_, after)) => {
                let page = locked(&self.own).page(after);
                self.answer(&heard, pack(&page)).await;
            }
            Some(Ask::Heard(after)) => {
                let page = self
                    .behind()
                    .map(|behind| behind.all_heard(after, limits::BUS_PIECE))
                    .unwrap_or_default();
                self.answer(&heard, pack(&page)).await;
            }
            Some(Ask::Alike) => {
                let alike = self.behind().map(Behind::alike).unwrap_or_default();
                self.answer(&heard, pack(&alike)).await;
            }
            Some(Ask::Spend(spends)) => self.answer(&heard, pack(&self.judge(&spends))).await,
            // Those wait, and nobody else for them.
            Some(Ask::Took { upto, seqs }) => {
                self.when_ready(heard, |me| Self::took(me, upto, seqs))
                    .await
            }
            Some(Ask::Room(question)) => {
                self.when_ready(heard, |me| Self::room_answers(me, question))
                    .await
            }
            // A newer hub's: it need not wait to learn that it gets no answer.
            None => self.answer(&heard, Bytes::new()).await,
        }
    }

    async fn took(me: Weak<Mesh>, upto: i64, seqs: Vec<i64>) -> Bytes {
        let Some(mesh) = me.upgrade() else {
            return Bytes::new();
        };
        let mut tailed = mesh.tailed.subscribe();
        if *tailed.borrow() < upto {
            mesh.grew.notify_one();
            let _ = tailed.wait_for(|at| *at >= upto).await;
        }
        let taken = locked(&mesh.taken);
        pack(
            &seqs
                .into_iter()
                .filter(|seq| taken.binary_search(seq).is_ok())
                .collect::<Vec<i64>>(),
        )
    }

    async fn room_answers(me: Weak<Mesh>, question: Question) -> Bytes {
        let Some(mesh) = me.upgrade() else {
            return Bytes::new();
        };
        match mesh.behind() {
            Some(behind) => behind.answer(question).await,
            None => Bytes::new(),
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
        let asks = asks
            .into_iter()
            .map(|(hub, seqs)| self.ask(hub, pack(&Ask::Took { upto, seqs })));
        let answers = join_all(asks).await;
        answers
            .into_iter()
            .flatten()
            .filter_map(|answer| unpack::<Vec<i64>>(&answer))
            .flatten()
            .collect()
    }
}

fn name(hub: HubId) -> String {
    format!("hub.{hub:016x}")
}
