//! Strategies for random valid frames of every kind.

use chorus_wire::frame::payload::*;
use chorus_wire::frame::{
    ComputeLocation, ContextCheck, FrameDraft, FramePayload, FrameProvenance, FrameScope,
};
use chorus_wire::{identity::Handle, time::UnixMicros};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use uuid::Uuid;

fn text(max_octets: usize) -> impl Strategy<Value = String> {
    vec(any::<char>(), 1..=max_octets / 4).prop_map(|chars| chars.into_iter().collect())
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    vec(text(40), 0..4)
}

fn uuid4() -> impl Strategy<Value = Uuid> {
    any::<u128>().prop_map(|bits| uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid())
}

fn timestamp() -> impl Strategy<Value = UnixMicros> {
    (0..4_000_000_000_000_000i64).prop_map(UnixMicros)
}

fn handle() -> impl Strategy<Value = Handle> {
    "~[abd-z0-9]{1,32}"
        .prop_map(|text| Handle::parse(&text).unwrap_or(Handle::parse("~z").unwrap()))
}

fn scope() -> impl Strategy<Value = FrameScope> {
    prop_oneof![
        "~[a-z]{4}(/[A-Za-z._-]{1,9}([*]|@[a-z0-9]{1,9}))?",
        "org:~[a-z]{4}/members/([a-z]{1,5}/)?[*]",
        "accord:[a-z]{4}/grant:[a-z.]{0,1}[a-z]"
    ]
    .prop_filter_map("grammar", |text| FrameScope::parse(&text))
}

fn positive_integer() -> impl Strategy<Value = u64> {
    1..=9_007_199_254_740_991u64
}

fn convergence_class() -> impl Strategy<Value = String> {
    "[!-9;-~]{1,20}:[!-9;-~]{1,20}"
}

fn question() -> impl Strategy<Value = DecisionQuestion> {
    let choice =
        (text(256), text(2048)).prop_map(|(label, reasoning)| DecisionOption { label, reasoning });
    let hatches = select(vec![
        (None, None),
        (Some(false), None),
        (None, Some(false)),
        (Some(true), Some(false)),
    ]);
    let hatches = hatches.prop_map(|(free_text, dialogue)| EscapeHatches {
        free_text,
        dialogue,
    });
    (text(2048), vec(choice, 2..=4), any::<u64>(), of(hatches)).prop_map(
        |(stem, options, number, hatches)| {
            let recommended_idx = number % options.len() as u64;
            DecisionQuestion {
                stem,
                options,
                recommended_idx,
                hatches,
            }
        },
    )
}

fn announcements() -> BoxedStrategy<FramePayload> {
    prop_oneof![
        (text(2048), of(texts()), of(text(512)), of(text(256))).prop_map(
            |(advisory_text, file_refs, worktree, branch)| {
                AgentAdvisory {
                    advisory_text,
                    file_refs,
                    worktree,
                    branch,
                }
                .into()
            }
        ),
        (text(2048), select(EventClass::ALL), of(texts())).prop_map(
            |(broadcast_text, event_class, refs)| {
                AgentBroadcast {
                    broadcast_text,
                    event_class,
                    refs,
                }
                .into()
            }
        ),
        (text(128), of(text(128)), text(8192), of(texts())).prop_map(
            |(previous_session_id, next_session_id, handover_body, pointer_refs)| {
                AgentHandover {
                    previous_session_id,
                    next_session_id,
                    handover_body,
                    pointer_refs,
                }
                .into()
            }
        ),
    ]
    .boxed()
}

fn questions() -> BoxedStrategy<FramePayload> {
    prop_oneof![
        (text(2048), uuid4(), scope(), positive_integer()).prop_map(
            |(query_text, query_id, response_scope, timeout_ms)| {
                AgentQuery {
                    query_text,
                    query_id,
                    response_scope,
                    timeout_ms,
                }
                .into()
            }
        ),
        (
            uuid4(),
            text(2048),
            text(128),
            of(uuid4()),
            of(positive_integer())
        )
            .prop_map(
                |(
                    query_id,
                    response_text,
                    responder_session_id,
                    responded_to_frame_id,
                    answer_attempt_idx,
                )| {
                    AgentResponse {
                        query_id,
                        response_text,
                        responder_session_id,
                        responded_to_frame_id,
                        answer_attempt_idx,
                    }
                    .into()
                }
            ),
        (text(256), of(uuid4()), text(2048)).prop_map(|(return_event_ref, query_id, summary)| {
            AgentReturnEvent {
                return_event_ref,
                query_id,
                summary,
            }
            .into()
        }),
        (text(2048), texts(), texts(), text(2048), question()).prop_map(
            |(synopsis, findings, recommendations, offer, question)| {
                AgentBindingMoment {
                    synopsis,
                    findings,
                    recommendations,
                    offer,
                    question,
                }
                .into()
            }
        ),
    ]
    .boxed()
}

