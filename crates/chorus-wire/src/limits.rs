//! Every bound, with its reason. What happens at a bound is said in the file that keeps it.

use std::time::Duration;

/// A request body: forty times the largest useful envelope.
pub const BODY_BYTES: usize = 256 * 1024;
/// All headers of one request; a bearer key, cookies of a proxy and some tracing fit several times over.
pub const HEADER_BYTES: usize = 16 * 1024;
/// Header lines of one request: just under the hundred that the HTTP parser keeps room for without allocating.
pub const HEADER_LINES: usize = 96;
/// What the HTTP parser may hold of one request before it gives up on the connection.
pub const CONNECTION_BUFFER_BYTES: usize = 64 * 1024;
/// Objects and arrays inside one another: no document of ours needs ten.
pub const JSON_DEPTH: usize = 32;
/// A half-sent request is dropped after this.
pub const REQUEST_DEADLINE: Duration = Duration::from_secs(30);

/// `name@host`, in characters.
pub const ADDRESS_CHARS: usize = 128;
/// ENV-23.
pub const ORIGINAL_TEXT_CHARS: usize = 10_000;
/// ENV-23.
pub const CULTURAL_CONTEXT_CHARS: std::ops::RangeInclusive<usize> = 10..=500;
/// ENV-07.
pub const CONVERSATION_ID_CHARS: usize = 64;
/// A language tag; the longest registered ones are under 40.
pub const CULTURE_CHARS: usize = 64;
/// A serialised envelope: with the rest of its event it stays under the 64 000 characters that clients buffer.
pub const ENVELOPE_CHARS: usize = 63_000;
/// An agent card, serialised: it is repeated in every directory listing.
pub const CARD_BYTES: usize = 8 * 1024;
/// Languages on a card.
pub const CARD_LANGUAGES: usize = 64;
/// Names, labels and owners that people type.
pub const LABEL_CHARS: usize = 256;
/// A webhook URL.
pub const URL_CHARS: usize = 2_048;
/// Skills of one agent.
pub const SKILLS_PER_AGENT: usize = 64;
/// What a skill says of itself: a paragraph that somebody chooses by.
pub const SKILL_DESCRIPTION_CHARS: usize = 2_048;
/// A schema of a skill, serialised: several screens of JSON.
pub const SCHEMA_BYTES: usize = 16 * 1024;
/// Parts of a schema once its references are written out: a few lines could otherwise unfold into work without end.
pub const SCHEMA_PARTS: usize = 2_000;
/// Patterns of a schema, its references written out: each is a machine of its own.
pub const SCHEMA_PATTERNS: usize = 32;
/// What one pattern may take once it is compiled: four classes of letters fit, and a few characters can stand for megabytes.
pub const PATTERN_BYTES: usize = 512 * 1024;
/// Keywords of a schema that look at everything around them once more, `unevaluatedProperties` and its like: each that is inside
/// another doubles the work.
pub const SCHEMA_UNEVALUATED_KEYWORDS: usize = 2;
/// Parts of a schema times values of an input that is checked against it: some 50 ms.
pub const SCHEMA_WORK: usize = 5_000_000;
/// Schemas kept compiled, one with patterns for as many as it has of them and more; beyond it the least used is compiled again
/// when it is needed.
pub const COMPILED_SCHEMAS_CACHED: usize = 512;
/// an agent that has been heard and then is silent for this long is offline.
pub const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(90);
/// Agents of one search unless it asks for more, up to [`DIRECTORY_PAGE`]: whoever hires looks at a few.
pub const DISCOVERY_PAGE: usize = 100;
/// Agents looked through for those that are online, best first, and counted under a filter: more would take longer than 10 ms.
pub const DISCOVERY_AGENTS_SCANNED: usize = 10_000;
/// Judgements shown of one agent: enough to see how it is doing.
pub const REPUTATION_HISTORY_ROWS: usize = 50;
/// `detail` of a receiver's error reply.
pub const DETAIL_CHARS: usize = 2_048;

