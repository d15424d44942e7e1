//! `chorus send`: sends one envelope to one agent, through the hub or directly (SKL-11).

use super::duration::parse_duration;
use super::send_wait::{SentMessage, WaitedFact};
use crate::agent_names;
use crate::fail::{ExitKind, Fail};
use crate::{cli::CommonArgs, command_client, command_client::CommandClient, output};
use chorus_client::direct;
use chorus_client::files::{
    AgentCredentials, HistoryLine, HistoryStore, IdentityFiles, InboxState,
    history::MessageDirection,
};
use chorus_hub::Clock;
use chorus_wire::envelope::{Envelope, EnvelopeDraft};
use chorus_wire::message::{ReceiverReply, SendReply};
use chorus_wire::{CHORUS_VERSION, limits};
use serde_json::{json, value::RawValue};
use std::io::Read;
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The receiver
    to: String,
    /// The text; `-` reads it from standard input
    #[arg(required = true)]
    text: Vec<String>,
    /// Cultural context: why it is phrased like this, in your own language
    #[arg(long, value_name = "TEXT")]
    context: Option<String>,
    /// The conversation this belongs to
    #[arg(long, value_name = "ID")]
    conversation: Option<String>,
    /// The turn number; default: the one after the last in the local history
    #[arg(long, value_name = "N", requires = "conversation")]
    turn: Option<u64>,
    /// The culture of your user; default: the one you registered with
    #[arg(long, value_name = "TAG", env = "CHORUS_CULTURE")]
    culture: Option<String>,
    /// Post to this endpoint of the receiver instead of using a hub
    #[arg(long, value_name = "URL")]
    direct: Option<String>,
    /// Your address, for --direct without credentials
    #[arg(long, value_name = "NAME@HOST", requires = "direct")]
    from: Option<String>,
    /// How often to retry when the receiver's endpoint cannot be reached
    #[arg(long, value_name = "N", default_value_t = 0)]
    retry: u32,
    /// Wait until the receiver's model or user was shown the message, or until an answer comes
    #[arg(long, value_name = "FACT", conflicts_with = "direct")]
    wait: Option<WaitedFact>,
    /// How long to wait; after it the exit code is 5, and the message stays sent
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "5m", requires = "wait")]
    timeout: Duration,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let text = read_text(&args.text)?;
    match &args.direct {
        Some(url) => send_direct(common, &args, text, url).await,
        None => send_by_hub(common, &args, text).await,
    }
}

async fn send_by_hub(common: &CommonArgs, args: &Args, text: String) -> Result<(), Fail> {
    let command = CommandClient::open(common)?;
    let culture = match args.culture.clone().or(command.read_state()?.culture) {
        Some(culture) => culture,
        None => fetch_culture(&command).await?,
    };
    check_length(&text)?;
    let peer = agent_names::resolve_or_keep(&command.client, &args.to).await?;
    let envelope = draft_envelope(
        args,
        &command.files,
        &peer,
        &command.credentials.agent_id,
        culture,
        text,
    )?
    .into_envelope();
    let envelope = envelope.map_err(|e| Fail::usage_error(e.message))?;
    let accepted = match command
        .client
        .send_message(&peer, &envelope, args.retry)
        .await
    {
        Ok(accepted) => accepted,
        Err(error) => {
            return Err(agent_names::explain_unknown(&command.client, &args.to, error).await);
        }
    };
    let output = json!(accepted.sent);
    output::print_result(common.json, &output, || format_sent(&peer, &accepted.sent));
    append_sent(&command.files, &peer, accepted.at.clone(), &envelope);
    check_delivery(&accepted.sent)?;
    match args.wait {
        Some(fact) => {
            let waiting = SentMessage {
                peer: &peer,
                conversation_id: envelope.conversation_id(),
                accepted: &accepted,
            };
            waiting.wait_for(common, &command, fact, args.timeout).await
        }
        None => Ok(()),
    }
}

async fn send_direct(
    common: &CommonArgs,
    args: &Args,
    text: String,
    url: &str,
) -> Result<(), Fail> {
    check_length(&text)?;
    let files = command_client::identity_files(common)?;
    let saved = AgentCredentials::read_from(&files)?;
    let saved_culture = saved
        .as_ref()
        .map(|credentials| InboxState::read_for(&files, credentials))
        .transpose()?
        .and_then(|state| state.culture);
    let saved_address = saved.map(|credentials| credentials.agent_id);
    let from = args.from.clone().or(saved_address);
    let from = from.ok_or_else(|| Fail::usage_error("who are you? pass --from NAME@HOST"))?;
    let culture = args.culture.clone().or(saved_culture);
    let culture = culture
        .ok_or_else(|| Fail::usage_error("which culture? pass --culture, such as en or ja"))?;
    let envelope = draft_envelope(args, &files, &args.to, &from, culture, text)?.into_envelope();
    let envelope = envelope.map_err(|e| Fail::usage_error(e.message))?;
    let reply = direct::send_direct(url, &envelope, args.retry).await?;
    let output = json!({ "delivery": "delivered", "receiver_response": reply });
    output::print_result(common.json, &output, || {
        format!(
            "delivered to {}, who says {}",
            output::escape_controls(&args.to),
            reply.status
        )
    });
    append_sent(
        &files,
        &args.to,
        Clock::system().now().to_rfc3339_millis(),
        &envelope,
    );
    check_reply(&reply)
}

