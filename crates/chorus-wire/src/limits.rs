//! Every limit that a client can meet: what it bounds, why it has this value, and what happens when it is reached.
//!
//! Unless a comment says otherwise, a value over its limit is refused with a validation error (400)
//! that names the field.

use std::time::Duration;

/// Max bytes of a request body: forty times the largest useful envelope. A larger body is
/// refused with 413.
pub const BODY_BYTES: usize = 256 * 1024;
/// Max bytes of all headers of one request, or of one webhook answer. A bearer key, a proxy's cookies
/// and tracing headers fit several times. More is 431 for a request, and a failed webhook.
pub const HEADER_BYTES: usize = 16 * 1024;
/// Max header lines of one request: just under the hundred for which the HTTP parser has room without
/// allocating. More is 431.
pub const HEADER_LINES: usize = 96;
/// Max bytes that the HTTP parser buffers of one request: the largest headers and a request line of the same
/// size. A client that never ends its head holds this much. A longer request line is refused with 414, a
/// longer head with 431.
pub const CONNECTION_BUFFER_BYTES: usize = 2 * HEADER_BYTES;
/// Max nesting of JSON objects and arrays: no document needs ten levels. It bounds the parser's stack.
pub const JSON_DEPTH: usize = 32;
/// Time for a client to send its whole request, and for a peer to take any bytes. Afterwards the
/// request is answered with 408, or the connection is closed.
pub const REQUEST_DEADLINE: Duration = Duration::from_secs(30);
/// Bytes a second that a client must take of an answer that waits for it: slower than any network that
/// agents use, and a client cannot hold many answers in memory by reading a little now and then. Below it the
/// connection is closed.
pub const ANSWER_DRAIN_RATE: u64 = 8 * 1024;
/// Time before [`ANSWER_DRAIN_RATE`] counts: a pause of the network is no slow reader.
pub const ANSWER_DRAIN_GRACE: Duration = Duration::from_secs(10);

