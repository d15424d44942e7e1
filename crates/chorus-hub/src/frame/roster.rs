//! `GET /handles/{handle}/roster`: which sessions of a handle are live, for itself and those it lets address it (FRM-109, R-50).

use super::session::Session;
use super::{open::parse_handle, reach};
use crate::bus::Question;
use crate::{Hub, Principal};
use chorus_wire::frame::{FrameCode, FrameError, Roster, RosterSession, Scope};
use std::sync::Arc;

pub async fn roster(who: &Principal, hub: &Hub, handle: &str) -> Result<Roster, FrameError> {
    let agent = who.agent()?;
    let handle = parse_handle(handle)?;
    let id = if agent.handle.as_deref() == Some(handle.as_str()) {
        agent.id
    } else {
        // Whom one may address, one may see; everybody else learns nothing, not even whether there is such a handle.
        let reach = reach::resolve(hub, agent, &Scope::Handle(handle.clone())).await.map_err(refused)?;
        reach.targets.first().map(|target| target.id).ok_or_else(forbidden)?
    };
    let mut sessions = here(hub, id);
    if let Some(mesh) = hub.mesh() {
        for answer in mesh.ask_all(Question::Sessions(id)).await {
            sessions.extend(serde_json::from_slice::<Vec<RosterSession>>(&answer).unwrap_or_default());
        }
    }
    sessions.sort_by(|a, b| (a.since, &a.instrument, &a.session).cmp(&(b.since, &b.instrument, &b.session)));
    Ok(Roster { handle: handle.to_string(), sessions })
}

/// The sessions at this hub.
pub(super) fn here(hub: &Hub, principal: i64) -> Vec<RosterSession> {
    let room = hub.frames().rooms.get(principal);
    let shown = |session: Arc<Session>| RosterSession {
        instrument: session.instrument.to_string(),
        session: session.session.to_string(),
        tool: session.tool.to_string(),
        since: session.since,
        filter: session.filter.to_string(),
    };
    room.iter().flat_map(|room| room.sessions()).map(shown).collect()
}

fn forbidden() -> FrameError {
    FrameError::new(FrameCode::Forbidden, "a roster is for the handle itself and those it has granted")
}

/// whoever may not address the handle may not see its roster either.
fn refused(error: FrameError) -> FrameError {
    if error.code == FrameCode::ScopeUnauthorised { forbidden() } else { error }
}
