//! `GET /handles/{handle}/roster`: which sessions of a handle are live, for itself and those it lets address it (FRM-109, R-50).

use super::session::Session;
use super::{open::parse_handle, reach};
use crate::bus::{Mesh, Question, Silence};
use crate::{Hub, Principal};
use chorus_wire::frame::{FrameCode, FrameError, Roster, RosterSession, Scope};
use chorus_wire::limits;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub async fn roster(who: &Principal, hub: &Hub, handle: &str) -> Result<Roster, FrameError> {
    let agent = who.agent()?;
    let handle = parse_handle(handle)?;
    let id = if agent.handle.as_deref() == Some(handle.as_str()) {
        agent.id
    } else {
        // Whom one may address, one may see; everybody else learns nothing, not even whether there is such a handle.
        let reach = reach::resolve(hub, agent, &Scope::Handle(handle.clone()))
            .await
            .map_err(refused)?;
        reach
            .targets
            .first()
            .map(|target| target.id)
            .ok_or_else(forbidden)?
    };
    let mut sessions = here(hub, id);
    if let Some(mesh) = hub.mesh() {
        sessions.extend(
            elsewhere(mesh, id)
                .await
                .map_err(|_| FrameCode::BusUnavailable)?,
        );
    }
    sessions.sort_by_cached_key(place);
    Ok(Roster {
        handle: handle.to_string(),
        sessions,
    })
}

/// Where a session stands in a roster.
fn place(session: &RosterSession) -> (i64, String, String) {
    (
        session.since.0,
        session.instrument.clone(),
        session.session.clone(),
    )
}

/// Some sessions of a hub, and whether there are more after them.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Page {
    sessions: Vec<RosterSession>,
    more: bool,
}

/// The sessions at all other hubs (D-93).
async fn elsewhere(mesh: &Mesh, principal: i64) -> Result<Vec<RosterSession>, Silence> {
    let read = |answer: &[u8]| serde_json::from_slice::<Page>(answer).ok();
    let mut sessions = Vec::new();
    for (other, mut page) in mesh
        .ask_all(
            Question::Sessions {
                principal,
                after: None,
            },
            read,
        )
        .await?
    {
        while let (true, Some(last)) = (page.more, page.sessions.last()) {
            let question = Question::Sessions {
                principal,
                after: Some(place(last)),
            };
            sessions.append(&mut page.sessions);
            page = match mesh.ask_on(other, question, read).await {
                Ok(page) => page,
                Err(Silence::Nobody) => Page::default(),
                Err(Silence::Late) => return Err(Silence::Late),
            };
        }
        sessions.append(&mut page.sessions);
    }
    Ok(sessions)
}

/// The sessions at this hub after a place, as many as hubs say in one piece.
pub(super) fn page(hub: &Hub, principal: i64, after: Option<(i64, String, String)>) -> Page {
    let mut sessions = here(hub, principal);
    sessions.sort_by_cached_key(place);
    sessions.retain(|session| after.as_ref().is_none_or(|after| place(session) > *after));
    let mut bytes = 0;
    let size = |session: &RosterSession| {
        // Each name and the filter are short, and what is around them is shorter than this; a character may take six to say.
        256 + 6 * session.filter.len()
            + session.instrument.len()
            + session.session.len()
            + session.tool.len()
    };
    let fit = sessions.iter().take_while(|session| {
        bytes += size(session);
        bytes <= limits::BUS_PIECE_BYTES
    });
    let fit = fit.count();
    let more = fit < sessions.len();
    sessions.truncate(fit);
    Page { sessions, more }
}

/// The sessions at this hub.
fn here(hub: &Hub, principal: i64) -> Vec<RosterSession> {
    let room = hub.frames().rooms.get(principal);
    let shown = |session: Arc<Session>| RosterSession {
        instrument: session.instrument.to_string(),
        session: session.session.to_string(),
        tool: session.tool.to_string(),
        since: session.since,
        filter: session.filter.to_string(),
    };
    room.iter()
        .flat_map(|room| room.sessions())
        .map(shown)
        .collect()
}

fn forbidden() -> FrameError {
    FrameError::new(
        FrameCode::Forbidden,
        "a roster is for the handle itself and those it has granted",
    )
}

/// whoever may not address the handle may not see its roster either.
fn refused(error: FrameError) -> FrameError {
    if error.code == FrameCode::ScopeUnauthorised {
        forbidden()
    } else {
        error
    }
}
