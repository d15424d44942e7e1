//! Who is listening, and a stream to listen on oneself (FRM-96, R-50).

use super::speaker::{Speaker, Voice, own_handle};
use crate::mcp::call::Call;
use crate::mcp::refusal::Refusal;
use crate::mcp::tool::{Nature, Said, Verb};
use chorus_hub::{frame, identity};
use chorus_wire::frame::{Filter, Roster};
use chorus_wire::{identity::Handle, limits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub fn verbs() -> Vec<Verb<Call>> {
    vec![
        Verb::new(
            "agent_roster",
            "See live sessions",
            Nature::Reads,
            ROSTER,
            roster,
        ),
        Verb::new(
            "agent_subscribe",
            "Get a stream to listen on",
            Nature::Speaks,
            SUBSCRIBE,
            subscribe,
        ),
    ]
}

const ROSTER: &str = "See which sessions of a handle are listening right now: instrument, session, tool, since when, and their filter. \
    Use it to learn whether anybody would hear a frame, and to address one session as ~handle/instrument@session.";

const SUBSCRIBE: &str = "Get a ready URL to hear frames for your handle as they come, as Server-Sent Events: pass it to something that \
    holds a connection open, such as curl -N in the background. It works once and within expires_in_seconds; it needs no key. The \
    events are named by kind and their data is the frame.";

/// `agent_roster`
#[derive(Deserialize, JsonSchema)]
struct RosterArgs {
    /// Whose sessions, such as ~alice; your own without it. Another's are shown if it has granted you.
    #[schemars(length(min = 1, max = limits::ADDRESS_CHARS))]
    handle: Option<String>,
}

async fn roster(call: Call, args: RosterArgs) -> Result<Said<Roster>, Refusal> {
    let handle = match args.handle {
        Some(handle) => handle,
        None => own_handle(&call)?.to_string(),
    };
    let roster = frame::roster(&call.who, &call.doors.hub, &handle).await;
    let roster = roster.map_err(|error| Refusal::from(error).about("handle"))?;
    Ok(Said::new(
        format!("{} sessions of {handle}", roster.sessions.len()),
        roster,
    ))
}

/// `agent_subscribe`
#[derive(Deserialize, JsonSchema)]
struct SubscribeArgs {
    /// Clauses axis:value that must all hold, separated by commas, such as kind:agent_query; everything without it.
    #[schemars(length(max = limits::FILTER_OCTETS))]
    filter: Option<String>,
    /// The program you run in, such as cc-editor.
    #[schemars(length(min = 1, max = limits::SESSION_OCTETS), regex(pattern = r"^[A-Za-z0-9._-]+$"))]
    instrument: Option<String>,
    /// The id of your session, the same in every call.
    #[schemars(length(min = 1, max = limits::SESSION_OCTETS), regex(pattern = r"^[A-Za-z0-9._-]+$"))]
    session: Option<String>,
}

/// A stream that can be opened once.
#[derive(Serialize, ToSchema)]
struct Subscription {
    /// Open it with GET; it has its own single-use token.
    stream_url: String,
    expires_in_seconds: u64,
    #[schema(value_type = String)]
    handle: Handle,
}

async fn subscribe(call: Call, args: SubscribeArgs) -> Result<Said<Subscription>, Refusal> {
    let filter = args.filter.unwrap_or_default();
    Filter::parse(&filter).map_err(|error| Refusal::from(error).about("filter"))?;
    let voice = Voice {
        scope: None,
        instrument: args.instrument,
        session: args.session,
    };
    let speaker = Speaker::of(&call, &voice)?;
    let token = identity::open_session(&call.who, &call.doors.hub).await?;
    let mut stream_url = format!(
        "{}/handles/{}/stream?session_token={}&instrument={}",
        call.doors.public_url,
        speaker.handle,
        token.session_token.expose(),
        speaker.instrument
    );
    if let Some(session) = &speaker.session {
        stream_url.push_str(&format!("&session={session}"));
    }
    if !filter.is_empty() {
        stream_url.push_str(&format!("&filter={}", escaped(&filter)));
    }
    let expires_in_seconds = token.expires_in_seconds;
    let text = format!("open it within {expires_in_seconds} seconds");
    Ok(Said::new(
        text,
        Subscription {
            stream_url,
            expires_in_seconds,
            handle: speaker.handle,
        },
    ))
}

/// What stands in a query without meaning something else there.
fn escaped(text: &str) -> String {
    let plain = |b: u8| {
        b.is_ascii_alphanumeric()
            || matches!(b, b'-' | b'.' | b'_' | b'~' | b':' | b',' | b'*' | b'/')
    };
    text.bytes()
        .map(|b| {
            if plain(b) {
                char::from(b).to_string()
            } else {
                format!("%{b:02X}")
            }
        })
        .collect()
}
