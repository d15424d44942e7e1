//! `GET /handles/{handle}/stream`: a session comes to its own handle's stream, with a filter and maybe with where it was
//! (FRM-62, FRM-70…82, R-42).

use super::ring::{RETENTION, Retention};
use super::room::Resume;
use super::session::Session;
use super::stream::Subscription;
use super::submit::tool_of;
use crate::delivery::Feed;
use crate::identity::{self, Agent};
use crate::{Hub, Principal, clock};
use chorus_wire::frame::{Filter, FrameCode, FrameError, Ident};
use chorus_wire::identity::{Handle, Name};
use chorus_wire::{Code, Error, limits};
use serde::Serialize;

/// What a session says when it opens its stream, as it was written.
#[derive(Clone, Debug, Default)]
pub struct Opening {
    pub handle: String,
    pub filter: Option<String>,
    pub instrument: Option<String>,
    pub session: Option<String>,
    pub tool: Option<String>,
    /// `Last-Event-ID`.
    pub since: Option<String>,
}

impl Opening {
    /// What can be wrong with it, whoever asks.
    pub fn check(&self) -> Result<(), FrameError> {
        parse_handle(&self.handle)?;
        self.parts().map(drop)
    }

    /// The filter, and the instrument, session and tool as far as they are given.
    fn parts(&self) -> Result<(Filter, [Option<Ident>; 3]), FrameError> {
        let filter = Filter::parse(self.filter.as_deref().unwrap_or_default())?;
        let instrument = ident("instrument", self.instrument.as_deref())?;
        let session = ident("session", self.session.as_deref())?;
        Ok((
            filter,
            [instrument, session, ident("tool", self.tool.as_deref())?],
        ))
    }
}

/// The data of the first event.
#[derive(Serialize)]
struct Connected<'a> {
    handle: &'a Handle,
    instrument: &'a Ident,
    session: &'a Ident,
    retention: Retention,
}

pub async fn open(who: &Principal, hub: &Hub, opening: Opening) -> Result<Feed, FrameError> {
    let agent = who.agent()?;
    let handle = own_handle(agent, &opening.handle)?;
    let session = session_of(hub, agent, &opening)?;
    let connected = Connected {
        handle: &handle,
        instrument: &session.instrument,
        session: &session.session,
        retention: RETENTION,
    };
    let connected = serde_json::to_string(&connected).map_err(Error::internal)?;
    let stopping = || {
        if hub.bus().draining() {
            Err(Error::unavailable("the hub is stopping"))
        } else {
            Ok(())
        }
    };
    stopping()?;
    let since = resume(opening.since.as_deref());
    if let (Resume::After(cursor), Some(_)) = (since, hub.mesh()) {
        hub.frames()
            .rooms
            .joint
            .reach_cursor(agent.id, cursor)
            .await;
    }
    // One handle has as many streams as it may have, wherever they are.
    let elsewhere = hub
        .mesh()
        .map_or(0, |mesh| mesh.sessions_elsewhere(agent.id));
    if hub.frames().sessions_of(agent.id) + elsewhere >= limits::STREAMS_PER_HANDLE {
        return Err(FrameCode::TooManyStreams.into());
    }
    let joined = hub
        .frames()
        .rooms
        .join(session, since, hub.clock().steady());
    metrics::gauge!("chorus_frame_streams").increment(u32::from(joined.is_some()));
    let subscription = Subscription::new(
        hub.clone(),
        joined.ok_or(FrameCode::TooManyStreams)?,
        &connected,
    );
    // The hub may have begun to stop, or the key may have been taken away, between the question and the joining: from here
    // on both find this stream.
    stopping()?;
    still_there(hub, agent, &handle).await?;
    hub.bus().changed(agent.id);
    hub.bus().told().await;
    Ok(Feed::from(subscription))
}

pub(super) fn parse_handle(text: &str) -> Result<Handle, FrameError> {
    Handle::parse(text).ok_or_else(|| FrameError::invalid("handle", "a handle such as ~alice"))
}

/// the stream of a handle is for its own sessions.
fn own_handle(agent: &Agent, text: &str) -> Result<Handle, FrameError> {
    let handle = parse_handle(text)?;
    match agent.handle.as_deref() == Some(handle.as_str()) {
        true => Ok(handle),
        false => Err(FrameError::new(
            FrameCode::Forbidden,
            "a handle's stream is open to that handle's key only",
        )),
    }
}

async fn still_there(hub: &Hub, agent: &Agent, handle: &Handle) -> Result<(), FrameError> {
    match identity::find(hub, &Name::Handle(handle.clone())).await? {
        Some(now) if now.id == agent.id && now.key_hash == agent.key_hash => Ok(()),
        Some(_) | None => Err(Error::from(Code::Unauthorized).into()),
    }
}

fn session_of(hub: &Hub, agent: &Agent, opening: &Opening) -> Result<Session, FrameError> {
    let (filter, [instrument, session, tool]) = opening.parts()?;
    let instrument = instrument
        .or_else(|| Ident::parse("unknown"))
        .ok_or(FrameCode::Internal)?;
    let session = session
        .or_else(|| Ident::parse(&clock::new_id().to_string()))
        .ok_or(FrameCode::Internal)?;
    let tool = tool.unwrap_or_else(|| tool_of(&instrument));
    Ok(Session::new(
        agent.id,
        [instrument, session, tool],
        filter,
        hub.clock().now(),
    ))
}

fn ident(field: &str, text: Option<&str>) -> Result<Option<Ident>, FrameError> {
    let read = |text| Ident::parse(text).ok_or_else(|| FrameError::invalid(field, Ident::MUST));
    text.map(read).transpose()
}

/// An id that nobody can place is a gap, not a fault: a browser would send it again and again.
fn resume(since: Option<&str>) -> Resume {
    match since.filter(|id| !id.is_empty()) {
        None => Resume::Now,
        Some(id) => id.parse().map_or(Resume::Unknown, Resume::After),
    }
}
