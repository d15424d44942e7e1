//! `chorus accord`: proposes, accepts, revokes and lists accords between organisations.

use super::frame_context::{FrameContext, SenderArgs, parse_org_handle};
use super::org::{parse_role, print_outcome, print_rows};
use crate::{cli::CommonArgs, fail::Fail};
use chorus_client::frame::AccordProposal;
use chorus_wire::frame::RoleName;
use chorus_wire::{identity::Handle, time::UnixMicros};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: AccordCommand,
    #[command(flatten)]
    sender: SenderArgs,
}

#[derive(Debug, clap::Subcommand)]
enum AccordCommand {
    /// Propose that members of another organisation may address yours
    Propose {
        /// Your organisation, whose members are addressed
        #[arg(value_name = "GRANTOR", value_parser = parse_org_handle)]
        grantor: Handle,
        /// The organisation whose members may address it
        #[arg(value_name = "GRANTEE", value_parser = parse_org_handle)]
        grantee: Handle,
        /// The grant's name, as in accord:~grantor/grant:NAME
        #[arg(value_name = "NAME", value_parser = parse_role)]
        grant: RoleName,
        /// Only members with this role can be addressed; default: all
        #[arg(long, value_name = "ROLE", value_parser = parse_role)]
        reaches: Option<RoleName>,
        /// When it expires (RFC 3339)
        #[arg(long, value_name = "INSTANT", value_parser = parse_instant)]
        expires_at: Option<UnixMicros>,
    },
    /// Accept a proposal
    Accept {
        #[arg(value_name = "GRANTEE", value_parser = parse_org_handle)]
        org: Handle,
        id: String,
    },
    /// Revoke it at once; either side may
    Revoke {
        #[arg(value_name = "ORG", value_parser = parse_org_handle)]
        org: Handle,
        id: String,
    },
    /// List the accords of an organisation
    List {
        #[arg(value_name = "ORG", value_parser = parse_org_handle)]
        org: Handle,
    },
}

fn parse_instant(text: &str) -> Result<UnixMicros, String> {
    UnixMicros::parse(text).ok_or_else(|| "an instant looks like 2026-03-22T04:30:00Z".into())
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let context = FrameContext::open(common, args.sender).await?;
    let client = &context.client;
    let (answer, sentence) = match args.command {
        AccordCommand::Propose {
            grantor,
            grantee,
            grant,
            reaches,
            expires_at,
        } => {
            let proposal = AccordProposal {
                grantee,
                grant,
                reaches,
                expires_at,
            };
            let answer = client.propose_accord(&grantor, &proposal).await?;
            let id = answer["id"].as_str().unwrap_or_default().to_owned();
            (answer, format!("proposed to {}  {id}", proposal.grantee))
        }
        AccordCommand::Accept { org, id } => (
            client.accept_accord(&org, &id).await?,
            "the accord is in force".into(),
        ),
        AccordCommand::Revoke { org, id } => (
            client.revoke_accord(&org, &id).await?,
            "the accord is revoked".into(),
        ),
        AccordCommand::List { org } => {
            let accords = client.list_accords(&org).await?;
            print_rows(
                common,
                &accords,
                ACCORD_COLUMNS,
                &format!("{org} has no accords"),
            );
            return Ok(());
        }
    };
    print_outcome(common, &answer, &sentence);
    Ok(())
}

const ACCORD_COLUMNS: [(&str, &str); 7] = [
    ("ID", "id"),
    ("GRANTOR", "grantor"),
    ("GRANTEE", "grantee"),
    ("GRANT", "grant"),
    ("REACHES", "reaches"),
    ("STATUS", "status"),
    ("UNTIL", "expires_at"),
];
