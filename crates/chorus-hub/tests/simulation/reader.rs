//! A reader of an inbox: it resumes at its cursor wherever it can, and loses what was in a connection that broke.

use crate::node::SimulatedHub;
use crate::template::Template;
use chorus_hub::delivery::{FeedItem, open_inbox};
use chorus_hub::{Hub, Result, identity};
use chorus_wire::cursor::HistoryStart;
use chorus_wire::reach::StreamReach;
use chorus_wire::sse::SseReader;
use std::sync::{Arc, Mutex};

/// What the reader has, over all its connections.
#[derive(Default)]
pub struct InboxProgress {
    pub cursor: u64,
    /// The ids of the events that it processed, in order.
    pub seen: Vec<u64>,
    pub is_open: bool,
}

pub struct InboxReader {
    pub agent: usize,
    pub progress: Arc<Mutex<InboxProgress>>,
    connection: Option<ReaderConnection>,
}

struct ReaderConnection {
    run: usize,
    task: tokio::task::AbortHandle,
}

impl InboxReader {
    pub fn new(agent: usize, first_cursor: u64) -> Self {
        let progress = InboxProgress {
            cursor: first_cursor,
            ..InboxProgress::default()
        };
        Self {
            agent,
            progress: Arc::new(Mutex::new(progress)),
            connection: None,
        }
    }

    /// Whether it has a connection, or is making one.
    pub fn is_connected(&self) -> bool {
        self.connection
            .as_ref()
            .is_some_and(|connection| !connection.task.is_finished())
    }

    pub fn is_open(&self) -> bool {
        self.is_connected() && self.progress.lock().unwrap().is_open
    }

    /// Connects to a run of a hub. After `breaks_after` groups of events the connection breaks, and the group is lost.
    pub fn connect(
        &mut self,
        node: &SimulatedHub,
        hub: Hub,
        run: usize,
        template: &Arc<Template>,
        breaks_after: Option<usize>,
    ) {
        let key = template.keys[self.agent].clone();
        let progress = self.progress.clone();
        let task = node.spawn(async move {
            let _ = read_inbox(hub, &key, &progress, breaks_after).await;
            progress.lock().unwrap().is_open = false;
        });
        self.connection = Some(ReaderConnection { run, task });
    }

    pub fn disconnect(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.task.abort();
            self.progress.lock().unwrap().is_open = false;
        }
    }

    /// The run of this hub is over, and its connections with it.
    pub fn on_run_ended(&mut self, run: usize) {
        if self.connection.as_ref().is_some_and(|one| one.run == run) {
            self.connection = None;
            self.progress.lock().unwrap().is_open = false;
        }
    }
}

async fn read_inbox(
    hub: Hub,
    key: &str,
    progress: &Mutex<InboxProgress>,
    breaks_after: Option<usize>,
) -> Result<()> {
    let principal = identity::authenticate(hub.identity(), Some(key), None).await?;
    let since = HistoryStart::AfterId(progress.lock().unwrap().cursor);
    let reach = StreamReach::Turns;
    let mut feed = open_inbox(&principal, hub.delivery(), Some(since), None, reach).await?;
    progress.lock().unwrap().is_open = true;
    let mut groups = 0;
    loop {
        let events = match feed.next().await {
            FeedItem::Events(events) => events,
            FeedItem::Ended(_) => return Ok(()),
        };
        if breaks_after.is_some_and(|limit| groups >= limit) {
            // The hub believes that it wrote them.
            feed.confirm_written();
            return Ok(());
        }
        groups += 1;
        let mut progress = progress.lock().unwrap();
        let text = decode_chunks(&events.concat());
        let parsed = SseReader::new(1 << 22).read_chunk(&text);
        // The first event repeats the id that the stream resumes after.
        let parsed = parsed.into_iter().flatten();
        for event in parsed.filter(|event| event.name != "connected") {
            if let Some(id) = event.id {
                let id: u64 = id.parse().unwrap_or(u64::MAX);
                progress.seen.push(id);
                progress.cursor = id;
            }
        }
        drop(progress);
        feed.confirm_written();
    }
}

/// The text of whole HTTP chunks.
fn decode_chunks(mut octets: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    while let Some(end) = octets.windows(2).position(|pair| pair == b"\r\n") {
        let size = std::str::from_utf8(&octets[..end]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        let begin = end + 2;
        text.extend_from_slice(&octets[begin..begin + size]);
        octets = &octets[begin + size + 2..];
    }
    text
}
