//! Questions to live sessions and responses to their questions (FRM-36, R-40).

use super::sender::{FrameSender, describe_reach, frame_tool_args};
use crate::mcp::tool::{ToolDefinition, ToolKind, ToolOutput};
use crate::mcp::tool_call::{NOT_WAITED, ToolCall, WaitOutcome};
use crate::mcp::tool_error::ToolError;
use chorus_hub::delivery::{FeedItem, StreamFeed};
use chorus_hub::frame::{self, FrameStreamRequest};
use chorus_hub::random;
use chorus_wire::contract::FieldCheck;
use chorus_wire::event_chunk::EventChunkReader;
use chorus_wire::frame::payload::{AgentQuery, AgentResponse};
use chorus_wire::frame::{FrameKind, FrameScope, SubmissionReply};
use chorus_wire::limits;
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;
use utoipa::ToSchema;
use uuid::Uuid;

pub fn query_tools() -> Vec<ToolDefinition<ToolCall>> {
    vec![
        ToolDefinition::new(
            "agent_query",
            "Ask live sessions",
            ToolKind::Sends,
            QUERY_DESCRIPTION,
            query_sessions,
        )
        .aliases(&[("text", "query_text")]),
        ToolDefinition::new(
            "agent_respond",
            "Answer a question",
            ToolKind::Sends,
            RESPOND_DESCRIPTION,
            respond_to_query,
        )
        .aliases(&[("text", "response_text")]),
    ]
}

const QUERY_DESCRIPTION: &str = "Ask live sessions a question, such as who works on something or where a thing is. \
    With `wait` it returns the answers heard until timeout_ms; without, read them with agent_frames. recipient_count \
    0: no session listens.";

const RESPOND_DESCRIPTION: &str = "Answer a question that came as an agent_query frame: repeat its query_id, and put its response_scope into scope.";

/// The timeout of a question without `timeout_ms` (lesson 15).
const DEFAULT_QUERY_TIMEOUT_MS: u64 = 5_000;

frame_tool_args! {
    /// `agent_query`
    AgentQueryArgs {
        /// The question.
        required query_text: String = AgentQuery::SHAPE.check_of("query_text");
        /// In ms; five seconds without it.
        nullable timeout_ms: u64 = AgentQuery::SHAPE.check_of("timeout_ms");
        /// Where answers go; to your session without it.
        nullable response_scope: FrameScope = AgentQuery::SHAPE.check_of("response_scope");
        /// For the first answer, half a minute at most.
        nullable wait: bool = FieldCheck::Bool;
    }
}

/// A question that was asked, and what was heard of it.
#[derive(Serialize, ToSchema)]
struct QueryOutcome {
    #[serde(flatten)]
    submitted: SubmissionReply,
    query_id: String,
    /// Where answers go.
    response_scope: String,
    responses: Vec<QueryResponse>,
}

#[derive(Serialize, ToSchema)]
struct QueryResponse {
    #[schema(example = "~alice")]
    sender_handle: String,
    responder_session_id: String,
    response_text: String,
}

async fn query_sessions(
    call: ToolCall,
    args: AgentQueryArgs,
) -> Result<ToolOutput<QueryOutcome>, ToolError> {
    let sender = FrameSender::from_call(&call, &args).await?;
    let response_scope = args
        .response_scope
        .unwrap_or_else(|| sender.session_scope());
    let timeout_ms = args.timeout_ms.unwrap_or(DEFAULT_QUERY_TIMEOUT_MS);
    let query = AgentQuery {
        query_text: args.query_text,
        query_id: random::new_id(),
        response_scope: response_scope.clone(),
        timeout_ms,
    };
    let query_id = query.query_id.to_string();
    // Opened before the question is sent, so that no response is missed.
    let response_feed = match args.wait.unwrap_or(false) {
        true => Some(open_response_feed(&call, &sender, &response_scope).await?),
        false => None,
    };
    let submitted = sender
        .submit_frame(&call, FrameKind::AgentQuery, query, None)
        .await?;
    let mut responses = Vec::new();
    let mut note = "";
    if let Some(mut feed) = response_feed {
        let max_wait = Duration::from_millis(timeout_ms).min(limits::TOOL_WAIT_MAX);
        // A timeout is no error: the result then has no responses.
        let waiting = tokio::time::timeout(max_wait, wait_for_responses(&mut feed, &query_id));
        match call.wait_for(waiting).await? {
            WaitOutcome::Ended(heard) => responses = heard.unwrap_or_default(),
            WaitOutcome::Unwanted => {}
            WaitOutcome::TooMany => note = NOT_WAITED,
        }
    }
    let text = match responses.len() {
        0 => format!("{}{note}", describe_reach(&submitted)),
        count => format!("{count} answers"),
    };
    let response_scope = response_scope.to_string();
    Ok(ToolOutput::new(
        text,
        QueryOutcome {
            submitted,
            query_id,
            response_scope,
            responses,
        },
    ))
}