/// The arguments as text, or standard input up to the longest text of an envelope.
fn read_text(words: &[String]) -> Result<String, Fail> {
    if words != ["-"] {
        return Ok(words.join(" "));
    }
    let max_bytes = limits::ORIGINAL_TEXT_CHARS * 4 + 2;
    let mut text = String::new();
    let read = std::io::stdin()
        .lock()
        .take(max_bytes as u64)
        .read_to_string(&mut text);
    read.map_err(|e| Fail::usage_error(format!("standard input: {e}")))?;
    // The final line feed of a file is not part of the text.
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
}

fn draft_envelope(
    args: &Args,
    files: &IdentityFiles,
    peer: &str,
    from: &str,
    culture: String,
    text: String,
) -> Result<EnvelopeDraft, Fail> {
    let turn = match (&args.conversation, args.turn) {
        (Some(conversation), None) => {
            Some(HistoryStore::open_folder(&files.history).next_turn_number(peer, conversation)?)
        }
        (Some(_) | None, turn) => turn,
    };
    Ok(EnvelopeDraft {
        chorus_version: Some(CHORUS_VERSION.into()),
        sender_id: Some(from.to_owned()),
        original_text: Some(text),
        sender_culture: Some(culture),
        cultural_context: args.context.clone(),
        conversation_id: args.conversation.clone(),
        turn_number: turn,
    })
}

/// The culture on the hub's card, for an identity that another tool registered.
async fn fetch_culture(command: &CommandClient) -> Result<String, Fail> {
    let record = command
        .client
        .fetch_record(&command.credentials.agent_id)
        .await?;
    let culture = record
        .agent_card
        .as_ref()
        .and_then(|card| card.user_culture())
        .map(str::to_owned);
    culture.ok_or_else(|| Fail::usage_error("which culture? pass --culture, such as en or ja"))
}

/// Says in words what an envelope says with the names of its fields.
fn check_length(text: &str) -> Result<(), Fail> {
    let limit = limits::ORIGINAL_TEXT_CHARS;
    match text.chars().count() {
        0 => Err(Fail::usage_error(
            "the message is empty; write a text after the name",
        )),
        count if count > limit => Err(Fail::usage_error(format!(
            "the message is longer than {limit} characters; send it in parts, or put the text into a channel: chorus channel write"
        ))),
        _ => Ok(()),
    }
}

/// Appends a sent message to the history (SKL-26), unless a listener of this identity has filed it already: the receipt of a
/// live receiver may reach it first. Failing here is only a warning: an error would make the user send the message again.
fn append_sent(files: &IdentityFiles, peer: &str, ts: String, envelope: &Envelope) {
    let Ok(envelope) = RawValue::from_string(envelope.to_json()) else {
        return;
    };
    let line = HistoryLine {
        ts,
        dir: MessageDirection::Sent,
        peer: peer.to_owned(),
        envelope,
    };
    if let Err(error) = HistoryStore::open_folder(&files.history).append_once(&line) {
        tracing::warn!("sent, but not written to the history: {error}");
    }
}

fn format_sent(peer: &str, sent: &SendReply) -> String {
    let peer = output::paint_text(output::STRONG_STYLE, &output::escape_controls(peer));
    // A hub may leave the trace id out.
    let trace = match sent.trace_id.is_nil() {
        true => String::new(),
        false => output::paint_text(output::FAINT_STYLE, &sent.trace_id.to_string()),
    };
    match sent.delivery.as_str() {
        "delivered_sse" => format!("delivered to {peer}  {trace}"),
        "delivered" => {
            let status = sent
                .receiver_response
                .as_ref()
                .and_then(|r| r["status"].as_str())
                .unwrap_or("nothing");
            format!(
                "delivered to {peer}, who says {}  {trace}",
                output::escape_controls(status)
            )
        }
        "queued" => format!("queued for {peer}  {trace}"),
        other => {
            let code = sent.error_code.as_deref().unwrap_or(other);
            let detail = sent.detail.as_deref().unwrap_or_default();
            let failed = output::paint_text(output::BAD_STYLE, "not delivered");
            format!(
                "{failed} to {peer}: {} ({})  {trace}",
                output::escape_controls(detail),
                output::escape_controls(code)
            )
        }
    }
}

/// A failed delivery or a receiver's refusal gives an error exit code.
fn check_delivery(sent: &SendReply) -> Result<(), Fail> {
    if sent.delivery == "failed" {
        let code = sent.error_code.clone().unwrap_or_else(|| "FAILED".into());
        return Err(Fail::new(
            ExitKind::Transport,
            code,
            "the message is kept, but its receiver could not be reached",
        ));
    }
    let reply = sent
        .receiver_response
        .clone()
        .and_then(|reply| serde_json::from_value(reply).ok());
    reply.map_or(Ok(()), |reply| check_reply(&reply))
}

fn check_reply(reply: &ReceiverReply) -> Result<(), Fail> {
    if reply.status == "ok" {
        return Ok(());
    }
    let code = reply.error_code.clone().unwrap_or_else(|| "REFUSED".into());
    let detail = reply
        .detail
        .clone()
        .unwrap_or_else(|| "no reason given".into());
    Err(Fail::new(
        ExitKind::Refused,
        code,
        format!("the receiver refused it: {detail}"),
    ))
}
