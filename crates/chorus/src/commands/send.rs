//! `chorus send`: one envelope to one agent, through the hub or directly (SKL-11).

use crate::fail::{Exit, Fail};
use crate::{cli::Common, out, session, session::Session};
use chorus_client::files::{Credentials, History, Line, Place, State, history::Dir};
use chorus_client::{Client, direct};
use chorus_hub::Clock;
use chorus_wire::envelope::{Draft, Envelope};
use chorus_wire::message::{ReceiverReply, Sent};
use chorus_wire::{CHORUS_VERSION, limits};
use serde_json::{json, value::RawValue};
use std::io::Read;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The receiver
    to: String,
    /// What to say; `-` reads it from standard input
    #[arg(required = true)]
    text: Vec<String>,
    /// Why it is phrased so, in your own language
    #[arg(long, value_name = "TEXT")]
    context: Option<String>,
    /// The conversation this belongs to
    #[arg(long, value_name = "ID")]
    conversation: Option<String>,
    /// Its turn; without it, the one after the last in the local history
    #[arg(long, value_name = "N", requires = "conversation")]
    turn: Option<u64>,
    /// The culture you speak for; without it, the one you registered with
    #[arg(long, value_name = "TAG", env = "CHORUS_CULTURE")]
    culture: Option<String>,
    /// Post to this endpoint of the receiver instead of through a hub
    #[arg(long, value_name = "URL")]
    direct: Option<String>,
    /// Who you are, for --direct without credentials
    #[arg(long, value_name = "NAME@HOST", requires = "direct")]
    from: Option<String>,
    /// How often to try again when the receiver's endpoint cannot be reached
    #[arg(long, value_name = "N", default_value_t = 0)]
    retry: u32,
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let text = text(&args.text)?;
    match &args.direct {
        Some(url) => directly(common, &args, text, url).await,
        None => by_hub(common, &args, text).await,
    }
}

async fn by_hub(common: &Common, args: &Args, text: String) -> Result<(), Fail> {
    let session = Session::open(common)?;
    let culture = match args.culture.clone().or(session.state()?.culture) {
        Some(culture) => culture,
        None => registered_culture(&session).await?,
    };
    let peer = address_of(&session.client, &args.to).await;
    let envelope = draft(
        args,
        &session.place,
        &peer,
        &session.who.agent_id,
        culture,
        text,
    )?
    .check();
    let envelope = envelope.map_err(|e| Fail::usage(e.message))?;
    let accepted = session.client.send(&args.to, &envelope, args.retry).await?;
    let said = json!(accepted.sent);
    out::say(common.json, &said, || human(&peer, &accepted.sent));
    keep(&session.place, &peer, accepted.at, &envelope);
    judged(&accepted.sent)
}

async fn directly(common: &Common, args: &Args, text: String, url: &str) -> Result<(), Fail> {
    let place = session::place(common)?;
    let saved = Credentials::read(&place)?;
    let known = saved
        .as_ref()
        .map(|who| State::read(&place, who))
        .transpose()?
        .and_then(|state| state.culture);
    let from = args.from.clone().or(saved.map(|who| who.agent_id));
    let from = from.ok_or_else(|| Fail::usage("who are you? pass --from NAME@HOST"))?;
    let culture = args.culture.clone().or(known);
    let culture =
        culture.ok_or_else(|| Fail::usage("which culture? pass --culture, such as en or ja"))?;
    let envelope = draft(args, &place, &args.to, &from, culture, text)?.check();
    let envelope = envelope.map_err(|e| Fail::usage(e.message))?;
    let reply = direct::send(url, &envelope, args.retry).await?;
    let said = json!({ "delivery": "delivered", "receiver_response": reply });
    out::say(common.json, &said, || {
        format!(
            "delivered to {}, who says {}",
            out::harmless(&args.to),
            reply.status
        )
    });
    keep(&place, &args.to, Clock::system().now().millis(), &envelope);
    refused_by_receiver(&reply)
}

/// The words themselves, or standard input, at most as long as any envelope takes.
fn text(words: &[String]) -> Result<String, Fail> {
    if words != ["-"] {
        return Ok(words.join(" "));
    }
    let most = limits::ORIGINAL_TEXT_CHARS * 4 + 2;
    let mut text = String::new();
    let read = std::io::stdin()
        .lock()
        .take(most as u64)
        .read_to_string(&mut text);
    read.map_err(|e| Fail::usage(format!("standard input: {e}")))?;
    // The line feed that ends a file is not part of what is said.
    let said = text.strip_suffix('\n').unwrap_or(&text);
    Ok(said.strip_suffix('\r').unwrap_or(said).to_owned())
}

