//! `chorus channel accept|decline`: answers an invitation to a channel.

use super::{find_channel, format};
use crate::{cli::CommonArgs, fail::Fail, output};
use chorus_client::HubClient;
use chorus_client::channel::ChannelClient;
use chorus_wire::channel::channels::Channel;
use chorus_wire::channel::invitation::ChannelMembership;

/// The channel, its client and the caller's name in it.
async fn find_invitation(
    client: &HubClient,
    channel: &str,
) -> Result<(ChannelClient, Channel, String), Fail> {
    let channel_client = find_channel(client, channel).await?;
    let channel = channel_client.fetch_channel().await?;
    let name = channel
        .member_name
        .clone()
        .ok_or_else(|| Fail::usage_error("an operator is not invited to channels"))?;
    Ok((channel_client, channel, name))
}

pub async fn accept_invitation(
    common: &CommonArgs,
    client: &HubClient,
    channel: &str,
) -> Result<(), Fail> {
    let (channel_client, _, name) = find_invitation(client, channel).await?;
    let member = channel_client.accept_invitation(&name).await?;
    output::print_result(common.json, &member, || format::format_member(&member));
    Ok(())
}

pub async fn decline_invitation(
    common: &CommonArgs,
    client: &HubClient,
    channel: &str,
) -> Result<(), Fail> {
    let (channel_client, channel, name) = find_invitation(client, channel).await?;
    if channel.membership != Some(ChannelMembership::Invited) {
        return Err(Fail::usage_error(
            "you are in the channel already; chorus channel remove leaves it",
        ));
    }
    let removed = channel_client.remove_member(&name).await?;
    output::print_result(common.json, &removed, || "declined".to_owned());
    Ok(())
}
