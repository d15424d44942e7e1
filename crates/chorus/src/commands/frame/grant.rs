//! `chorus grant`: who else may address your sessions.

use super::org::rows;
use super::voice::{Seat, Voice, handle};
use crate::{cli::Common, fail::Fail};
use chorus_wire::identity::Handle;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    voice: Voice,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Let somebody address you
    Add {
        #[arg(value_name = "~HANDLE", value_parser = handle)]
        who: Handle,
    },
    /// No longer
    Remove {
        #[arg(value_name = "~HANDLE", value_parser = handle)]
        who: Handle,
    },
    /// Show who may
    List,
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let seat = Seat::take(common, args.voice).await?;
    let mine = &seat.speaker.handle;
    match args.what {
        What::Add { who } => rows(
            common,
            &seat.client.grant(mine, &who).await?,
            &format!("{who} may address {mine}"),
        ),
        What::Remove { who } => {
            rows(
                common,
                &seat.client.ungrant(mine, &who).await?,
                &format!("{who} may no longer address {mine}"),
            );
        }
        What::List => rows(
            common,
            &seat.client.grants(mine).await?,
            &format!("nobody else may address {mine}"),
        ),
    }
    Ok(())
}
