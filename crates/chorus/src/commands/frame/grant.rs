//! `chorus grant`: lets other handles address your sessions.

use super::frame_context::{FrameContext, SenderArgs};
use super::org::{print_outcome, print_rows};
use crate::agent_names::HandleName;
use crate::{cli::CommonArgs, fail::Fail};

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
        #[arg(value_name = "NAME", value_parser = HandleName::parse)]
        other: HandleName,
    },
    /// Remove the permission
    Remove {
        #[arg(value_name = "NAME", value_parser = HandleName::parse)]
        other: HandleName,
    },
    /// List the handles that may
    List,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let context = FrameContext::open(common, args.sender).await?;
    let mine = &context.sender.handle;
    match args.command {
        GrantCommand::Add { other } => {
            let other = other.resolve(&context.client).await?;
            let granted = match context.client.create_grant(mine, &other).await {
                Ok(granted) => granted,
                Err(error) => return Err(context.explain_handle(&other, error).await),
            };
            print_outcome(common, &granted, &format!("{other} may address {mine}"));
        }
        GrantCommand::Remove { other } => {
            let other = other.resolve(&context.client).await?;
            print_outcome(
                common,
                &context.client.revoke_grant(mine, &other).await?,
                &format!("{other} may no longer address {mine}"),
            );
        }
        GrantCommand::List => print_rows(
            common,
            &context.client.list_grants(mine).await?,
            [("HANDLE", "grantee"), ("SINCE", "granted_at")],
            &format!("no other handle may address {mine}; chorus grant add NAME lets one"),
        ),
    }
    Ok(())
}
