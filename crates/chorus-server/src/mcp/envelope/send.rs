//! `chorus_send`: send a message to another agent.

use crate::http::idempotency::IDEMPOTENCY_KEY;
use crate::mcp::tool::{ToolDefinition, ToolKind, ToolOutput};
use crate::mcp::tool_call::ToolCall;
use crate::mcp::tool_error::ToolError;
use chorus_hub::envelope::{self, IdempotencyKey, RepeatedSend};
use chorus_wire::contract::{ContractFault, FieldCheck};
use chorus_wire::envelope::{Envelope, EnvelopeDraft};
use chorus_wire::identity::AgentName;
use chorus_wire::message::{SendBody, SendReply, SendRequest};
use chorus_wire::{CHORUS_VERSION, ErrorCode, json, wire_object};
use serde_json::json;
use sha2::{Digest, Sha256};

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
    }
}

async fn send_message(
    call: ToolCall,
    args: ChorusSendArgs,
) -> Result<ToolOutput<SendReply>, ToolError> {
    let sender = call.calling_agent()?;
    let card_culture = || {
        sender
            .parse_card()
            .and_then(|card| card.user_culture().map(str::to_owned))
    };
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
    let sent = SendReply::new(&outcome.delivery, outcome.trace_id);
    Ok(ToolOutput::new(
        format!("{} to {receiver_id}", sent.delivery),
        sent,
    ))
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
