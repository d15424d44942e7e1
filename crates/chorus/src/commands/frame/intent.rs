//! `chorus intent`: declares, withdraws or completes a costly action, so that several sessions do it once (FRM-44…47).

use super::frame_context::{self, FrameContext, ScopeArgs, SenderArgs};
use crate::commands::duration;
use crate::{cli::CommonArgs, fail::Fail};
use chorus_wire::frame::payload::{FlushExecuted, IntentDeclare, IntentUrgency, IntentWithdraw};
use serde_json::json;
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: IntentCommand,
}

#[derive(Debug, clap::Subcommand)]
enum IntentCommand {
    /// Declare what you are about to do
    Declare {
        /// The class of actions that can be combined, as NAMESPACE:NAME
        class: String,
        /// A reference to the work; never the work itself
        payload_ref: String,
        /// How long it may wait for other intents
        #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration::parse_duration)]
        ttl: Duration,
        /// It cannot wait
        #[arg(long)]
        urgent: bool,
        /// It will not be withdrawn
        #[arg(long)]
        firm: bool,
        #[command(flatten)]
        target: ScopeArgs,
        #[command(flatten)]
        sender: SenderArgs,
    },
    /// Withdraw an intent
    Withdraw {
        /// As it was declared
        class: String,
        /// The intent: the frame_id that `declare` printed
        intent_ref: String,
        #[command(flatten)]
        target: ScopeArgs,
        #[command(flatten)]
        sender: SenderArgs,
    },
    /// Announce that the action was done for all intents
    Flush {
        /// As it was declared
        class: String,
        /// A reference to the result
        result_ref: String,
        /// An intent that it covers; may be repeated
        #[arg(long = "ref", value_name = "REF")]
        refs: Vec<String>,
        #[command(flatten)]
        target: ScopeArgs,
        #[command(flatten)]
        sender: SenderArgs,
    },
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    match args.command {
        IntentCommand::Declare {
            class,
            payload_ref,
            ttl,
            urgent,
            firm,
            target,
            sender,
        } => {
            let context = FrameContext::open(common, sender).await?;
            let payload = IntentDeclare {
                convergence_class: class,
                payload_ref,
                // must equal the frame's.
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
                .send_and_print(&context.resolve_scope(&target).await?, payload, json!({}))
                .await?;
        }
        IntentCommand::Withdraw {
            class,
            intent_ref,
            target,
            sender,
        } => {
            let context = FrameContext::open(common, sender).await?;
            let payload = IntentWithdraw {
                convergence_class: class,
                intent_ref,
                withdrawn_at: frame_context::current_time(),
            };
            context
                .send_and_print(&context.resolve_scope(&target).await?, payload, json!({}))
                .await?;
        }
        IntentCommand::Flush {
            class,
            result_ref,
            refs,
            target,
            sender,
        } => {
            let context = FrameContext::open(common, sender).await?;
            let batch_refs = Some(refs).filter(|refs| !refs.is_empty());
            let payload = FlushExecuted {
                convergence_class: class,
                result_ref,
                batch_refs,
                executed_at: frame_context::current_time(),
            };
            context
                .send_and_print(&context.resolve_scope(&target).await?, payload, json!({}))
                .await?;
        }
    }
    Ok(())
}