/// Max characters of an address `name@host`.
pub const ADDRESS_CHARS: usize = 128;
/// Max octets of the id of a job or transfer, and of a market id that is no address.
pub const OPAQUE_ID_OCTETS: usize = 128;
/// Max characters of `original_text`, as the document says (ENV-23).
pub const ORIGINAL_TEXT_CHARS: usize = 10_000;
/// Characters of `cultural_context`, as the document says (ENV-23).
pub const CULTURAL_CONTEXT_CHARS: std::ops::RangeInclusive<usize> = 10..=500;
/// Max characters of `conversation_id` (ENV-07), and of a receiver's `error_code`.
pub const CONVERSATION_ID_CHARS: usize = 64;
/// Max characters of a language tag; the longest registered ones are under 40.
pub const CULTURE_CHARS: usize = 64;
/// Max characters of a serialised envelope: with the rest of its event it stays under the 64 000
/// characters that clients buffer of one event.
pub const ENVELOPE_CHARS: usize = 63_000;
/// Max bytes of a serialised agent card: every directory listing repeats it.
pub const CARD_BYTES: usize = 8 * 1024;
/// Max languages on an agent card: more than any agent speaks, and the directory repeats them.
pub const CARD_LANGUAGES: usize = 64;
/// Max characters of names, labels and owner ids: they are typed by people and shown on one line.
pub const LABEL_CHARS: usize = 256;
/// Max further keys of one agent: one for each place where it runs, with room. One more is 403 `ERR_QUOTA`.
pub const KEYS_PER_AGENT: usize = 32;
/// Max seconds for which a rotated key still works: a day, in which every place gets the new one.
pub const KEY_OVERLAP_SECONDS: u64 = 86_400;
/// Max lifetime in seconds of a key that ends: ten years. A longer one is meant to have no end.
pub const KEY_LIFETIME_SECONDS: u64 = 10 * 365 * 86_400;
/// Max characters of a URL: an endpoint, a link of a message or an avatar.
pub const URL_CHARS: usize = 2_048;
/// Max skills of one agent: a search ranks each of them on its own.
pub const SKILLS_PER_AGENT: usize = 64;
/// Max characters of a skill's description: one paragraph, by which a requester chooses.
pub const SKILL_DESCRIPTION_CHARS: usize = 2_048;
/// Max bytes of a skill's serialised JSON Schema: several screens.
pub const SCHEMA_BYTES: usize = 16 * 1024;
/// Max subschemas of a JSON Schema with its references expanded. Without it, a few lines of nested
/// references could expand without end. A larger schema is refused when the skill is offered.
pub const SCHEMA_PARTS: usize = 2_000;
/// Max regular expressions of a JSON Schema with its references expanded: each is compiled into its own
/// automaton. A schema with more is refused when the skill is offered.
pub const SCHEMA_PATTERNS: usize = 32;
/// Max regular expressions over all schemas of one request: a registration has up to 128 schemas,
/// and the sender may be a stranger. A request with more is refused before any is compiled.
pub const REQUEST_PATTERNS: usize = 64;
/// Max subschemas over all schemas of one request, as above: compiling them takes some tens of
/// milliseconds.
pub const REQUEST_SCHEMA_PARTS: usize = 10_000;
/// Max bytes of one compiled regular expression. Two Unicode letter classes fit, and one alone takes more
/// than 40 000; without the limit, a few characters could compile to megabytes. A larger one is refused
/// when the skill is offered.
pub const PATTERN_BYTES: usize = 128 * 1024;
/// Max `unevaluatedProperties` and `unevaluatedItems` of a JSON Schema: they evaluate their siblings
/// again, so each nested one doubles the work. A schema with more is refused.
pub const SCHEMA_UNEVALUATED_KEYWORDS: usize = 2;
/// Max product of a schema's subschemas and an input's values: about 50 ms of validation. A larger
/// input is refused with `SKILL_MISMATCH` before validation.
pub const SCHEMA_WORK: usize = 5_000_000;
/// Silence after which an agent that has been seen is offline. Jobs for it are refused with
/// `AGENT_OFFLINE` until it is seen again.
pub const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(90);
/// Agents of one search by default: a requester looks at a few. A client may ask for up to
/// [`DIRECTORY_PAGE`].
pub const DISCOVERY_PAGE: usize = 100;
/// Max agents that a search scans for online ones, best first, and that it counts under a filter: more
/// would take longer than 10 ms. Agents beyond it are not found, and `total` stops there.
pub const DISCOVERY_AGENTS_SCANNED: usize = 10_000;
/// Newest reputation changes shown of one agent: enough to see a trend. Older ones are left out.
pub const REPUTATION_HISTORY_ROWS: usize = 50;
/// Max characters of `detail` and `error_message`: a paragraph. What the hub takes from another server is
/// cut there instead of refused.
pub const DETAIL_CHARS: usize = 2_048;

