//! Adds members to a channel, by connection string or by agent address, and removes them (R-70,
//!

use super::append::{ChannelSender, append_member_change};
use super::manage::{ChannelActor, blank_member, default_member_name, find_actor, read_actor};
use super::owner_quota::check_owner_quota;
use super::{invitations, member_list};
use crate::context::HubContext;
use crate::delivery::outgoing::webhook_signature::check_signing_secret;
use crate::identity::{self, Agent};
use crate::store::channels::{self, ChannelMemberRecord};
use crate::store::{
    AgentId, CacheInvalidation, WriteTxn, member_state, principals, record_activity,
};
use crate::stream_end::StreamEnd;
use crate::{Principal, Result};
use chorus_wire::channel::channels::{
    ChannelMember, ChannelMemberRemoved, DeliveryMode, InvitedMember, MemberPatch, MemberRoute,
    NewChannelMember,
};
use chorus_wire::channel::history_row::MemberChange;
use chorus_wire::channel::mention::{self, MemberName};
use chorus_wire::identity::AgentName;
use chorus_wire::usage::QuotaName;
use chorus_wire::{Error, ErrorCode, limits};
use serde_json::json;
use std::sync::Arc;

/// A member to be added, checked as far as possible before the write transaction.
enum CheckedInvite {
    Connection {
        sealed_connection: Vec<u8>,
        sealed_signing_secret: Option<Vec<u8>>,
    },
    LocalAgent(Arc<Agent>),
}

/// `POST /channels/{id}/members`
pub async fn add_member(
    principal: &Principal,
    hub: &HubContext,
    id: &str,
    new: NewChannelMember,
) -> Result<ChannelMember> {
    read_actor(principal, hub, id).await?.check_can_change()?;
    let (invited, name) = match new.invitee {
        InvitedMember::Connection {
            url,
            signing_secret,
        } => {
            if let Some(secret) = &signing_secret {
                check_signing_secret("signing_secret", secret)?;
            }
            hub.outgoing_client().check_endpoint(url.expose())?;
            let sealed_connection = hub.seal_key().seal_secret(&url)?;
            let sealed_signing_secret = signing_secret
                .map(|secret| hub.seal_key().seal_secret(&secret))
                .transpose()?;
            let name = new
                .name
                .ok_or_else(|| Error::validation("name is required with a connection"))?;
            (
                CheckedInvite::Connection {
                    sealed_connection,
                    sealed_signing_secret,
                },
                name,
            )
        }
        InvitedMember::Agent(agent_name) => {
            let agent =
                identity::find_agent(hub.identity(), &AgentName::parse("agent_id", &agent_name)?)
                    .await?
                    .ok_or(ErrorCode::AgentNotFound)?;
            if let Principal::Agent(inviter) = principal {
                hub.identity()
                    .check_contact(agent.id, agent.contact_limits, inviter)
                    .await?;
            }
            let name = new.name.map_or_else(|| default_member_name(&agent), Ok)?;
            (CheckedInvite::LocalAgent(agent), name)
        }
    };
    let principal = principal.clone();
    let id = id.to_owned();
    let deliver = new.deliver;
    let member = hub
        .store()
        .write(async move |txn| insert_member(txn, &principal, &id, &invited, &name, deliver).await)
        .await?;
    member_list::describe_member(hub, &member)
}

async fn insert_member(
    txn: &mut WriteTxn<'_>,
    principal: &Principal,
    id: &str,
    invited: &CheckedInvite,
    name: &MemberName,
    deliver: DeliveryMode,
) -> Result<ChannelMemberRecord> {
    let actor = find_actor(&txn.tx, principal, id).await?;
    actor.check_can_change()?;
    if actor.channel.member_count >= limits::MEMBERS_PER_CHANNEL as i64 {
        let message = format!(
            "a channel has at most {} members",
            limits::MEMBERS_PER_CHANNEL
        );
        return Err(Error::new(ErrorCode::Conflict, message));
    }
    check_owner_quota(txn, actor.channel.owner, QuotaName::Members).await?;
    let member = match invited {
        CheckedInvite::Connection {
            sealed_connection,
            sealed_signing_secret,
        } => ChannelMemberRecord {
            sealed_connection: Some(sealed_connection.clone()),
            sealed_signing_secret: sealed_signing_secret.clone(),
            ..blank_member(txn, &actor.channel, name, MemberRoute::Connection, deliver).await?
        },
        CheckedInvite::LocalAgent(agent) => {
            // The agent may have unregistered since it was looked up.
            let agent = principals::find_agent(&txn.tx, agent.id)
                .await?
                .ok_or(ErrorCode::AgentNotFound)?;
            let member =
                blank_member(txn, &actor.channel, name, MemberRoute::Inbox, deliver).await?;
            let joins_at_once =
                invitations::is_of_same_owner(&txn.tx, &actor.channel, &agent).await?;
            ChannelMemberRecord {
                principal: Some(agent.id),
                agent_id: Some(agent.agent_id.clone()),
                accepted_at: member.accepted_at.filter(|_| joins_at_once),
                ..member
            }
        }
    };
    if !channels::insert_member(&txn.tx, &member, &name.folded_name()).await? {
        let message = format!("{name} is taken in this channel, or the agent is in it already");
        return Err(Error::new(ErrorCode::Conflict, message));
    }
    let data =
        json!({"channel_id": &*actor.channel.public_id, "name": member.name, "via": member.via});
    if member.has_joined() {
        let sender = actor.sender();
        append_member_change(txn, &actor.channel, &sender, &member, MemberChange::Joined)?;
        record_activity(txn, "channel_member_added", &data);
    } else {
        invitations::append_invite(txn, principal, &actor, &member).await?;
        record_activity(txn, "channel_member_invited", &data);
    }
    principal.record_operator_act(txn, "add_member", &format!("{id} {}", member.name));
    Ok(member)
}

