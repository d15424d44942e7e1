//! The live sessions of a handle, and a single-use URL to subscribe to frames (FRM-96, R-50).

use super::sender::{FrameSender, SenderArgs, own_handle};
use crate::mcp::tool::{ToolDefinition, ToolKind, ToolOutput};
use crate::mcp::tool_call::ToolCall;
use crate::mcp::tool_error::ToolError;
use chorus_hub::{frame, identity};
use chorus_wire::contract::octets;
use chorus_wire::frame::{FrameFilter, HANDLE_CHECK, IDENT_CHECK, ScopeIdent, SessionRoster};
use chorus_wire::{identity::Handle, limits, wire_object};
use serde::Serialize;
use utoipa::ToSchema;

pub fn session_tools() -> Vec<ToolDefinition<ToolCall>> {
    vec![
        ToolDefinition::new(
            "agent_roster",
            "See live sessions",
            ToolKind::ReadOnly,
            ROSTER_DESCRIPTION,
            list_sessions,
        ),
        ToolDefinition::new(
            "agent_subscribe",
            "Get a stream to listen on",
            ToolKind::Sends,
            SUBSCRIBE_DESCRIPTION,
            create_subscription,
        ),
    ]
}

const ROSTER_DESCRIPTION: &str = "See which sessions of a handle listen now: whether any would receive a frame, and how to address one, \
    ~handle/instrument@session.";

const SUBSCRIBE_DESCRIPTION: &str = "Get a URL to hear frames for your handle as Server-Sent Events, such as with \
    curl -N. It works once, within expires_in_seconds, without a key.";

wire_object! {
    /// `agent_roster`
    AgentRosterArgs, refuses unknown => {
        /// Such as ~alice; yours without it.
        nullable handle: Handle = HANDLE_CHECK;
    }
}

async fn list_sessions(
    call: ToolCall,
    args: AgentRosterArgs,
) -> Result<ToolOutput<SessionRoster>, ToolError> {
    let handle = match args.handle {
        Some(handle) => handle,
        None => own_handle(&call)?,
    };
    let roster =
        frame::list_roster(&call.principal, call.state.hub.frames(), handle.as_str()).await;
    let roster = roster.map_err(|error| ToolError::from(error).about_field("handle"))?;
    Ok(ToolOutput::new(
        format!("{} sessions of {handle}", roster.sessions.len()),
        roster,
    ))
}

wire_object! {
    /// `agent_subscribe`
    AgentSubscribeArgs, refuses unknown => {
        /// Clauses that all hold, such as kind:agent_query,sender:~bob.
        nullable filter: String = octets(0, limits::FILTER_OCTETS);
        /// The program you run in, such as cc-editor.
        nullable instrument: ScopeIdent = IDENT_CHECK;
        /// The id of your session, the same in every call.
        nullable session: ScopeIdent = IDENT_CHECK;
    }
}

/// A stream that can be opened once.
#[derive(Serialize, ToSchema)]
struct SubscriptionUrl {
    /// Open it with GET; it has its own single-use token.
    stream_url: String,
    expires_in_seconds: u64,
    #[schema(value_type = String)]
    handle: Handle,
}

async fn create_subscription(
    call: ToolCall,
    args: AgentSubscribeArgs,
) -> Result<ToolOutput<SubscriptionUrl>, ToolError> {
    let filter = args.filter.unwrap_or_default();
    FrameFilter::parse(&filter).map_err(|error| ToolError::from(error).about_field("filter"))?;
    let sender_args = SenderArgs {
        scope: None,
        instrument: args.instrument,
        session: args.session,
    };
    let sender = FrameSender::from_call(&call, sender_args).await?;
    let token = identity::create_session_token(&call.principal, call.state.hub.identity()).await?;
    let mut stream_url = format!(
        "{}/handles/{}/stream?session_token={}&instrument={}",
        call.state.public_url,
        sender.handle,
        token.session_token.expose(),
        sender.instrument
    );
    if let Some(session) = &sender.session {
        stream_url.push_str(&format!("&session={session}"));
    }
    if !filter.is_empty() {
        stream_url.push_str(&format!("&filter={}", percent_encode(&filter)));
    }
    let expires_in_seconds = token.expires_in_seconds;
    let text = format!("open it within {expires_in_seconds} seconds");
    Ok(ToolOutput::new(
        text,
        SubscriptionUrl {
            stream_url,
            expires_in_seconds,
            handle: sender.handle,
        },
    ))
}

/// Escapes a value for a query; characters of filters stay readable.
fn percent_encode(text: &str) -> String {
    let is_unreserved = |b: u8| {
        b.is_ascii_alphanumeric()
            || matches!(b, b'-' | b'.' | b'_' | b'~' | b':' | b',' | b'*' | b'/')
    };
    text.bytes()
        .map(|b| {
            if is_unreserved(b) {
                char::from(b).to_string()
            } else {
                format!("%{b:02X}")
            }
        })
        .collect()
}
