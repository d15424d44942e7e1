//! Questions to live sessions and responses to their questions (FRM-36, R-40).

use super::sender::{FrameSender, SenderArgs, describe_reach};
use crate::mcp::tool::{ToolDefinition, ToolKind, ToolOutput};
use crate::mcp::tool_call::ToolCall;
use crate::mcp::tool_error::ToolError;
use chorus_hub::delivery::{FeedItem, StreamFeed};
use chorus_hub::frame::{self, FrameStreamRequest};
use chorus_hub::random;
use chorus_wire::frame::{FrameError, FrameKind, FrameScope, SubmissionReply};
use chorus_wire::{limits, sse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;
use utoipa::ToSchema;

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

const QUERY_DESCRIPTION: &str = "Ask live sessions a question, such as who is working on something or where a thing is. With `wait` it returns \
    the answers heard until timeout_ms; without, it returns at once, and answers come on the stream of agent_subscribe. \
    recipient_count 0: no session is there to answer.";

const RESPOND_DESCRIPTION: &str = "Answer a question that came as an agent_query frame: repeat its query_id, and put its response_scope into scope.";

/// The timeout of a question without `timeout_ms` (lesson 15).
const DEFAULT_QUERY_TIMEOUT_MS: u64 = 5_000;

/// `agent_query`
#[derive(Deserialize, JsonSchema)]
struct AgentQueryArgs {
    /// The question.
    #[schemars(length(min = 1, max = limits::FRAME_TEXT_OCTETS))]
    query_text: String,
    /// How long answers are of use, in milliseconds; five seconds without it.
    #[schemars(range(min = 1, max = limits::SAFE_INTEGER_MAX))]
    timeout_ms: Option<u64>,
    /// Where answers are to be sent; to your own session without it.
    #[schemars(length(min = 1, max = limits::FRAME_PATH_OCTETS))]
    response_scope: Option<String>,
    /// Wait for the first answer, at most half a minute.
    wait: Option<bool>,
    #[serde(flatten)]
    sender: SenderArgs,
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
    let sender = FrameSender::from_call(&call, &args.sender)?;
    let response_scope = match &args.response_scope {
        Some(text) => text.parse().map_err(|_: FrameError| {
            ToolError::invalid_argument("response_scope", "it is no scope")
        })?,
        None => sender.session_scope(),
    };
    let timeout_ms = args.timeout_ms.unwrap_or(DEFAULT_QUERY_TIMEOUT_MS);
    let query_id = random::new_id().to_string();
    let payload = json!({"query_text": args.query_text, "query_id": query_id, "timeout_ms": timeout_ms,
        "response_scope": response_scope.to_string()});
    // Opened before the question is sent, so that no response is missed.
    let response_feed = match args.wait.unwrap_or(false) {
        true => Some(open_response_feed(&call, &sender, &response_scope).await?),
        false => None,
    };
    let submitted = sender
        .submit_frame(&call, FrameKind::AgentQuery, payload, None)
        .await?;
    let mut responses = Vec::new();
    if let Some(mut feed) = response_feed {
        let max_wait = Duration::from_millis(timeout_ms).min(limits::TOOL_WAIT_MAX);
        // A timeout is no error: the result then has no responses.
        responses = tokio::time::timeout(max_wait, wait_for_responses(&mut feed, &query_id))
            .await
            .unwrap_or_default();
    }
    let text = match responses.len() {
        0 => describe_reach(submitted.recipient_count),
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
    let mut reader = sse::SseReader::new(limits::STREAM_QUEUE_BYTES);
    while let FeedItem::Events(chunks) = feed.next().await {
        let events = chunks
            .iter()
            .flat_map(|chunk| reader.read_chunk(chunk).unwrap_or_default());
        let responses: Vec<QueryResponse> = events
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

/// `agent_respond`
#[derive(Deserialize, JsonSchema)]
struct AgentRespondArgs {
    /// The query_id of the question.
    #[schemars(length(min = 36, max = 36))]
    query_id: String,
    /// Your answer.
    #[schemars(length(min = 1, max = limits::FRAME_TEXT_OCTETS))]
    response_text: String,
    /// The frame_id of the question.
    #[schemars(length(min = 36, max = 36))]
    responded_to_frame_id: Option<String>,
    /// The session that answers; your own without it.
    #[schemars(length(min = 1, max = limits::SESSION_OCTETS))]
    responder_session_id: Option<String>,
    /// Which of your answers to this question it is, from 1.
    #[schemars(range(min = 1, max = limits::SAFE_INTEGER_MAX))]
    answer_attempt_idx: Option<u64>,
    #[serde(flatten)]
    sender: SenderArgs,
}

async fn respond_to_query(
    call: ToolCall,
    args: AgentRespondArgs,
) -> Result<ToolOutput<SubmissionReply>, ToolError> {
    let sender = FrameSender::from_call(&call, &args.sender)?;
    let session = args
        .responder_session_id
        .unwrap_or_else(|| sender.session_id());
    let mut payload = json!({"query_id": args.query_id, "response_text": args.response_text, "responder_session_id": session});
    if let Some(id) = args.responded_to_frame_id {
        payload["responded_to_frame_id"] = json!(id);
    }
    if let Some(attempt) = args.answer_attempt_idx {
        payload["answer_attempt_idx"] = json!(attempt);
    }
    let submitted = sender
        .submit_frame(&call, FrameKind::AgentResponse, payload, None)
        .await?;
    Ok(ToolOutput::new(
        describe_reach(submitted.recipient_count),
        submitted,
    ))
}
