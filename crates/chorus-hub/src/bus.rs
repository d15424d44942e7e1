//! The bus between hubs, as the cluster uses it: subjects with subscribers, requests with one answer, and one ordered stream of
//! frames. Hubs run on NATS, which `cluster/nats.rs` speaks; the trait is for the bus of a simulation (D-110).

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use tokio::sync::watch;

/// A message as the bus delivers it.
#[derive(Clone, Debug)]
pub struct BusMessage {
    pub subject: String,
    /// Where the answer goes, if one is expected.
    pub reply: Option<String>,
    pub payload: Bytes,
}

/// Why a request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// No hub subscribes to the subject.
    NoResponders,
    /// No answer in time, or the bus is not connected.
    Timeout,
}

/// The frame stream, as it was when it was opened.
#[derive(Clone, Copy, Debug)]
pub struct FrameStreamState {
    /// A recreated stream has another epoch.
    pub epoch: u64,
    /// Its frames come after this sequence.
    pub floor_seq: u64,
    pub newest_seq: u64,
}

/// Where the frame stream is, and the subject of its frames.
#[derive(Clone, Debug)]
pub struct FrameStreamName {
    pub stream: String,
    pub subject: String,
}

/// The next frames of the stream with their sequences; an error ends it.
pub type FrameReader = BoxStream<'static, Result<(u64, BusMessage), String>>;

/// One hub's connection to the bus of a simulation, which reconnects by itself.
pub trait BusLink: Send + Sync {
    fn is_connected(&self) -> bool;
    /// Changes with every connect.
    fn watch_connects(&self) -> watch::Receiver<u64>;
    /// Sends to all subscribers of the subject, and says where answers go.
    fn publish(&self, message: BusMessage) -> BoxFuture<'_, Result<(), String>>;
    /// Sends to the subscribers of the subject and waits for the first answer, without a limit.
    fn request(
        &self,
        subject: String,
        payload: Bytes,
    ) -> BoxFuture<'_, Result<BusMessage, RequestError>>;
    /// When it completes, the bus knows of the subscription. The messages end when the connection is closed for good.
    fn subscribe(
        &self,
        subject: String,
    ) -> BoxFuture<'_, Result<BoxStream<'static, BusMessage>, String>>;
    /// A subject that no other hub subscribes to.
    fn new_inbox(&self) -> String;
    /// Writes out pending messages.
    fn flush(&self) -> BoxFuture<'_, Result<(), String>>;
    /// Opens the frame stream, and creates it with `epoch` if there is none.
    fn open_frame_stream(
        &self,
        name: FrameStreamName,
        epoch: u64,
    ) -> BoxFuture<'_, Result<FrameStreamState, String>>;
    /// The frame stream as it is now; `None` when there is none.
    fn fetch_frame_stream(&self, name: FrameStreamName) -> BoxFuture<'_, Option<FrameStreamState>>;
    /// Appends to the frame stream. Returns the sequence.
    fn append_frame(&self, subject: String, payload: Bytes) -> BoxFuture<'_, Result<u64, String>>;
    /// Reads the frame stream in order after a sequence.
    fn read_frames(
        &self,
        name: FrameStreamName,
        after_seq: u64,
    ) -> BoxFuture<'_, Result<FrameReader, String>>;
}
