//! `chorus handover`: hands work over to other sessions, lists what is handed over, takes it up or withdraws it (FRM-31,
//! FRM-32, R-83).

use super::frame_context::{FrameContext, ScopeArgs, SenderArgs};
use super::{format, send_frame};
use crate::fail::{ExitKind, Fail};
use crate::{cli::CommonArgs, output};
use chorus_client::frame::{ParsedOpenItem, format_frame_ref};
use chorus_wire::frame::payload::AgentHandover;
use chorus_wire::frame::{FramePayload, FrameScope, OpenItemKind, SubmissionReply};
use chorus_wire::limits;
use serde_json::json;
use std::path::PathBuf;
use uuid::Uuid;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// A file with the state of the work; default: standard input
    #[arg(value_name = "FILE", default_value = "-", conflicts_with_all = ["take", "list", "withdraw"])]
    body: PathBuf,
    /// A reference to more information; may be repeated
    #[arg(long = "ref", value_name = "REF")]
    refs: Vec<String>,
    /// Take the work over: the handover with this frame id, or the only one
    #[arg(long, value_name = "FRAME_ID", num_args = 0..=1, conflicts_with_all = ["list", "withdraw"])]
    take: Option<Option<Uuid>>,
    /// List the handovers that are not taken
    #[arg(long, conflicts_with = "withdraw")]
    list: bool,
    /// Withdraw a handover of yours that is not taken
    #[arg(long, value_name = "FRAME_ID")]
    withdraw: Option<Uuid>,
    #[command(flatten)]
    target: ScopeArgs,
    #[command(flatten)]
    sender: SenderArgs,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let is_new = args.take.is_none() && !args.list && args.withdraw.is_none();
    let body = match is_new {
        true => send_frame::read_text(&args.body, limits::HANDOVER_OCTETS)?,
        false => String::new(),
    };
    let context = FrameContext::open(common, args.sender).await?;
    if let Some(id) = args.withdraw {
        return withdraw_handover(&context, &args.target, id).await;
    }
    if args.list {
        return list_handovers(&context).await;
    }
    if let Some(id) = args.take {
        return take_handover(&context, id).await;
    }
    let payload = AgentHandover {
        previous_session_id: context.sender.session.to_string(),
        next_session_id: None,
        handover_body: body,
        pointer_refs: Some(args.refs).filter(|refs| !refs.is_empty()),
    };
    let scope = context.resolve_scope(&args.target).await?;
    let sent = context.send_frame(&scope, payload).await?;
    context.print_sent_as(&sent, json!({}), || format_handed_over(&sent.submitted));
    Ok(())
}

fn format_handed_over(submitted: &SubmissionReply) -> String {
    let id = output::paint_text(output::FAINT_STYLE, &submitted.frame_id.to_string());
    match submitted.kept_until {
        Some(until) => {
            let until = crate::local_time::date_time(&until.to_string());
            format!("handed over, kept until {until}  {id}")
        }
        // An older hub, or a handle with too many open items.
        None => format!(
            "handed over to {}, not kept  {id}",
            submitted.describe_count()
        ),
    }
}

/// The handovers that are open, oldest first.
async fn fetch_handovers(context: &FrameContext<'_>) -> Result<Vec<ParsedOpenItem>, Fail> {
    let mut items = context.fetch_open_items().await?;
    items.retain(|open_item| open_item.kind == OpenItemKind::Handover);
    Ok(items)
}

async fn list_handovers(context: &FrameContext<'_>) -> Result<(), Fail> {
    let offers = fetch_handovers(context).await?;
    if offers.is_empty() {
        crate::output::print_aside(context.common.json, "nothing is handed over");
    }
    offers
        .iter()
        .for_each(|offer| print_offer(context.common, offer));
    Ok(())
}

async fn withdraw_handover(
    context: &FrameContext<'_>,
    target: &ScopeArgs,
    id: Uuid,
) -> Result<(), Fail> {
    let scope = context.resolve_scope(target).await?;
    let handle = scope.addressed_handle().as_str();
    let ended = context.client.withdraw_item(handle, id).await?;
    output::print_result(context.common.json, &json!(ended), || {
        format!("withdrawn  {}", ended.frame_id)
    });
    Ok(())
}