/// Max bytes of a frame as submitted. Frames announce; longer content belongs behind a reference.
/// A larger frame is `frame-too-large`.
pub const FRAME_BYTES: usize = 64 * 1024;
/// Max bytes of the body around a frame: the largest frame, the longest scope and their keys. A larger
/// body is `frame-too-large` before it is parsed.
pub const FRAME_BODY_BYTES: usize = FRAME_BYTES + 1024;
/// Max octets of a text that people read, such as an advisory, a question or a finding (FRM-29…43, R-53).
pub const FRAME_TEXT_OCTETS: usize = 2_048;
/// Max octets of a handover: it replaces a file, so it may be longer than an announcement.
pub const HANDOVER_OCTETS: usize = 8 * 1024;
/// Max octets of one reference or tag, and of every pointer for which the draft prints no bound.
pub const FRAME_ITEM_OCTETS: usize = 1_024;
/// Max items of one array.
pub const FRAME_ITEMS: usize = 256;
/// Max octets of an option's label, a convergence class, a branch or a return reference: one line
/// of a screen.
pub const FRAME_LABEL_OCTETS: usize = 256;
/// Max octets of a resource, a working tree or a scope (FRM-29, FRM-33, FRM-36).
pub const FRAME_PATH_OCTETS: usize = 512;
/// Max octets of a session id, an instrument or a tool class (FRM-31, R-53).
pub const SESSION_OCTETS: usize = 128;
/// Max octets of a role or of a grant's scope.
pub const ROLE_OCTETS: usize = 64;
/// Max milliseconds of a lock's lease: one hour (FRM-33, R-40). A longer claim is extended, so that the
/// claim of a crashed session ends.
pub const LEASE_MAX_MS: u64 = 3_600_000;
/// Largest whole number that every JSON parser reads alike: beyond 2^53 some round it.
pub const SAFE_INTEGER_MAX: u64 = (1 << 53) - 1;
/// Max distance of `created_at` from the hub's clock, either way, so that a frame is neither
/// replayed long afterwards nor dated ahead.
pub const FRAME_CLOCK_SKEW: Duration = Duration::from_secs(24 * 3600);
/// Max sessions that one frame may reach (R-49, FRM-102): it bounds the work of one request. A wider
/// scope is `expansion-too-large`.
pub const SCOPE_EXPANSION_MAX: usize = 10_000;
/// How long a frame stays in its ring, and a repeated `frame_id` is recognised. A session that
/// resumes later is told of a gap.
pub const RING_RETENTION: Duration = Duration::from_secs(300);
/// Max frames of one handle's ring, and recognised frame ids of one sender. The oldest are dropped.
pub const RING_FRAMES: usize = 10_000;
/// Max bytes of one handle's ring: 10 000 frames of ordinary size. The oldest frames are dropped.
pub const RING_BYTES: usize = 16 * 1024 * 1024;
/// Max open items under one handle: far more than people and their agents keep in view. A further
/// frame is delivered and answered with `"kept": false`.
pub const OPEN_ITEMS_PER_HANDLE: usize = 1_000;
/// How long a handover waits to be taken up: the next session begins on the next day at the latest.
pub const HANDOVER_RETENTION: Duration = Duration::from_secs(24 * 3600);
/// How long a decision waits for its answer when its frame has no `ttl_ms`: a day, as for a handover.
pub const DECISION_RETENTION: Duration = Duration::from_secs(24 * 3600);
/// Max time that any item stays open: a longer `ttl_ms`, or a lease extended again and again, must not hold one
/// of the places of a handle for ever.
pub const OPEN_ITEM_RETENTION_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
/// Max open frame streams of one handle in the cluster: what one frame may reach, so that a handle can
/// always address all its own sessions. Another stream is `too-many-streams`.
pub const STREAMS_PER_HANDLE: usize = SCOPE_EXPANSION_MAX;
/// Max octets of a frame filter: room for every axis several times. The roster repeats it per session.
pub const FILTER_OCTETS: usize = 1_024;
/// Max handles that one handle lets address it; for more, an organisation is the right tool. Another
/// grant is a conflict (409).
pub const GRANTS_PER_HANDLE: usize = 1_000;
/// Max members of one organisation, invited ones included: as many as one frame may reach. Another
/// member is a conflict (409).
pub const MEMBERS_PER_ORG: usize = SCOPE_EXPANSION_MAX;
/// Max organisations that one handle has joined; joining another is a conflict (409). Invitations do not
/// count, so that other organisations cannot use up the limit.
pub const ORGS_PER_HANDLE: usize = 256;
/// Max organisations in `GET /orgs`: all that a handle can join, and as many invitations, which others can send at will.
pub const MEMBERSHIPS_LISTED: usize = 2 * ORGS_PER_HANDLE;
/// Max roles of one member.
pub const ROLES_PER_MEMBER: usize = 32;
/// Max accords that one organisation has proposed or granted; another is a conflict (409).
pub const ACCORDS_PER_ORG: usize = 1_000;
/// Max octets of a field name that an error repeats: a name may be as long as the frame. The rest is cut.
pub const FIELD_NAME_OCTETS: usize = 128;

