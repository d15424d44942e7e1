//! Questions to live sessions, and answers to theirs (FRM-36, R-40).

use super::speaker::{Speaker, Voice, reached};
use crate::mcp::call::Call;
use crate::mcp::refusal::Refusal;
use crate::mcp::tool::{Nature, Said, Verb};
use chorus_hub::clock;
use chorus_hub::delivery::{Feed, Next};
use chorus_hub::frame::{self, Opening};
use chorus_wire::frame::{FrameError, Kind, Scope, Submitted};
use chorus_wire::{limits, sse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;
use utoipa::ToSchema;

pub fn verbs() -> Vec<Verb<Call>> {
    vec![
        Verb::new(
            "agent_query",
            "Ask live sessions",
            Nature::Speaks,
            QUERY,
            query,
        )
        .also(&[("text", "query_text")]),
        Verb::new(
            "agent_respond",
            "Answer a question",
            Nature::Speaks,
            RESPOND,
            respond,
        )
        .also(&[("text", "response_text")]),
    ]
}

const QUERY: &str = "Ask live sessions a question, such as who is working on something or where a thing is. With `wait` it stays until the \
    first answer or until timeout_ms is over and returns the answers it heard; without, it returns at once with the query_id, and \
    answers come on the stream of agent_subscribe. Returns query_id, recipient_count (0: nobody is there to answer) and responses.";

const RESPOND: &str = "Answer a question that came as an agent_query frame: repeat its query_id, and put its response_scope into scope. \
    Returns frame_id and recipient_count.";

/// What a question waits for answers that does not say (lesson 15).
const FIVE_SECONDS: u64 = 5_000;

/// `agent_query`
#[derive(Deserialize, JsonSchema)]
struct QueryArgs {
    /// The question.
    #[schemars(length(min = 1, max = limits::FRAME_TEXT_OCTETS))]
    query_text: String,
    /// How long answers are of use, in milliseconds; five seconds without it.
    #[schemars(range(min = 1, max = limits::WHOLE_NUMBER))]
    timeout_ms: Option<u64>,
    /// Where answers are to be sent; to your own session without it.
    #[schemars(length(min = 1, max = limits::FRAME_PATH_OCTETS))]
    response_scope: Option<String>,
    /// Stay for the first answer, up to timeout_ms and never longer than half a minute.
    wait: Option<bool>,
    #[serde(flatten)]
    voice: Voice,
}

/// A question that was asked, and what was heard of it.
#[derive(Serialize, ToSchema)]
struct Asked {
    #[serde(flatten)]
    submitted: Submitted,
    query_id: String,
    /// Where answers go.
    response_scope: String,
    responses: Vec<Heard>,
}

#[derive(Serialize, ToSchema)]
struct Heard {
    #[schema(example = "~alice")]
    sender_handle: String,
    responder_session_id: String,
    response_text: String,
}

async fn query(call: Call, args: QueryArgs) -> Result<Said<Asked>, Refusal> {
    let speaker = Speaker::of(&call, &args.voice)?;
    let response_scope = match &args.response_scope {
        Some(text) => text
            .parse()
            .map_err(|_: FrameError| Refusal::argument("response_scope", "it is no scope"))?,
        None => speaker.here(),
    };
    let timeout_ms = args.timeout_ms.unwrap_or(FIVE_SECONDS);
    let query_id = clock::new_id().to_string();
    let payload = json!({"query_text": args.query_text, "query_id": query_id, "timeout_ms": timeout_ms,
        "response_scope": response_scope.to_string()});
    // It listens before it asks, or an answer could come in between.
    let listening = match args.wait.unwrap_or(false) {
        true => Some(listen(&call, &speaker, &response_scope).await?),
        false => None,
    };
    let submitted = speaker
        .submit(&call, Kind::AgentQuery, payload, None)
        .await?;
    let mut responses = Vec::new();
    if let Some(mut feed) = listening {
        let patience = Duration::from_millis(timeout_ms).min(limits::TOOL_WAIT);
        // Late is no fault: then there is no answer.
        responses = tokio::time::timeout(patience, first(&mut feed, &query_id))
            .await
            .unwrap_or_default();
    }
    let text = match responses.len() {
        0 => reached(submitted.recipient_count),
        count => format!("{count} answers"),
    };
    let response_scope = response_scope.to_string();
    Ok(Said::new(
        text,
        Asked {
            submitted,
            query_id,
            response_scope,
            responses,
        },
    ))
}

async fn listen(call: &Call, speaker: &Speaker, scope: &Scope) -> Result<Feed, Refusal> {
    if scope.names() != &speaker.handle {
        return Err(Refusal::argument(
            "wait",
            "answers to another's sessions cannot be waited for here",
        ));
    }
    let opening = Opening {
        handle: speaker.handle.to_string(),
        filter: Some(format!("kind:{}", Kind::AgentResponse)),
        instrument: Some(speaker.instrument.to_string()),
        session: speaker.session.as_ref().map(|session| session.to_string()),
        ..Opening::default()
    };
    Ok(frame::open(&call.who, &call.doors.hub, opening).await?)
}

/// The answers of the first moment in which there are any.
async fn first(feed: &mut Feed, query_id: &str) -> Vec<Heard> {
    let mut reader = sse::Reader::new(limits::STREAM_QUEUE_BYTES);
    while let Next::Events(chunks) = feed.next().await {
        let events = chunks
            .iter()
            .flat_map(|chunk| reader.read(chunk).unwrap_or_default());
        let heard: Vec<Heard> = events
            .filter_map(|event| answer(&event.data, query_id))
            .collect();
        if !heard.is_empty() {
            return heard;
        }
    }
    Vec::new()
}

fn answer(frame: &str, query_id: &str) -> Option<Heard> {
    let frame: Value = serde_json::from_str(frame).ok()?;
    let (text, payload) = (
        |value: &Value| value.as_str().map(str::to_owned),
        &frame["payload"],
    );
    let ours = payload["query_id"]
        .as_str()
        .is_some_and(|id| id.eq_ignore_ascii_case(query_id));
    ours.then_some(())?;
    Some(Heard {
        sender_handle: text(&frame["sender_handle"])?,
        responder_session_id: text(&payload["responder_session_id"])?,
        response_text: text(&payload["response_text"])?,
    })
}

/// `agent_respond`
#[derive(Deserialize, JsonSchema)]
struct RespondArgs {
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
    #[schemars(range(min = 1, max = limits::WHOLE_NUMBER))]
    answer_attempt_idx: Option<u64>,
    #[serde(flatten)]
    voice: Voice,
}

async fn respond(call: Call, args: RespondArgs) -> Result<Said<Submitted>, Refusal> {
    let speaker = Speaker::of(&call, &args.voice)?;
    let session = args
        .responder_session_id
        .unwrap_or_else(|| speaker.session_id());
    let mut payload = json!({"query_id": args.query_id, "response_text": args.response_text, "responder_session_id": session});
    if let Some(id) = args.responded_to_frame_id {
        payload["responded_to_frame_id"] = json!(id);
    }
    if let Some(attempt) = args.answer_attempt_idx {
        payload["answer_attempt_idx"] = json!(attempt);
    }
    let submitted = speaker
        .submit(&call, Kind::AgentResponse, payload, None)
        .await?;
    Ok(Said::new(reached(submitted.recipient_count), submitted))
}
