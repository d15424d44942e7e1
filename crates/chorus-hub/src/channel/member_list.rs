//! Lists the members of a channel: how each is reached, its presence and its status.

use super::manage::read_actor;
use crate::context::HubContext;
use crate::store::ChannelId;
use crate::store::channels::{self, ChannelMemberRecord};
use crate::{Principal, Result};
use chorus_wire::channel::channels::{
    ChannelMember, DeliveryRefusal, MemberPresence, MemberRoute, SenderKind,
};
use chorus_wire::channel::invitation::ChannelMembership;
use chorus_wire::channel::mention::MemberName;
use chorus_wire::{Error, limits};

/// `GET /channels/{id}/members`
pub async fn list_members(
    principal: &Principal,
    hub: &HubContext,
    id: &str,
) -> Result<Vec<ChannelMember>> {
    let channel_id = read_actor(principal, hub, id).await?.channel.id;
    list_channel_members(hub, channel_id).await
}

/// The same for a member that was admitted by a tool token instead of a key.
pub(crate) async fn list_channel_members(
    hub: &HubContext,
    channel_id: ChannelId,
) -> Result<Vec<ChannelMember>> {
    let members = hub
        .store()
        .read(async move |tx| Ok(channels::list_members(tx, channel_id).await?))
        .await?;
    members
        .iter()
        .map(|member| describe_member(hub, member))
        .collect()
}

pub(super) fn describe_membership(member: &ChannelMemberRecord) -> ChannelMembership {
    if member.has_joined() {
        ChannelMembership::Joined
    } else {
        ChannelMembership::Invited
    }
}

pub(super) fn describe_member(
    hub: &HubContext,
    member: &ChannelMemberRecord,
) -> Result<ChannelMember> {
    // A status expires unless it is repeated: an agent that crashed must not seem to be working.
    let status = member
        .status
        .clone()
        .filter(|(_, at)| hub.clock().now() < at.saturating_add(limits::STATUS_TTL));
    let (status, status_at) = status.unzip();
    let presence = match (member.via, member.principal) {
        (MemberRoute::Owner | MemberRoute::Inbox, Some(agent))
            if hub.live_streams().is_online(agent.into()) =>
        {
            MemberPresence::Online
        }
        (MemberRoute::Owner | MemberRoute::Inbox, Some(_) | None) => MemberPresence::Offline,
        (MemberRoute::Connection, Some(_) | None) => MemberPresence::Unknown,
    };
    Ok(ChannelMember {
        name: MemberName::parse("name", &member.name).map_err(|e| Error::internal(e.message))?,
        kind: match member.via {
            MemberRoute::Owner => SenderKind::Person,
            MemberRoute::Inbox | MemberRoute::Connection => SenderKind::Agent,
        },
        deliver: member.deliver,
        status,
        status_at,
        via: member.via,
        agent_id: member.agent_id.as_deref().map(str::to_owned),
        presence,
        unreachable: member.unreachable_at.is_some(),
        refusal: member
            .refusal
            .clone()
            .map(|(reason, at)| DeliveryRefusal { reason, at }),
        signed: member.sealed_signing_secret.is_some(),
        agent: member
            .identity
            .as_deref()
            .and_then(|text| serde_json::from_str(text).ok()),
        joined_at: member.joined_at,
        membership: describe_membership(member),
    })
}
