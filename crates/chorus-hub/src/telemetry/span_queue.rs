//! The bounded queue of finished spans. Recording never waits: what does not fit is dropped and counted.

use super::span::SpanRecord;
use crate::limits;
use metrics::Counter;
use std::sync::LazyLock;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

/// Why spans were dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DropReason {
    /// The collector takes fewer spans than the hub makes, or none.
    QueueFull,
    /// The collector refused them.
    Refused,
    /// The hub stopped before they were sent.
    Stopped,
}

/// Counts dropped spans. The meters are kept, because a collector that is away must not cost a look-up for each request.
pub(crate) fn count_dropped(reason: DropReason, count: u64) {
    static QUEUE_FULL: LazyLock<Counter> =
        LazyLock::new(|| metrics::counter!("chorus_spans_dropped_total", "reason" => "queue_full"));
    match reason {
        DropReason::QueueFull => QUEUE_FULL.increment(count),
        DropReason::Refused => {
            metrics::counter!("chorus_spans_dropped_total", "reason" => "refused").increment(count)
        }
        DropReason::Stopped => {
            metrics::counter!("chorus_spans_dropped_total", "reason" => "stopped").increment(count)
        }
    }
}

/// The end of the queue that spans are put into.
pub(super) struct QueueInput {
    spans: mpsc::Sender<SpanRecord>,
    closing: watch::Sender<bool>,
}

/// The end of the queue that the exporter reads.
pub(crate) struct SpanQueue {
    spans: mpsc::Receiver<SpanRecord>,
    closing: watch::Receiver<bool>,
}

pub(super) fn open_queue() -> (QueueInput, SpanQueue) {
    let (input, output) = mpsc::channel(limits::SPANS_WAITING);
    let (closing, closing_signal) = watch::channel(false);
    (
        QueueInput {
            spans: input,
            closing,
        },
        SpanQueue {
            spans: output,
            closing: closing_signal,
        },
    )
}

impl QueueInput {
    pub fn is_full(&self) -> bool {
        self.spans.capacity() == 0
    }

    pub fn push(&self, record: SpanRecord) {
        if self.spans.try_send(record).is_err() {
            count_dropped(DropReason::QueueFull, 1);
        }
    }

    /// Asks the exporter to send what waits, and waits until it has ended.
    pub async fn close(&self) {
        self.closing.send_replace(true);
        if timeout(limits::SPAN_FLUSH_TIMEOUT, self.closing.closed())
            .await
            .is_err()
        {
            tracing::warn!("the collector did not take the last spans in time");
        }
    }
}

impl SpanQueue {
    /// The next batch: full, or what came within a moment of its first span. Empty when the queue is closed.
    pub async fn next_batch(&mut self) -> Vec<SpanRecord> {
        let mut batch = Vec::new();
        let mut closing = self.closing.clone();
        tokio::select! {
            biased;
            received = self.spans.recv_many(&mut batch, limits::SPAN_BATCH) => if received == 0 { return batch },
            () = wait_closing(&mut closing) => return self.take_waiting(batch),
        }
        let fill = async {
            while batch.len() < limits::SPAN_BATCH {
                let room = limits::SPAN_BATCH - batch.len();
                if self.spans.recv_many(&mut batch, room).await == 0 {
                    return;
                }
            }
        };
        tokio::select! {
            () = fill => {}
            () = wait_closing(&mut closing) => {}
            () = tokio::time::sleep(limits::SPAN_BATCH_WAIT) => {}
        }
        batch
    }

    fn take_waiting(&mut self, mut batch: Vec<SpanRecord>) -> Vec<SpanRecord> {
        while batch.len() < limits::SPAN_BATCH
            && let Ok(span) = self.spans.try_recv()
        {
            batch.push(span);
        }
        batch
    }

    pub fn is_closing(&self) -> bool {
        *self.closing.borrow() || self.spans.is_closed()
    }

    /// Completes when the hub stops.
    pub async fn wait_closing(&self) {
        wait_closing(&mut self.closing.clone()).await;
    }

    /// How many spans wait.
    pub fn waiting_count(&self) -> usize {
        self.spans.len()
    }
}

/// A hub that is dropped without being stopped closes too.
async fn wait_closing(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|is_closing| *is_closing).await;
}
