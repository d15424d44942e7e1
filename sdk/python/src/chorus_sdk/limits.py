"""The SDK's own limits, with their reasons, as in the Rust client. Limits of the wire format are the hub's."""

MAX_ANSWER_BYTES = 16 * 1024 * 1024
"""Max bytes of one response body. A page of the largest envelopes fits; a broken hub cannot exhaust our memory."""
PAGE_SIZE = 200
"""Rows per page: that many of the largest envelopes stay under `MAX_ANSWER_BYTES`."""
MAX_PAGES = 100
"""Max pages of one listing, so that a hub that repeats a cursor cannot hold a caller for ever."""
CONNECT_TIMEOUT_S = 10.0
"""Name resolution, TCP connect and TLS handshake."""
CALL_TIMEOUT_S = 60.0
"""One whole call. A send may wait for a webhook at the hub, which takes ten seconds unless the operator allows more."""
STREAM_SILENCE_S = 45.0
"""A stream without any byte for this long is dead. Keepalives come every 15 to 20 s (R-25), so two may get lost."""
MAX_EVENT_BYTES = 1024 * 1024
"""Max bytes of one SSE event: the 64 000 characters of R-25 in their widest encoding, with room for later kinds."""
MAX_ATTEMPTS = 5
"""Max attempts of a retried call; with the backoff between them, about ten seconds."""
FIRST_BACKOFF_S = 0.3
MAX_BACKOFF_S = 30.0
MAX_RETRY_AFTER_S = 60.0
"""Max `Retry-After` that a call waits for. Beyond it the caller gets the error."""
MAX_CACHED_REPLIES = 4096
"""Max replies kept in memory so that a repeated turn gets the first answer again (R-28)."""
MAX_UNANSWERED = 256
"""Max messages in the state file that still wait for their reply; beyond it the oldest is dropped."""
MAX_SEEN_FRAMES = 10_000
"""Max frame ids remembered so that no frame is returned twice (FRM-106): as many as a hub's frame ring keeps."""
FRAME_HORIZON_S = 3600.0
"""How long a frame without `ttl_ms` is news (FRM-11): longer than a hub keeps frames, so that a replay shows all."""
MAX_LOCK_CLAIMS = 10_000
REPLAY_QUIET_S = 0.5
"""A replay with an unknown end is over after this much silence: a hub writes all waiting frames at once."""
LOCK_ECHO_S = 5.0
"""How long to wait for the own claim on the stream, which shows whether another claim was first."""
MAX_LEASE_EXTEND_S = 120.0
"""The longest time between two extensions of a lease."""
HANDLER_GRACE_S = 10.0
"""How long handlers may run on after a stop was asked for (SDK-16)."""
WEBHOOK_TOLERANCE_S = 300
"""How far the time of a signed request may be from ours, as Standard Webhooks recommends."""
MAX_POSTED_BYTES = 512 * 1024
"""Max bytes that the endpoint receiver reads of one request: the largest delivery of a hub, twice."""
BATCH_WINDOW_S = 0.3
MIN_WAKE_INTERVAL_S = 10.0
"""Messages within the window of the first are one run, and runs begin this far apart (WAK-03)."""
MAX_WAKES_PER_SENDER = 6
SENDER_WINDOW_S = 600.0
MAX_WAKES_PER_HOUR = 30
"""Budget of runs: each costs a turn of a model (WAK-05)."""
