//! `chorus intent`: a costly effect that a session is about to cause, so that several are done once (FRM-44…47).

use super::frame_context::{self, FrameContext, ScopeArgs, SenderArgs};
use crate::commands::duration;
use crate::{cli::CommonArgs, fail::Fail};
use chorus_wire::frame::payload::{FlushExecuted, IntentDeclare, IntentUrgency, IntentWithdraw};
use serde_json::json;
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: IntentCommand,
}

#[derive(Debug, clap::Subcommand)]
enum IntentCommand {
    /// Say what you are about to do
    Declare {
        /// What may be done together, as NAMESPACE:NAME
        class: String,
        /// A reference to the work; never the work itself
        payload_ref: String,
        /// How long it may wait for others
        #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration::parse_duration)]
        ttl: Duration,
        /// That it cannot wait
        #[arg(long)]
        urgent: bool,
        /// That it will not be taken back
        #[arg(long)]
        firm: bool,
        #[command(flatten)]
        toward: ScopeArgs,
        #[command(flatten)]
        voice: SenderArgs,
    },
    /// Take it back
    Withdraw {
        /// As it was declared
        class: String,
        /// The intent: the frame_id that `declare` printed
        intent_ref: String,
        #[command(flatten)]
        toward: ScopeArgs,
        #[command(flatten)]
        voice: SenderArgs,
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
        toward: ScopeArgs,
        #[command(flatten)]
        voice: SenderArgs,
    },
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    match args.what {
        IntentCommand::Declare {
            class,
            payload_ref,
            ttl,
            urgent,
            firm,
            toward,
            voice,
        } => {
            let context = FrameContext::open(common, voice).await?;
            let payload = IntentDeclare {
                convergence_class: class,
                payload_ref,
                // the same as the frame's.
                acted_by: context.sender.acted_by.clone(),
                drafted_with: context.sender.drafted_with.clone(),
                declared_at: frame_context::current_time(),
                ttl: duration::as_millis(ttl),
                withdrawable: !firm,
                urgency: Some(if urgent {
                    IntentUrgency::Urgent
                } else {
                    IntentUrgency::Normal
                }),
            };
            context
                .send_and_print(&context.resolve_scope(&toward), payload, json!({}))
                .await?;
        }
        IntentCommand::Withdraw {
            class,
            intent_ref,
            toward,
            voice,
        } => {
            let context = FrameContext::open(common, voice).await?;
            let payload = IntentWithdraw {
                convergence_class: class,
                intent_ref,
                withdrawn_at: frame_context::current_time(),
            };
            context
                .send_and_print(&context.resolve_scope(&toward), payload, json!({}))
                .await?;
        }
        IntentCommand::Flush {
            class,
            result_ref,
            refs,
            toward,
            voice,
        } => {
            let context = FrameContext::open(common, voice).await?;
            let batch_refs = Some(refs).filter(|refs| !refs.is_empty());
            let payload = FlushExecuted {
                convergence_class: class,
                result_ref,
                batch_refs,
                executed_at: frame_context::current_time(),
            };
            context
                .send_and_print(&context.resolve_scope(&toward), payload, json!({}))
                .await?;
        }
    }
    Ok(())
}
