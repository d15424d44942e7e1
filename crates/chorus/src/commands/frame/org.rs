//! `chorus org`: manages organisations, their members and roles.

use super::frame_context::{FrameContext, SenderArgs, parse_org_handle};
use crate::agent_names::{self, HandleName};
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
        OrgCommand::Create { org } => (client.create_org(&org).await?, format!("{org} is founded")),
        OrgCommand::List => (
            client.list_own_orgs().await?,
            format!("{me} belongs to no organisation; chorus org create NAME founds one"),
        ),
        OrgCommand::ListMembers { org } => (
            client.list_org_members(&org).await?,
            format!("{org} has no members"),
        ),
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
    print_rows(common, &answer, &sentence);
    Ok(())
}

/// Prints a list as rows, anything else as `sentence`; with `--json` the hub's answer unchanged.
pub fn print_rows(common: &CommonArgs, answer: &Value, sentence: &str) {
    if common.json {
        return output::print_json(&answer.to_string());
    }
    let list = answer
        .as_array()
        .or_else(|| answer.as_object()?.values().find_map(Value::as_array));
    match list.filter(|list| list.iter().any(Value::is_object)) {
        Some(list) => list
            .iter()
            .for_each(|row| output::print_line(&format_fields(row))),
        None => output::print_line(&output::escape_controls(sentence)),
    }
}

/// The fields of a row for people, in this order; `--json` prints all.
const SHOWN_FIELDS: [&str; 10] = [
    "id",
    "handle",
    "grantor",
    "grantee",
    "grant",
    "reaches",
    "roles",
    "status",
    "expires_at",
    "granted_at",
];

fn format_fields(row: &Value) -> String {
    let text = |value: &Value| match value {
        Value::Null => String::new(),
        Value::String(text) => output::escape_controls(text),
        Value::Array(items) => {
            let items: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            output::escape_controls(&items.join(","))
        }
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            output::escape_controls(&value.to_string())
        }
    };
    let values: Vec<String> = SHOWN_FIELDS
        .iter()
        .filter_map(|key| row.get(key))
        .map(text)
        .collect();
    values
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("  ")
}