async fn take_handover(context: &FrameContext<'_>, id: Option<Uuid>) -> Result<(), Fail> {
    let offer = pick_offer(context, id).await?;
    let FramePayload::AgentHandover(work) = &offer.frame.payload else {
        return Ok(());
    };
    // The hub decides which session is first.
    context
        .client
        .take_handover(&context.sender, &offer.item)
        .await
        .map_err(already_taken)?;
    announce_take(context, &offer, work).await;
    let value = json!({ "frame_id": offer.frame.frame_id, "previous_session_id": work.previous_session_id,
        "handover_body": work.handover_body, "pointer_refs": work.pointer_refs });
    output::print_result(context.common.json, &value, || format_taken(&offer, work));
    Ok(())
}

/// Tells the other sessions, and those of the sender. A refusal does not matter, because the work is taken.
async fn announce_take(context: &FrameContext<'_>, offer: &ParsedOpenItem, work: &AgentHandover) {
    let mut refs = work.pointer_refs.clone().unwrap_or_default();
    refs.push(format_frame_ref(&offer.frame.frame_id));
    let claim = AgentHandover {
        next_session_id: Some(context.sender.session.to_string()),
        pointer_refs: Some(refs),
        ..work.clone()
    };
    let mut scopes = vec![context.sender.handle_scope()];
    if offer.frame.sender_handle != context.sender.handle {
        scopes.push(FrameScope::Handle(offer.frame.sender_handle.clone()));
    }
    for scope in scopes {
        if let Err(fail) = context.send_frame(&scope, claim.clone()).await {
            tracing::debug!(?fail, "a take was not announced");
        }
    }
}

async fn pick_offer(context: &FrameContext<'_>, id: Option<Uuid>) -> Result<ParsedOpenItem, Fail> {
    let nothing_to_take = |message: &str| Fail::new(ExitKind::Refused, "NOTHING_TO_TAKE", message);
    let mut offers = fetch_handovers(context).await?;
    if let Some(id) = id {
        let found = offers.into_iter().find(|offer| offer.frame.frame_id == id);
        return found.ok_or_else(|| {
            nothing_to_take("no such handover is open: it is taken, withdrawn or a day old")
        });
    }
    if offers.len() > 1 {
        offers
            .iter()
            .for_each(|offer| print_offer(context.common, offer));
        return Err(Fail::usage_error("which one? pass --take FRAME_ID"));
    }
    offers
        .pop()
        .ok_or_else(|| nothing_to_take("nothing is handed over that is not taken"))
}

fn already_taken(error: chorus_client::Error) -> Fail {
    match error.error_response() {
        Some(refusal) if refusal.status == 409 => {
            Fail::new(ExitKind::Refused, "ALREADY_TAKEN", refusal.message.clone())
        }
        Some(_) | None => error.into(),
    }
}

fn print_offer(common: &CommonArgs, open_item: &ParsedOpenItem) {
    let offer = &open_item.frame;
    let FramePayload::AgentHandover(work) = &offer.payload else {
        return;
    };
    let value = json!({ "frame_id": offer.frame_id, "sender_handle": offer.sender_handle, "created_at": offer.created_at,
        "previous_session_id": work.previous_session_id, "pointer_refs": work.pointer_refs,
        "handle": open_item.item.handle, "expires_at": open_item.item.expires_at });
    output::print_result(common.json, &value, || {
        format!(
            "{} {}",
            output::paint_text(output::FAINT_STYLE, &offer.frame_id.to_string()),
            format::format_frame(offer)
        )
    });
}

fn format_taken(offer: &ParsedOpenItem, work: &AgentHandover) -> String {
    let refs: String = work
        .pointer_refs
        .iter()
        .flatten()
        .map(|reference| format!("\n→ {}", output::escape_controls(reference)))
        .collect();
    let from = format!(
        "{} {}",
        offer.frame.sender_handle,
        output::escape_controls(&work.previous_session_id)
    );
    format!(
        "taken over from {}\n{}{refs}",
        output::paint_text(output::STRONG_STYLE, &from),
        output::escape_controls(work.handover_body.trim_end())
    )
}
