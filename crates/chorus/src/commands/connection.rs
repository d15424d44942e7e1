//! `chorus connection`: prints, rotates or revokes the agent's connection string (CHN-01…04).

use super::channel::read_text;
use crate::command_client::{self, CommandClient};
use crate::{cli::CommonArgs, fail::Fail, output};
use chorus_client::channel::{SavedConnection, SigningSecret};
use chorus_wire::secret::Secret;
use serde_json::json;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Create a new one; the old one stops working at once
    #[arg(long, conflicts_with = "revoke")]
    rotate: bool,
    /// Revoke it; services can no longer deliver to you
    #[arg(long)]
    revoke: bool,
    /// Keep the signing secret of a service, read from standard input: `chorus listen` then refuses what it did not sign
    #[arg(long, value_name = "ORIGIN", conflicts_with_all = ["rotate", "revoke"])]
    verify: Option<String>,
    /// Forget the signing secret of a service
    #[arg(long, value_name = "ORIGIN", conflicts_with_all = ["rotate", "revoke", "verify"])]
    no_verify: Option<String>,
}

/// Keeps or forgets the signing secret of a service (CHN-34).
fn save_signing_secret(common: &CommonArgs, args: &Args) -> Result<bool, Fail> {
    let (Some(origin), is_kept) = (
        args.verify.as_ref().or(args.no_verify.as_ref()),
        args.verify.is_some(),
    ) else {
        return Ok(false);
    };
    let origin = url::Url::parse(origin)
        .ok()
        .filter(url::Url::has_host)
        .ok_or_else(|| Fail::usage_error("an origin is such as https://service.example.com"))?
        .origin()
        .ascii_serialization();
    let secret = match is_kept {
        true => Some(Secret::new(read_text(&["-".to_owned()])?.trim().to_owned())),
        false => None,
    };
    SigningSecret::save(&command_client::identity_files(common)?, &origin, secret)?;
    let result = json!({"origin": origin, "verified": is_kept});
    output::print_result(common.json, &result, || match is_kept {
        true => format!("deliveries of {origin} must be signed"),
        false => format!("deliveries of {origin} are not checked"),
    });
    Ok(true)
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    if save_signing_secret(common, &args)? {
        return Ok(());
    }
    let command = CommandClient::open(common)?;
    if args.revoke {
        let revoked = command.client.revoke_connection().await?;
        SavedConnection::remove_file(&command.files)?;
        output::print_result(common.json, &json!({"revoked": revoked}), || {
            if revoked {
                "the connection string is dead".into()
            } else {
                "there was none".into()
            }
        });
        return Ok(());
    }
    let saved =
        SavedConnection::read_for(&command.files, &command.credentials)?.filter(|_| !args.rotate);
    let new = saved.is_none();
    let connection = match saved {
        Some(saved) => saved,
        None => {
            let new_connection = SavedConnection::for_agent(
                &command.credentials,
                command.client.create_connection().await?,
            );
            new_connection.save(&command.files)?;
            new_connection
        }
    };
    let url = connection.connection_string.expose();
    output::print_result(
        common.json,
        &json!({"connection_string": url, "new": new}),
        || url.to_owned(),
    );
    Ok(())
}