/// a frame as submitted. Frames announce; what is longer belongs behind a reference.
pub const FRAME_BYTES: usize = 64 * 1024;
/// The body around a frame: the largest frame, the longest scope and the keys of both.
pub const SUBMISSION_BYTES: usize = FRAME_BYTES + 1024;
/// FRM-29…43, R-53: a text that people read, in octets. So are findings and sentences.
pub const FRAME_TEXT_OCTETS: usize = 2_048;
/// a handover replaces a file, so it may be longer than an announcement.
pub const HANDOVER_OCTETS: usize = 8 * 1024;
/// one reference or tag, and every pointer for which the draft prints no bound.
pub const FRAME_ITEM_OCTETS: usize = 1_024;
/// items of one array.
pub const FRAME_ITEMS: usize = 256;
/// the label of an option, a namespaced class, a branch, the reference of a return: what fits in one line of a screen.
pub const FRAME_LABEL_OCTETS: usize = 256;
/// FRM-29, FRM-33, FRM-36: a resource, a working tree, a scope.
pub const FRAME_PATH_OCTETS: usize = 512;
/// FRM-31, R-53: a session id, an instrument.
pub const SESSION_OCTETS: usize = 128;
/// a role, a grant scope.
pub const ROLE_OCTETS: usize = 64;
/// FRM-33, R-40: an hour. A longer claim is extended, so that a crashed session's claim ends.
pub const LEASE_MAX_MS: u64 = 3_600_000;
/// Whole numbers beyond 2^53 are read differently by different JSON parsers.
pub const SAFE_INTEGER_MAX: u64 = (1 << 53) - 1;
/// how far `created_at` may be from the hub's clock, either way.
pub const FRAME_CLOCK_SKEW: Duration = Duration::from_secs(24 * 3600);
/// R-49, FRM-102: subscriptions that one frame may reach.
pub const SCOPE_EXPANSION_MAX: usize = 10_000;
/// how long a frame can be resumed from; beyond it a session asks instead. A repeated `frame_id` is known as long.
pub const RING_RETENTION: Duration = Duration::from_secs(300);
/// the same in frames of one handle, and in ids of one sender.
pub const RING_FRAMES: usize = 10_000;
/// the same in bytes of one handle; 10 000 frames of ordinary size.
pub const RING_BYTES: usize = 16 * 1024 * 1024;
/// All rings together, so that many busy handles do not fill the machine; beyond it a ring that grows lets go of its oldest.
pub const ALL_RINGS_BYTES: usize = 512 * 1024 * 1024;
/// Open streams of one handle: what one frame may reach, so that a handle can always address all its own sessions.
pub const STREAMS_PER_HANDLE: usize = SCOPE_EXPANSION_MAX;
/// A filter expression: every axis several times over; the roster repeats it for each session.
pub const FILTER_OCTETS: usize = 1_024;
/// Handles that one handle lets address it; beyond it something else than grants is meant: an organisation.
pub const GRANTS_PER_HANDLE: usize = 1_000;
/// Members of one organisation, invited ones with them: as many as one expansion could ever reach.
pub const MEMBERS_PER_ORG: usize = SCOPE_EXPANSION_MAX;
/// Organisations that one handle has joined. Invitations are not counted, or strangers could use the places up.
pub const ORGS_PER_HANDLE: usize = 256;
/// Roles of one member.
pub const ROLES_PER_MEMBER: usize = 32;
/// Accords that one organisation has proposed or granted.
pub const ACCORDS_PER_ORG: usize = 1_000;
/// How much of a field's name an error repeats: a name may be as long as the frame.
pub const FIELD_NAME_OCTETS: usize = 128;

///
pub const IDEMPOTENCY_KEY_CHARS: usize = 256;
/// how long an answer is kept.
pub const IDEMPOTENCY_RETENTION: Duration = Duration::from_secs(24 * 3600);
/// life of a single-use stream token.
pub const SESSION_TOKEN_TTL: Duration = Duration::from_secs(300);

/// rows of one history page.
pub const HISTORY_PAGE: usize = 1_000;
/// The envelopes of one history page: a full page of ordinary messages, and a bound on what one request can hold in memory.
/// A page that stops here is short; the next one goes on after its last id.
pub const HISTORY_PAGE_BYTES: usize = 2 * 1024 * 1024;
/// Messages of one agent, newest first, among which unanswered ones and those with one peer are sought: some 20 ms.
pub const MESSAGES_SCANNED: usize = 10_000;
/// Rows that a tool shows unless it is asked for more: a model reads all of them.
pub const TOOL_PAGE_DEFAULT: usize = 50;
/// The rows of one answer as JSON: hosts cut off what a tool says beyond some 25 000 tokens, and then it is no JSON any more. One
/// row is shown however large it is.
pub const TOOL_ANSWER_BYTES: usize = 64 * 1024;
/// What one call of a tool may wait for others: hosts give up on a tool after a minute.
pub const TOOL_WAIT_MAX: Duration = Duration::from_secs(30);
/// Rows of one directory page; the documents print no paging, so the default is the whole of a small hub.
pub const DIRECTORY_PAGE: usize = 1_000;
/// Rows of one activity page.
pub const ACTIVITY_PAGE: usize = 1_000;
/// Entries read at once while a stream catches up: enough to amortise the query, small enough to hold in memory per stream.
pub const REPLAY_PAGE: usize = 256;

