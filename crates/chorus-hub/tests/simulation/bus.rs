//! The bus of a history: messages arrive late but in order, and a link that is cut loses what is on its way, as NATS does.

use crate::seeded_random::SeededRandom;
use bytes::Bytes;
use chorus_hub::Clock;
use chorus_hub::bus::{
    BusLink, BusMessage, FrameReader, FrameStreamName, FrameStreamState, RequestError,
};
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt, stream};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

type FrameSender = mpsc::UnboundedSender<Result<(u64, BusMessage), String>>;

#[derive(Clone)]
pub struct SimulatedBus(Arc<Mutex<BusState>>);

struct BusState {
    clock: Clock,
    random: SeededRandom,
    links: Vec<LinkState>,
    subscriptions: Vec<BusSubscriber>,
    /// By the time of arrival, then by the order of sending.
    on_the_way: BTreeMap<(Duration, u64), OnTheWay>,
    sent_count: u64,
    frame_epoch: u64,
    frames: Vec<BusMessage>,
    is_healed: bool,
    /// A planted fault: this link never gets an announcement or a request again, and believes itself connected.
    deaf_link: Option<usize>,
}

struct LinkState {
    is_connected: bool,
    is_closed: bool,
    connect_count: u64,
    /// One for each receiver: those of one `watch` are woken randomly, and a history would not repeat.
    connect_watches: Vec<watch::Sender<u64>>,
    /// No message arrives before the one that was sent before it.
    last_arrival: Duration,
}

struct BusSubscriber {
    link: usize,
    subject: String,
    sender: mpsc::UnboundedSender<BusMessage>,
}

struct OnTheWay {
    link: usize,
    sender: mpsc::UnboundedSender<BusMessage>,
    message: BusMessage,
}

impl SimulatedBus {
    pub fn new(clock: Clock, random: SeededRandom) -> Self {
        Self(Arc::new(Mutex::new(BusState {
            clock,
            random,
            links: Vec::new(),
            subscriptions: Vec::new(),
            on_the_way: BTreeMap::new(),
            sent_count: 0,
            frame_epoch: 0,
            frames: Vec::new(),
            is_healed: false,
            deaf_link: None,
        })))
    }

    /// The link of one run of one hub.
    pub fn open_link(&self) -> Arc<SimulatedLink> {
        let mut state = self.0.lock().unwrap();
        state.links.push(LinkState {
            is_connected: true,
            is_closed: false,
            connect_count: 1,
            connect_watches: Vec::new(),
            last_arrival: Duration::ZERO,
        });
        Arc::new(SimulatedLink {
            bus: self.clone(),
            id: state.links.len() - 1,
        })
    }

    /// The hub of this link is gone.
    pub fn close_link(&self, link: usize) {
        let mut state = self.0.lock().unwrap();
        state.links[link].is_closed = true;
        state.disconnect(link);
        state.subscriptions.retain(|one| one.link != link);
    }

    pub fn cut_link(&self, link: usize) {
        self.0.lock().unwrap().disconnect(link);
    }

    pub fn restore_link(&self, link: usize) {
        let mut state = self.0.lock().unwrap();
        let state = &mut state.links[link];
        if !state.is_connected && !state.is_closed {
            state.is_connected = true;
            state.connect_count += 1;
            for watch in &state.connect_watches {
                watch.send_replace(state.connect_count);
            }
        }
    }

    /// From here on messages arrive at once and no link is cut.
    pub fn heal(&self) {
        let count = {
            let mut state = self.0.lock().unwrap();
            state.is_healed = true;
            state.links.len()
        };
        (0..count).for_each(|link| self.restore_link(link));
    }

    pub fn deafen_link(&self, link: usize) {
        self.0.lock().unwrap().deaf_link = Some(link);
    }

    /// Delivers what has arrived by now.
    pub fn deliver_arrived(&self) {
        let mut state = self.0.lock().unwrap();
        let now = state.clock.monotonic_now();
        while let Some(first) = state.on_the_way.first_entry() {
            if first.key().0 > now {
                break;
            }
            let arrived = first.remove();
            let is_deaf = state.deaf_link == Some(arrived.link);
            if state.links[arrived.link].is_connected && !is_deaf {
                let _ = arrived.sender.send(arrived.message);
            }
        }
    }
}

impl BusState {
    fn disconnect(&mut self, link: usize) {
        self.links[link].is_connected = false;
        self.on_the_way.retain(|_, message| message.link != link);
    }

    /// How many subscriptions the message goes to.
    fn send(&mut self, from: usize, message: &BusMessage) -> usize {
        if !self.links[from].is_connected {
            return 0;
        }
        let now = self.clock.monotonic_now();
        let receivers: Vec<(usize, mpsc::UnboundedSender<BusMessage>)> = self
            .subscriptions
            .iter()
            .filter(|one| one.subject == message.subject && !one.sender.is_closed())
            .map(|one| (one.link, one.sender.clone()))
            .collect();
        let count = receivers.len();
        for (link, sender) in receivers {
            if !self.links[link].is_connected {
                continue;
            }
            let pause = match self.random.below(20) {
                _ if self.is_healed => Duration::ZERO,
                0 => self.random.millis(50, 900),
                _ => self.random.millis(0, 8),
            };
            let arrival = (now + pause).max(self.links[link].last_arrival);
            self.links[link].last_arrival = arrival;
            self.sent_count += 1;
            let message = message.clone();
            self.on_the_way.insert(
                (arrival, self.sent_count),
                OnTheWay {
                    link,
                    sender,
                    message,
                },
            );
        }
        count
    }

