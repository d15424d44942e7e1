//! Frames at random, of every kind, that keep every rule.

use chorus_wire::frame::payload::*;
use chorus_wire::frame::{
    ComputeLocation, ContextCheck, FrameDraft, FrameProvenance, FrameScope, Payload,
};
use chorus_wire::{identity::Handle, time::UnixMicros};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use uuid::Uuid;

fn text(most: usize) -> impl Strategy<Value = String> {
    vec(any::<char>(), 1..=most / 4).prop_map(|chars| chars.into_iter().collect())
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    vec(text(40), 0..4)
}

fn id() -> impl Strategy<Value = Uuid> {
    any::<u128>().prop_map(|bits| uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid())
}

fn at() -> impl Strategy<Value = UnixMicros> {
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

fn whole() -> impl Strategy<Value = u64> {
    1..=9_007_199_254_740_991u64
}

fn class() -> impl Strategy<Value = String> {
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
        |(stem, options, any, hatches)| {
            let recommended_idx = any % options.len() as u64;
            DecisionQuestion {
                stem,
                options,
                recommended_idx,
                hatches,
            }
        },
    )
}

fn talk() -> BoxedStrategy<Payload> {
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

fn ask() -> BoxedStrategy<Payload> {
    prop_oneof![
        (text(2048), id(), scope(), whole()).prop_map(
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
        (id(), text(2048), text(128), of(id()), of(whole())).prop_map(
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
        (text(256), of(id()), text(2048)).prop_map(|(return_event_ref, query_id, summary)| {
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

fn work() -> BoxedStrategy<Payload> {
    let lease = || 1..=3_600_000u64;
    prop_oneof![
        (text(512), id(), lease(), of(text(2048))).prop_map(
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
        (id(), of(text(512))).prop_map(|(lease_id, resource)| AgentLockRelease {
            lease_id,
            resource
        }
        .into()),
        (id(), lease()).prop_map(|(lease_id, ttl_ms)| AgentLeaseExtend { lease_id, ttl_ms }.into()),
        (
            text(2048),
            id(),
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
        (id(), text(2048), of(text(2048)), of(texts())).prop_map(
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

fn converge() -> BoxedStrategy<Payload> {
    prop_oneof![
        (
            class(),
            text(1024),
            at(),
            whole(),
            any::<bool>(),
            of(select(IntentUrgency::ALL))
        )
            .prop_map(
                |(convergence_class, payload_ref, declared_at, ttl, withdrawable, urgency)| {
                    let (acted_by, drafted_with) = (Handle::parse("~z").unwrap(), String::new());
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
        (class(), text(1024), at()).prop_map(|(convergence_class, intent_ref, withdrawn_at)| {
            IntentWithdraw {
                convergence_class,
                intent_ref,
                withdrawn_at,
            }
            .into()
        }),
        (class(), text(1024), of(texts()), at()).prop_map(
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
    let names = (id(), handle(), handle(), handle(), drafter);
    (
        names,
        at(),
        of(whole()),
        prop_oneof![talk(), ask(), work(), converge()],
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
                if let Payload::IntentDeclare(intent) = &mut payload {
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
