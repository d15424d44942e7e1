//! `chorus grant`: who else may address your sessions.

use super::frame_context::{FrameContext, SenderArgs, parse_handle};
use super::org::print_rows;
use crate::{cli::CommonArgs, fail::Fail};
use chorus_wire::identity::Handle;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: GrantCommand,
    #[command(flatten)]
    voice: SenderArgs,
}

#[derive(Debug, clap::Subcommand)]
enum GrantCommand {
    /// Let somebody address you
    Add {
        #[arg(value_name = "~HANDLE", value_parser = parse_handle)]
        who: Handle,
    },
    /// No longer
    Remove {
        #[arg(value_name = "~HANDLE", value_parser = parse_handle)]
        who: Handle,
    },
    /// Show who may
    List,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let context = FrameContext::open(common, args.voice).await?;
    let mine = &context.sender.handle;
    match args.what {
        GrantCommand::Add { who } => print_rows(
            common,
            &context.client.create_grant(mine, &who).await?,
            &format!("{who} may address {mine}"),
        ),
        GrantCommand::Remove { who } => {
            print_rows(
                common,
                &context.client.revoke_grant(mine, &who).await?,
                &format!("{who} may no longer address {mine}"),
            );
        }
        GrantCommand::List => print_rows(
            common,
            &context.client.list_grants(mine).await?,
            &format!("nobody else may address {mine}"),
        ),
    }
    Ok(())
}
