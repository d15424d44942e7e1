//! The client's own bounds, with their reasons; what travels is bounded in chorus-wire.

use std::time::Duration;

/// A hub's whole answer: a page of the largest envelopes fits; a hub gone mad does not fill our memory.
pub const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;
/// Rows asked for at once: that many of the largest envelopes stay under [`ANSWER_BYTES`].
pub const PAGE_SIZE: usize = 200;
/// Agents asked for at once, and how many such pages at most: a directory of more is not one that people read.
pub const DIRECTORY_PAGE_SIZE: usize = 1_000;
pub const MAX_DIRECTORY_PAGES: usize = 100;
/// Finding the hub and shaking hands.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A whole call. A send may wait for a webhook on the hub's side, which has ten seconds unless its operator gave it more.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// A stream on which nothing comes, not even a keepalive (R-25: every 20 s), is dead: two may get lost.
pub const STREAM_SILENCE_TIMEOUT: Duration = Duration::from_secs(45);
/// One event of a stream: the 64 000 characters of R-25 in their widest encoding, with room for later kinds.
pub const MAX_EVENT_BYTES: usize = 1024 * 1024;
/// How often a call is made before it is given up; with the waits between, about ten seconds.
pub const MAX_ATTEMPTS: u32 = 5;
/// The first and the longest wait between attempts.
pub const BACKOFF_RANGE: (Duration, Duration) =
    (Duration::from_millis(300), Duration::from_secs(30));
/// A hub that asks for a longer pause than this gets its refusal shown instead.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// Peers that may be connected to the direct endpoint at once; a further one waits to be accepted.
pub const MAX_DIRECT_CONNECTIONS: usize = 64;
/// Envelopes that may wait for the one who reads them; beyond it a sender is told to try again.
pub const DIRECT_QUEUE_LEN: usize = 64;
/// A direct peer sends its whole request within this.
pub const DIRECT_REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a receiver that stops waits for its last answers to leave.
pub const DIRECT_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// A direct peer's envelope is answered within this, or it hears that it was not.
pub const DIRECT_ANSWER_TIMEOUT: Duration = Duration::from_secs(600);

/// Replies kept in memory so that a repeated turn gets the first answer again.
pub const MAX_CACHED_REPLIES: usize = 4_096;
/// Replies that may be owed while a hub is away; beyond it the oldest is given up, and its sender sees `delivered` only.
pub const MAX_UNANSWERED_REPLIES: usize = 256;
/// Peers whose history is indexed in memory; beyond it one index is dropped and read again when needed.
pub const MAX_INDEXED_PEERS: usize = 64;
/// A line of a history file: an envelope, its frame, and room for what other tools add.
pub const MAX_HISTORY_LINE_BYTES: usize = 1024 * 1024;

/// Events that may wait for a callback's open request; beyond it whoever says the next one waits.
pub const CALLBACK_QUEUE_LEN: usize = 64;
/// Channels whose last callback is kept on disk; beyond it the one that was silent longest is forgotten.
pub const MAX_SAVED_CALLBACKS: usize = 256;

/// Frames whose ids are remembered so that none is handed out twice (FRM-106): as many as a hub's ring keeps.
pub const MAX_SEEN_FRAMES: usize = 10_000;
/// Claims that are kept at once; beyond it the one that ends first is forgotten. Nobody reads a longer list.
pub const MAX_LOCK_CLAIMS: usize = 10_000;
/// A replay whose end is not known is over when nothing has come for this long: a hub writes what waits in one go.
pub const REPLAY_QUIET_TIMEOUT: Duration = Duration::from_millis(500);
