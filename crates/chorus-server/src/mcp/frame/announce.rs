//! Announcements: any frame, an advisory, a broadcast, a handover (FRM-29…32, FRM-96).

use super::sender::{FrameSender, SenderArgs, describe_reach};
use crate::mcp::tool::{ToolDefinition, ToolKind, ToolOutput};
use crate::mcp::tool_call::ToolCall;
use crate::mcp::tool_error::ToolError;
use chorus_wire::frame::{FrameKind, SubmissionReply};
use chorus_wire::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub fn announce_tools() -> Vec<ToolDefinition<ToolCall>> {
    vec![
        ToolDefinition::new(
            "agent_send",
            "Submit any frame",
            ToolKind::Sends,
            SEND_DESCRIPTION,
            send_frame,
        ),
        ToolDefinition::new(
            "agent_advise",
            "Tell what you are doing",
            ToolKind::Sends,
            ADVISE_DESCRIPTION,
            advise_sessions,
        )
        .aliases(&[("text", "advisory_text")]),
        ToolDefinition::new(
            "agent_broadcast",
            "Tell what has happened",
            ToolKind::Sends,
            BROADCAST_DESCRIPTION,
            broadcast_news,
        )
        .aliases(&[("text", "broadcast_text")]),
        ToolDefinition::new(
            "agent_handover",
            "Hand work over",
            ToolKind::Sends,
            HANDOVER_DESCRIPTION,
            hand_over_work,
        )
        .aliases(&[("text", "handover_body")]),
    ]
}

const SEND_DESCRIPTION: &str = "Submit one frame of any of the fifteen kinds to live sessions. Prefer the tool made for the kind (agent_advise, \
    agent_broadcast, agent_query …); use this one for agent_return_event, agent_binding_moment, peer_diagnostic_request, \
    peer_diagnostic_response, intent_declare, intent_withdraw, flush_executed. Heard live, kept for minutes. No secrets: every \
    session in the scope reads it. recipient_count 0: no session is listening.";

const ADVISE_DESCRIPTION: &str = "Tell your other live sessions what you are working on, so that none gets in your way. Use it when you start on a \
    task, before you edit files others may touch, and when your plan changes. One or two sentences, no secrets.";

const BROADCAST_DESCRIPTION: &str = "Tell live sessions that something has happened which they should know: work was merged, something they hold is \
    stale, a resource was released. Use it after the fact; for what you are about to do use agent_advise. No secrets.";

const HANDOVER_DESCRIPTION: &str = "Hand unfinished work over to another session: what was asked, what is done, what is left, what to watch out for. \
    Use it when you stop before the work does. To take work that was handed over, repeat its handover_body and previous_session_id \
    and put your own session into next_session_id. No secrets.";

/// The arguments as a payload; absent ones are left out.
fn to_payload(fields: impl Serialize) -> Result<Value, ToolError> {
    Ok(serde_json::to_value(fields).map_err(chorus_wire::Error::internal)?)
}

async fn submit_announcement(
    call: &ToolCall,
    sender_args: &SenderArgs,
    kind: FrameKind,
    payload: Value,
) -> Result<ToolOutput<SubmissionReply>, ToolError> {
    let submitted = FrameSender::from_call(call, sender_args)?
        .submit_frame(call, kind, payload, None)
        .await?;
    Ok(ToolOutput::new(
        describe_reach(submitted.recipient_count),
        submitted,
    ))
}

/// `agent_send`
#[derive(Deserialize, JsonSchema)]
struct AgentSendArgs {
    /// One of the fifteen kinds of frames, such as peer_diagnostic_request.
    kind: String,
    /// The payload of that kind; its shape is in the resource chorus://frames.
    payload: Map<String, Value>,
    /// After how many milliseconds the frame is stale.
    #[schemars(range(min = 1, max = limits::SAFE_INTEGER_MAX))]
    ttl_ms: Option<u64>,
    #[serde(flatten)]
    sender: SenderArgs,
}

