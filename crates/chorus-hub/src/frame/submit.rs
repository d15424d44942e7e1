//! `POST /frames`: validate, check the sender, authorise, expand, emit, in this order (FRM-64, R-44).

use super::Frames;
use super::frame_label::{ExcludedSession, FrameLabel, SessionSelector};
use super::item_change::{self, apply_change};
use super::replicate;
use super::resolve_scope::{self, FrameTarget, ResolvedScope};
use crate::Principal;
use crate::identity::{self, Agent};
use crate::store::AgentId;
use chorus_wire::frame::{
    Frame, FrameCode, FrameError, FrameScope, FrameSubmission, ScopeIdent, SubmissionReply,
};
use chorus_wire::identity::{AgentName, Handle};
use chorus_wire::{Error, limits};
use std::sync::Arc;

/// The submitting session, as far as it identifies itself.
#[derive(Clone, Debug, Default)]
pub struct FrameSubmitter {
    pub instrument: Option<ScopeIdent>,
    pub session: Option<ScopeIdent>,
    pub tool: Option<ScopeIdent>,
    /// The session does not receive its own frame.
    pub exclude_self: bool,
}

/// Emits a frame to the live sessions that its scope names. A refused frame reaches no session (FRM-95).
pub async fn submit_frame(
    principal: &Principal,
    frames: &Frames,
    body: &[u8],
    submitter: FrameSubmitter,
) -> Result<SubmissionReply, FrameError> {
    let outcome = process_submission(principal, frames, body, submitter).await;
    match &outcome {
        Ok(_) => metrics::counter!("chorus_frames_total").increment(1),
        Err(refusal) => {
            metrics::counter!("chorus_frames_rejected_total", "code" => refusal.code.as_str())
                .increment(1);
        }
    }
    outcome
}

async fn process_submission(
    principal: &Principal,
    frames: &Frames,
    body: &[u8],
    submitter: FrameSubmitter,
) -> Result<SubmissionReply, FrameError> {
    let agent = principal.require_agent()?;
    if frames.context().live_streams().is_draining() {
        return Err(Error::unavailable("the hub is stopping").into());
    }
    let submission = FrameSubmission::parse_at(body, frames.context().clock().now())?;
    check_sender_identity(frames, agent, &submission.frame).await?;
    let scope = submission.scope()?;
    let resolved = resolve_targets(frames, agent, scope).await?;
    let label = build_label(agent.id, &submission.frame, scope, submitter);
    let tool = label.tool.as_ref();
    let changed = apply_change(frames, agent, &submission.frame, scope, &resolved, tool).await?;
    match emit_frame(frames, agent.id, &submission.frame, label, &resolved).await {
        Ok(reply) => Ok(changed.describe(reply)),
        Err(error) => {
            item_change::undo_change(frames, changed).await;
            Err(error)
        }
    }
}

async fn emit_frame(
    frames: &Frames,
    sender: AgentId,
    frame: &Frame,
    label: FrameLabel,
    resolved: &ResolvedScope,
) -> Result<SubmissionReply, FrameError> {
    match frames.frame_stream() {
        None => emit_locally(frames, sender, frame, &Arc::new(label), resolved),
        Some(frame_stream) => {
            replicate::replicate_frame(frames, frame_stream, sender, frame, &label, resolved).await
        }
    }
}

/// FRM-07, FRM-100, R-04: the sender and the person in the frame must be those of the key.
async fn check_sender_identity(
    frames: &Frames,
    agent: &Agent,
    frame: &Frame,
) -> Result<(), FrameError> {
    let own_handle = agent.handle.as_deref();
    let mismatch = |field: &str, message: &str| {
        Err(FrameError::at_field(
            FrameCode::SenderIdentityMismatch,
            field,
            message,
        ))
    };
    if own_handle != Some(frame.sender_handle.as_str()) {
        return mismatch(
            "sender_handle",
            "sender_handle must be the handle of the key that submits the frame",
        );
    }
    if own_handle == Some(frame.acted_by.as_str())
        || is_owner(frames, agent, &frame.acted_by).await?
    {
        return Ok(());
    }
    mismatch(
        "acted_by",
        "acted_by must be the handle of the key that submits the frame, or of its owner",
    )
}