fn draft(
    args: &Args,
    place: &Place,
    peer: &str,
    from: &str,
    culture: String,
    text: String,
) -> Result<Draft, Fail> {
    let turn = match (&args.conversation, args.turn) {
        (Some(conversation), None) => {
            Some(History::at(&place.history).next_turn(peer, conversation)?)
        }
        (Some(_) | None, turn) => turn,
    };
    Ok(Draft {
        chorus_version: Some(CHORUS_VERSION.into()),
        sender_id: Some(from.to_owned()),
        original_text: Some(text),
        sender_culture: Some(culture),
        cultural_context: args.context.clone(),
        conversation_id: args.conversation.clone(),
        turn_number: turn,
    })
}

/// For identities that another tool registered: the card on the hub says the culture.
async fn registered_culture(session: &Session) -> Result<String, Fail> {
    let record = session.client.record(&session.who.agent_id).await?;
    let culture = record
        .agent_card
        .as_ref()
        .and_then(|card| card.culture())
        .map(str::to_owned);
    culture.ok_or_else(|| Fail::usage("which culture? pass --culture, such as en or ja"))
}

/// The address behind a short name, so that both directions of a talk share one history file.
async fn address_of(client: &Client, to: &str) -> String {
    if to.contains('@') {
        return to.to_owned();
    }
    client
        .record(to)
        .await
        .map_or_else(|_| to.to_owned(), |record| record.agent_id)
}

/// SKL-26. It is sent; a full disk must not make it look otherwise, or it is sent again.
fn keep(place: &Place, peer: &str, ts: String, envelope: &Envelope) {
    let Ok(envelope) = RawValue::from_string(envelope.to_json()) else {
        return;
    };
    let line = Line {
        ts,
        dir: Dir::Sent,
        peer: peer.to_owned(),
        envelope,
    };
    if let Err(error) = History::at(&place.history).append(&line) {
        tracing::warn!("sent, but not written to the history: {error}");
    }
}

fn human(peer: &str, sent: &Sent) -> String {
    let peer = out::painted(out::STRONG, &out::harmless(peer));
    let trace = out::painted(out::FAINT, &sent.trace_id.to_string());
    match sent.delivery.as_str() {
        "delivered_sse" => format!("delivered to {peer}  {trace}"),
        "delivered" => {
            let said = sent
                .receiver_response
                .as_ref()
                .and_then(|r| r["status"].as_str())
                .unwrap_or("nothing");
            format!(
                "delivered to {peer}, who says {}  {trace}",
                out::harmless(said)
            )
        }
        "queued" => format!("queued for {peer}  {trace}"),
        other => {
            let code = sent.error_code.as_deref().unwrap_or(other);
            let detail = sent.detail.as_deref().unwrap_or_default();
            let failed = out::painted(out::BAD, "not delivered");
            format!(
                "{failed} to {peer}: {} ({})  {trace}",
                out::harmless(detail),
                out::harmless(code)
            )
        }
    }
}

/// A delivery that failed, or that its receiver turned down, is not a success for whoever reads exit codes.
fn judged(sent: &Sent) -> Result<(), Fail> {
    if sent.delivery == "failed" {
        let code = sent.error_code.clone().unwrap_or_else(|| "FAILED".into());
        return Err(Fail::new(
            Exit::Transport,
            code,
            "the message is kept, but its receiver could not be reached",
        ));
    }
    let reply = sent
        .receiver_response
        .clone()
        .and_then(|reply| serde_json::from_value(reply).ok());
    reply.map_or(Ok(()), |reply| refused_by_receiver(&reply))
}

fn refused_by_receiver(reply: &ReceiverReply) -> Result<(), Fail> {
    if reply.status == "ok" {
        return Ok(());
    }
    let code = reply.error_code.clone().unwrap_or_else(|| "REFUSED".into());
    let detail = reply
        .detail
        .clone()
        .unwrap_or_else(|| "no reason given".into());
    Err(Fail::new(
        Exit::Refused,
        code,
        format!("the receiver refused it: {detail}"),
    ))
}
