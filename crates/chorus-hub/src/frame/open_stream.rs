//! `GET /handles/{handle}/stream`: opens a session on the caller's own handle, with a filter and possibly a cursor
//! (FRM-62, FRM-70…82, R-42).

use super::Frames;
use super::frame_ring::{RING_RETENTION, RingRetention};
use super::open_items::collect_snapshot;
use super::session::FrameSession;
use super::submit::tool_class;
use super::subscription::FrameSubscription;
use crate::delivery::StreamFeed;
use crate::identity::{Agent, AgentCaller};
use crate::{Principal, random};
use chorus_wire::cursor::ResumePoint;
use chorus_wire::frame::{FrameCode, FrameError, FrameFilter, ScopeIdent};
use chorus_wire::identity::Handle;
use chorus_wire::{Error, ErrorCode, limits, secret::Secret};
use serde::Serialize;

/// The parameters with which a session opens its stream, unparsed.
#[derive(Clone, Debug, Default)]
pub struct FrameStreamRequest {
    pub handle: String,
    pub filter: Option<String>,
    pub instrument: Option<String>,
    pub session: Option<String>,
    pub tool: Option<String>,
    /// From `Last-Event-ID`.
    pub resume: ResumePoint,
    /// For a client that opens the stream with a session token.
    pub resume_token: Option<Secret>,
}

impl FrameStreamRequest {
    /// The faults that do not depend on the caller.
    pub fn check_fields(&self) -> Result<(), FrameError> {
        parse_handle(&self.handle)?;
        self.parse_fields().map(drop)
    }

    /// The filter, and the instrument, session and tool if they are given.
    fn parse_fields(&self) -> Result<(FrameFilter, [Option<ScopeIdent>; 3]), FrameError> {
        let filter = FrameFilter::parse(self.filter.as_deref().unwrap_or_default())?;
        let instrument = parse_ident("instrument", self.instrument.as_deref())?;
        let session = parse_ident("session", self.session.as_deref())?;
        Ok((
            filter,
            [
                instrument,
                session,
                parse_ident("tool", self.tool.as_deref())?,
            ],
        ))
    }
}

/// The data of the first event.
#[derive(Serialize)]
struct ConnectedEvent<'a> {
    handle: &'a Handle,
    instrument: &'a ScopeIdent,
    session: &'a ScopeIdent,
    retention: RingRetention,
    #[serde(skip_serializing_if = "Option::is_none")]
    resume_token: Option<&'a Secret>,
}

pub async fn open_stream(
    principal: &Principal,
    frames: &Frames,
    request: FrameStreamRequest,
) -> Result<StreamFeed, FrameError> {
    let agent = principal.require_caller()?;
    let handle = require_own_handle(agent, &request.handle)?;
    let mut session = build_session(frames, agent, &request)?;
    session.credentials = principal.credential_hashes();
    let connected = ConnectedEvent {
        handle: &handle,
        instrument: &session.instrument,
        session: &session.session_id,
        retention: RING_RETENTION,
        resume_token: request.resume_token.as_ref(),
    };
    let connected = serde_json::to_string(&connected).map_err(Error::internal)?;
    let check_not_stopping = || {
        if frames.context().live_streams().is_draining() {
            Err(Error::unavailable("the hub is stopping"))
        } else {
            Ok(())
        }
    };
    check_not_stopping()?;
    let resume_point = request.resume;
    if let (ResumePoint::After(cursor), Some(_)) = (resume_point, frames.frame_stream()) {
        frames
            .registry()
            .progress
            .wait_for_cursor(agent.id, cursor)
            .await;
    }
    // The limit of streams per handle counts those at all hubs.
    let remote_sessions = frames.frame_stream().map_or(0, |frame_stream| {
        frame_stream.remote_session_count(agent.id)
    });
    if frames.session_count(agent.id) + remote_sessions >= limits::STREAMS_PER_HANDLE {
        return Err(FrameCode::TooManyStreams.into());
    }
    let joined = frames
        .registry()
        .join_session(session, resume_point, frames.monotonic_now());
    metrics::gauge!("chorus_frame_streams").increment(u32::from(joined.is_some()));
    let mut subscription = FrameSubscription::new(
        frames.clone(),
        joined.ok_or(FrameCode::TooManyStreams)?,
        &connected,
    );
    // The hub may have begun to stop, or the key may have been revoked, between the checks and joining. From here on both find
    // this stream.
    check_not_stopping()?;
    check_current_key(frames, agent).await?;
    // Read after joining: what changes from here on comes as a frame.
    let snapshot = collect_snapshot(frames, agent, &handle, subscription.session()).await?;
    subscription.set_snapshot(&serde_json::to_string(&snapshot).map_err(Error::internal)?);
    frames
        .context()
        .live_streams()
        .mark_presence_changed(agent.id.into());
    frames.context().live_streams().wait_presence_synced().await;
    Ok(StreamFeed::from_source(subscription))
}

pub(super) fn parse_handle(text: &str) -> Result<Handle, FrameError> {
    Handle::parse(text)
        .ok_or_else(|| FrameError::invalid_field("handle", "a handle such as ~alice"))
}

/// only the handle's own key opens its stream.
fn require_own_handle(agent: &Agent, text: &str) -> Result<Handle, FrameError> {
    let handle = parse_handle(text)?;
    match agent.handle.as_deref() == Some(handle.as_str()) {
        true => Ok(handle),
        false => Err(FrameError::new(
            FrameCode::Forbidden,
            "a handle's stream is open to that handle's key only",
        )),
    }
}

async fn check_current_key(frames: &Frames, agent: &AgentCaller) -> Result<(), FrameError> {
    match frames.context().identity().is_current_key(agent).await? {
        true => Ok(()),
        false => Err(Error::from(ErrorCode::Unauthorized).into()),
    }
}

fn build_session(
    frames: &Frames,
    agent: &Agent,
    request: &FrameStreamRequest,
) -> Result<FrameSession, FrameError> {
    let (filter, [instrument, session, tool]) = request.parse_fields()?;
    let instrument = instrument
        .or_else(|| ScopeIdent::parse("unknown"))
        .ok_or(FrameCode::Internal)?;
    let session = session
        .or_else(|| ScopeIdent::parse(&random::new_id().to_string()))
        .ok_or(FrameCode::Internal)?;
    let tool = tool.unwrap_or_else(|| tool_class(&instrument));
    Ok(FrameSession::new(
        agent.id,
        [instrument, session, tool],
        filter,
        frames.context().clock().now(),
    ))
}

fn parse_ident(field: &str, text: Option<&str>) -> Result<Option<ScopeIdent>, FrameError> {
    let parse = |text| {
        ScopeIdent::parse(text)
            .ok_or_else(|| FrameError::invalid_field(field, ScopeIdent::REQUIREMENT))
    };
    text.map(parse).transpose()
}
