//! `GET /handles/{handle}/roster`: the live sessions of a handle, for itself and the handles that it granted (FRM-109, R-50).

use super::Frames;
use super::session::FrameSession;
use super::{open_stream::parse_handle, resolve_scope};
use crate::Principal;
use crate::cluster::{FrameQuery, FrameStream, RequestError};
use crate::limits;
use crate::store::AgentId;
use chorus_wire::frame::{FrameCode, FrameError, FrameScope, RosterSession, SessionRoster};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub async fn list_roster(
    principal: &Principal,
    frames: &Frames,
    handle: &str,
) -> Result<SessionRoster, FrameError> {
    let agent = principal.require_agent()?;
    let handle = parse_handle(handle)?;
    let id = if agent.handle.as_deref() == Some(handle.as_str()) {
        agent.id
    } else {
        // A sender that may address the handle may see its sessions; others do not even learn whether the handle exists.
        let resolved =
            resolve_scope::resolve_scope(frames, agent, &FrameScope::Handle(handle.clone()))
                .await
                .map_err(hide_scope_refusal)?;
        resolved
            .targets
            .first()
            .map(|target| target.id)
            .ok_or_else(forbidden_error)?
    };
    let mut sessions = list_local_sessions(frames, id);
    if let Some(frame_stream) = frames.frame_stream() {
        sessions.extend(
            fetch_remote_sessions(frame_stream, id)
                .await
                .map_err(|_| FrameCode::BusUnavailable)?,
        );
    }
    sessions.sort_by_cached_key(roster_sort_key);
    Ok(SessionRoster {
        handle: handle.to_string(),
        sessions,
    })
}

/// The order of a roster.
fn roster_sort_key(session: &RosterSession) -> (i64, String, String) {
    (
        session.since.0,
        session.instrument.clone(),
        session.session.clone(),
    )
}

/// A page of the sessions of one hub.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct RosterPage {
    sessions: Vec<RosterSession>,
    more: bool,
}

/// The sessions at all peers (D-93).
async fn fetch_remote_sessions(
    frame_stream: &FrameStream,
    principal: AgentId,
) -> Result<Vec<RosterSession>, RequestError> {
    let parse = |answer: &[u8]| serde_json::from_slice::<RosterPage>(answer).ok();
    let mut sessions = Vec::new();
    for (peer, mut page) in frame_stream
        .query_all_peers(
            FrameQuery::Sessions {
                principal,
                after: None,
            },
            parse,
        )
        .await?
    {
        while let (true, Some(last)) = (page.more, page.sessions.last()) {
            let query = FrameQuery::Sessions {
                principal,
                after: Some(roster_sort_key(last)),
            };
            sessions.append(&mut page.sessions);
            page = match frame_stream.query_peer(peer, query, parse).await {
                Ok(page) => page,
                Err(RequestError::NoResponders) => RosterPage::default(),
                Err(RequestError::Timeout) => return Err(RequestError::Timeout),
            };
        }
        sessions.append(&mut page.sessions);
    }
    Ok(sessions)
}

/// The sessions of this hub after one, as many as fit in one message.
pub(super) fn build_roster_page(
    frames: &Frames,
    principal: AgentId,
    after: Option<(i64, String, String)>,
) -> RosterPage {
    let mut sessions = list_local_sessions(frames, principal);
    sessions.sort_by_cached_key(roster_sort_key);
    sessions.retain(|session| {
        after
            .as_ref()
            .is_none_or(|after| roster_sort_key(session) > *after)
    });
    let mut bytes = 0;
    let size = |session: &RosterSession| {
        // 256 bytes cover the keys and the time; one character of the filter may take six bytes as JSON.
        256 + 6 * session.filter.len()
            + session.instrument.len()
            + session.session.len()
            + session.tool.len()
    };
    let fitting = sessions.iter().take_while(|session| {
        bytes += size(session);
        bytes <= limits::PEER_MESSAGE_BYTES
    });
    let fitting_count = fitting.count();
    let more = fitting_count < sessions.len();
    sessions.truncate(fitting_count);
    RosterPage { sessions, more }
}

/// The sessions of this hub.
fn list_local_sessions(frames: &Frames, principal: AgentId) -> Vec<RosterSession> {
    let handle_sessions = frames.registry().get(principal);
    let to_roster_session = |session: Arc<FrameSession>| RosterSession {
        instrument: session.instrument.to_string(),
        session: session.session_id.to_string(),
        tool: session.tool.to_string(),
        since: session.opened_at,
        filter: session.filter.to_string(),
    };
    handle_sessions
        .iter()
        .flat_map(|handle_sessions| handle_sessions.list_sessions())
        .map(to_roster_session)
        .collect()
}

fn forbidden_error() -> FrameError {
    FrameError::new(
        FrameCode::Forbidden,
        "this is for the handle itself and those it has granted",
    )
}

/// a caller that may not address the handle may not see its roster either.
pub(super) fn hide_scope_refusal(error: FrameError) -> FrameError {
    if error.code == FrameCode::ScopeUnauthorised {
        forbidden_error()
    } else {
        error
    }
}
