//! `chorus_send`: send a message to another agent.

use crate::http::idempotency::IDEMPOTENCY_KEY;
use crate::http::route_scopes::RequiredScope;
use crate::mcp::tool::{ToolDefinition, ToolKind, ToolOutput};
use crate::mcp::tool_call::{NOT_WAITED, ToolCall, WaitOutcome};
use crate::mcp::tool_error::ToolError;
use chorus_hub::envelope::{self, AwaitedAnswer, IdempotencyKey, RepeatedSend};
use chorus_wire::agent_key::KeyScope;
use chorus_wire::contract::{ContractFault, FieldCheck};
use chorus_wire::envelope::{Envelope, EnvelopeDraft};
use chorus_wire::identity::AgentName;
use chorus_wire::message::{DeliveryOutcome, HistoryRow, SendBody, SendReply, SendRequest};
use chorus_wire::time::UnixMicros;
use chorus_wire::{CHORUS_VERSION, ErrorCode, json, limits, wire_object};
use serde::Serialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::time::Duration;
use utoipa::ToSchema;
use uuid::Uuid;

pub fn send_tools() -> Vec<ToolDefinition<ToolCall>> {
    vec![
        ToolDefinition::new(
            "chorus_send",
            "Send a message",
            ToolKind::Sends,
            SEND_DESCRIPTION,
            send_message,
        )
        .aliases(&[("original_text", "text")]),
    ]
}

const SEND_DESCRIPTION: &str = "Send a message to another agent, when your user asks you to, or to answer one from \
    chorus_inbox. Write `text` in your user's own language: the receiver adapts it. `delivery` is delivered_sse (a \
    live agent has it), delivered (see receiver_response), queued (for later) or failed. Tell your user what you sent.";

/// What the summary says when the client wants no result any more.
const UNWANTED: &str = ", no longer waited for";
/// How long a call waits without `timeout_ms`.
const DEFAULT_WAIT: Duration = Duration::from_secs(20);

wire_object! {
    /// `chorus_send`
    ChorusSendArgs, refuses unknown => {
        /// An address such as bob@chorus, a name, a UUID or a handle.
        required receiver_id: AgentName = SendBody::SHAPE.check_of("receiver_id");
        /// Your user's exact words, or yours if you act by yourself.
        required text: String = Envelope::SHAPE.check_of("original_text");
        /// The text's BCP 47 tag, such as zh-CN; that of your agent card without it.
        nullable sender_culture: String = Envelope::SHAPE.check_of("sender_culture");
        /// Why it is phrased so, if you know.
        nullable cultural_context: String = Envelope::SHAPE.check_of("cultural_context");
        /// The same on every turn.
        nullable conversation_id: String = Envelope::SHAPE.check_of("conversation_id");
        /// 1 on the first turn, then one more each.
        nullable turn_number: u64 = Envelope::SHAPE.check_of("turn_number");
        /// Repeat it if an answer was lost: it is sent once.
        nullable idempotency_key: String = FieldCheck::Grammar(&IDEMPOTENCY_KEY);
        /// Until it was shown to its receiver, or answered.
        nullable wait: String = FieldCheck::OneOf(&["shown", "answer"]);
        /// For `wait`; 20000 without it.
        nullable timeout_ms: u64 = FieldCheck::Integer { min: 1, max: limits::TOOL_WAIT_MAX.as_millis() as u64 };
    }
}

/// A sent message, and what was waited for.
#[derive(Serialize, ToSchema)]
struct SendResult {
    #[serde(flatten)]
    sent: SendReply,
    /// When `wait` saw that it was shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    shown_at: Option<UnixMicros>,
    /// What `wait` heard: untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<AnswerMessage>,
}

#[derive(Serialize, ToSchema)]
struct AnswerMessage {
    trace_id: Uuid,
    text: String,
}

