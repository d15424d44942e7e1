//! `GET /handles/{handle}/roster`: which sessions of a handle are live, for itself and those it lets address it (FRM-109, R-50).

use super::{open::parse_handle, reach};
use crate::{Hub, Principal};
use chorus_wire::frame::{FrameCode, FrameError, Roster, RosterSession, Scope};

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
    let mut sessions: Vec<RosterSession> = Vec::new();
    for session in hub.frames().rooms.get(id).iter().flat_map(|room| room.sessions()) {
        sessions.push(RosterSession {
            instrument: session.instrument.to_string(),
            session: session.session.to_string(),
            tool: session.tool.to_string(),
            since: session.since,
            filter: session.filter.to_string(),
        });
    }
    sessions.sort_by(|a, b| (a.since, &a.instrument, &a.session).cmp(&(b.since, &b.instrument, &b.session)));
    Ok(Roster { handle: handle.to_string(), sessions })
}

fn forbidden() -> FrameError {
    FrameError::new(FrameCode::Forbidden, "a roster is for the handle itself and those it has granted")
}

/// whoever may not address the handle may not see its roster either.
fn refused(error: FrameError) -> FrameError {
    if error.code == FrameCode::ScopeUnauthorised { forbidden() } else { error }
}
