//! `chorus channel create|list|show|rename|delete`: manages channels.

use super::{find_channel, format};
use crate::{cli::CommonArgs, fail::Fail, output, table};
use chorus_client::HubClient;
use chorus_wire::channel::channels::Channel;
use serde_json::json;

fn print_channel(common: &CommonArgs, channel: &Channel) {
    output::print_result(common.json, channel, || format::format_channel(channel));
}

pub async fn create_channel(
    common: &CommonArgs,
    client: &HubClient,
    name: &str,
    service: Option<String>,
    context: Option<String>,
) -> Result<(), Fail> {
    let created = client.create_channel(name, service.as_deref(), context.as_deref());
    print_channel(common, &created.await?);
    Ok(())
}

pub async fn list_channels(common: &CommonArgs, client: &HubClient) -> Result<(), Fail> {
    let channels = client.list_channels().await?;
    let empty = "you are in no channel; chorus channel create NAME creates one";
    table::print_table(
        common.json,
        &channels,
        ["CHANNEL", "NAME", "MEMBERS", "OWNER", ""],
        empty,
        format::channel_row,
    );
    Ok(())
}

pub async fn show_channel(
    common: &CommonArgs,
    client: &HubClient,
    channel: &str,
) -> Result<(), Fail> {
    let channel_client = find_channel(client, channel).await?;
    let channel_info = channel_client.fetch_channel().await?;
    let members = channel_client.list_members().await?;
    let mut output = json!(channel_info);
    output["roster"] = json!(members);
    output::print_result(common.json, &output, || {
        let mut lines = vec![format::format_channel(&channel_info)];
        lines.extend(
            channel_info
                .context
                .iter()
                .map(|context| format!("    {}", output::escape_controls(context))),
        );
        lines.extend(
            members
                .iter()
                .map(|member| format!("  {}", format::format_member(member))),
        );
        lines.join("\n")
    });
    Ok(())
}

pub async fn rename_channel(
    common: &CommonArgs,
    client: &HubClient,
    channel: &str,
    name: Option<String>,
    context: Option<String>,
) -> Result<(), Fail> {
    let channel = find_channel(client, channel).await?;
    let updated = channel.update_channel(name.as_deref(), context.as_deref());
    print_channel(common, &updated.await?);
    Ok(())
}

pub async fn delete_channel(
    common: &CommonArgs,
    client: &HubClient,
    channel: &str,
    yes: bool,
) -> Result<(), Fail> {
    if !yes {
        return Err(Fail::usage_error(
            "this deletes the channel for all members; say --yes if you mean it",
        ));
    }
    let deleted = find_channel(client, channel)
        .await?
        .delete_channel()
        .await?;
    output::print_result(common.json, &deleted, || {
        format!("{} is closed", output::escape_controls(&deleted.id))
    });
    Ok(())
}
