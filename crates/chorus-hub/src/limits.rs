//! Limits that no client meets: pools, queues, caches, leases and waits inside the hub and between hubs. Those that a client can
//! meet are in `chorus_wire::limits`.

use std::time::Duration;

/// Maps that requests of many callers share are split into this many, each with its own lock.
pub const LOCK_SHARDS: usize = 64;

// The store

/// Min characters of an operator key: a random text of this length cannot be guessed. A hub with a shorter one does not
/// start.
pub const OPERATOR_KEY_MIN_CHARS: usize = 20;
/// Max characters of the label of an operator key: activity entries repeat it.
pub const OPERATOR_LABEL_CHARS: usize = 64;

/// Max write requests that wait for the writer. Beyond it a request is answered with a retryable 503 at
/// once, instead of queueing without end (D-17).
pub const WRITE_QUEUE_REQUESTS: usize = 16_384;
/// Max write requests of one group commit: it bounds how long the first waits for the last.
pub const WRITE_GROUP_REQUESTS: usize = 512;
/// Max repetitions of a group that the database rolled back in favour of another transaction (D-88). A
/// conflict that lasts longer is the database's problem, and the waiting clients get an error.
pub const WRITE_GROUP_RETRIES: u32 = 4;
/// Pause before the first repetition. Each next one is twice as long; together they are far shorter than
/// a client waits.
pub const WRITE_GROUP_RETRY_PAUSE: Duration = Duration::from_millis(10);

/// First pause before a write is repeated that must not be lost: the outcome of a webhook, or that a reader has a message.
/// Each next one is twice as long.
pub const LOST_WRITE_RETRY_FIRST: Duration = Duration::from_millis(200);
/// Longest of these pauses: the write is done soon after the database is back.
pub const LOST_WRITE_RETRY_MAX: Duration = Duration::from_secs(5);
/// Max messages that streams have written and that are not marked as delivered yet: a disk may be full for hours while readers
/// go on. Further ones stay queued until they are replayed.
pub const DELIVERED_MARKS_WAITING: usize = 100_000;
/// Max messages that one write marks as delivered, because all other writes wait for it.
pub const DELIVERED_MARKS_BATCH: usize = 512;

/// Max time of the check of a database file at start: some gigabytes. What is not checked by then is named in the log, and the hub
/// starts.
pub const DATABASE_CHECK_TIME: Duration = Duration::from_secs(5);

// Caches

/// Max callers with a token bucket of their own; a bucket takes about 50 bytes. Beyond it, addresses share
/// the bucket of their network.
pub const RATE_LIMITED_CALLERS: usize = 100_000;
/// Max owners whose stored octets are cached; an entry takes about 100 bytes. Beyond it the least used are summed up again.
pub const OWNERS_CACHED: usize = 100_000;
/// How long the sum of an owner's stored octets is trusted. Other hubs of a cluster, retention and deletions change it; an owner
/// may exceed its quota by what it writes in this time.
pub const STORED_BYTES_REREAD: Duration = Duration::from_secs(10);
/// How long the sum is trusted for a refusal, so that an owner that keeps being refused causes one sum a second.
pub const STORED_BYTES_REFUSAL_REREAD: Duration = Duration::from_secs(1);
/// Max bytes of the cache of compiled schemas, by the most that each can take. Beyond it the least used
/// schema is evicted and compiled again when needed.
pub const COMPILED_SCHEMAS_BYTES: u64 = 32 * 1024 * 1024;
/// How many compiled schemas that is expected to be; the cache sizes its tables by it.
pub const COMPILED_SCHEMAS_EXPECTED: usize = 512;
/// Memory of one part of a compiled schema, rounded up.
pub const SCHEMA_PART_MEMORY: usize = 1024;
/// Memory of one pattern of a compiled schema: twice what `chorus_wire::limits::PATTERN_BYTES` allows, for
/// the automaton and for what matching adds.
pub const PATTERN_MEMORY: usize = 2 * chorus_wire::limits::PATTERN_BYTES;
/// Max checks of schemas at once: their CPU is spent for strangers, so most cores stay free.
pub const SCHEMA_CHECKS_AT_ONCE: usize = 2;
/// Max product of a compiled schema's subschemas and a value's values for a check on the thread of the request: some microseconds, less
/// than handing it to another thread. A larger one waits for its turn among [`SCHEMA_CHECKS_AT_ONCE`].
pub const SMALL_SCHEMA_WORK: usize = 256;
/// Max bytes of such a value: the message of a mismatch repeats it.
pub const SMALL_VALUE_BYTES: usize = 4 * 1024;
/// Max wait for one of these checks: a check takes tens of milliseconds. Afterwards the request is
/// answered with a retryable 503.
pub const SCHEMA_CHECK_WAIT: Duration = Duration::from_secs(5);
/// Max bytes of all rings together, so that many busy handles do not exhaust memory. A payload counts once,
/// however many rings it is in. Beyond it the largest rings drop their oldest frames.
pub const ALL_RINGS_BYTES: usize = 512 * 1024 * 1024;
/// Max bytes of all large answers that clients have not taken yet: a thousand pages of 256 KiB. Another one is 503.
pub const LARGE_ANSWERS_BYTES: u64 = 256 * 1024 * 1024;
/// Max bytes of all request bodies of which only a part has arrived: five hundred of the largest. Another one is 503.
pub const ARRIVING_BODIES_BYTES: u64 = 128 * 1024 * 1024;
/// Max bytes of database pages that the writing connection to SQLite keeps: the indexes of a busy hub.
pub const WRITER_CACHE_BYTES: u64 = 64 * 1024 * 1024;
/// Max bytes of database pages that each reading connection to SQLite keeps; further pages are in the system's cache.
pub const READER_CACHE_BYTES: u64 = 8 * 1024 * 1024;
/// Max handles whose last frame sequence is kept after their ring is dropped, so that a returning session
/// learns whether it missed anything. Beyond it all are dropped, and a returning session is told of a gap
/// that may not exist.
pub const LAST_FRAME_SEQS_KEPT: usize = 100_000;