/// a keepalive comment at most every 20 s.
pub const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// Events a live stream may owe its reader before it falls back to reading the log.
pub const STREAM_QUEUE_EVENTS: usize = 1_024;
/// The same in bytes: one stream never holds more than this.
pub const STREAM_QUEUE_BYTES: usize = 1024 * 1024;
/// A reader that takes nothing for this long is no longer counted as draining.
pub const STREAM_STALLED_AFTER: Duration = Duration::from_secs(1);
/// A reader that takes nothing for this long is disconnected; it resumes by cursor.
pub const STREAM_DISCONNECT_AFTER: Duration = Duration::from_secs(10);
/// Kernel send buffer of a stream: beyond it a stalled reader shows, instead of hiding in the kernel for megabytes.
pub const STREAM_SEND_BUFFER_BYTES: usize = 128 * 1024;
/// Open inbox streams of one agent.
pub const STREAMS_PER_SUBJECT: usize = 64;
/// What the client asks a reader to wait before it reconnects.
pub const STREAM_RECONNECT_DELAY: Duration = Duration::from_millis(2_000);
/// What a client buffers of one event (lesson 3).
pub const EVENT_CHARS: usize = 64_000;

/// a receiver's whole answer, in bytes.
pub const WEBHOOK_ANSWER_BYTES: usize = 64 * 1024;
/// the same in time, from the name's look-up to the last byte.
pub const WEBHOOK_DEADLINE: Duration = Duration::from_secs(10);
/// A streamed answer may take longer as a whole, but never pause for longer than the deadline.
pub const WEBHOOK_STREAM_BYTES: usize = 4 * 1024 * 1024;
/// The whole of a streamed answer: a model that writes for five minutes has written enough.
pub const WEBHOOK_STREAM_DEADLINE: Duration = Duration::from_secs(300);
/// Webhooks under way at once; a further send waits its turn inside its own deadline.
pub const WEBHOOKS_IN_FLIGHT: usize = 256;
/// The same towards one host, so that a slow one does not take every place.
pub const WEBHOOKS_PER_HOST: usize = 32;
/// Webhooks that wait for their turn; each holds its body, so beyond this a send fails at once.
pub const WEBHOOKS_WAITING: usize = 1_024;

/// Writes that may wait for the store; beyond it a request is refused with a retryable 503 rather than queued unseen.
pub const WRITE_QUEUE_REQUESTS: usize = 16_384;
/// Writes committed together: bounds how long the first of a group waits for the last.
pub const WRITE_GROUP_REQUESTS: usize = 512;
/// Runs of a group after the first when the database undid it for the sake of another (D-88): a rival that comes back more often
/// than this is the database's trouble, and those who wait are told.
pub const WRITE_GROUP_RETRIES: u32 = 4;
/// The pause before the first of them; each next one is twice as long, so that all take far less than a client waits.
pub const WRITE_GROUP_RETRY_PAUSE: Duration = Duration::from_millis(10);

/// Connections open at once unless a hub is told otherwise: each is a file and, as an idle stream, four kilobytes. Whoever comes
/// beyond it is told 503 and to come back.
pub const CONNECTIONS_DEFAULT: usize = 65_536;
/// Of those, how many are being told at the same time; the others are just closed.
pub const REFUSED_CONNECTIONS_ANSWERED: usize = 64;

/// Graceful shutdown under open streams ends within this.
pub const SHUTDOWN_DEADLINE: Duration = Duration::from_secs(4);

/// Callers whose requests are counted one by one; beyond it addresses are counted by their network. A bucket is about 50 bytes.
pub const RATE_LIMITED_CALLERS: usize = 100_000;

