//! `chorus broadcast`: what has just happened, told to the others (FRM-30).

use super::frame_context::{FrameContext, ScopeArgs, SenderArgs};
use crate::{cli::CommonArgs, fail::Fail};
use chorus_wire::frame::payload::{AgentBroadcast, EventClass};
use serde_json::json;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// What happened
    #[arg(required = true)]
    text: Vec<String>,
    /// What it is about: merged, stale, released or other
    #[arg(long, value_name = "CLASS", value_parser = parse_event_class)]
    event: EventClass,
    /// A commit, a tag, an address; may be repeated
    #[arg(long = "ref", value_name = "REF")]
    refs: Vec<String>,
    #[command(flatten)]
    toward: ScopeArgs,
    #[command(flatten)]
    voice: SenderArgs,
}

fn parse_event_class(text: &str) -> Result<EventClass, String> {
    EventClass::parse(text).ok_or_else(|| format!("one of {}", EventClass::TEXTS.join(", ")))
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let context = FrameContext::open(common, args.voice).await?;
    let refs = Some(args.refs).filter(|refs| !refs.is_empty());
    let payload = AgentBroadcast {
        broadcast_text: args.text.join(" "),
        event_class: args.event,
        refs,
    };
    context
        .send_and_print(&context.resolve_scope(&args.toward), payload, json!({}))
        .await
        .map(|_| ())
}