/// Whether the handle is that of the agent's owner. An owner's name is chosen by its first agent, so the agent that has the name
/// today must also belong to the owner.
async fn is_owner(frames: &Frames, agent: &Agent, handle: &Handle) -> Result<bool, FrameError> {
    Ok(find_owner_handle(frames, agent).await?.as_ref() == Some(handle))
}

/// The handle of the agent's owner, for which an instrument acts.
pub async fn find_owner_handle(
    frames: &Frames,
    agent: &Agent,
) -> Result<Option<Handle>, FrameError> {
    let Ok(name) = AgentName::parse("owner_id", &agent.owner_name) else {
        return Ok(None);
    };
    let owner = identity::find_agent(frames.context().identity(), &name).await?;
    let owner = owner.filter(|owner| owner.owner == agent.owner);
    Ok(owner.and_then(|owner| Handle::parse(owner.handle.as_deref()?)))
}

/// The sender's own handle needs no grant; every other scope is looked up.
async fn resolve_targets(
    frames: &Frames,
    agent: &Agent,
    scope: &FrameScope,
) -> Result<ResolvedScope, FrameError> {
    match scope {
        FrameScope::Handle(handle)
        | FrameScope::Prefix(handle, _)
        | FrameScope::Session(handle, ..)
            if agent.handle.as_deref() == Some(handle.as_str()) =>
        {
            Ok(ResolvedScope {
                targets: vec![FrameTarget {
                    id: agent.id,
                    handle: handle.clone(),
                }],
                is_own: true,
            })
        }
        FrameScope::Handle(_)
        | FrameScope::Prefix(..)
        | FrameScope::Session(..)
        | FrameScope::OrgMembers(_)
        | FrameScope::OrgRole(..)
        | FrameScope::Accord(..) => resolve_scope::resolve_scope(frames, agent, scope).await,
    }
}

fn build_label(
    sender: AgentId,
    frame: &Frame,
    scope: &FrameScope,
    submitter: FrameSubmitter,
) -> FrameLabel {
    FrameLabel {
        kind: frame.kind(),
        sender: frame.sender_handle.clone(),
        tool: submitter
            .tool
            .or_else(|| submitter.instrument.as_ref().map(tool_class)),
        org: scope.addressed_org().cloned(),
        selector: SessionSelector::from_scope(scope),
        excluded: submitter
            .session
            .filter(|_| submitter.exclude_self)
            .map(|session| ExcludedSession {
                principal: sender,
                instrument: submitter.instrument,
                session,
            }),
    }
}

fn emit_locally(
    frames: &Frames,
    sender: AgentId,
    frame: &Frame,
    label: &Arc<FrameLabel>,
    resolved: &ResolvedScope,
) -> Result<SubmissionReply, FrameError> {
    let registry = frames.registry();
    let now = frames.monotonic_now();
    let recipient_count =
        frames
            .recent_submissions()
            .emit_once(sender, frame.frame_id, now, || {
                // One handle never has more streams than an expansion may reach, so only several handles are counted.
                if resolved.targets.len() > 1 {
                    let sessions: usize = resolved
                        .targets
                        .iter()
                        .map(|target| registry.session_count(target.id))
                        .sum();
                    if sessions > limits::SCOPE_EXPANSION_MAX {
                        return Err(FrameCode::ExpansionTooLarge.into());
                    }
                }
                let targets: Vec<AgentId> =
                    resolved.targets.iter().map(|target| target.id).collect();
                let emitted =
                    registry.publish_frame(&targets, None, frame.submitted_json(), label, now);
                Ok(if resolved.is_own {
                    emitted
                } else {
                    coarsen_count(emitted)
                })
            })?;
    Ok(SubmissionReply {
        frame_id: frame.frame_id,
        recipient_count,
        kept: None,
        kept_until: None,
        coarse: !resolved.is_own,
    })
}