/// `PATCH /channels/{id}/members/{name}`: allowed to the owner, to operators and to the member itself,
/// whose deliveries they are.
pub async fn update_member(
    principal: &Principal,
    hub: &HubContext,
    id: &str,
    name: &str,
    patch: MemberPatch,
) -> Result<ChannelMember> {
    let principal = principal.clone();
    let id = id.to_owned();
    let folded_name = mention::fold_name(name);
    let member = hub
        .store()
        .write(async move |txn| {
            let actor = find_actor(&txn.tx, &principal, &id).await?;
            let member = channels::find_member_by_name(&txn.tx, actor.channel.id, &folded_name)
                .await?
                .ok_or_else(invitations::no_such_member)?;
            if !actor.is_member(&member) {
                actor.check_can_change()?;
            }
            if member.via == MemberRoute::Owner {
                return Err(Error::new(
                    ErrorCode::Conflict,
                    "the owner reads the channel itself; nothing is delivered to it",
                ));
            }
            member_state::set_delivery_mode(&txn.tx, member.id, patch.deliver).await?;
            let target = format!("{id} {}", member.name);
            principal.record_operator_act(txn, "change_member", &target);
            Ok(ChannelMemberRecord {
                deliver: patch.deliver,
                ..member
            })
        })
        .await?;
    member_list::describe_member(hub, &member)
}

/// `DELETE /channels/{id}/members/{name}`: allowed to the owner, to operators and to the member
/// itself. The member's tokens and streams end at once. An invited agent declines.
pub async fn remove_member(
    principal: &Principal,
    hub: &HubContext,
    id: &str,
    name: &str,
) -> Result<ChannelMemberRemoved> {
    let principal = principal.clone();
    let id = id.to_owned();
    let folded_name = mention::fold_name(name);
    let member = hub
        .store()
        .write(async move |txn| {
            if let Some(declined) =
                invitations::decline_invitation(txn, &principal, &id, &folded_name).await?
            {
                return Ok(declined);
            }
            let actor = find_actor(&txn.tx, &principal, &id).await?;
            let member =
                channels::find_member_by_name(&txn.tx, actor.channel.id, &folded_name).await?;
            let member = member.ok_or_else(invitations::no_such_member)?;
            end_membership(txn, &actor, &member).await?;
            let target = format!("{id} {}", member.name);
            principal.record_operator_act(txn, "remove_member", &target);
            Ok(member)
        })
        .await?;
    hub.live_streams()
        .end_streams(member.id.into(), StreamEnd::MemberRemoved);
    Ok(ChannelMemberRemoved {
        name: MemberName::parse("name", &member.name)?,
        removed: true,
    })
}

async fn end_membership(
    txn: &mut WriteTxn<'_>,
    actor: &ChannelActor,
    member: &ChannelMemberRecord,
) -> Result<()> {
    let is_self = actor.is_member(member);
    if !is_self {
        actor.check_can_change()?;
    }
    if member.via == MemberRoute::Owner {
        return Err(Error::new(
            ErrorCode::Conflict,
            "the owner stays as long as the channel; delete the channel instead",
        ));
    }
    channels::mark_member_left(&txn.tx, member.id, txn.now()).await?;
    txn.invalidate_caches(&CacheInvalidation::for_ended_streams(
        [member.id.into()],
        StreamEnd::MemberRemoved,
    ));
    let change = if is_self {
        MemberChange::Left
    } else {
        MemberChange::Removed
    };
    // An invitation that is withdrawn was never a membership.
    if member.has_joined() {
        append_member_change(txn, &actor.channel, &actor.sender(), member, change)?;
    }
    let data = json!({"channel_id": &*actor.channel.public_id, "name": member.name});
    record_activity(txn, "channel_member_removed", &data);
    Ok(())
}

/// Ends all memberships of an agent that unregisters. The channels it owned have no owner from then
/// on, so only operators can change them.
pub(crate) async fn leave_all_channels(txn: &mut WriteTxn<'_>, agent_id: AgentId) -> Result<()> {
    for member in &channels::list_memberships(&txn.tx, agent_id).await? {
        channels::mark_member_left(&txn.tx, member.id, txn.now()).await?;
        if member.has_joined()
            && let Some(channel) = channels::find_channel(&txn.tx, member.channel).await?
        {
            append_member_change(
                txn,
                &channel,
                &ChannelSender::as_hub(),
                member,
                MemberChange::Left,
            )?;
        }
    }
    Ok(channels::clear_channel_owner(&txn.tx, agent_id).await?)
}
