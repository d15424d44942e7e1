//! The specification of every field of every kind, written independently of the code.

/// The rule of a field. Lengths are octets.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// A text of min to max octets.
    Octets(usize, usize),
    OneOf(&'static [&'static str]),
    /// A whole number from min to max.
    Integer(u64, u64),
    Bool,
    Uuid4,
    Time,
    Handle,
    /// A handle that is not an instrument.
    Sovereign,
    Drafter,
    Class,
    Scope,
    /// At least so many items, each a text of min to max octets.
    Texts(usize, usize, usize),
    /// The same value as the frame's field.
    SameAsFrame,
    /// An object; `nested.rs` tests its fields.
    Nested,
}

use Rule::*;

/// 2^53 - 1; larger JSON numbers are not exact.
pub const MAX_EXACT: u64 = 9_007_199_254_740_991;

pub type Row = (&'static str, bool, Rule);

/// FRM-02…19, without `envelope_version`, `kind` and `payload`, which have their own codes.
pub const FRAME: &[Row] = &[
    ("frame_id", true, Uuid4),
    ("sender_handle", true, Handle),
    ("recipient_handle", true, Handle),
    ("created_at", true, Time),
    ("ttl_ms", false, Integer(1, MAX_EXACT)),
    ("acted_by", true, Sovereign),
    ("drafted_with", true, Drafter),
    (
        "provenance_compute_location",
        true,
        OneOf(&["server-active", "server-aggregate", "local-only"]),
    ),
    ("provenance_method", true, Texts(1, 1, 1024)),
    ("provenance_return_ref", false, Octets(0, 1024)),
    (
        "provenance_context_check",
        true,
        OneOf(&["passed", "skipped"]),
    ),
    ("provenance_basis", true, Octets(1, 1024)),
];

/// FRM-29…46 and R-40.
pub const PAYLOADS: [(&str, &[Row]); 15] = [
    (
        "agent_advisory",
        &[
            ("advisory_text", true, Octets(1, 2048)),
            ("file_refs", false, Texts(0, 0, 1024)),
            ("worktree", false, Octets(0, 512)),
            ("branch", false, Octets(0, 256)),
        ],
    ),
    (
        "agent_broadcast",
        &[
            ("broadcast_text", true, Octets(1, 2048)),
            (
                "event_class",
                true,
                OneOf(&["merged", "stale", "released", "other"]),
            ),
            ("refs", false, Texts(0, 0, 1024)),
        ],
    ),
    (
        "agent_handover",
        &[
            ("previous_session_id", true, Octets(1, 128)),
            ("next_session_id", false, Octets(0, 128)),
            ("handover_body", true, Octets(1, 8192)),
            ("pointer_refs", false, Texts(0, 0, 1024)),
        ],
    ),
    (
        "agent_lock_request",
        &[
            ("resource", true, Octets(1, 512)),
            ("lease_id", true, Uuid4),
            ("ttl_ms", true, Integer(1, 3_600_000)),
            ("intent", false, Octets(0, 2048)),
        ],
    ),
    (
        "agent_lock_release",
        &[
            ("lease_id", true, Uuid4),
            ("resource", false, Octets(0, 512)),
        ],
    ),
    (
        "agent_lease_extend",
        &[
            ("lease_id", true, Uuid4),
            ("ttl_ms", true, Integer(1, 3_600_000)),
        ],
    ),
    (
        "agent_query",
        &[
            ("query_text", true, Octets(1, 2048)),
            ("query_id", true, Uuid4),
            ("response_scope", true, Scope),
            ("timeout_ms", true, Integer(1, MAX_EXACT)),
        ],
    ),
    (
        "agent_response",
        &[
            ("query_id", true, Uuid4),
            ("response_text", true, Octets(1, 2048)),
            ("responder_session_id", true, Octets(1, 128)),
            ("responded_to_frame_id", false, Uuid4),
            ("answer_attempt_idx", false, Integer(1, MAX_EXACT)),
        ],
    ),
    (
        "agent_return_event",
        &[
            ("return_event_ref", true, Octets(1, 256)),
            ("query_id", false, Uuid4),
            ("summary", true, Octets(1, 2048)),
        ],
    ),
    (
        "agent_binding_moment",
        &[
            ("synopsis", true, Octets(1, 2048)),
            ("findings", true, Texts(0, 1, 2048)),
            ("recommendations", true, Texts(0, 1, 2048)),
            ("offer", true, Octets(1, 2048)),
            ("question", true, Nested),
        ],
    ),
    (
        "peer_diagnostic_request",
        &[
            ("symptom", true, Octets(1, 2048)),
            ("diagnostic_id", true, Uuid4),
            ("substrate_refs", false, Texts(0, 0, 1024)),
            ("severity", true, OneOf(&["info", "degraded", "blocked"])),
        ],
    ),
    (
        "peer_diagnostic_response",
        &[
            ("diagnostic_id", true, Uuid4),
            ("finding", true, Octets(1, 2048)),
            ("remediation", false, Octets(1, 2048)),
            ("substrate_refs", false, Texts(0, 0, 1024)),
        ],
    ),
    (
        "intent_declare",
        &[
            ("convergence_class", true, Class),
            ("payload_ref", true, Octets(1, 1024)),
            ("acted_by", true, SameAsFrame),
            ("drafted_with", true, SameAsFrame),
            ("declared_at", true, Time),
            ("ttl", true, Integer(1, MAX_EXACT)),
            ("withdrawable", true, Bool),
            ("urgency", false, OneOf(&["normal", "urgent"])),
        ],
    ),
    (
        "intent_withdraw",
        &[
            ("convergence_class", true, Class),
            ("intent_ref", true, Octets(1, 1024)),
            ("withdrawn_at", true, Time),
        ],
    ),
    (
        "flush_executed",
        &[
            ("convergence_class", true, Class),
            ("result_ref", true, Octets(1, 1024)),
            ("batch_refs", false, Texts(0, 0, 1024)),
            ("executed_at", true, Time),
        ],
    ),
];
