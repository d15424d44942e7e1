//! `chorus org`: organisations, who belongs to them and in which roles.

use super::voice::{Seat, Voice, handle, org};
use crate::{cli::Common, fail::Fail, out};
use chorus_wire::frame::Role;
use chorus_wire::identity::Handle;
use serde_json::Value;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    voice: Voice,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Found an organisation; you are its first member and owner
    Create {
        #[arg(value_name = "~ORG", value_parser = org)]
        org: Handle,
    },
    /// Show who belongs to it
    ListMembers {
        #[arg(value_name = "~ORG", value_parser = org)]
        org: Handle,
    },
    /// Invite somebody, or give a member other roles
    Invite {
        #[arg(value_name = "~ORG", value_parser = org)]
        org: Handle,
        #[arg(value_name = "~HANDLE", value_parser = handle)]
        who: Handle,
        /// A role; may be repeated
        #[arg(long = "role", value_name = "ROLE", value_parser = role)]
        roles: Vec<Role>,
    },
    /// Accept an invitation
    Accept {
        #[arg(value_name = "~ORG", value_parser = org)]
        org: Handle,
    },
    /// Leave it, or turn an invitation down
    Leave {
        #[arg(value_name = "~ORG", value_parser = org)]
        org: Handle,
    },
    /// Remove a member
    Remove {
        #[arg(value_name = "~ORG", value_parser = org)]
        org: Handle,
        #[arg(value_name = "~HANDLE", value_parser = handle)]
        who: Handle,
    },
}

pub fn role(text: &str) -> Result<Role, String> {
    Role::parse(text)
        .ok_or_else(|| "lower-case letters, digits, '.', '_' and '-', at most 64".into())
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let seat = Seat::take(common, args.voice).await?;
    let (client, me) = (&seat.client, &seat.speaker.handle);
    let (told, sentence) = match args.what {
        What::Create { org } => (client.create_org(&org).await?, format!("{org} is founded")),
        What::ListMembers { org } => (client.members(&org).await?, format!("{org} has no members")),
        What::Invite { org, who, roles } => (
            client.invite(&org, &who, &roles).await?,
            format!("{who} is invited to {org}"),
        ),
        What::Accept { org } => (
            client.join(&org, me).await?,
            format!("{me} belongs to {org}"),
        ),
        What::Leave { org } => (client.part(&org, me).await?, format!("{me} has left {org}")),
        What::Remove { org, who } => (
            client.part(&org, &who).await?,
            format!("{who} is removed from {org}"),
        ),
    };
    rows(common, &told, &sentence);
    Ok(())
}

/// A list as its rows, anything else as one sentence; with `--json` as the hub said it.
pub fn rows(common: &Common, told: &Value, sentence: &str) {
    if common.json {
        return out::line(&told.to_string());
    }
    let list = told
        .as_array()
        .or_else(|| told.as_object()?.values().find_map(Value::as_array));
    match list.filter(|list| list.iter().any(Value::is_object)) {
        Some(list) => list.iter().for_each(|row| out::line(&fields(row))),
        None => out::line(&out::harmless(sentence)),
    }
}

/// What people want to know of a row, in this order; the rest is for `--json`.
const SHOWN: [&str; 10] = [
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

fn fields(row: &Value) -> String {
    let text = |value: &Value| match value {
        Value::Null => String::new(),
        Value::String(text) => out::harmless(text),
        Value::Array(items) => {
            let items: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            out::harmless(&items.join(","))
        }
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => out::harmless(&value.to_string()),
    };
    let shown: Vec<String> = SHOWN
        .iter()
        .filter_map(|key| row.get(key))
        .map(text)
        .collect();
    shown
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("  ")
}