/// Max characters of an `Idempotency-Key`.
pub const IDEMPOTENCY_KEY_CHARS: usize = 256;
/// How long the answer to an `Idempotency-Key` is kept. Afterwards the key counts as new.
pub const IDEMPOTENCY_RETENTION: Duration = Duration::from_secs(24 * 3600);
/// Max wait of a send that repeats a key for the outcome of the first send, whose webhook may take minutes
/// . Then it is answered with 503 and may come again.
pub const REPEATED_SEND_WAIT: Duration = Duration::from_secs(5);
/// How long the answer to a registration without a key is kept under its `Idempotency-Key`: it contains the
/// agent's key, and a client repeats a request within minutes. Afterwards the name is taken.
pub const REGISTRATION_ANSWER_RETENTION: Duration = Duration::from_secs(600);
/// Min characters of the `Idempotency-Key` of a registration without a key: it alone proves that the repetition is of
/// the same client, so it must not be guessed. A shorter one is refused.
pub const REGISTRATION_KEY_MIN_CHARS: usize = 20;
/// Life of a session token: a client opens its stream with it at once. Afterwards it is refused.
pub const SESSION_TOKEN_TTL: Duration = Duration::from_secs(300);
/// Life of the resume token that a stream opened with a session token gets: a browser tab that is left open for a day
/// still reconnects. Afterwards the client asks for a session token again.
pub const RESUME_TOKEN_TTL: Duration = Duration::from_secs(24 * 3600);
/// Life of a console link: long enough to switch to the browser. Afterwards, and after its use, it is refused.
pub const CONSOLE_LINK_TTL: Duration = Duration::from_secs(300);
/// Life of a console session: a working day. Afterwards the page asks to sign in again.
pub const CONSOLE_SESSION_TTL: Duration = Duration::from_secs(12 * 3600);
/// Max console sessions of one key: the browsers of one person, with some that were never signed out. The oldest one ends when
/// another is opened.
pub const CONSOLE_SESSIONS_PER_KEY: usize = 16;

/// Max rows of one history page. A larger `limit` counts as this one.
pub const HISTORY_PAGE: usize = 1_000;
/// Max bytes of one history page: a full page of ordinary messages, and a bound on the memory of one
/// request. A page that stops here is short; the next one continues after its last id.
pub const HISTORY_PAGE_BYTES: usize = 2 * 1024 * 1024;
/// Max rows of history without `limit`: public clients ask once and keep no count. `metadata.next` is the cursor of
/// what follows.
pub const HISTORY_ANSWER_ROWS: usize = 10_000;
/// Max bytes of history without `limit`: the body is not held in memory, but a client reads all of it.
pub const HISTORY_ANSWER_BYTES: usize = 8 * 1024 * 1024;
/// Newest messages of one agent that are scanned for unanswered ones, or for those with one peer: about
/// 20 ms. Older ones are not found.
pub const MESSAGES_SCANNED: usize = 10_000;
/// Newest messages that one page of `GET /conversations`, or of a search for a text, reads: about 5 ms. The page has a cursor
/// to go on.
pub const CONVERSATION_SCAN: usize = 2_000;
/// Newest messages of one agent that one page of the messages with one peer looks through: about 5 ms, because only matching
/// texts are read. The page has a cursor to go on.
pub const PEER_SCAN: usize = 5_000;
/// Max characters of a text that is searched for; a longer one is refused. It is a few words.
pub const SEARCH_TEXT_CHARS: usize = 200;
/// Max characters of the newest text in a row of `GET /conversations`: one line of a list. The rest is left out.
pub const PREVIEW_CHARS: usize = 160;
/// Rows that an MCP tool returns by default: a model reads all of them.
pub const TOOL_PAGE_DEFAULT: usize = 50;
/// Max bytes of the rows in one tool answer. MCP hosts truncate an answer beyond about 25 000 tokens, and
/// a truncated one is not JSON. Rows that do not fit are left out, but one row is always returned.
pub const TOOL_ANSWER_BYTES: usize = 64 * 1024;
/// Max time that one tool call waits for others: MCP hosts cancel a tool after a minute. Then the call
/// returns what it has.
pub const TOOL_WAIT_MAX: Duration = Duration::from_secs(30);
/// Max tool calls of one agent that wait on one hub at once: one for each session that an agent has, with room. Each
/// holds a connection and reads the store every second. One more sends its message and returns without waiting.
pub const TOOL_WAITS_PER_AGENT: usize = 16;
/// Max rows of one directory page, also the default: the documents print no paging, so a small hub is
/// listed whole.
pub const DIRECTORY_PAGE: usize = 1_000;
/// Max bytes of the rows in one page of a list that needs no key: some thirty of the largest agent
/// cards. A page that stops here has a cursor for the next one.
pub const LIST_PAGE_BYTES: usize = 256 * 1024;
/// Max rows of one activity page. A larger `limit` counts as this one.
pub const ACTIVITY_PAGE: usize = 1_000;