    fn subscribe(&mut self, link: usize, subject: &str) -> mpsc::UnboundedReceiver<BusMessage> {
        self.subscriptions.retain(|one| !one.sender.is_closed());
        let (sender, receiver) = mpsc::unbounded_channel();
        self.subscriptions.push(BusSubscriber {
            link,
            subject: subject.to_owned(),
            sender,
        });
        receiver
    }

    fn stream_state(&self) -> FrameStreamState {
        FrameStreamState {
            epoch: self.frame_epoch,
            floor_seq: 0,
            newest_seq: self.frames.len() as u64,
        }
    }
}

pub struct SimulatedLink {
    bus: SimulatedBus,
    pub id: usize,
}

impl SimulatedLink {
    fn with<T>(&self, work: impl FnOnce(&mut BusState) -> T) -> T {
        work(&mut self.bus.0.lock().unwrap())
    }
}

impl BusLink for SimulatedLink {
    fn is_connected(&self) -> bool {
        self.with(|state| state.links[self.id].is_connected)
    }

    fn watch_connects(&self) -> watch::Receiver<u64> {
        self.with(|state| {
            let link = &mut state.links[self.id];
            link.connect_watches.retain(|watch| !watch.is_closed());
            let (sender, receiver) = watch::channel(link.connect_count);
            link.connect_watches.push(sender);
            receiver
        })
    }

    fn publish(&self, message: BusMessage) -> BoxFuture<'_, Result<(), String>> {
        async move {
            self.with(|state| state.send(self.id, &message));
            Ok(())
        }
        .boxed()
    }

    fn request(
        &self,
        subject: String,
        payload: Bytes,
    ) -> BoxFuture<'_, Result<BusMessage, RequestError>> {
        async move {
            let (mut answers, receiver_count) = self.with(|state| {
                let inbox = format!("inbox.{}", state.sent_count + 1);
                let answers = state.subscribe(self.id, &inbox);
                let message = BusMessage {
                    subject,
                    reply: Some(inbox),
                    payload,
                };
                (answers, state.send(self.id, &message))
            });
            if receiver_count == 0 && self.is_connected() {
                return Err(RequestError::NoResponders);
            }
            match answers.recv().await {
                Some(answer) => Ok(answer),
                None => std::future::pending().await,
            }
        }
        .boxed()
    }

    fn subscribe(
        &self,
        subject: String,
    ) -> BoxFuture<'_, Result<BoxStream<'static, BusMessage>, String>> {
        async move {
            let receiver = self.with(|state| state.subscribe(self.id, &subject));
            Ok(receiver_stream(receiver).boxed())
        }
        .boxed()
    }

    fn new_inbox(&self) -> String {
        self.with(|state| {
            state.sent_count += 1;
            format!("inbox.{}", state.sent_count)
        })
    }

    fn flush(&self) -> BoxFuture<'_, Result<(), String>> {
        std::future::ready(Ok(())).boxed()
    }

    fn open_frame_stream(
        &self,
        _name: FrameStreamName,
        epoch: u64,
    ) -> BoxFuture<'_, Result<FrameStreamState, String>> {
        async move {
            self.with(|state| {
                if state.frame_epoch == 0 {
                    state.frame_epoch = epoch;
                }
                if state.links[self.id].is_connected {
                    Ok(state.stream_state())
                } else {
                    Err("not connected".to_owned())
                }
            })
        }
        .boxed()
    }

    fn fetch_frame_stream(
        &self,
        _name: FrameStreamName,
    ) -> BoxFuture<'_, Option<FrameStreamState>> {
        async move {
            self.with(|state| {
                state.links[self.id]
                    .is_connected
                    .then(|| state.stream_state())
            })
        }
        .boxed()
    }

    fn append_frame(&self, subject: String, payload: Bytes) -> BoxFuture<'_, Result<u64, String>> {
        async move {
            self.with(|state| {
                state.frames.push(BusMessage {
                    subject,
                    reply: None,
                    payload,
                });
                Ok(state.frames.len() as u64)
            })
        }
        .boxed()
    }

    fn read_frames(
        &self,
        _name: FrameStreamName,
        after_seq: u64,
    ) -> BoxFuture<'_, Result<FrameReader, String>> {
        async move {
            let (sender, receiver): (FrameSender, _) = mpsc::unbounded_channel();
            self.with(|state| {
                for (index, frame) in state.frames.iter().enumerate().skip(after_seq as usize) {
                    let _ = sender.send(Ok((index as u64 + 1, frame.clone())));
                }
            });
            // Frames that are appended later are found by the check of the stream's state, which opens it again.
            let kept_open = stream::once(async move {
                std::future::pending::<()>().await;
                drop(sender);
                Err("never".to_owned())
            });
            Ok(stream::select(receiver_stream(receiver), kept_open).boxed())
        }
        .boxed()
    }
}

fn receiver_stream<T: Send + 'static>(
    receiver: mpsc::UnboundedReceiver<T>,
) -> impl futures_util::Stream<Item = T> + Send {
    stream::unfold(receiver, |mut receiver| async move {
        let item = receiver.recv().await?;
        Some((item, receiver))
    })
}