async fn send_frame(
    call: ToolCall,
    args: AgentSendArgs,
) -> Result<ToolOutput<SubmissionReply>, ToolError> {
    let invalid_kind = || {
        ToolError::invalid_argument(
            "kind",
            format!("it must be one of {}", FrameKind::TEXTS.join(", ")),
        )
    };
    let kind = FrameKind::parse(&args.kind).ok_or_else(invalid_kind)?;
    let sender = FrameSender::from_call(&call, &args.sender)?;
    let submitted = sender
        .submit_frame(&call, kind, Value::Object(args.payload), args.ttl_ms)
        .await?;
    Ok(ToolOutput::new(
        describe_reach(submitted.recipient_count),
        submitted,
    ))
}

/// `agent_advise`
#[derive(Deserialize, Serialize, JsonSchema)]
struct AgentAdviseArgs {
    /// What you are doing, in a sentence or two.
    #[schemars(length(min = 1, max = limits::FRAME_TEXT_OCTETS))]
    advisory_text: String,
    /// The files it is about, as paths from the root of the repository.
    #[schemars(length(max = limits::FRAME_ITEMS))]
    #[serde(skip_serializing_if = "Option::is_none")]
    file_refs: Option<Vec<String>>,
    /// The working tree you are in.
    #[schemars(length(max = limits::FRAME_PATH_OCTETS))]
    #[serde(skip_serializing_if = "Option::is_none")]
    worktree: Option<String>,
    /// The branch you are on.
    #[schemars(length(max = limits::FRAME_LABEL_OCTETS))]
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    #[serde(flatten, skip_serializing)]
    sender: SenderArgs,
}

async fn advise_sessions(
    call: ToolCall,
    args: AgentAdviseArgs,
) -> Result<ToolOutput<SubmissionReply>, ToolError> {
    submit_announcement(
        &call,
        &args.sender,
        FrameKind::AgentAdvisory,
        to_payload(&args)?,
    )
    .await
}

/// `agent_broadcast`
#[derive(Deserialize, Serialize, JsonSchema)]
struct AgentBroadcastArgs {
    /// What has happened, in a sentence or two.
    #[schemars(length(min = 1, max = limits::FRAME_TEXT_OCTETS))]
    broadcast_text: String,
    /// What kind of news it is.
    event_class: BroadcastClass,
    /// Where more is to be found: paths, URLs, ids.
    #[schemars(length(max = limits::FRAME_ITEMS))]
    #[serde(skip_serializing_if = "Option::is_none")]
    refs: Option<Vec<String>>,
    #[serde(flatten, skip_serializing)]
    sender: SenderArgs,
}

#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum BroadcastClass {
    Merged,
    Stale,
    Released,
    Other,
}

async fn broadcast_news(
    call: ToolCall,
    args: AgentBroadcastArgs,
) -> Result<ToolOutput<SubmissionReply>, ToolError> {
    submit_announcement(
        &call,
        &args.sender,
        FrameKind::AgentBroadcast,
        to_payload(&args)?,
    )
    .await
}

/// `agent_handover`
#[derive(Deserialize, Serialize, JsonSchema)]
struct AgentHandoverArgs {
    /// The task, what is done, what is left, what to watch out for.
    #[schemars(length(min = 1, max = limits::HANDOVER_OCTETS))]
    handover_body: String,
    /// The session that hands it over; your own without it.
    #[schemars(length(min = 1, max = limits::SESSION_OCTETS))]
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_session_id: Option<String>,
    /// The session that takes it; any without it.
    #[schemars(length(max = limits::SESSION_OCTETS))]
    #[serde(skip_serializing_if = "Option::is_none")]
    next_session_id: Option<String>,
    /// Where more is to be found: paths, URLs, ids.
    #[schemars(length(max = limits::FRAME_ITEMS))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer_refs: Option<Vec<String>>,
    #[serde(flatten, skip_serializing)]
    sender: SenderArgs,
}

async fn hand_over_work(
    call: ToolCall,
    mut args: AgentHandoverArgs,
) -> Result<ToolOutput<SubmissionReply>, ToolError> {
    let sender = FrameSender::from_call(&call, &args.sender)?;
    args.previous_session_id
        .get_or_insert_with(|| sender.session_id());
    submit_announcement(
        &call,
        &args.sender,
        FrameKind::AgentHandover,
        to_payload(&args)?,
    )
    .await
}
