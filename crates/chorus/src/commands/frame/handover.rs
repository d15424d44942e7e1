//! `chorus handover`: work that goes from one session to another, and taking it (FRM-31, FRM-32).

use super::voice::{self, Seat, Toward, Voice};
use super::{say, show};
use crate::fail::{Exit, Fail};
use crate::{cli::Common, out};
use chorus_client::frame::{Frames, Handovers, Heard, frame_ref};
use chorus_wire::frame::payload::AgentHandover;
use chorus_wire::frame::{Frame, Payload, Scope};
use chorus_wire::limits;
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;
use uuid::Uuid;

/// How long a claim may take to come back on our own stream before the hub's answer is enough.
const ECHO: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// A file that says where things stand; otherwise standard input
    #[arg(value_name = "FILE", default_value = "-", conflicts_with_all = ["take", "list"])]
    body: PathBuf,
    /// Where more is to be found; may be repeated
    #[arg(long = "ref", value_name = "REF")]
    refs: Vec<String>,
    /// Take the work over: the one named by its frame, or the only one there is
    #[arg(long, value_name = "FRAME_ID", num_args = 0..=1, conflicts_with = "list")]
    take: Option<Option<Uuid>>,
    /// Show what nobody has taken
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    toward: Toward,
    #[command(flatten)]
    voice: Voice,
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let take = args.take.is_some() || args.list;
    let body = if take {
        String::new()
    } else {
        say::text(&args.body, limits::HANDOVER_OCTETS)?
    };
    let seat = Seat::take(common, args.voice).await?;
    if take {
        let (kept, frames) = seat.client.kept(&seat.speaker, voice::now).await?;
        let mut handovers = Handovers::default();
        kept.iter().for_each(|frame| handovers.hear(frame));
        if args.list {
            handovers
                .open()
                .into_iter()
                .for_each(|offer| row(common, offer));
            return Ok(());
        }
        return self::take(&seat, handovers, frames, args.take.flatten()).await;
    }
    let payload = AgentHandover {
        previous_session_id: seat.speaker.session.to_string(),
        next_session_id: None,
        handover_body: body,
        pointer_refs: Some(args.refs).filter(|refs| !refs.is_empty()),
    };
    seat.announce(&seat.toward(&args.toward), payload, json!({}))
        .await
        .map(|_| ())
}

async fn take(
    seat: &Seat<'_>,
    mut open: Handovers,
    mut frames: Frames,
    id: Option<Uuid>,
) -> Result<(), Fail> {
    let offer = pick(seat.common, &open, id)?.clone();
    let Payload::AgentHandover(work) = &offer.payload else {
        return Ok(());
    };
    let mut refs = work.pointer_refs.clone().unwrap_or_default();
    refs.push(frame_ref(&offer.frame_id));
    let me = seat.speaker.session.to_string();
    let claim = AgentHandover {
        next_session_id: Some(me),
        pointer_refs: Some(refs),
        ..work.clone()
    };
    let said = seat.say(&seat.speaker.own(), claim.clone()).await?;
    // Two may take it in the same moment; the handle's stream has one order, and the first in it has the work.
    let mine = said.frame.frame_id;
    let echo = async {
        while open.taker(&offer.frame_id).is_none() {
            if let Heard::Frame(frame, _) = frames.next().await? {
                open.hear(&frame);
            }
        }
        Ok::<(), Fail>(())
    };
    if let Ok(heard) = tokio::time::timeout(ECHO, echo).await {
        heard?;
    }
    if let Some(first) = open
        .taker(&offer.frame_id)
        .filter(|first| first.frame_id != mine)
    {
        return Err(taken(first));
    }
    if offer.sender_handle != seat.speaker.handle {
        // Whoever handed it over likes to know; that we may not tell them changes nothing.
        let theirs = Scope::Handle(offer.sender_handle.clone());
        if let Err(fail) = seat.say(&theirs, claim).await {
            tracing::debug!(?fail, "the sender of the handover was not told");
        }
    }
    let value = json!({ "frame_id": offer.frame_id, "previous_session_id": work.previous_session_id,
        "handover_body": work.handover_body, "pointer_refs": work.pointer_refs });
    out::say(seat.common.json, &value, || human(&offer, work));
    Ok(())
}

fn pick<'a>(common: &Common, open: &'a Handovers, id: Option<Uuid>) -> Result<&'a Frame, Fail> {
    let nothing = |message: &str| Fail::new(Exit::Refused, "NOTHING_TO_TAKE", message);
    let Some(id) = id else {
        let offers = open.open();
        return match offers.as_slice() {
            [] => Err(nothing("nobody has handed over anything that is not taken")),
            [only] => Ok(only),
            several => {
                several.iter().for_each(|offer| row(common, offer));
                Err(Fail::usage("which one? pass --take FRAME_ID"))
            }
        };
    };
    let offer = open
        .offer(&id)
        .ok_or_else(|| nothing("the hub keeps no such handover"))?;
    open.taker(&id).map_or(Ok(offer), |first| Err(taken(first)))
}

fn taken(first: &Frame) -> Fail {
    let next = if let Payload::AgentHandover(claim) = &first.payload {
        claim.next_session_id.as_deref()
    } else {
        None
    };
    let by = next.unwrap_or_default();
    let message = format!("it was taken by {} {by}", first.sender_handle);
    Fail::new(Exit::Refused, "ALREADY_TAKEN", message)
}

fn row(common: &Common, offer: &Frame) {
    let Payload::AgentHandover(work) = &offer.payload else {
        return;
    };
    let value = json!({ "frame_id": offer.frame_id, "sender_handle": offer.sender_handle, "created_at": offer.created_at,
        "previous_session_id": work.previous_session_id, "pointer_refs": work.pointer_refs });
    out::say(common.json, &value, || {
        format!(
            "{} {}",
            out::painted(out::FAINT, &offer.frame_id.to_string()),
            show::frame(offer)
        )
    });
}

fn human(offer: &Frame, work: &AgentHandover) -> String {
    let refs: String = work
        .pointer_refs
        .iter()
        .flatten()
        .map(|to| format!("\n→ {}", out::harmless(to)))
        .collect();
    let from = format!(
        "{} {}",
        offer.sender_handle,
        out::harmless(&work.previous_session_id)
    );
    format!(
        "taken over from {}\n{}{refs}",
        out::painted(out::STRONG, &from),
        out::harmless(work.handover_body.trim_end())
    )
}
