//! `POST /frames`: validate, know the sender, authorise, expand, emit, in this order and nothing in between (FRM-64, R-44).

use super::label::{Except, Label, Only};
use super::reach::{self, Reach, Target};
use super::tape;
use crate::identity::{self, Agent};
use crate::{Hub, Principal};
use chorus_wire::frame::{Frame, FrameCode, FrameError, Ident, Scope, Submission, Submitted};
use chorus_wire::identity::{Handle, Name};
use chorus_wire::{Error, limits};
use std::sync::Arc;

/// Which session submits, as far as it says so.
#[derive(Clone, Debug, Default)]
pub struct Submitter {
    pub instrument: Option<Ident>,
    pub session: Option<Ident>,
    pub tool: Option<Ident>,
    /// The session does not hear its own frame.
    pub exclude_self: bool,
}

/// Emits a frame to the live sessions that its scope names. A refused frame reaches nobody (FRM-95).
pub async fn submit(
    who: &Principal,
    hub: &Hub,
    body: &[u8],
    from: Submitter,
) -> Result<Submitted, FrameError> {
    let outcome = accept(who, hub, body, from).await;
    match &outcome {
        Ok(_) => metrics::counter!("chorus_frames_total").increment(1),
        Err(refusal) => {
            metrics::counter!("chorus_frames_rejected_total", "code" => refusal.code.as_str())
                .increment(1);
        }
    }
    outcome
}

async fn accept(
    who: &Principal,
    hub: &Hub,
    body: &[u8],
    from: Submitter,
) -> Result<Submitted, FrameError> {
    let agent = who.agent()?;
    if hub.bus().draining() {
        return Err(Error::unavailable("the hub is stopping").into());
    }
    let submission = Submission::parse_at(body, hub.clock().now())?;
    speaks_for_itself(hub, agent, &submission.frame).await?;
    let scope = submission.scope()?;
    let reach = reach_of(hub, agent, scope).await?;
    let label = label(agent.id, &submission.frame, scope, from);
    match hub.mesh() {
        None => emit(hub, agent.id, &submission.frame, &Arc::new(label), &reach),
        Some(mesh) => tape::emit(hub, mesh, agent.id, &submission.frame, &label, &reach).await,
    }
}

/// FRM-07, FRM-100, R-04: the frame names its sender and the person behind it, and both are the key's own.
async fn speaks_for_itself(hub: &Hub, agent: &Agent, frame: &Frame) -> Result<(), FrameError> {
    let mine = agent.handle.as_deref();
    let mismatch = |field: &str, message: &str| {
        Err(FrameError::at(
            FrameCode::SenderIdentityMismatch,
            field,
            message,
        ))
    };
    if mine != Some(frame.sender_handle.as_str()) {
        return mismatch(
            "sender_handle",
            "sender_handle must be the handle of the key that submits the frame",
        );
    }
    if mine == Some(frame.acted_by.as_str()) || is_owner(hub, agent, &frame.acted_by).await? {
        return Ok(());
    }
    mismatch(
        "acted_by",
        "acted_by must be the handle of the key that submits the frame, or of its owner",
    )
}

/// Whether the handle is that of the agent's owner. The name of an owner is whatever its first agent called it, so whoever
/// has that name today must also belong to the owner.
async fn is_owner(hub: &Hub, agent: &Agent, handle: &Handle) -> Result<bool, FrameError> {
    let Ok(name) = Name::parse("owner_id", &agent.owner_name) else {
        return Ok(false);
    };
    let owner = identity::find(hub, &name).await?;
    Ok(owner.is_some_and(|owner| {
        owner.owner == agent.owner && owner.handle.as_deref() == Some(handle.as_str())
    }))
}

/// One's own handle needs nobody's leave; everything else is looked up.
async fn reach_of(hub: &Hub, agent: &Agent, scope: &Scope) -> Result<Reach, FrameError> {
    match scope {
        Scope::Handle(handle) | Scope::Prefix(handle, _) | Scope::Session(handle, ..)
            if agent.handle.as_deref() == Some(handle.as_str()) =>
        {
            Ok(Reach {
                targets: vec![Target {
                    id: agent.id,
                    handle: handle.clone(),
                }],
                own: true,
            })
        }
        Scope::Handle(_)
        | Scope::Prefix(..)
        | Scope::Session(..)
        | Scope::OrgMembers(_)
        | Scope::OrgRole(..)
        | Scope::Accord(..) => reach::resolve(hub, agent, scope).await,
    }
}

