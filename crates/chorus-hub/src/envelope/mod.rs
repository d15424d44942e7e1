//! Messages from one agent to another: sent, kept, delivered, acknowledged.

use crate::{Hub, Principal, Result};
use bytes::Bytes;
use chorus_wire::message::{Delivery, HistoryRow, ReceiverReply, SendRequest, Standing};
use chorus_wire::time::Micros;
use uuid::Uuid;

/// An `Idempotency-Key` with the value it came with.
#[derive(Clone, Debug)]
pub struct Idempotency {
    pub key: String,
    /// SHA-256 of the body in its canonical form.
    pub fingerprint: [u8; 32],
}

/// Where a history page starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// Strictly after this id.
    Id(u64),
    /// At or after this instant.
    Instant(Micros),
}

/// What a send answers with.
#[derive(Debug)]
pub struct Outcome {
    pub trace_id: Uuid,
    pub delivery: Delivery,
}

/// What a streamed send answers with.
pub enum Streamed {
    /// The receiver does not stream: the ordinary outcome.
    Whole(Outcome),
    /// SSE bytes as they are to be relayed (`chunk`, `done`, `error`); ends when the sender is gone.
    Relay(tokio::sync::mpsc::Receiver<Bytes>),
}

/// `POST /messages`
pub async fn send(_who: &Principal, _hub: &Hub, _request: SendRequest, _once: Option<Idempotency>) -> Result<Outcome> {
    todo!()
}

/// `POST /messages` with `"stream": true`
pub async fn send_streaming(_who: &Principal, _hub: &Hub, _request: SendRequest, _once: Option<Idempotency>) -> Result<Streamed> {
    todo!()
}

/// `GET /agent/messages`
pub async fn history(_who: &Principal, _hub: &Hub, _since: Option<Since>, _limit: usize) -> Result<Vec<HistoryRow>> {
    todo!()
}

/// `GET /messages/{trace_id}`
pub async fn standing(_who: &Principal, _hub: &Hub, _trace_id: &str) -> Result<Standing> {
    todo!()
}

/// `POST /agent/messages/{trace_id}/response`; the message as it stands after it.
pub async fn respond(_who: &Principal, _hub: &Hub, _trace_id: &str, _reply: ReceiverReply) -> Result<Standing> {
    todo!()
}
