//! `chorus handover`: hands work over to other sessions, lists handovers and takes one (FRM-31, FRM-32).

use super::frame_context::{self, FrameContext, ScopeArgs, SenderArgs};
use super::{format, send_frame};
use crate::fail::{ExitKind, Fail};
use crate::{cli::CommonArgs, output};
use chorus_client::frame::{FrameStream, FrameStreamEvent, HandoverLog, format_frame_ref};
use chorus_wire::frame::payload::AgentHandover;
use chorus_wire::frame::{Frame, FramePayload, FrameScope};
use chorus_wire::limits;
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;
use uuid::Uuid;

/// How long to wait for the own claim on the stream; after it the hub's answer counts.
const ECHO_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// A file with the state of the work; default: standard input
    #[arg(value_name = "FILE", default_value = "-", conflicts_with_all = ["take", "list"])]
    body: PathBuf,
    /// A reference to more information; may be repeated
    #[arg(long = "ref", value_name = "REF")]
    refs: Vec<String>,
    /// Take the work over: the handover with this frame id, or the only one
    #[arg(long, value_name = "FRAME_ID", num_args = 0..=1, conflicts_with = "list")]
    take: Option<Option<Uuid>>,
    /// List the handovers that are not taken
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    target: ScopeArgs,
    #[command(flatten)]
    sender: SenderArgs,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let is_reading = args.take.is_some() || args.list;
    let body = if is_reading {
        String::new()
    } else {
        send_frame::read_text(&args.body, limits::HANDOVER_OCTETS)?
    };
    let context = FrameContext::open(common, args.sender).await?;
    if is_reading {
        let (replayed, frames) = context
            .client
            .replay_frames(&context.sender, frame_context::current_time)
            .await?;
        let mut handovers = HandoverLog::default();
        replayed
            .iter()
            .for_each(|frame| handovers.apply_frame(frame));
        if args.list {
            handovers
                .open_offers()
                .into_iter()
                .for_each(|offer| print_offer(common, offer));
            return Ok(());
        }
        return self::take_handover(&context, handovers, frames, args.take.flatten()).await;
    }
    let payload = AgentHandover {
        previous_session_id: context.sender.session.to_string(),
        next_session_id: None,
        handover_body: body,
        pointer_refs: Some(args.refs).filter(|refs| !refs.is_empty()),
    };
    context
        .send_and_print(&context.resolve_scope(&args.target), payload, json!({}))
        .await
        .map(|_| ())
}

async fn take_handover(
    context: &FrameContext<'_>,
    mut handovers: HandoverLog,
    mut frames: FrameStream,
    id: Option<Uuid>,
) -> Result<(), Fail> {
    let offer = pick_offer(context.common, &handovers, id)?.clone();
    let FramePayload::AgentHandover(work) = &offer.payload else {
        return Ok(());
    };
    let mut refs = work.pointer_refs.clone().unwrap_or_default();
    refs.push(format_frame_ref(&offer.frame_id));
    let me = context.sender.session.to_string();
    let claim = AgentHandover {
        next_session_id: Some(me),
        pointer_refs: Some(refs),
        ..work.clone()
    };
    let sent = context
        .send_frame(&context.sender.handle_scope(), claim.clone())
        .await?;
    // Two sessions may claim it at the same time. The handle's stream has one order, and its first claim counts.
    let own_frame_id = sent.frame.frame_id;
    let wait_echo = async {
        while handovers.find_claim(&offer.frame_id).is_none() {
            if let FrameStreamEvent::Frame(frame, _) = frames.next().await? {
                handovers.apply_frame(&frame);
            }
        }
        Ok::<(), Fail>(())
    };
    if let Ok(echo) = tokio::time::timeout(ECHO_TIMEOUT, wait_echo).await {
        echo?;
    }
    if let Some(first_claim) = handovers
        .find_claim(&offer.frame_id)
        .filter(|first_claim| first_claim.frame_id != own_frame_id)
    {
        return Err(already_taken(first_claim));
    }
    if offer.sender_handle != context.sender.handle {
        // Inform the sender of the handover. A refusal does not matter, because the work is taken.
        let sender_scope = FrameScope::Handle(offer.sender_handle.clone());
        if let Err(fail) = context.send_frame(&sender_scope, claim).await {
            tracing::debug!(?fail, "the sender of the handover was not informed");
        }
    }
    let value = json!({ "frame_id": offer.frame_id, "previous_session_id": work.previous_session_id,
        "handover_body": work.handover_body, "pointer_refs": work.pointer_refs });
    output::print_result(context.common.json, &value, || format_taken(&offer, work));
    Ok(())
}

fn pick_offer<'a>(
    common: &CommonArgs,
    handovers: &'a HandoverLog,
    id: Option<Uuid>,
) -> Result<&'a Frame, Fail> {
    let nothing_to_take = |message: &str| Fail::new(ExitKind::Refused, "NOTHING_TO_TAKE", message);
    let Some(id) = id else {
        let offers = handovers.open_offers();
        return match offers.as_slice() {
            [] => Err(nothing_to_take(
                "nobody has handed over anything that is not taken",
            )),
            [only] => Ok(only),
            several => {
                several.iter().for_each(|offer| print_offer(common, offer));
                Err(Fail::usage_error("which one? pass --take FRAME_ID"))
            }
        };
    };
    let offer = handovers
        .find_offer(&id)
        .ok_or_else(|| nothing_to_take("the hub keeps no such handover"))?;
    handovers
        .find_claim(&id)
        .map_or(Ok(offer), |first_claim| Err(already_taken(first_claim)))
}

fn already_taken(first_claim: &Frame) -> Fail {
    let next = if let FramePayload::AgentHandover(claim) = &first_claim.payload {
        claim.next_session_id.as_deref()
    } else {
        None
    };
    let by = next.unwrap_or_default();
    let message = format!("it was taken by {} {by}", first_claim.sender_handle);
    Fail::new(ExitKind::Refused, "ALREADY_TAKEN", message)
}

fn print_offer(common: &CommonArgs, offer: &Frame) {
    let FramePayload::AgentHandover(work) = &offer.payload else {
        return;
    };
    let value = json!({ "frame_id": offer.frame_id, "sender_handle": offer.sender_handle, "created_at": offer.created_at,
        "previous_session_id": work.previous_session_id, "pointer_refs": work.pointer_refs });
    output::print_result(common.json, &value, || {
        format!(
            "{} {}",
            output::paint_text(output::FAINT_STYLE, &offer.frame_id.to_string()),
            format::format_frame(offer)
        )
    });
}

fn format_taken(offer: &Frame, work: &AgentHandover) -> String {
    let refs: String = work
        .pointer_refs
        .iter()
        .flatten()
        .map(|reference| format!("\n→ {}", output::escape_controls(reference)))
        .collect();
    let from = format!(
        "{} {}",
        offer.sender_handle,
        output::escape_controls(&work.previous_session_id)
    );
    format!(
        "taken over from {}\n{}{refs}",
        output::paint_text(output::STRONG_STYLE, &from),
        output::escape_controls(work.handover_body.trim_end())
    )
}
