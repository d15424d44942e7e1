//! `chorus broadcast`: what has just happened, told to the others (FRM-30).

use super::voice::{Seat, Toward, Voice};
use crate::{cli::Common, fail::Fail};
use chorus_wire::frame::payload::{AgentBroadcast, EventClass};
use serde_json::json;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// What happened
    #[arg(required = true)]
    text: Vec<String>,
    /// What it is about: merged, stale, released or other
    #[arg(long, value_name = "CLASS", value_parser = class)]
    event: EventClass,
    /// A commit, a tag, an address; may be repeated
    #[arg(long = "ref", value_name = "REF")]
    refs: Vec<String>,
    #[command(flatten)]
    toward: Toward,
    #[command(flatten)]
    voice: Voice,
}

fn class(text: &str) -> Result<EventClass, String> {
    EventClass::parse(text).ok_or_else(|| format!("one of {}", EventClass::TEXTS.join(", ")))
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let seat = Seat::take(common, args.voice).await?;
    let refs = Some(args.refs).filter(|refs| !refs.is_empty());
    let payload = AgentBroadcast {
        broadcast_text: args.text.join(" "),
        event_class: args.event,
        refs,
    };
    seat.announce(&seat.toward(&args.toward), payload, json!({}))
        .await
        .map(|_| ())
}
