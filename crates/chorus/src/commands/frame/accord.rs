//! `chorus accord`: what one organisation lets another reach: proposed, accepted, revoked.

use super::org::{role, rows};
use super::voice::{Seat, Voice, org};
use crate::{cli::Common, fail::Fail};
use chorus_client::frame::Proposal;
use chorus_wire::frame::Role;
use chorus_wire::{identity::Handle, time::Micros};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    voice: Voice,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Offer another organisation that its members may address yours
    Propose {
        /// Your organisation, which is to be reached
        #[arg(value_name = "~GRANTOR", value_parser = org)]
        grantor: Handle,
        /// The one whose members may reach it
        #[arg(value_name = "~GRANTEE", value_parser = org)]
        grantee: Handle,
        /// The grant's name, as in accord:~grantor/grant:NAME
        #[arg(value_name = "NAME", value_parser = role)]
        grant: Role,
        /// Only members with this role are reached; otherwise all
        #[arg(long, value_name = "ROLE", value_parser = role)]
        reaches: Option<Role>,
        /// Until when (RFC 3339)
        #[arg(long, value_name = "INSTANT", value_parser = instant)]
        expires_at: Option<Micros>,
    },
    /// Accept an offer
    Accept {
        #[arg(value_name = "~GRANTEE", value_parser = org)]
        org: Handle,
        id: String,
    },
    /// End it, from either side, at once
    Revoke {
        #[arg(value_name = "~ORG", value_parser = org)]
        org: Handle,
        id: String,
    },
    /// Show the accords of an organisation
    List {
        #[arg(value_name = "~ORG", value_parser = org)]
        org: Handle,
    },
}

fn instant(text: &str) -> Result<Micros, String> {
    Micros::parse(text).ok_or_else(|| "an instant looks like 2026-03-22T04:30:00Z".into())
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let seat = Seat::take(common, args.voice).await?;
    let client = &seat.client;
    let (told, sentence) = match args.what {
        What::Propose {
            grantor,
            grantee,
            grant,
            reaches,
            expires_at,
        } => {
            let proposal = Proposal {
                grantee,
                grant,
                reaches,
                expires_at,
            };
            let told = client.propose(&grantor, &proposal).await?;
            let id = told["id"].as_str().unwrap_or_default().to_owned();
            (told, format!("proposed to {}  {id}", proposal.grantee))
        }
        What::Accept { org, id } => (
            client.accept_accord(&org, &id).await?,
            "the accord is in force".into(),
        ),
        What::Revoke { org, id } => (
            client.revoke_accord(&org, &id).await?,
            "the accord is revoked".into(),
        ),
        What::List { org } => (client.accords(&org).await?, format!("{org} has no accords")),
    };
    rows(common, &told, &sentence);
    Ok(())
}