fn label(sender: i64, frame: &Frame, scope: &Scope, from: Submitter) -> Label {
    Label {
        kind: frame.kind(),
        sender: frame.sender_handle.clone(),
        tool: from.tool.or_else(|| from.instrument.as_ref().map(tool_of)),
        org: scope.org().cloned(),
        only: Only::of(scope),
        except: from
            .session
            .filter(|_| from.exclude_self)
            .map(|session| Except {
                principal: sender,
                instrument: from.instrument,
                session,
            }),
    }
}

fn emit(
    hub: &Hub,
    sender: i64,
    frame: &Frame,
    label: &Arc<Label>,
    reach: &Reach,
) -> Result<Submitted, FrameError> {
    let (rooms, now) = (&hub.frames().rooms, hub.clock().steady());
    let recipient_count = hub.frames().senders.once(sender, frame.frame_id, now, || {
        // One handle never has more streams than an expansion may reach, so only several are counted beforehand.
        if reach.targets.len() > 1 {
            let sessions: usize = reach
                .targets
                .iter()
                .map(|target| rooms.sessions(target.id))
                .sum();
            if sessions > limits::EXPANSION {
                return Err(FrameCode::ExpansionTooLarge.into());
            }
        }
        let emitted = reach
            .targets
            .iter()
            .map(|target| rooms.publish(target.id, None, frame.text(), label, now))
            .sum();
        Ok(if reach.own { emitted } else { coarse(emitted) })
    })?;
    Ok(Submitted {
        frame_id: frame.frame_id,
        recipient_count,
    })
}

/// whether another is there is private, how often even more so.
pub(super) fn coarse(count: u64) -> u64 {
    match count {
        0 => 0,
        1..=9 => 1,
        10.. => 10,
    }
}

/// what stands before the instrument's first `-` is the class of tool it is.
pub(super) fn tool_of(instrument: &Ident) -> Ident {
    let prefix = instrument.as_str().split('-').next().unwrap_or_default();
    Ident::parse(prefix).unwrap_or_else(|| instrument.clone())
}

#[cfg(test)]
mod tests {
    use super::super::{room::Resume, rooms::Joined, session::Session};
    use super::*;
    use chorus_wire::{frame::Filter, time::Micros};

    ///
    #[test]
    fn towards_others_a_count_is_none_some_or_many() {
        assert_eq!([0, 1, 9, 10, 9_999].map(coarse), [0, 1, 1, 10, 10]);
    }

    ///
    #[test]
    fn the_tool_is_what_stands_before_the_first_hyphen() {
        for (instrument, tool) in [("cc-editor-2", "cc"), ("unknown", "unknown"), ("-x", "-x")] {
            assert_eq!(tool_of(&Ident::parse(instrument).unwrap()).as_str(), tool);
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
        let hub = Hub::open(crate::Options::at(dir.path())).await.unwrap();
        let half = limits::EXPANSION / 2;
        let enter = |id: i64| {
            let session = Session::new(
                id,
                ["cc-a", "s1", "cc"].map(|name| Ident::parse(name).unwrap()),
                Filter::default(),
                Micros(0),
            );
            hub.frames()
                .rooms
                .join(session, Resume::Now, hub.clock().steady())
                .unwrap()
        };
        let mut sessions: Vec<Joined> = (0..2 * half).map(|n| enter(1 + (n % 2) as i64)).collect();
        let one_more = enter(1);
        let handle = Handle::parse("~acme").unwrap();
        let target = |id| Target {
            id,
            handle: handle.clone(),
        };
        let reach = Reach {
            targets: vec![target(1), target(2)],
            own: true,
        };
        let scope = Scope::OrgMembers(handle.clone());
        let send = || {
            emit(
                &hub,
                1,
                &frame(),
                &Arc::new(label(1, &frame(), &scope, Submitter::default())),
                &reach,
            )
        };
        assert_eq!(send().unwrap_err().code, FrameCode::ExpansionTooLarge);
        let waits = |joined: &Joined| joined.room.newest() > 0;
        assert!(
            !waits(&one_more) && !sessions.iter().any(waits),
            "nothing was emitted to anybody"
        );
        one_more.room.leave(&one_more.session, hub.clock().steady());
        assert_eq!(
            send().unwrap().recipient_count,
            limits::EXPANSION as u64,
            "the id is free after a refusal"
        );
        assert!(sessions.drain(..).all(|joined| waits(&joined)));
    }
}
