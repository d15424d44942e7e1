//! `chorus mcp`: serves the hub's tools over standard input and output, with the local credentials.

mod bridge;
mod catalogue;
mod codex_waker;
mod hub_link;
mod inbox;
mod mail_notice;
mod open_waits;

use super::init::{entry_source::EntrySource, plugin};
use crate::fail::{ExitKind, Fail};
use crate::next_step::complete_hub_url;
use crate::{cli::CommonArgs, command_client};
use bridge::McpBridge;
use chorus_client::files::AgentCredentials;
use hub_link::HubLink;
use rmcp::ServiceExt;
use std::sync::Arc;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Register under this name if there are no credentials yet; needs a hub
    #[arg(long, value_name = "NAME@HOST")]
    register: Option<String>,
    /// The culture of your user, for --register
    #[arg(long, value_name = "TAG", env = "CHORUS_CULTURE", default_value = "en")]
    culture: String,
    /// The program this session runs in, such as cc-editor; default: the host's name
    #[arg(long, value_name = "NAME", env = "CHORUS_INSTRUMENT", value_parser = super::frame::frame_context::parse_ident)]
    instrument: Option<chorus_wire::frame::ScopeIdent>,
    /// This session's id; default: the host's, or one per host process
    #[arg(long, value_name = "ID", env = "CHORUS_SESSION", value_parser = super::frame::frame_context::parse_ident)]
    session: Option<chorus_wire::frame::ScopeIdent>,
    /// Where the model of this session runs: server-active, server-aggregate or local-only; default: server-active
    #[arg(long, value_name = "WHERE", env = "CHORUS_COMPUTE", value_parser = super::frame::frame_context::parse_compute_location)]
    compute: Option<chorus_wire::frame::ComputeLocation>,
    /// Only these groups of tools: messages, frames, channels, market; all without it
    #[arg(long, value_name = "GROUPS", env = "CHORUS_TOOLS")]
    tools: Option<chorus_server::mcp::ToolGroups>,
    /// Wake the Codex thread that uses these tools when mail comes
    #[arg(long)]
    wake: bool,
    /// What starts it: with `plugin` it runs without credentials too, and lists no tools where `chorus init` has installed them
    #[arg(long, value_name = "WHAT")]
    from: Option<EntrySource>,
}

pub async fn run(common: &CommonArgs, mut args: Args) -> Result<(), Fail> {
    let mut common = command_client::pin_credentials(common)?;
    // SKL-19, SKL-20: a saved identity is never replaced.
    let is_registered =
        AgentCredentials::read_from(&command_client::identity_files(&common)?)?.is_some();
    let is_plugin = args.from == Some(EntrySource::Plugin);
    if is_plugin && !is_registered && args.register.is_none() {
        take_plugin_options(&mut common, &mut args);
    }
    // A plugin is installed before its user registers: its tools say what to run (PLG-06).
    let may_wait = args.register.is_some() || is_plugin;
    if !is_registered && !may_wait {
        let message = "no credentials found; run: chorus register NAME@HOST --hub URL --culture TAG, or start with: chorus \
                    mcp --register NAME --hub URL";
        return Err(Fail::new(
            ExitKind::NotRegistered,
            "NOT_REGISTERED",
            message,
        ));
    }
    let tools = args.tools.clone().unwrap_or_default();
    let wakes_codex = args.wake;
    let registers = args.register.is_some();
    let hub_link = Arc::new(HubLink::new(common, args));
    if !is_registered && registers {
        match hub_link.open_command_client().await {
            // an unreachable hub may come back, but a taken name stays taken. The tools of a plugin say it.
            Err(fail) if fail.exit_kind() != ExitKind::Transport && !is_plugin => return Err(fail),
            Ok(_) | Err(_) => {}
        }
    }
    let inbox_task = tokio::spawn(inbox::keep_listening(hub_link.clone()));
    let waker_task = wakes_codex.then(|| tokio::spawn(codex_waker::keep_waking(hub_link.clone())));
    let outcome = serve_stdio(McpBridge::new(hub_link, tools)).await;
    inbox_task.abort();
    if let Some(task) = waker_task {
        task.abort();
        // The lock of its thread is removed before this process ends.
        let _ = task.await;
    }
    outcome
}

/// Registers under the name that the user of the plugin gave, at the hub that they gave (PLG-07).
fn take_plugin_options(common: &mut CommonArgs, args: &mut Args) {
    if let Some((hub, name)) = plugin::read_options() {
        common.hub.get_or_insert_with(|| complete_hub_url(&hub));
        args.register = Some(name);
    }
}

/// Serves until the host closes standard input.
async fn serve_stdio(bridge: McpBridge) -> Result<(), Fail> {
    let failed = |e: &dyn std::fmt::Display| {
        Fail::new(
            ExitKind::Transport,
            "TRANSPORT",
            format!("the host went away: {e}"),
        )
    };
    match bridge.serve(rmcp::transport::stdio()).await {
        Ok(running) => running.waiting().await.map(|_| ()).map_err(|e| failed(&e)),
        // The host only checked that the process starts.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(failed(&error)),
    }
}
