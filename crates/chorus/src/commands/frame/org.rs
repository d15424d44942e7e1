//! `chorus org`: manages organisations, their members and roles.

use super::frame_context::{FrameContext, SenderArgs, parse_org_handle};
use crate::agent_names::{self, HandleName};
use crate::table::{self, TableCell, TableRow};
use crate::{cli::CommonArgs, fail::Fail, output};
use chorus_wire::frame::RoleName;
use chorus_wire::identity::Handle;
use serde_json::Value;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: OrgCommand,
    #[command(flatten)]
    sender: SenderArgs,
}

#[derive(Debug, clap::Subcommand)]
enum OrgCommand {
    /// Create an organisation; you are its first member and owner
    Create {
        #[arg(value_name = "ORG", value_parser = parse_org_handle)]
        org: Handle,
    },
    /// List the organisations you belong to, and your invitations
    List,
    /// List its members
    ListMembers {
        #[arg(value_name = "ORG", value_parser = parse_org_handle)]
        org: Handle,
    },
    /// Invite a handle, or change the roles of a member
    Invite {
        #[arg(value_name = "ORG", value_parser = parse_org_handle)]
        org: Handle,
        #[arg(value_name = "NAME", value_parser = HandleName::parse)]
        member: HandleName,
        /// A role; may be repeated
        #[arg(long = "role", value_name = "ROLE", value_parser = parse_role)]
        roles: Vec<RoleName>,
    },
    /// Accept an invitation
    Accept {
        #[arg(value_name = "ORG", value_parser = parse_org_handle)]
        org: Handle,
    },
    /// Leave it, or decline an invitation
    Leave {
        #[arg(value_name = "ORG", value_parser = parse_org_handle)]
        org: Handle,
    },
    /// Remove a member
    Remove {
        #[arg(value_name = "ORG", value_parser = parse_org_handle)]
        org: Handle,
        #[arg(value_name = "NAME", value_parser = HandleName::parse)]
        member: HandleName,
    },
}

pub fn parse_role(text: &str) -> Result<RoleName, String> {
    RoleName::parse(text)
        .ok_or_else(|| "lower-case letters, digits, '.', '_' and '-', at most 64".into())
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let context = FrameContext::open(common, args.sender).await?;
    let client = &context.client;
    let me = &context.sender.handle;
    let (answer, sentence) = match args.command {
        OrgCommand::List => {
            let empty =
                format!("{me} belongs to no organisation; chorus org create NAME founds one");
            print_rows(common, &client.list_own_orgs().await?, ORG_COLUMNS, &empty);
            return Ok(());
        }
        OrgCommand::ListMembers { org } => {
            let empty = format!("{org} has no members");
            let members = client.list_org_members(&org).await?;
            print_rows(common, &members, MEMBER_COLUMNS, &empty);
            return Ok(());
        }
        OrgCommand::Create { org } => (client.create_org(&org).await?, format!("{org} is founded")),
        OrgCommand::Invite { org, member, roles } => {
            let member = member.resolve(client).await?;
            // Asked first: the invitation is also refused when the organisation does not exist.
            agent_names::resolve_agent(client, member.as_str()).await?;
            (
                client.invite_member(&org, &member, &roles).await?,
                format!("{member} is invited to {org}"),
            )
        }
        OrgCommand::Accept { org } => (
            client.accept_membership(&org, me).await?,
            format!("{me} belongs to {org}"),
        ),
        OrgCommand::Leave { org } => (
            client.remove_org_member(&org, me).await?,
            format!("{me} has left {org}"),
        ),
        OrgCommand::Remove { org, member } => {
            let member = member.resolve(client).await?;
            (
                client.remove_org_member(&org, &member).await?,
                format!("{member} is removed from {org}"),
            )
        }
    };
    print_outcome(common, &answer, &sentence);
    Ok(())
}

const ORG_COLUMNS: [ListColumn; 3] = [
    ("ORGANISATION", "handle"),
    ("ROLES", "roles"),
    ("STATUS", "status"),
];
const MEMBER_COLUMNS: [ListColumn; 3] = [
    ("MEMBER", "handle"),
    ("ROLES", "roles"),
    ("STATUS", "status"),
];

/// A column of a list: its title, and the field of the hub's answer.
type ListColumn = (&'static str, &'static str);

/// Prints what was done as a sentence; with `--json` the hub's answer unchanged.
pub fn print_outcome(common: &CommonArgs, answer: &Value, sentence: &str) {
    output::print_result(common.json, answer, || output::escape_controls(sentence));
}

/// Prints the list in the hub's answer, or a sentence if it is empty; with `--json` the answer unchanged.
pub fn print_rows<const N: usize>(
    common: &CommonArgs,
    answer: &Value,
    columns: [ListColumn; N],
    empty: &str,
) {
    let list = answer
        .as_array()
        .or_else(|| answer.as_object()?.values().find_map(Value::as_array));
    let rows = list.map(Vec::as_slice).unwrap_or_default();
    if common.json || rows.is_empty() {
        return print_outcome(common, answer, empty);
    }
    table::print_table(false, rows, columns.map(|(title, _)| title), empty, |row| {
        TableRow::of_cells(columns.map(|(_, field)| TableCell::from(format_field(row, field))))
    });
}

fn format_field(row: &Value, field: &str) -> String {
    let text = match &row[field] {
        Value::String(text) if field.ends_with("_at") => crate::local_time::date_time(text),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            items.join(",")
        }
        Value::Null => String::new(),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Object(_)) => other.to_string(),
    };
    match text.is_empty() {
        true => "-".to_owned(),
        false => text,
    }
}