/// The largest amount of one transfer, hold or issue, in hundredths: a billion credits.
pub const CREDITS_AMOUNT_MAX: i64 = 100_000_000_000;
/// Everything that may ever be issued, in hundredths: sums stay exact also for readers that only have floats (2^53).
pub const CREDITS_ISSUED_MAX: i64 = 9_000_000_000_000_000;
/// `input_data` or `output_data` of a job, in octets of JSON: the event that carries it fits what clients buffer.
pub const JOB_DATA_OCTETS: usize = 56_000;
/// when a job without another deadline expires.
pub const JOB_DEADLINE_DEFAULT: Duration = Duration::from_secs(600);
/// The longest deadline a job may ask for; its credits are held until then.
pub const JOB_DEADLINE_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// Rows of one page of jobs.
pub const JOBS_PAGE: usize = 200;
/// Postings of one page of the ledger.
pub const AUDIT_PAGE: usize = 1_000;

/// What a service delivers to a hosted agent: its event stays under the 64 000 characters that clients buffer.
pub const DELIVERY_CHARS: usize = 63_000;
/// How long a pair of channel and message is known again: a week, where services try for a day.
pub const DELIVERY_DEDUP_RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);

/// how long a callback and its delivery's key to the tools are good for.
pub const CALLBACK_TTL: Duration = Duration::from_secs(24 * 3600);
/// How long a dead callback is told apart from one that never was: agents that were away for a week learn that they are late.
pub const EXPIRED_CALLBACK_RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);
/// How long a callback that streams its events may pause: a model may think for minutes between two lines.
pub const CALLBACK_STREAM_IDLE_MAX: Duration = Duration::from_secs(300);
/// Streams of callbacks open at once; beyond it the events are to be posted one by one. Each holds a connection and a line.
pub const CALLBACK_STREAMS: usize = 1_024;
/// The same of one member: a stream for each delivery that it works on, and none left over to keep others from theirs.
pub const CALLBACK_STREAMS_PER_MEMBER: usize = 16;
/// messages that a delivery catches up on.
pub const BACKLOG_MESSAGES: usize = 50;
/// All of a delivery's messages: with the rest of its body it stays under [`DELIVERY_CHARS`], so that a hosting hub takes it.
pub const BACKLOG_BYTES: usize = 48 * 1024;
/// Messages that one member is owed while its retries last; beyond it the oldest are only in the history.
pub const PENDING_DELIVERIES_PER_MEMBER: usize = 10_000;
/// CHN-34: a secret that deliveries are signed with, as Standard Webhooks bounds it.
pub const SIGNING_SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// steps from agent to agent that follow a person's word, unless the hub is told otherwise.
pub const AGENT_TURNS_DEFAULT: u32 = 8;

/// what is owed to others is tried for this long, then given up aloud.
pub const OUTBOX_GIVE_UP_AFTER: Duration = Duration::from_secs(24 * 3600);
/// the first pause after a failure; each next one is twice as long.
pub const OUTBOX_BACKOFF_FIRST: Duration = Duration::from_secs(1);
/// the longest pause.
pub const OUTBOX_BACKOFF_MAX: Duration = Duration::from_secs(300);
/// How long one who took something from the outbox has it alone: well past the deadline of a request.
pub const OUTBOX_LEASE: Duration = Duration::from_secs(60);
/// Requests from the outbox under way at once, half of what may be under way in all; the next ones wait their turn in the table.
/// Half of these are for those that never failed, so that many that hang do not hold up the others.
pub const OUTBOX_IN_FLIGHT: usize = 128;

/// A member's name in a room: what a person types after an `@`.
pub const MEMBER_NAME_CHARS: usize = 64;
/// Members that one message may call by name; beyond it a text is a list, and calls nobody further.
pub const MENTIONS_PER_MESSAGE: usize = 64;
/// What a room says of itself: it goes with every delivery.
pub const CHANNEL_CONTEXT_CHARS: usize = 4_096;
/// What is said at once in a room, as JSON: with the room's context and its credentials around it, the delivery stays under
/// what clients buffer of one event.
pub const CHANNEL_MESSAGE_CHARS: usize = 48_000;
/// Structured parts of one message.
pub const PARTS_PER_MESSAGE: usize = 32;
/// A status: one line of a roster.
pub const STATUS_CHARS: usize = 256;
/// How long a status is shown that its member does not repeat: longer than a slow tool, shorter than a break.
pub const STATUS_TTL: Duration = Duration::from_secs(600);
/// Capabilities with which an agent presents itself.
pub const CAPABILITIES_PER_AGENT: usize = 64;
/// Members of one room: each message is owed to each of them.
pub const MEMBERS_PER_CHANNEL: usize = 256;
/// Rooms that one agent owns.
pub const CHANNELS_PER_OWNER: usize = 1_000;
/// Rooms of one page.
pub const CHANNELS_PAGE: usize = 200;
/// Open streams of one room: every member, and some pages that people watch.
pub const STREAMS_PER_CHANNEL: usize = 1_024;