// Streams

/// Log entries that a feed reads at once while it replays: enough to amortise the query, few enough to
/// hold in memory for every stream.
pub const REPLAY_PAGE: usize = 256;
/// Pause before a feed reads the log again after a failed read.
pub const LOG_READ_RETRY_INTERVAL: Duration = Duration::from_millis(500);

// Webhooks and the outbox

/// Max webhooks in flight. Another one waits inside its own deadline.
pub const WEBHOOKS_IN_FLIGHT: usize = 256;
/// Max webhooks in flight to the receivers of one owner, an eighth of [`WEBHOOKS_IN_FLIGHT`]: an owner with
/// slow receivers delays its own webhooks only (D-103).
pub const WEBHOOKS_PER_OWNER: usize = 32;
/// Max webhooks in flight to one address, by whatever names, for the same reason.
pub const WEBHOOKS_PER_ADDRESS: usize = 32;
/// Max webhooks that wait for a free slot: each holds its body in memory. Beyond it a webhook fails at once.
pub const WEBHOOKS_WAITING: usize = 1_024;
/// Max time of one look-up of a name: a name server answers within a second or not at all. Then the
/// webhook has failed.
pub const NAME_LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);
/// Max look-ups of names at once; each takes two sockets. Further ones wait within the deadline of their
/// webhook. A name in the cache needs none.
pub const NAME_LOOKUPS_AT_ONCE: usize = 128;
/// Max look-ups at once for the receivers of one owner: names that are never answered delay the webhooks of
/// their own owner only (D-102).
pub const NAME_LOOKUPS_PER_OWNER: usize = 8;
/// Max names in the cache: half a megabyte. Beyond it the least used are looked up again.
pub const RESOLVED_NAMES_CACHED: usize = 4_096;
/// How long an answer is cached at least, whatever its time to live, and a failure: a name cannot cost one
/// look-up for each message.
pub const NAME_CACHED_AT_LEAST: Duration = Duration::from_secs(5);
/// How long an answer is cached at most: a receiver that moves is found again within this time.
pub const NAME_CACHED_AT_MOST: Duration = Duration::from_secs(300);
/// How long an outbox row is retried. Then the hub gives up visibly: a member is marked unreachable.
pub const OUTBOX_GIVE_UP_AFTER: Duration = Duration::from_secs(24 * 3600);
/// First backoff after a failed post. Each next one is twice as long.
pub const OUTBOX_BACKOFF_FIRST: Duration = Duration::from_secs(1);
/// Longest backoff.
pub const OUTBOX_BACKOFF_MAX: Duration = Duration::from_secs(300);
/// Lease of an outbox row or a job: well past the deadline of one request. When it expires, another hub may
/// post.
pub const OUTBOX_LEASE: Duration = Duration::from_secs(60);
/// Max outbox posts in flight: half of [`WEBHOOKS_IN_FLIGHT`]. Further rows wait in the table. At most half
/// of the posts are retries, so that many hanging receivers do not hold up the others.
pub const OUTBOX_IN_FLIGHT: usize = 128;
/// Max outbox posts in flight for one owner, so that an owner with receivers that hang does not use up
/// [`OUTBOX_IN_FLIGHT`] (D-103). Its further rows wait in the table. At most half of them are retries.
pub const OUTBOX_PER_OWNER: usize = 16;
/// Max wait of an outbox post for a slot to its receiver: a look-up and a second more. Then the row is tried
/// again later and counts as failed, so that rows to a busy address do not take the places of new ones.
pub const OUTBOX_SLOT_WAIT: Duration = Duration::from_secs(3);

// Traces