async fn send_message(
    call: ToolCall,
    args: ChorusSendArgs,
) -> Result<ToolOutput<SendResult>, ToolError> {
    let sender = call.calling_agent()?;
    let card_culture = || {
        sender
            .parse_card()
            .and_then(|card| card.user_culture().map(str::to_owned))
    };
    let conversation_id = args.conversation_id.clone();
    let culture = args.sender_culture.or_else(card_culture);
    // Required rather than guessed: the receiver would believe a guess.
    let culture = culture.ok_or_else(|| {
        ToolError::invalid_argument("sender_culture", "your agent card names none, so say it")
    })?;
    let draft = EnvelopeDraft {
        chorus_version: Some(CHORUS_VERSION.to_owned()),
        sender_id: Some(sender.agent_id.to_string()),
        original_text: Some(args.text),
        sender_culture: Some(culture),
        cultural_context: args.cultural_context,
        conversation_id: args.conversation_id,
        turn_number: args.turn_number,
    };
    let receiver_id = args.receiver_id.to_text();
    let wait = plan_wait(&call, args.wait, args.timeout_ms)?;
    let request = SendRequest {
        receiver: args.receiver_id,
        envelope: draft.check().map_err(to_argument_error)?,
        a2a_message: None,
        stream: false,
    };
    let idempotency = args.idempotency_key.map(|key| {
        let body = json!({"receiver_id": receiver_id, "envelope": request.envelope});
        IdempotencyKey {
            key,
            fingerprint: Sha256::digest(json::to_canonical_json(&body).as_bytes()).into(),
        }
    });
    let fields = [
        (ErrorCode::AgentNotFound, "receiver_id"),
        (ErrorCode::IdempotencyConflict, "idempotency_key"),
    ];
    let outcome = envelope::send_envelope(
        &call.principal,
        &call.state.hub,
        request,
        idempotency,
        RepeatedSend::FirstOutcome,
    )
    .await;
    let outcome = outcome.map_err(|error| ToolError::from_hub_error(error, &fields))?;
    let mut result = SendResult {
        sent: SendReply::new(&outcome.delivery, outcome.trace_id),
        shown_at: None,
        answer: None,
    };
    let mut text = format!("{} to {receiver_id}", result.sent.delivery);
    let is_failed = matches!(outcome.delivery, DeliveryOutcome::Failed { .. });
    if let Some((fact, max_wait)) = wait.filter(|_| !is_failed) {
        let awaited = AwaitedAnswer {
            trace_id: outcome.trace_id,
            receiver_id: &receiver_id,
            conversation_id: conversation_id.as_deref(),
        };
        // The message is sent. A failed call would be repeated by the model, and the message doubled.
        text += wait_for_fact(&call, awaited, &fact, max_wait, &mut result)
            .await
            .unwrap_or_else(describe_broken_wait);
    }
    Ok(ToolOutput::new(text, result))
}

fn describe_broken_wait(error: chorus_wire::Error) -> &'static str {
    tracing::warn!(%error, "what became of a sent message could not be read");
    "; what became of it could not be read, see chorus_history"
}

/// The fact to wait for, and how long.
fn plan_wait(
    call: &ToolCall,
    fact: Option<String>,
    timeout_ms: Option<u64>,
) -> Result<Option<(String, Duration)>, ToolError> {
    let Some(fact) = fact else { return Ok(None) };
    // What it returns is of the inbox, which a key that may only send does not read.
    RequiredScope::Needs(KeyScope::Read).check(&call.principal)?;
    let max_wait = timeout_ms.map_or(DEFAULT_WAIT, Duration::from_millis);
    Ok(Some((fact, max_wait.min(limits::TOOL_WAIT_MAX))))
}

/// Waits, and returns what the summary says of it. That the time is over is no error: the message stays sent.
async fn wait_for_fact(
    call: &ToolCall,
    sent: AwaitedAnswer<'_>,
    fact: &str,
    max_wait: Duration,
    result: &mut SendResult,
) -> chorus_hub::Result<&'static str> {
    let principal = &call.principal;
    let hub = &call.state.hub;
    if fact == "shown" {
        let shown = envelope::wait_until_shown(principal, hub, sent.trace_id, max_wait);
        result.shown_at = match call.wait_for(shown).await? {
            WaitOutcome::Ended(shown_at) => shown_at?,
            WaitOutcome::Unwanted => return Ok(UNWANTED),
            WaitOutcome::TooMany => return Ok(NOT_WAITED),
        };
        return Ok(match result.shown_at {
            Some(_) => ", and shown",
            None => ", not shown in time",
        });
    }
    let answer = envelope::wait_for_answer(principal, hub, sent, max_wait);
    let row = match call.wait_for(answer).await? {
        WaitOutcome::Ended(answer) => answer?,
        WaitOutcome::Unwanted => return Ok(UNWANTED),
        WaitOutcome::TooMany => return Ok(NOT_WAITED),
    };
    let Some(row) = row else {
        return Ok(", not answered in time");
    };
    // The result is part of a model's turn. The model gets it also when that cannot be recorded.
    if let Err(error) = envelope::mark_all_shown(principal, hub, vec![row.trace_id]).await {
        tracing::warn!(%error, "that an answer was shown was not recorded");
    }
    result.answer = read_answer(&row);
    Ok(", and answered")
}

fn read_answer(row: &HistoryRow) -> Option<AnswerMessage> {
    let envelope = Envelope::parse(row.envelope.get()).ok()?;
    Some(AnswerMessage {
        trace_id: row.trace_id,
        text: envelope.original_text().to_owned(),
    })
}

/// The fault of an envelope in terms of the arguments that it was made from.
fn to_argument_error(fault: ContractFault) -> ToolError {
    let fault = match fault.field.as_str() {
        "sender_id" => ContractFault::explain(
            "",
            "you have no address of the form name@host, and only agents with one write messages",
        ),
        "original_text" => fault.with_field("text"),
        _ => fault,
    };
    chorus_wire::Error::from(fault).into()
}
