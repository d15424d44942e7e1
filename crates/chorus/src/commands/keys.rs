//! `chorus keys`: lists, creates and ends the further keys of the agent, and rotates the registration's key.

use super::duration::parse_duration;
use crate::table::{self, TableCell, TableRow};
use crate::{cli::CommonArgs, command_client::CommandClient, fail::Fail, output};
use chorus_client::channel::SavedConnection;
use chorus_client::files::AgentCredentials;
use chorus_wire::agent_key::{AgentKeyRecord, KeyRotation, KeyScope, NewAgentKey};
use sha2::{Digest, Sha256};
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: KeysCommand,
}

#[derive(Debug, clap::Subcommand)]
enum KeysCommand {
    /// List the further keys, without the keys themselves
    List,
    /// Create a further key; it is printed once and not saved
    Create {
        /// What it is for
        label: String,
        /// What it may do: read, send, frames, channels, market, admin; may be repeated
        #[arg(long = "scope", value_name = "SCOPE", required = true, value_delimiter = ',', value_parser = parse_scope)]
        scopes: Vec<KeyScope>,
        /// When it ends: 12h, 30d
        #[arg(long, value_name = "TIME", value_parser = parse_duration)]
        expires: Option<Duration>,
    },
    /// End a further key and what was made with it
    Revoke {
        /// Its id in the list
        id: String,
    },
    /// Replace the registration's key in the credential file; repeat the command if it failed on the way
    Rotate {
        /// How long the old key still works: 10m, 24h at most
        #[arg(long, value_name = "TIME", value_parser = parse_duration)]
        overlap: Option<Duration>,
    },
}

fn parse_scope(text: &str) -> Result<KeyScope, String> {
    let names = KeyScope::TEXTS.join(", ");
    KeyScope::parse(text).ok_or_else(|| format!("a scope is one of {names}"))
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let command = CommandClient::open(common)?;
    match args.command {
        KeysCommand::List => list_keys(common, &command).await,
        KeysCommand::Create {
            label,
            scopes,
            expires,
        } => {
            let new = NewAgentKey {
                label,
                scopes,
                expires_in_s: expires.map(|expires| expires.as_secs()),
            };
            let made = command.client.create_key(&new).await?;
            output::print_result(common.json, &made, || {
                let key = made.key.as_ref().map_or("", |key| key.expose());
                format!(
                    "{key}\nThis is shown once. It ends with: chorus keys revoke {}",
                    made.id
                )
            });
            Ok(())
        }
        KeysCommand::Revoke { id } => {
            let ended = command.client.revoke_key(&id).await?;
            output::print_result(common.json, &ended, || {
                format!("the key {id} has ended, and what was made with it")
            });
            Ok(())
        }
        KeysCommand::Rotate { overlap } => rotate_key(common, &command, overlap).await,
    }
}

async fn list_keys(common: &CommonArgs, command: &CommandClient) -> Result<(), Fail> {
    let keys = command.client.list_keys().await?;
    let titles = ["ID", "LABEL", "SCOPES", "UNTIL", "LAST USED"];
    let empty =
        "there is only the registration's key; chorus keys create makes one with fewer rights";
    table::print_table(common.json, &keys, titles, empty, key_row);
    Ok(())
}

fn key_row(key: &AgentKeyRecord) -> TableRow<5> {
    let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.as_str()).collect();
    let until = match key.expires_at {
        Some(at) => crate::local_time::date_time(&at.to_string()),
        None => "without an end".to_owned(),
    };
    TableRow::of_cells([
        TableCell::from(&key.id),
        TableCell::from(&key.label),
        TableCell::from(scopes.join(",")),
        TableCell::from(until),
        TableCell::from(key.last_used.as_deref().unwrap_or("never used")),
    ])
}

async fn rotate_key(
    common: &CommonArgs,
    command: &CommandClient,
    overlap: Option<Duration>,
) -> Result<(), Fail> {
    // Before the hub replaces the key: a file that cannot be written would lose the new one.
    let slot = AgentCredentials::reserve_slot(&command.files, true)?;
    let rotation = KeyRotation {
        overlap_s: Some(overlap.map_or(0, |overlap| overlap.as_secs())),
    };
    // From the old key: if the answer is lost, the command run again repeats the same request.
    let digest = Sha256::digest(command.credentials.api_key.expose().as_bytes());
    let request: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let rotated = command.client.rotate_key(&rotation, &request).await?;
    slot.save(AgentCredentials {
        api_key: rotated.api_key.clone(),
        ..command.credentials.clone()
    })?;
    SavedConnection::remove_file(&command.files)?;
    let until = rotated.old_key_until.map(|at| at.to_string());
    let shown = serde_json::json!({"agent_id": rotated.agent_id, "old_key_until": until});
    output::print_result(common.json, &shown, || {
        let file = command.files.credentials.display();
        let old = match &until {
            Some(until) => format!("works until {}", crate::local_time::date_time(until)),
            None => "and what was made with it have ended".to_owned(),
        };
        format!("{file} has the new key; the old one {old}")
    });
    Ok(())
}