/// Max traces that are recorded a second only because a client asks for it with `traceparent`: enough to follow a program that is
/// looked at, and too few for a stranger to fill the queue of spans or the disk of the collector.
pub const CLIENT_TRACES_PER_SECOND: u32 = 100;
/// Max finished spans that wait for the collector: about a megabyte. Further ones are dropped and counted, so that a collector
/// that is away costs neither memory nor time.
pub const SPANS_WAITING: usize = 4_096;
/// Max spans in one request to the collector: some tens of kilobytes.
pub const SPAN_BATCH: usize = 512;
/// How long a batch waits for more spans, so that a quiet hub makes one request a second.
pub const SPAN_BATCH_WAIT: Duration = Duration::from_secs(1);
/// Max time of one request to the collector. Then the batch is sent again.
pub const SPAN_EXPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// First pause after a request that failed. Each next one is twice as long.
pub const SPAN_EXPORT_BACKOFF_FIRST: Duration = Duration::from_secs(1);
/// Longest of these pauses: traces are back soon after the collector is.
pub const SPAN_EXPORT_BACKOFF_MAX: Duration = Duration::from_secs(30);
/// Max bytes of a collector's answer that are read: it says how many spans were refused.
pub const SPAN_ANSWER_BYTES: usize = 64 * 1024;
/// Max time that a stopping hub waits for the collector to take the last spans: it is within the five seconds of a stop.
pub const SPAN_FLUSH_TIMEOUT: Duration = Duration::from_millis(400);

/// Max jobs that one look for overdue or undispatched ones takes; the next look takes the rest.
pub const JOBS_BATCH: usize = 128;

// Several hubs: budgets

/// Max wait for a peer's rate-limit decision: a hundred times what it takes, and still not noticeable.
/// Afterwards the hub decides alone.
pub const BUDGET_SYNC_WAIT: Duration = Duration::from_millis(250);
/// Max callers in one budget-sync message: it stays a tenth of the largest NATS message. More go into
/// further messages.
pub const BUDGET_SYNC_CALLERS: usize = 1_024;
/// Max requests that wait for one peer's rate-limit decision. Further ones are decided by this hub alone.
pub const BUDGET_REQUESTS_WAITING: usize = 16_384;
/// Max callers whose changed budget is still to be sent to peers. Peers learn of further ones with the
/// caller's next request.
pub const BUDGET_UPDATES_PENDING: usize = 65_536;

// Several hubs: membership and requests

/// Max wait for a peer's answer: answers take milliseconds, and a hub that is cut off must not delay a send.
/// Afterwards the request has failed.
pub const PEER_REQUEST_TIMEOUT: Duration = Duration::from_secs(1);
/// Silence after which a peer is removed from the membership.
pub const PEER_SILENT_AFTER: Duration = Duration::from_secs(2);
/// Max wait for a peer's session count or roster. It is far longer than [`PEER_SILENT_AFTER`], so that a
/// hanging peer is gone by then and a busy one is still counted (D-93).
pub const PEER_COUNT_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause before a hub repeats a request to a peer that had no answer yet.
pub const PEER_RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// Max requests of peers that are being answered. Further ones get an empty answer at once, and the peer
/// retries.
pub const PEER_REQUESTS_WAITING: usize = 4_096;
/// Max presences or agents in one message between hubs: at most half of the megabyte that NATS accepts.
/// More go into further pages.
pub const PEER_MESSAGE_ITEMS: usize = 10_000;
/// Max bytes in one message between hubs whose items have no fixed length. More go into further pages.
pub const PEER_MESSAGE_BYTES: usize = 512 * 1024;

// Several hubs: the log and the clock

/// How often a hub polls the log for entries of peers when no notification arrives: a lost notification
/// delays an entry no longer than this.
pub const LOG_POLL_INTERVAL: Duration = Duration::from_millis(300);
/// Time without a successful poll after which a hub stops trusting its caches: a key that was revoked on
/// another hub stops working within a second.
pub const LOG_POLL_STALE_AFTER: Duration = Duration::from_millis(900);
/// How often a hub under constant write load still reads the database's clock, so that a stepped system
/// clock is corrected before a lease could seem expired.
pub const CLOCK_SYNC_INTERVAL: Duration = Duration::from_secs(1);
/// Longest round trip from which a hub sets its clock: the error is up to half of it. A slower answer is
/// ignored.
pub const CLOCK_SYNC_ROUND_TRIP_MAX: Duration = Duration::from_secs(1);

// Several hubs: frames

/// Max wait for the frame stream to store a frame. A busy NATS server takes seconds; while servers elect a
/// leader, the sender may as well retry, so it gets `bus-unavailable`.
pub const FRAME_PUBLISH_TIMEOUT: Duration = Duration::from_secs(4);
/// How long a starting hub tries to open the frame stream: an election of a NATS cluster takes a few seconds.
/// Afterwards the hub does not start.
pub const FRAME_STREAM_OPEN_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause between these attempts.
pub const FRAME_STREAM_OPEN_RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// Max bytes of the frame stream: as much as the rings of one hub hold. The oldest frames are dropped.
pub const FRAME_STREAM_BYTES: i64 = ALL_RINGS_BYTES as i64;
