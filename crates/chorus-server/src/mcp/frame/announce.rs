//! Announcements: any frame, an advisory, a broadcast, a handover (FRM-29…32, FRM-96).

use super::open_items::{ParsedOpenItem, list_open_items};
use super::sender::{FrameSender, describe_reach, frame_tool_args};
use crate::mcp::tool::{ToolDefinition, ToolKind, ToolOutput};
use crate::mcp::tool_call::ToolCall;
use crate::mcp::tool_error::ToolError;
use chorus_hub::frame;
use chorus_wire::contract::FieldCheck;
use chorus_wire::frame::payload::{AgentAdvisory, AgentBroadcast, AgentHandover, EventClass};
use chorus_wire::frame::redact::redact_payload;
use chorus_wire::frame::{FRAME_SHAPE, FrameKind, FramePayload, SubmissionReply};
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

const SEND_DESCRIPTION: &str = "Submit a frame of a kind without a tool of its own to live sessions. No secrets: every \
    session in the scope reads it; scope diagnostics most narrowly. recipient_count 0: no session listens.";

const ADVISE_DESCRIPTION: &str = "Tell your other live sessions what you are working on: when you start a task, \
    before you edit files others may touch, when your plan changes. No secrets.";

const BROADCAST_DESCRIPTION: &str = "Tell live sessions what has happened: work was merged, what they hold is stale, \
    a resource was released. For what you will do use agent_advise. No secrets.";

const HANDOVER_DESCRIPTION: &str = "Hand unfinished work over to another session. To take work over, repeat its \
    handover_body and previous_session_id and put your own session into next_session_id. No secrets.";

async fn submit_announcement(
    call: &ToolCall,
    sender: FrameSender,
    payload: FramePayload,
) -> Result<ToolOutput<SubmissionReply>, ToolError> {
    let submitted = sender
        .submit_frame(call, payload.kind(), payload, None)
        .await?;
    Ok(ToolOutput::new(describe_reach(&submitted), submitted))
}

frame_tool_args! {
    /// `agent_send`
    AgentSendArgs {
        /// Its kind.
        required kind: FrameKind = FRAME_SHAPE.check_of("kind");
        /// As the resource chorus://frames describes it.
        required payload: Map<String, Value> = FieldCheck::AnyObject;
        /// Stale after this many ms.
        nullable ttl_ms: u64 = FRAME_SHAPE.check_of("ttl_ms");
    }
}

async fn send_frame(
    call: ToolCall,
    args: AgentSendArgs,
) -> Result<ToolOutput<SubmissionReply>, ToolError> {
    let sender = FrameSender::from_call(&call, &args).await?;
    let payload = match args.kind.is_diagnostic() {
        true => redact_payload(args.payload),
        false => args.payload,
    };
    let submitted = sender
        .submit_frame(&call, args.kind, payload, args.ttl_ms)
        .await?;
    Ok(ToolOutput::new(describe_reach(&submitted), submitted))
}

frame_tool_args! {
    /// `agent_advise`
    AgentAdviseArgs {
        /// One or two sentences.
        required advisory_text: String = AgentAdvisory::SHAPE.check_of("advisory_text");
        /// Paths from the root of the repository.
        nullable file_refs: Vec<String> = AgentAdvisory::SHAPE.check_of("file_refs");
        /// Your working tree.
        nullable worktree: String = AgentAdvisory::SHAPE.check_of("worktree");
        /// Your branch.
        nullable branch: String = AgentAdvisory::SHAPE.check_of("branch");
    }
}

async fn advise_sessions(
    call: ToolCall,
    args: AgentAdviseArgs,
) -> Result<ToolOutput<SubmissionReply>, ToolError> {
    let sender = FrameSender::from_call(&call, &args).await?;
    let advisory = AgentAdvisory {
        advisory_text: args.advisory_text,
        file_refs: args.file_refs,
        worktree: args.worktree,
        branch: args.branch,
    };
    submit_announcement(&call, sender, advisory.into()).await
}

frame_tool_args! {
    /// `agent_broadcast`
    AgentBroadcastArgs {
        /// One or two sentences.
        required broadcast_text: String = AgentBroadcast::SHAPE.check_of("broadcast_text");
        /// The kind of news.
        required event_class: EventClass = AgentBroadcast::SHAPE.check_of("event_class");
        /// Paths, URLs, ids.
        nullable refs: Vec<String> = AgentBroadcast::SHAPE.check_of("refs");
    }
}

async fn broadcast_news(
    call: ToolCall,
    args: AgentBroadcastArgs,
) -> Result<ToolOutput<SubmissionReply>, ToolError> {
    let sender = FrameSender::from_call(&call, &args).await?;
    let broadcast = AgentBroadcast {
        broadcast_text: args.broadcast_text,
        event_class: args.event_class,
        refs: args.refs,
    };
    submit_announcement(&call, sender, broadcast.into()).await
}

frame_tool_args! {
    /// `agent_handover`
    AgentHandoverArgs {
        /// The task, what is done, what is left, what to watch out for.
        required handover_body: String = AgentHandover::SHAPE.check_of("handover_body");
        /// Who hands it over; you without it.
        nullable previous_session_id: String = AgentHandover::SHAPE.check_of("previous_session_id");
        /// Who takes it; any without it.
        nullable next_session_id: String = AgentHandover::SHAPE.check_of("next_session_id");
        /// Paths, URLs, ids.
        nullable pointer_refs: Vec<String> = AgentHandover::SHAPE.check_of("pointer_refs");
    }
}

async fn hand_over_work(
    call: ToolCall,
    args: AgentHandoverArgs,
) -> Result<ToolOutput<SubmissionReply>, ToolError> {
    let sender = FrameSender::from_call(&call, &args).await?;
    let handover = AgentHandover {
        previous_session_id: args
            .previous_session_id
            .unwrap_or_else(|| sender.session_id()),
        next_session_id: args.next_session_id,
        handover_body: args.handover_body,
        pointer_refs: args.pointer_refs,
    };
    if handover.next_session_id.is_some() {
        take_offered_work(&call, &handover).await?;
    }
    let submitted = sender
        .submit_frame(&call, FrameKind::AgentHandover, handover, None)
        .await?;
    let text = match submitted.kept_until {
        Some(until) => format!("handed over, kept until {until}"),
        None => describe_reach(&submitted),
    };
    Ok(ToolOutput::new(text, submitted))
}

/// Of several sessions that take work over the first gets it; the others are told.
async fn take_offered_work(call: &ToolCall, taken: &AgentHandover) -> Result<(), ToolError> {
    let is_offer = |open_item: &ParsedOpenItem| {
        matches!(&open_item.frame.payload, FramePayload::AgentHandover(offer)
            if offer.previous_session_id == taken.previous_session_id
                && offer.handover_body == taken.handover_body)
    };
    let items = list_open_items(call).await?;
    let Some(offer) = items.iter().find(|open_item| is_offer(open_item)) else {
        return Ok(());
    };
    let frame_id = offer.item.frame_id.to_string();
    let session = taken.next_session_id.as_deref().unwrap_or_default();
    frame::take_handover(
        &call.principal,
        call.state.hub.frames(),
        &offer.item.handle,
        &frame_id,
        session,
    )
    .await?;
    Ok(())
}