/// Pause between keepalive comments on a quiet stream: clients may expect one every 20 s.
pub const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// Max events in a stream queue. A full queue makes its feed read the log again.
pub const STREAM_QUEUE_EVENTS: usize = 1_024;
/// Max bytes in a stream queue, and of one replayed page: no stream holds more in memory.
pub const STREAM_QUEUE_BYTES: usize = 1024 * 1024;
/// Time without a successful write after which a stream no longer counts as draining.
pub const STREAM_STALLED_AFTER: Duration = Duration::from_secs(1);
/// Time without a successful write after which a stream is closed. Its reader resumes by cursor.
pub const STREAM_DISCONNECT_AFTER: Duration = Duration::from_secs(10);
/// Kernel send buffer of a stream. It is small so that a stalled reader shows, instead of hiding behind
/// megabytes in the kernel.
pub const STREAM_SEND_BUFFER_BYTES: usize = 128 * 1024;
/// Max open inbox streams of one agent in the cluster, and activity streams of one hub. Another stream is
/// refused with `ERR_TOO_MANY_STREAMS`.
pub const STREAMS_PER_SUBJECT: usize = 64;
/// Pause that the `retry` field asks a reader to make before it reconnects.
pub const STREAM_RECONNECT_DELAY: Duration = Duration::from_millis(2_000);

/// Max bytes of a webhook's answer, or of one event of a streamed answer. More is a failed
/// delivery.
pub const WEBHOOK_ANSWER_BYTES: usize = 64 * 1024;
/// Default deadline of a webhook, from the DNS lookup to the last byte. Afterwards it has failed.
pub const WEBHOOK_DEADLINE: Duration = Duration::from_secs(10);
/// Max bytes of a streamed answer. It may take longer than [`WEBHOOK_DEADLINE`] as a whole, but no pause
/// may.
pub const WEBHOOK_STREAM_BYTES: usize = 4 * 1024 * 1024;
/// Deadline of a whole streamed answer: a model that writes for five minutes has written enough.
pub const WEBHOOK_STREAM_DEADLINE: Duration = Duration::from_secs(300);

