//! Announcements: any frame, what one is doing, what has happened, work that goes to another session (FRM-29…32, FRM-96).

use super::speaker::{Speaker, Voice, reached};
use crate::mcp::call::Call;
use crate::mcp::refusal::Refusal;
use crate::mcp::tool::{Nature, Said, Verb};
use chorus_wire::frame::{Kind, Submitted};
use chorus_wire::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub fn verbs() -> Vec<Verb<Call>> {
    vec![
        Verb::new("agent_send", "Submit any frame", Nature::Speaks, SEND, send),
        Verb::new(
            "agent_advise",
            "Tell what you are doing",
            Nature::Speaks,
            ADVISE,
            advise,
        )
        .also(&[("text", "advisory_text")]),
        Verb::new(
            "agent_broadcast",
            "Tell what has happened",
            Nature::Speaks,
            BROADCAST,
            broadcast,
        )
        .also(&[("text", "broadcast_text")]),
        Verb::new(
            "agent_handover",
            "Hand work over",
            Nature::Speaks,
            HANDOVER,
            handover,
        )
        .also(&[("text", "handover_body")]),
    ]
}

const SEND: &str = "Submit one frame of any of the fifteen kinds to live sessions. Prefer the tool made for the kind (agent_advise, \
    agent_broadcast, agent_query …); use this one for the others: agent_return_event, agent_binding_moment, peer_diagnostic_request, \
    peer_diagnostic_response, intent_declare, intent_withdraw, flush_executed. Frames are heard live and kept for minutes only. \
    Returns frame_id and recipient_count, to how many sessions it went (0: nobody is listening).";

const ADVISE: &str = "Tell your other live sessions what you are working on, so that nobody gets in your way. Use it when you start on a \
    task, before you edit files others may touch, and when your plan changes. One or two sentences. Returns frame_id and \
    recipient_count (0: nobody is listening, which is fine).";

const BROADCAST: &str = "Tell live sessions that something has happened which they should know: work was merged, something they hold is \
    stale, a resource was released. Use it after the fact; for what you are about to do use agent_advise. Returns frame_id and \
    recipient_count.";

const HANDOVER: &str = "Hand unfinished work over to another session: what was asked, what is done, what is left, what to watch out for. \
    Use it when you stop before the work does. To take work that was handed over, repeat its handover_body and previous_session_id \
    and put your own session into next_session_id. Returns frame_id and recipient_count.";

/// The fields of a payload as they were given, those left out left out.
fn payload(fields: impl Serialize) -> Result<Value, Refusal> {
    Ok(serde_json::to_value(fields).map_err(chorus_wire::Error::internal)?)
}

async fn say(
    call: &Call,
    voice: &Voice,
    kind: Kind,
    payload: Value,
) -> Result<Said<Submitted>, Refusal> {
    let submitted = Speaker::of(call, voice)?
        .submit(call, kind, payload, None)
        .await?;
    Ok(Said::new(reached(submitted.recipient_count), submitted))
}

/// `agent_send`
#[derive(Deserialize, JsonSchema)]
struct SendArgs {
    /// One of the fifteen kinds of frames, such as peer_diagnostic_request.
    kind: String,
    /// The payload of that kind; its shape is in the resource chorus://frames.
    payload: Map<String, Value>,
    /// After how many milliseconds the frame is stale.
    #[schemars(range(min = 1, max = limits::WHOLE_NUMBER))]
    ttl_ms: Option<u64>,
    #[serde(flatten)]
    voice: Voice,
}

async fn send(call: Call, args: SendArgs) -> Result<Said<Submitted>, Refusal> {
    let must = || {
        Refusal::argument(
            "kind",
            format!("it must be one of {}", Kind::TEXTS.join(", ")),
        )
    };
    let kind = Kind::parse(&args.kind).ok_or_else(must)?;
    let speaker = Speaker::of(&call, &args.voice)?;
    let submitted = speaker
        .submit(&call, kind, Value::Object(args.payload), args.ttl_ms)
        .await?;
    Ok(Said::new(reached(submitted.recipient_count), submitted))
}

/// `agent_advise`
#[derive(Deserialize, Serialize, JsonSchema)]
struct AdviseArgs {
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
    voice: Voice,
}

async fn advise(call: Call, args: AdviseArgs) -> Result<Said<Submitted>, Refusal> {
    say(&call, &args.voice, Kind::AgentAdvisory, payload(&args)?).await
}

/// `agent_broadcast`
#[derive(Deserialize, Serialize, JsonSchema)]
struct BroadcastArgs {
    /// What has happened, in a sentence or two.
    #[schemars(length(min = 1, max = limits::FRAME_TEXT_OCTETS))]
    broadcast_text: String,
    /// What kind of news it is.
    event_class: News,
    /// Where more is to be found: paths, URLs, ids.
    #[schemars(length(max = limits::FRAME_ITEMS))]
    #[serde(skip_serializing_if = "Option::is_none")]
    refs: Option<Vec<String>>,
    #[serde(flatten, skip_serializing)]
    voice: Voice,
}

#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum News {
    Merged,
    Stale,
    Released,
    Other,
}

async fn broadcast(call: Call, args: BroadcastArgs) -> Result<Said<Submitted>, Refusal> {
    say(&call, &args.voice, Kind::AgentBroadcast, payload(&args)?).await
}

/// `agent_handover`
#[derive(Deserialize, Serialize, JsonSchema)]
struct HandoverArgs {
    /// Where things stand: the task, what is done, what is left, what to watch out for.
    #[schemars(length(min = 1, max = limits::HANDOVER_OCTETS))]
    handover_body: String,
    /// The session that hands it over; your own without it.
    #[schemars(length(min = 1, max = limits::SESSION_OCTETS))]
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_session_id: Option<String>,
    /// The session that takes it; leave it out to offer it to whoever comes.
    #[schemars(length(max = limits::SESSION_OCTETS))]
    #[serde(skip_serializing_if = "Option::is_none")]
    next_session_id: Option<String>,
    /// Where more is to be found: paths, URLs, ids.
    #[schemars(length(max = limits::FRAME_ITEMS))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer_refs: Option<Vec<String>>,
    #[serde(flatten, skip_serializing)]
    voice: Voice,
}

async fn handover(call: Call, mut args: HandoverArgs) -> Result<Said<Submitted>, Refusal> {
    let speaker = Speaker::of(&call, &args.voice)?;
    args.previous_session_id
        .get_or_insert_with(|| speaker.session_id());
    say(&call, &args.voice, Kind::AgentHandover, payload(&args)?).await
}
