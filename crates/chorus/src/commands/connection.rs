//! `chorus connection`: prints, rotates or revokes the agent's connection string (CHN-01…04).

use crate::{cli::CommonArgs, fail::Fail, output, session::ClientSession};
use chorus_client::channel::SavedConnection;
use serde_json::json;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Create a new one; the old one stops working at once
    #[arg(long, conflicts_with = "revoke")]
    rotate: bool,
    /// Revoke it; services can no longer deliver to you
    #[arg(long)]
    revoke: bool,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let session = ClientSession::open(common)?;
    if args.revoke {
        let revoked = session.client.revoke_connection().await?;
        SavedConnection::remove_file(&session.files)?;
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
        SavedConnection::read_for(&session.files, &session.credentials)?.filter(|_| !args.rotate);
    let new = saved.is_none();
    let connection = match saved {
        Some(saved) => saved,
        None => {
            let new_connection = SavedConnection::for_agent(
                &session.credentials,
                session.client.create_connection().await?,
            );
            new_connection.save(&session.files)?;
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