/// towards other handles the exact number of sessions is private.
pub(super) fn coarsen_count(count: u64) -> u64 {
    match count {
        0 => 0,
        1..=9 => 1,
        10.. => 10,
    }
}

/// the part of an instrument before its first `-` is its class of tool.
pub(super) fn tool_class(instrument: &ScopeIdent) -> ScopeIdent {
    let prefix = instrument.as_str().split('-').next().unwrap_or_default();
    ScopeIdent::parse(prefix).unwrap_or_else(|| instrument.clone())
}

#[cfg(test)]
mod tests {
    use super::super::{session::FrameSession, session_registry::JoinedSession};
    use super::*;
    use crate::Hub;
    use chorus_wire::{cursor::ResumePoint, frame::FrameFilter, time::UnixMicros};

    ///
    #[test]
    fn towards_others_a_count_is_none_some_or_many() {
        assert_eq!([0, 1, 9, 10, 9_999].map(coarsen_count), [0, 1, 1, 10, 10]);
    }

    ///
    #[test]
    fn the_tool_is_what_stands_before_the_first_hyphen() {
        for (instrument, tool) in [("cc-editor-2", "cc"), ("unknown", "unknown"), ("-x", "-x")] {
            assert_eq!(
                tool_class(&ScopeIdent::parse(instrument).unwrap()).as_str(),
                tool
            );
        }
    }

    fn frame() -> Frame {
        let text = serde_json::json!({"envelope_version": "1.0", "frame_id": "00000000-0000-4000-8000-000000000001",
            "kind": "agent_advisory", "sender_handle": "~alice", "recipient_handle": "~acme",
            "created_at": "2026-03-20T10:00:00Z", "payload": {"advisory_text": "x"}, "acted_by": "~alice",
            "drafted_with": "~cc-editor", "provenance_compute_location": "local-only", "provenance_method": ["x"],
            "provenance_context_check": "passed", "provenance_basis": "x"});
        Frame::parse(&text.to_string()).unwrap()
    }

    /// FRM-95, FRM-102, R-49
    #[tokio::test]
    async fn a_scope_that_reaches_too_many_reaches_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let hub = Hub::open(crate::HubOptions::for_data_dir(dir.path()))
            .await
            .unwrap();
        let half = limits::SCOPE_EXPANSION_MAX / 2;
        let enter = |id: AgentId| {
            let session = FrameSession::new(
                id,
                ["cc-a", "s1", "cc"].map(|name| ScopeIdent::parse(name).unwrap()),
                FrameFilter::default(),
                UnixMicros(0),
            );
            hub.frames()
                .registry()
                .join_session(session, ResumePoint::Now, hub.clock().monotonic_now())
                .unwrap()
        };
        let mut sessions: Vec<JoinedSession> = (0..2 * half)
            .map(|n| enter(AgentId(1 + (n % 2) as i64)))
            .collect();
        let one_more = enter(AgentId(1));
        let handle = Handle::parse("~acme").unwrap();
        let target = |id| FrameTarget {
            id,
            handle: handle.clone(),
        };
        let reach = ResolvedScope {
            targets: vec![target(AgentId(1)), target(AgentId(2))],
            is_own: true,
        };
        let scope = FrameScope::OrgMembers(handle.clone());
        let send = || {
            emit_locally(
                hub.frames(),
                AgentId(1),
                &frame(),
                &Arc::new(build_label(
                    AgentId(1),
                    &frame(),
                    &scope,
                    FrameSubmitter::default(),
                )),
                &reach,
            )
        };
        assert_eq!(send().unwrap_err().code, FrameCode::ExpansionTooLarge);
        let waits = |joined: &JoinedSession| joined.handle_sessions.newest_seq() > 0;
        assert!(
            !waits(&one_more) && !sessions.iter().any(waits),
            "nothing was emitted"
        );
        one_more
            .handle_sessions
            .remove_session(&one_more.session, hub.clock().monotonic_now());
        assert_eq!(
            send().unwrap().recipient_count,
            limits::SCOPE_EXPANSION_MAX as u64,
            "the id is free after a refusal"
        );
        assert!(sessions.drain(..).all(|joined| waits(&joined)));
    }
}