async fn open_response_feed(
    call: &ToolCall,
    sender: &FrameSender,
    scope: &FrameScope,
) -> Result<StreamFeed, ToolError> {
    if scope.addressed_handle() != &sender.handle {
        return Err(ToolError::invalid_argument(
            "wait",
            "answers to another's sessions cannot be waited for here",
        ));
    }
    let request = FrameStreamRequest {
        handle: sender.handle.to_string(),
        filter: Some(format!("kind:{}", FrameKind::AgentResponse)),
        instrument: Some(sender.instrument.to_string()),
        session: sender.session.as_ref().map(|session| session.to_string()),
        ..FrameStreamRequest::default()
    };
    Ok(frame::open_stream(&call.principal, call.state.hub.frames(), request).await?)
}

/// The responses of the first batch of events that contains any.
async fn wait_for_responses(feed: &mut StreamFeed, query_id: &str) -> Vec<QueryResponse> {
    let mut reader = EventChunkReader::new(limits::STREAM_QUEUE_BYTES);
    while let FeedItem::Events(pieces) = feed.next().await {
        let responses: Vec<QueryResponse> = reader
            .read_pieces(pieces)
            .into_iter()
            .filter_map(|event| parse_response(&event.data, query_id))
            .collect();
        if !responses.is_empty() {
            return responses;
        }
    }
    Vec::new()
}

fn parse_response(frame: &str, query_id: &str) -> Option<QueryResponse> {
    let frame: Value = serde_json::from_str(frame).ok()?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let payload = &frame["payload"];
    let is_ours = payload["query_id"]
        .as_str()
        .is_some_and(|id| id.eq_ignore_ascii_case(query_id));
    is_ours.then_some(())?;
    Some(QueryResponse {
        sender_handle: text(&frame["sender_handle"])?,
        responder_session_id: text(&payload["responder_session_id"])?,
        response_text: text(&payload["response_text"])?,
    })
}

frame_tool_args! {
    /// `agent_respond`
    AgentRespondArgs {
        /// That of the question.
        required query_id: Uuid = AgentResponse::SHAPE.check_of("query_id");
        /// Your answer.
        required response_text: String = AgentResponse::SHAPE.check_of("response_text");
        /// That of the question.
        nullable responded_to_frame_id: Uuid = AgentResponse::SHAPE.check_of("responded_to_frame_id");
        /// Yours without it.
        nullable responder_session_id: String = AgentResponse::SHAPE.check_of("responder_session_id");
        /// Which of your answers it is, from 1.
        nullable answer_attempt_idx: u64 = AgentResponse::SHAPE.check_of("answer_attempt_idx");
    }
}

async fn respond_to_query(
    call: ToolCall,
    args: AgentRespondArgs,
) -> Result<ToolOutput<SubmissionReply>, ToolError> {
    let sender = FrameSender::from_call(&call, &args).await?;
    let response = AgentResponse {
        query_id: args.query_id,
        response_text: args.response_text,
        responder_session_id: args
            .responder_session_id
            .unwrap_or_else(|| sender.session_id()),
        responded_to_frame_id: args.responded_to_frame_id,
        answer_attempt_idx: args.answer_attempt_idx,
    };
    let submitted = sender
        .submit_frame(&call, FrameKind::AgentResponse, response, None)
        .await?;
    Ok(ToolOutput::new(describe_reach(&submitted), submitted))
}