fn locks_and_diagnostics() -> BoxedStrategy<FramePayload> {
    let lease = || 1..=3_600_000u64;
    prop_oneof![
        (text(512), uuid4(), lease(), of(text(2048))).prop_map(
            |(resource, lease_id, ttl_ms, intent)| {
                AgentLockRequest {
                    resource,
                    lease_id,
                    ttl_ms,
                    intent,
                }
                .into()
            }
        ),
        (uuid4(), of(text(512))).prop_map(|(lease_id, resource)| AgentLockRelease {
            lease_id,
            resource
        }
        .into()),
        (uuid4(), lease())
            .prop_map(|(lease_id, ttl_ms)| AgentLeaseExtend { lease_id, ttl_ms }.into()),
        (
            text(2048),
            uuid4(),
            of(texts()),
            select(DiagnosticSeverity::ALL)
        )
            .prop_map(|(symptom, diagnostic_id, substrate_refs, severity)| {
                PeerDiagnosticRequest {
                    symptom,
                    diagnostic_id,
                    substrate_refs,
                    severity,
                }
                .into()
            }),
        (uuid4(), text(2048), of(text(2048)), of(texts())).prop_map(
            |(diagnostic_id, finding, remediation, substrate_refs)| {
                PeerDiagnosticResponse {
                    diagnostic_id,
                    finding,
                    remediation,
                    substrate_refs,
                }
                .into()
            }
        ),
    ]
    .boxed()
}

fn intents() -> BoxedStrategy<FramePayload> {
    prop_oneof![
        (
            convergence_class(),
            text(1024),
            timestamp(),
            positive_integer(),
            any::<bool>(),
            of(select(IntentUrgency::ALL))
        )
            .prop_map(
                |(convergence_class, payload_ref, declared_at, ttl, withdrawable, urgency)| {
                    // `drafts` sets both to the frame's own.
                    let acted_by = Handle::parse("~z").unwrap();
                    let drafted_with = String::new();
                    let intent = IntentDeclare {
                        convergence_class,
                        payload_ref,
                        acted_by,
                        drafted_with,
                        declared_at,
                        ttl,
                        withdrawable,
                        urgency,
                    };
                    intent.into()
                }
            ),
        (convergence_class(), text(1024), timestamp()).prop_map(
            |(convergence_class, intent_ref, withdrawn_at)| {
                IntentWithdraw {
                    convergence_class,
                    intent_ref,
                    withdrawn_at,
                }
                .into()
            }
        ),
        (convergence_class(), text(1024), of(texts()), timestamp()).prop_map(
            |(convergence_class, result_ref, batch_refs, executed_at)| {
                FlushExecuted {
                    convergence_class,
                    result_ref,
                    batch_refs,
                    executed_at,
                }
                .into()
            }
        ),
    ]
    .boxed()
}

pub fn drafts() -> impl Strategy<Value = FrameDraft> {
    let drafter = "~[a-z0-9][a-z0-9._-]{0,63}(@[A-Za-z0-9._+-]{1,9})?";
    let provenance = (
        select(ComputeLocation::ALL),
        vec(text(40), 1..3),
        of(text(1024)),
        select(ContextCheck::ALL),
        text(1024),
    )
        .prop_map(
            |(compute_location, method, return_ref, context_check, basis)| FrameProvenance {
                compute_location,
                method,
                return_ref,
                context_check,
                basis,
            },
        );
    let names = (uuid4(), handle(), handle(), handle(), drafter);
    (
        names,
        timestamp(),
        of(positive_integer()),
        prop_oneof![
            announcements(),
            questions(),
            locks_and_diagnostics(),
            intents()
        ],
        provenance,
    )
        .prop_map(
            |(
                (frame_id, sender_handle, recipient_handle, acted_by, drafted_with),
                created_at,
                ttl_ms,
                mut payload,
                provenance,
            )| {
                if let FramePayload::IntentDeclare(intent) = &mut payload {
                    intent.acted_by = acted_by.clone();
                    intent.drafted_with = drafted_with.clone();
                }
                FrameDraft {
                    frame_id,
                    sender_handle,
                    recipient_handle,
                    created_at,
                    ttl_ms,
                    payload,
                    acted_by,
                    drafted_with,
                    provenance,
                }
            },
        )
}