/// Max open connections by default, on a machine with plenty of memory: each is a file descriptor and, as an idle
/// stream, four kilobytes. With less than 8 GiB it is eight for each megabyte, because a client that never ends its
/// head holds [`CONNECTION_BUFFER_BYTES`].
/// Another connection is answered with 503 and closed.
pub const CONNECTIONS_DEFAULT: usize = 65_536;
/// The part of all connections that one address may have by default: a fourth, so that no single client takes
/// every slot. Another connection is answered with 503 and closed.
pub const CONNECTIONS_SHARE_PER_ADDRESS: usize = 4;
/// The part of all connections that only requests with a known key may take: a fourth, so that clients without a key cannot lock
/// out registered agents and operators. Such a client beyond the other three fourths is answered with 503 and closed.
pub const CONNECTIONS_SHARE_OF_KNOWN: usize = 4;
/// Max connections beyond the general slots that may ask one thing: a probe is answered, a request with a known
/// key gets a slot, and any other is answered with 503. Further connections are closed.
pub const UNVERIFIED_CONNECTIONS: usize = 64;
/// Time for such a connection to send the head of its request. Then it is closed.
pub const UNVERIFIED_DEADLINE: Duration = Duration::from_secs(5);
/// How many keys' budgets one address has over all agents' keys that it uses: keys are free, so they
/// must not multiply the budget. More is 429.
pub const ADDRESS_BUDGET_FACTOR: u32 = 4;
/// How many keys' budgets the probes of one address have (`/health`, `/ready`, `/metrics`): a balancer and a
/// scraper ask every second, and each answer reads the store. More is 429.
pub const PROBE_BUDGET_FACTOR: u32 = 10;
/// Registrations without a key per minute and address by default; twice as many may come at once.
/// More is 429.
pub const REGISTER_RATE_DEFAULT: u32 = 10;
/// Max refused connections that are being answered with 503 at once. The others are closed unanswered.
pub const REFUSED_CONNECTIONS_ANSWERED: usize = 64;

/// Time for open connections to end at shutdown, which then takes less than five seconds. Then those that
/// do not wait for a webhook are cut.
pub const SHUTDOWN_DEADLINE: Duration = Duration::from_secs(4);
/// Time for webhooks in flight to end at shutdown: a second more than [`WEBHOOK_DEADLINE`], and with the
/// store's own three seconds less than the fifteen that `deploy/chorus.service` allows. Then they have failed.
pub const SHUTDOWN_WEBHOOK_DEADLINE: Duration = Duration::from_secs(11);

/// Largest amount of one transfer, hold or issue, in hundredths: a billion credits.
pub const CREDITS_AMOUNT_MAX: i64 = 100_000_000_000;
/// Most credits that a hub may ever issue, in hundredths. Sums stay below 2^53, so they are exact also for
/// readers that use floats. A further issue is refused with `TRANSFER_FAILED`.
pub const CREDITS_ISSUED_MAX: i64 = 9_000_000_000_000_000;
/// Max octets of a job's `input_data` or `output_data` as JSON: its event stays under the 64 000 characters
/// that clients buffer. More is refused with 413.
pub const JOB_DATA_OCTETS: usize = 56_000;
/// Deadline of a job that asks for none. At its deadline a job expires and the credits are
/// returned.
pub const JOB_DEADLINE_DEFAULT: Duration = Duration::from_secs(600);
/// Shortest deadline that a job may ask for: a missed deadline lowers the worker's score, so it must be one that a
/// worker can keep.
pub const JOB_DEADLINE_MIN: Duration = Duration::from_secs(1);
/// How long a job that was claimed on the board stays with its worker without a sign of it. Then it goes back to the board.
/// Every report of the worker renews the lease.
pub const JOB_LEASE: Duration = Duration::from_secs(300);
/// Max updates of one job, which its timeline shows: progress in steps of a percent. Further progress lines replace the latest
/// one without a row of their own, and a result that is refused is no longer noted.
pub const JOB_UPDATES: usize = 100;
/// Jobs on one page of the board: a screenful or two, and it is read often.
pub const BOARD_PAGE: usize = 100;
/// Max agents that a job is given to one after the other, when it names only a skill: each declined it or could not be reached.
pub const JOB_WORKERS_TRIED: usize = 8;
/// How long an agent counts as offline after its endpoint refused a job. Then the endpoint is tried again.
pub const REFUSAL_PAUSE: Duration = Duration::from_secs(30);
/// Longest deadline that a job may ask for: its credits are held until then.
pub const JOB_DEADLINE_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// Max jobs of one page. A larger `limit` counts as this one.
pub const JOBS_PAGE: usize = 200;
/// Max postings of one page of the ledger. A larger `limit` counts as this one.
pub const AUDIT_PAGE: usize = 1_000;

