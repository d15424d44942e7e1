//! `chorus connection`: the one URL to paste into a service that shall bring you into its channels (CHN-01…04).

use crate::{cli::Common, fail::Fail, out, session::Session};
use chorus_client::channel::Connected;
use serde_json::json;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Make a new one; the old one stops working at once
    #[arg(long, conflicts_with = "revoke")]
    rotate: bool,
    /// Let nobody reach you by one any more
    #[arg(long)]
    revoke: bool,
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let session = Session::open(common)?;
    if args.revoke {
        let revoked = session.client.disconnect().await?;
        Connected::forget(&session.place)?;
        out::say(common.json, &json!({"revoked": revoked}), || {
            if revoked {
                "the connection string is dead".into()
            } else {
                "there was none".into()
            }
        });
        return Ok(());
    }
    let saved = Connected::read(&session.place, &session.who)?.filter(|_| !args.rotate);
    let new = saved.is_none();
    let connected = match saved {
        Some(saved) => saved,
        None => {
            let made = Connected::of(&session.who, session.client.connect().await?);
            made.save(&session.place)?;
            made
        }
    };
    let url = connected.connection_string.expose();
    out::say(
        common.json,
        &json!({"connection_string": url, "new": new}),
        || url.to_owned(),
    );
    Ok(())
}
