//! Rooms: made, listed, shown, renamed, closed.

use super::{find, show};
use crate::{cli::Common, fail::Fail, out};
use chorus_client::Client;
use chorus_wire::channel::room::Channel;
use serde_json::json;

fn tell(common: &Common, room: &Channel) {
    out::say(common.json, room, || show::room(room));
}

pub async fn create(
    common: &Common,
    client: &Client,
    name: &str,
    service: Option<&str>,
    context: Option<&str>,
) -> Result<(), Fail> {
    tell(common, &client.create_room(name, service, context).await?);
    Ok(())
}

pub async fn list(common: &Common, client: &Client) -> Result<(), Fail> {
    client
        .rooms()
        .await?
        .iter()
        .for_each(|room| tell(common, room));
    Ok(())
}

pub async fn show(common: &Common, client: &Client, channel: &str) -> Result<(), Fail> {
    let room = find(client, channel).await?;
    let (about, members) = (room.show().await?, room.members().await?);
    let mut whole = json!(about);
    whole["roster"] = json!(members);
    out::say(common.json, &whole, || {
        let mut lines = vec![show::room(&about)];
        lines.extend(
            about
                .context
                .iter()
                .map(|context| format!("    {}", out::harmless(context))),
        );
        lines.extend(
            members
                .iter()
                .map(|member| format!("  {}", show::member(member))),
        );
        lines.join("\n")
    });
    Ok(())
}

pub async fn rename(
    common: &Common,
    client: &Client,
    channel: &str,
    name: Option<&str>,
    context: Option<&str>,
) -> Result<(), Fail> {
    tell(
        common,
        &find(client, channel).await?.change(name, context).await?,
    );
    Ok(())
}

pub async fn delete(
    common: &Common,
    client: &Client,
    channel: &str,
    yes: bool,
) -> Result<(), Fail> {
    if !yes {
        return Err(Fail::usage(
            "this closes the room for everybody; say --yes if you mean it",
        ));
    }
    let deleted = find(client, channel).await?.delete().await?;
    out::say(common.json, &deleted, || {
        format!("{} is closed", out::harmless(&deleted.id))
    });
    Ok(())
}
