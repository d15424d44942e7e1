//! The client's own limits, with their reasons. Limits of the wire format are in chorus-wire.

use std::time::Duration;

/// Max bytes of one response body. A page of the largest envelopes fits; a broken hub cannot exhaust our memory.
pub const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;
/// Rows per page: that many of the largest envelopes stay under [`MAX_ANSWER_BYTES`].
pub const PAGE_SIZE: usize = 200;
/// Agents per directory page.
pub const DIRECTORY_PAGE_SIZE: usize = 1_000;
/// Max directory pages per listing: people do not read a longer list.
pub const MAX_DIRECTORY_PAGES: usize = 100;
/// Name resolution, TCP connect and TLS handshake.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// One whole call. A send may wait for a webhook at the hub, which takes ten seconds unless the operator allows more.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// A stream without any byte for this long is dead. Keepalives come every 20 s, so two may get lost.
pub const STREAM_SILENCE_TIMEOUT: Duration = Duration::from_secs(45);
/// Max bytes of one SSE event: the 64 000 characters of R-25 in their widest encoding, with room for later kinds.
pub const MAX_EVENT_BYTES: usize = 1024 * 1024;
/// Max attempts of a retried call; with the backoff between them, about ten seconds.
pub const MAX_ATTEMPTS: u32 = 5;
/// The first and the longest backoff between attempts.
pub const BACKOFF_RANGE: (Duration, Duration) =
    (Duration::from_millis(300), Duration::from_secs(30));
/// Max `Retry-After` that the client waits for. Beyond it the caller gets the error.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// Max open connections of the direct endpoint; further peers wait in the accept queue.
pub const MAX_DIRECT_CONNECTIONS: usize = 64;
/// Max envelopes in the direct endpoint's queue; beyond it a sender gets a 503.
pub const DIRECT_QUEUE_LEN: usize = 64;
/// Max time in which a direct peer sends its whole request.
pub const DIRECT_REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a stopping receiver waits until its last answers are written.
pub const DIRECT_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// Max time to answer a direct peer's envelope; after it the peer gets a 503.
pub const DIRECT_ANSWER_TIMEOUT: Duration = Duration::from_secs(600);

/// Max replies kept in memory so that a repeated turn gets the first answer again.
pub const MAX_CACHED_REPLIES: usize = 4_096;
/// Max unsent replies while the hub is unreachable; beyond it the oldest is dropped and its sender sees only `delivered`.
pub const MAX_UNANSWERED_REPLIES: usize = 256;
/// Max answers that `send --wait` printed and no listener has passed yet; beyond it the oldest is printed once more.
pub const MAX_PRINTED_ANSWERS: usize = 256;
/// Max peers whose history is indexed in memory; beyond it all indexes are dropped and rebuilt when needed.
pub const MAX_INDEXED_PEERS: usize = 64;
/// Max bytes of a history line: an envelope, its metadata, and room for fields of other tools.
pub const MAX_HISTORY_LINE_BYTES: usize = 1024 * 1024;

/// Max events queued for a callback's open request; beyond it the caller waits.
pub const CALLBACK_QUEUE_LEN: usize = 64;
/// Max channels whose last callback is kept on disk; beyond it the least recently used one is dropped.
pub const MAX_SAVED_CALLBACKS: usize = 256;

/// Max frame ids remembered so that no frame is returned twice (FRM-106): as many as a hub's frame ring keeps.
pub const MAX_SEEN_FRAMES: usize = 10_000;
/// A replay with an unknown end is over after this much silence: a hub writes all waiting frames at once.
pub const REPLAY_QUIET_TIMEOUT: Duration = Duration::from_millis(500);
