//! `chorus broadcast`: announces an event to other sessions (FRM-30).

use super::frame_context::{FrameContext, ScopeArgs, SenderArgs};
use crate::{cli::CommonArgs, fail::Fail};
use chorus_wire::frame::payload::{AgentBroadcast, EventClass};
use serde_json::json;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// What happened
    #[arg(required = true)]
    text: Vec<String>,
    /// The event class: merged, stale, released or other
    #[arg(long, value_name = "CLASS", value_parser = parse_event_class)]
    event: EventClass,
    /// A commit, a tag, an address; may be repeated
    #[arg(long = "ref", value_name = "REF")]
    refs: Vec<String>,
    #[command(flatten)]
    target: ScopeArgs,
    #[command(flatten)]
    sender: SenderArgs,
}

fn parse_event_class(text: &str) -> Result<EventClass, String> {
    EventClass::parse(text).ok_or_else(|| format!("one of {}", EventClass::TEXTS.join(", ")))
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let context = FrameContext::open(common, args.sender).await?;
    let refs = Some(args.refs).filter(|refs| !refs.is_empty());
    let payload = AgentBroadcast {
        broadcast_text: args.text.join(" "),
        event_class: args.event,
        refs,
    };
    context
        .send_and_print(
            &context.resolve_scope(&args.target).await?,
            payload,
            json!({}),
        )
        .await
        .map(|_| ())
}
