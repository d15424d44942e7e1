//! `chorus intent`: a costly effect that a session is about to cause, so that several are done once (FRM-44…47).

use super::voice::{self, Seat, Toward, Voice};
use crate::commands::span;
use crate::{cli::Common, fail::Fail};
use chorus_wire::frame::payload::{FlushExecuted, IntentDeclare, IntentWithdraw, Urgency};
use serde_json::json;
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Say what you are about to do
    Declare {
        /// What may be done together, as NAMESPACE:NAME
        class: String,
        /// A reference to the work; never the work itself
        payload_ref: String,
        /// How long it may wait for others
        #[arg(long, value_name = "TIME", default_value = "5m", value_parser = span::parse)]
        ttl: Duration,
        /// That it cannot wait
        #[arg(long)]
        urgent: bool,
        /// That it will not be taken back
        #[arg(long)]
        firm: bool,
        #[command(flatten)]
        toward: Toward,
        #[command(flatten)]
        voice: Voice,
    },
    /// Take it back
    Withdraw {
        /// As it was declared
        class: String,
        /// The intent: the frame_id that `declare` printed
        intent_ref: String,
        #[command(flatten)]
        toward: Toward,
        #[command(flatten)]
        voice: Voice,
    },
    /// Say that it was done, once for all
    Flush {
        /// As it was declared
        class: String,
        /// A reference to what came of it
        result_ref: String,
        /// An intent that it covers; may be repeated
        #[arg(long = "ref", value_name = "REF")]
        refs: Vec<String>,
        #[command(flatten)]
        toward: Toward,
        #[command(flatten)]
        voice: Voice,
    },
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    match args.what {
        What::Declare {
            class,
            payload_ref,
            ttl,
            urgent,
            firm,
            toward,
            voice,
        } => {
            let seat = Seat::take(common, voice).await?;
            let payload = IntentDeclare {
                convergence_class: class,
                payload_ref,
                // the same as the frame's.
                acted_by: seat.speaker.acted_by.clone(),
                drafted_with: seat.speaker.drafted_with.clone(),
                declared_at: voice::now(),
                ttl: span::millis(ttl),
                withdrawable: !firm,
                urgency: Some(if urgent {
                    Urgency::Urgent
                } else {
                    Urgency::Normal
                }),
            };
            seat.announce(&seat.toward(&toward), payload, json!({}))
                .await?;
        }
        What::Withdraw {
            class,
            intent_ref,
            toward,
            voice,
        } => {
            let seat = Seat::take(common, voice).await?;
            let payload = IntentWithdraw {
                convergence_class: class,
                intent_ref,
                withdrawn_at: voice::now(),
            };
            seat.announce(&seat.toward(&toward), payload, json!({}))
                .await?;
        }
        What::Flush {
            class,
            result_ref,
            refs,
            toward,
            voice,
        } => {
            let seat = Seat::take(common, voice).await?;
            let batch_refs = Some(refs).filter(|refs| !refs.is_empty());
            let payload = FlushExecuted {
                convergence_class: class,
                result_ref,
                batch_refs,
                executed_at: voice::now(),
            };
            seat.announce(&seat.toward(&toward), payload, json!({}))
                .await?;
        }
    }
    Ok(())
}