/// the name of an artifact, which stands in paths.
pub const SLUG_OCTETS: usize = 128;
/// the text of an artifact: a long document, which a model can still read at once.
pub const ARTIFACT_BYTES: usize = 256 * 1024;
/// Artifacts of one channel: all of them are listed at once.
pub const ARTIFACTS_PER_CHANNEL: usize = 500;
/// Versions of one artifact that can still be read: who came late sees what changed, and nobody fills the disk by editing.
pub const ARTIFACT_VERSIONS_KEPT: usize = 20;
/// one file of a channel; what is larger belongs behind a link.
pub const FILE_BYTES: usize = 1024 * 1024;
/// Files of one channel: all of them are listed at once.
pub const FILES_PER_CHANNEL: usize = 200;
/// All files of one channel together.
pub const CHANNEL_FILES_BYTES: usize = 64 * 1024 * 1024;
/// A call of a channel's tools: the largest file as base64, and the words around it.
pub const CHANNEL_TOOL_CALL_BYTES: usize = FILE_BYTES / 3 * 4 + 64 * 1024;

/// What a request waits for another hub to say whether its caller may ask: a hundred times what that takes, and still not felt.
pub const BUDGET_SYNC_WAIT: Duration = Duration::from_millis(250);
/// Callers that two hubs speak of in one message: a tenth of what one may hold.
pub const BUDGET_SYNC_CALLERS: usize = 1_024;
/// Requests that wait for the word of one hub; more are decided where they are.
pub const BUDGET_REQUESTS_WAITING: usize = 16_384;
/// Callers that other hubs are still to hear of; of more they hear with the next request.
pub const BUDGET_UPDATES_PENDING: usize = 65_536;

/// What one hub waits for another: answers come within milliseconds, and a hub that is cut off must not hold up a send.
pub const PEER_REQUEST_TIMEOUT: Duration = Duration::from_secs(1);
/// A hub that has not been heard for this long is taken for gone.
pub const PEER_SILENT_AFTER: Duration = Duration::from_secs(2);
/// How long a number of sessions, or a list of them, waits for a hub that is there and does not answer: far longer than
/// [`PEER_SILENT`], so that one that hangs is gone by then and one that is only busy is counted (D-93).
pub const PEER_COUNT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a frame waits to be taken by the memory that hubs share: a busy server takes seconds, and while servers choose who
/// has it, whoever sends may as well be told to try again.
pub const FRAME_PUBLISH_TIMEOUT: Duration = Duration::from_secs(4);
/// Questions of other hubs that wait here to be answered; beyond it they are told at once that there is no answer yet.
pub const PEER_REQUESTS_WAITING: usize = 4_096;
/// Places or agents that hubs say to one another in one piece: at most half of the megabyte that NATS takes.
pub const PEER_MESSAGE_ITEMS: usize = 10_000;
/// The same in bytes, for what has no fixed length.
pub const PEER_MESSAGE_BYTES: usize = 512 * 1024;
/// How often a hub that is not answered in time asks again.
pub const PEER_RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// Handles of which it is remembered where their frames ended, for those who come back after everything of them was let go.
pub const LAST_FRAME_SEQS_KEPT: usize = 100_000;
/// How often a hub looks for what others wrote when nobody rings: nothing waits longer than this for a lost word.
pub const LOG_POLL_INTERVAL: Duration = Duration::from_millis(300);
/// A hub that could not look for this long trusts nothing it remembers: a key taken back elsewhere is dead within a second.
pub const LOG_POLL_STALE_AFTER: Duration = Duration::from_millis(900);
/// How often a hub that always has something to write looks at the database's clock all the same: a machine whose clock was stepped
/// is right again before a lease could be taken for over.
pub const CLOCK_SYNC_INTERVAL: Duration = Duration::from_secs(1);
/// An answer that took longer says too little about what time it is: half of it is what the hub may be wrong by.
pub const CLOCK_SYNC_ROUND_TRIP_MAX: Duration = Duration::from_secs(1);
/// How soon a stream looks again when the log could not be read.
pub const LOG_READ_RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// The frames that hubs keep together for those who come back, in bytes; as much as the rings of one hub hold.
pub const FRAME_STREAM_BYTES: i64 = ALL_RINGS_BYTES as i64;
