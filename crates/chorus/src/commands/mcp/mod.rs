//! `chorus mcp`: the hub's tools over standard input and output, with the credentials of this machine.

mod bridge;
mod inbox;
mod link;
mod notice;

use crate::fail::{Exit, Fail};
use crate::{cli::Common, session};
use bridge::Bridge;
use chorus_client::files::Credentials;
use link::Link;
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
    /// The program this session runs in, such as cc-editor; otherwise what the host calls itself
    #[arg(long, value_name = "NAME", env = "CHORUS_INSTRUMENT", value_parser = super::frame::voice::ident)]
    instrument: Option<chorus_wire::frame::Ident>,
    /// This session's id; otherwise the host's, or one per host process
    #[arg(long, value_name = "ID", env = "CHORUS_SESSION", value_parser = super::frame::voice::ident)]
    session: Option<chorus_wire::frame::Ident>,
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    // SKL-19, SKL-20: who is registered stays who it is.
    let known = Credentials::read(&session::place(common)?)?.is_some();
    if !known && args.register.is_none() {
        let what = "no credentials found; run: chorus register NAME@HOST --hub URL --culture TAG, or start with: chorus \
                    mcp --register NAME --hub URL";
        return Err(Fail::new(Exit::NotRegistered, "NOT_REGISTERED", what));
    }
    let link = Arc::new(Link::new(common.clone(), args));
    if !known {
        match link.session().await {
            // a hub that is away may come back; a name that is taken stays taken.
            Err(fail) if fail.exit() != Exit::Transport => return Err(fail),
            Ok(_) | Err(_) => {}
        }
    }
    let keeper = tokio::spawn(inbox::keep(link.clone()));
    let outcome = serve(Bridge::new(link)).await;
    keeper.abort();
    outcome
}

/// Until the host closes our standard input.
async fn serve(bridge: Bridge) -> Result<(), Fail> {
    let failed = |e: &dyn std::fmt::Display| {
        Fail::new(
            Exit::Transport,
            "TRANSPORT",
            format!("the host went away: {e}"),
        )
    };
    match bridge.serve(rmcp::transport::stdio()).await {
        Ok(running) => running.waiting().await.map(|_| ()).map_err(|e| failed(&e)),
        // A host that only looked whether we start has said nothing.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(failed(&error)),
    }
}
