// The client's own limits, with their reasons. They are those of crates/chorus-client.

/** Max bytes of one answer. A page of the largest envelopes fits; a broken hub cannot exhaust our memory. */
export const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
/** One whole call. A send may wait for a webhook at the hub, which takes ten seconds unless the operator allows more. */
export const CALL_TIMEOUT_MS = 60_000;
/** A stream without any byte for this long is dead. Keepalives come every 20 s, so two may get lost. */
export const SILENCE_TIMEOUT_MS = 45_000;
/** Max characters of one SSE event: the 64 000 of R-25 with room for later kinds. */
export const MAX_EVENT_CHARS = 1024 * 1024;
/** Max attempts of a retried call. */
export const MAX_ATTEMPTS = 5;
/** The first and the longest backoff between attempts. */
export const FIRST_BACKOFF_MS = 300;
export const MAX_BACKOFF_MS = 30_000;
/** Max `Retry-After` that a call waits for. Beyond it the caller gets the error. */
export const MAX_RETRY_AFTER_MS = 30_000;
/** Max `retry` of a stream that is honoured: a broken hub must not silence an agent for long. */
export const MAX_STREAM_RETRY_MS = 60_000;
/** Rows per page: that many of the largest envelopes stay under MAX_ANSWER_BYTES. */
export const PAGE_SIZE = 200;
/** Max pages of one listing: a longer list is not read by people. */
export const MAX_PAGES = 100;
/** Max answers kept so that a repeated turn gets the first one again. */
export const MAX_KNOWN_TURNS = 4_096;
/** Max receipts, and max `shown` events, remembered for a `send` whose answer comes after them. */
export const MAX_RECENT_FACTS = 256;
/** Max events that are read and not finished; beyond it the stream is not read on. */
export const MAX_OPEN_EVENTS = 1_000;
/** How long running handlers get when an agent is closed. */
export const CLOSE_TIMEOUT_MS = 10_000;
/** Max frame ids remembered so that no frame is returned twice (FRM-106): as many as a hub's frame ring keeps. */
export const MAX_SEEN_FRAMES = 10_000;
/** How long a frame without `ttl_ms` is news (FRM-11): longer than a hub keeps frames, so that a replay shows all. */
export const FRAME_HORIZON_MS = 3_600_000;
/** A replay with an unknown end is over after this much silence: a hub writes all waiting frames at once. */
export const REPLAY_QUIET_MS = 500;
/** The longest lease of a claim (FRM-24). */
export const MAX_LEASE_MS = 3_600_000;
/** Max lines queued for a callback's open request; beyond it the caller waits. */
export const CALLBACK_QUEUE_LEN = 64;
