//! `chorus grant`: lets other handles address your sessions.

use super::frame_context::{FrameContext, SenderArgs, parse_handle};
use super::org::print_rows;
use crate::{cli::CommonArgs, fail::Fail};
use chorus_wire::identity::Handle;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: GrantCommand,
    #[command(flatten)]
    sender: SenderArgs,
}

#[derive(Debug, clap::Subcommand)]
enum GrantCommand {
    /// Let a handle address you
    Add {
        #[arg(value_name = "~HANDLE", value_parser = parse_handle)]
        other: Handle,
    },
    /// Remove the permission
    Remove {
        #[arg(value_name = "~HANDLE", value_parser = parse_handle)]
        other: Handle,
    },
    /// List the handles that may
    List,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let context = FrameContext::open(common, args.sender).await?;
    let mine = &context.sender.handle;
    match args.command {
        GrantCommand::Add { other } => print_rows(
            common,
            &context.client.create_grant(mine, &other).await?,
            &format!("{other} may address {mine}"),
        ),
        GrantCommand::Remove { other } => {
            print_rows(
                common,
                &context.client.revoke_grant(mine, &other).await?,
                &format!("{other} may no longer address {mine}"),
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