/// Max characters of a channel delivery from another service: its event stays under the 64 000 characters
/// that clients buffer. More is refused with 413.
pub const DELIVERY_CHARS: usize = 63_000;
/// How long an agent host recognises a repeated pair of channel and message: a week, because services
/// retry for a day. Afterwards it would be delivered again.
pub const DELIVERY_DEDUP_RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);

/// Life of a callback and of the tool token issued with it. Afterwards both answer 410.
pub const CALLBACK_TTL: Duration = Duration::from_secs(24 * 3600);
/// How long an expired callback answers 410 instead of 404: an agent that was away for a week learns that
/// it is late.
pub const EXPIRED_CALLBACK_RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);
/// Max pause in a callback that streams its events: a model may think for minutes between two lines. A
/// longer pause ends the stream.
pub const CALLBACK_STREAM_IDLE_MAX: Duration = Duration::from_secs(300);
/// Max open callback streams: each holds a connection and a line in memory. Another one is answered with
/// 503, and its events can be posted one by one.
pub const CALLBACK_STREAMS: usize = 1_024;
/// Max open callback streams of one member: one for each delivery that it works on, so that no member uses
/// up [`CALLBACK_STREAMS`]. Another one is `ERR_TOO_MANY_STREAMS`.
pub const CALLBACK_STREAMS_PER_MEMBER: usize = 16;
/// How long a receiver treats a frame without `ttl_ms` as news (FRM-11). Longer than a hub keeps frames, so
/// that a replay shows everything, and short enough that a frame of yesterday is not taken for one of today.
pub const FRAME_DEFAULT_HORIZON: Duration = Duration::from_secs(3600);
/// Max characters of a callback. A URL that authenticates by itself carries a signature or a token with
/// claims; 8 KiB is what web servers take as a request line (CHN-15).
pub const CALLBACK_CHARS: usize = 8 * 1024;
/// Max octets of the `webhook-id` that travels with a delivery: with the other two headers and the origin
/// the event stays within what clients buffer (CHN-34).
pub const WEBHOOK_ID_OCTETS: usize = 128;
/// Max octets of a `webhook-timestamp`: a number of seconds.
pub const WEBHOOK_TIMESTAMP_OCTETS: usize = 20;
/// Max octets of a `webhook-signature`: a service that rotates its secret sends several.
pub const WEBHOOK_SIGNATURE_OCTETS: usize = 256;
/// Max missed messages in the `backlog` of a delivery. Older ones are in the history.
pub const BACKLOG_MESSAGES: usize = 50;
/// Max bytes of all messages of a delivery: with the rest of its body it stays under [`DELIVERY_CHARS`], so
/// that an agent host accepts it. Messages that do not fit are left out of the backlog.
pub const BACKLOG_BYTES: usize = 48 * 1024;
/// Max undelivered messages of one member while its posts are retried. Beyond it the oldest are only in
/// the history.
pub const PENDING_DELIVERIES_PER_MEMBER: usize = 10_000;
/// Bytes of a secret that signs deliveries, as Standard Webhooks bounds it (CHN-34).
pub const SIGNING_SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// Default turn limit: agent-to-agent steps after a person's message. Further messages stay in the
/// history but are not delivered to agents.
pub const AGENT_TURNS_DEFAULT: u32 = 8;

/// Max characters of a member's name: people type it after an `@`.
pub const MEMBER_NAME_CHARS: usize = 64;
/// Max members that one message mentions; a text with more is a list. Further mentions are ignored.
pub const MENTIONS_PER_MESSAGE: usize = 64;
/// Max characters of a channel's context: every delivery repeats it.
pub const CHANNEL_CONTEXT_CHARS: usize = 4_096;
/// Max characters of one channel message as JSON: with the channel's context and tokens, its delivery stays
/// under the 64 000 characters that clients buffer. More is refused with 413.
pub const CHANNEL_MESSAGE_CHARS: usize = 48_000;
/// Max structured parts of one message.
pub const PARTS_PER_MESSAGE: usize = 32;
/// Max characters of a member's status: one line of the roster.
pub const STATUS_CHARS: usize = 256;
/// How long the roster shows a status that its member does not repeat: longer than a slow tool runs, shorter
/// than a break.
pub const STATUS_TTL: Duration = Duration::from_secs(600);
/// Max capabilities in an agent's presentation: the roster and its messages repeat them.
pub const CAPABILITIES_PER_AGENT: usize = 64;
/// Max members of one channel: every message becomes a delivery to each. Another member is a conflict (409).
pub const MEMBERS_PER_CHANNEL: usize = 256;
/// Max names that one agent blocks: it reads them as one list. Another is a conflict (409); `@host` blocks many at once.
pub const BLOCKS_PER_AGENT: usize = 1_000;
/// Max contacts that one agent adds: it reads them as one list. Another is a conflict (409).
pub const CONTACTS_PER_AGENT: usize = 1_000;
/// Max invitations to channels that one agent has not answered: strangers cause them. Another is a conflict (409).
pub const INVITATIONS_PER_AGENT: usize = 1_000;
/// Max channels that one agent owns; another is a conflict (409).
pub const CHANNELS_PER_OWNER: usize = 1_000;
/// Default quota of octets that the agents of one owner store: years of messages, and a small part of a disk.
/// Beyond it a message, an artifact or a file is `ERR_QUOTA`.
pub const STORED_BYTES_PER_OWNER: u64 = 1024 * 1024 * 1024;
/// Octets that an entry of the log counts beside its body: its row and its places in the indexes.
pub const STORED_ENTRY_BYTES: u64 = 128;
/// Default quota of members over all channels of one owner: each may get every message. Another one is `ERR_QUOTA`.
pub const MEMBERS_PER_OWNER: u64 = 20_000;
/// Default quota of artifacts and files over all channels of one owner. Another one is `ERR_QUOTA`.
pub const ARTIFACTS_PER_OWNER: u64 = 10_000;
/// Default quota of jobs of one owner that have not ended: each has its input in the database and is looked at until
/// its deadline. Another one is `ERR_QUOTA`.
pub const OPEN_JOBS_PER_OWNER: u64 = 1_000;
/// Max channels of one page. A larger `limit` counts as this one.
pub const CHANNELS_PAGE: usize = 200;
/// Max open streams of one channel on one hub: every member, and some console pages. Another one is
/// `ERR_TOO_MANY_STREAMS`.
pub const STREAMS_PER_CHANNEL: usize = 1_024;

/// Max octets of an artifact's slug: it is part of paths.
pub const SLUG_OCTETS: usize = 128;
/// Max bytes of an artifact's text: a long document that a model can still read at once.
pub const ARTIFACT_BYTES: usize = 256 * 1024;
/// Max artifacts of one channel: all are listed at once. Another one is a conflict (409).
pub const ARTIFACTS_PER_CHANNEL: usize = 500;
/// Versions kept of one artifact: a late reader sees what changed, and edits cannot fill the disk. Older
/// versions are deleted.
pub const ARTIFACT_VERSIONS_KEPT: usize = 20;
/// Max bytes of one file of a channel; a larger one belongs behind a link. It is refused with 413.
pub const FILE_BYTES: usize = 1024 * 1024;
/// Max files of one channel: all are listed at once. Another one is a conflict (409).
pub const FILES_PER_CHANNEL: usize = 200;
/// Max bytes of all files of one channel, so that no channel fills the disk. Beyond it a file is a
/// conflict (409).
pub const CHANNEL_FILES_BYTES: usize = 64 * 1024 * 1024;
/// Max bytes of a call of a channel's tools: the largest file in base64 and the JSON around it.
pub const CHANNEL_TOOL_CALL_BYTES: usize = FILE_BYTES / 3 * 4 + 64 * 1024;
