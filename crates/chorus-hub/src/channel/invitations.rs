//! Invitations to a channel: an agent of another owner joins only when it accepts.

use super::append::{ChannelSender, append_member_change};
use super::manage::{ChannelActor, find_invited_actor};
use super::{manage, member_list, members};
use crate::context::HubContext;
use crate::identity::Agent;
use crate::store::channels::{self, ChannelMemberRecord, ChannelRecord};
use crate::store::{
    DbConnection, EntryKind, NewLogEntry, WriteTxn, channel_invitations, principals,
    record_activity,
};
use crate::{Principal, Result};
use chorus_wire::channel::channels::ChannelMember;
use chorus_wire::channel::history_row::MemberChange;
use chorus_wire::channel::invitation::{ChannelInvite, ChannelMembership, InvitingChannel};
use chorus_wire::channel::mention::{self, MemberName};
use chorus_wire::{Error, ErrorCode, limits};
use serde_json::json;

pub(super) fn no_such_member() -> Error {
    Error::new(
        ErrorCode::NotFound,
        "no member of that name is in the channel",
    )
}

/// Whether the agent belongs to the owner of the channel's owner; then it joins without being asked.
pub(super) async fn is_of_same_owner(
    tx: &DbConnection<'_>,
    channel: &ChannelRecord,
    agent: &Agent,
) -> Result<bool> {
    let Some(owner) = channel.owner else {
        return Ok(false);
    };
    let owner = principals::find_agent(tx, owner).await?;
    Ok(owner.is_some_and(|owner| owner.owner == agent.owner))
}

/// Puts the invitation on the agent's inbox.
pub(super) async fn append_invite(
    txn: &mut WriteTxn<'_>,
    principal: &Principal,
    actor: &ChannelActor,
    member: &ChannelMemberRecord,
) -> Result<()> {
    let Some(agent) = member.principal else {
        return Ok(());
    };
    // The new invitation is counted too.
    if channel_invitations::count_invitations(&txn.tx, agent).await?
        > limits::INVITATIONS_PER_AGENT as i64
    {
        return Err(Error::new(
            ErrorCode::Conflict,
            "the agent has as many unanswered invitations as it may have",
        ));
    }
    let invited_by = match principal {
        Principal::Agent(agent) => agent.agent_id.to_string(),
        Principal::Operator(_) | Principal::Anonymous => "operator".to_owned(),
    };
    let invite = ChannelInvite {
        channel: InvitingChannel {
            id: actor.channel.public_id.to_string(),
            name: actor.channel.name.clone(),
            service: actor.channel.service.clone(),
            owner: actor.channel.owner_name.clone(),
        },
        name: MemberName::parse("name", &member.name)?,
        invited_by,
    };
    let sender = actor.sender();
    txn.append_entry(NewLogEntry {
        subject: agent.into(),
        subject_name: member.agent_id.clone().unwrap_or_default(),
        kind: EntryKind::ChannelInvite,
        actor: sender.actor_id,
        actor_name: sender.name,
        body: serde_json::to_string(&invite)
            .map_err(Error::internal)?
            .into(),
        fallback: None,
    });
    Ok(())
}

/// `POST /channels/{id}/members/{name}/accept`: the invited agent joins. A repetition changes nothing.
pub async fn accept_invitation(
    principal: &Principal,
    hub: &HubContext,
    id: &str,
    name: &str,
) -> Result<ChannelMember> {
    let agent = principal.require_agent()?.clone();
    let id = id.to_owned();
    let folded_name = mention::fold_name(name);
    let member = hub
        .store()
        .write(async move |txn| {
            let actor = find_invited_actor(&txn.tx, &agent, &id).await?;
            let member = actor.member.ok_or_else(no_such_member)?;
            if mention::fold_name(&member.name) != folded_name {
                return Err(no_such_member());
            }
            if member.has_joined() {
                return Ok(member);
            }
            let now = txn.now();
            channel_invitations::accept_invitation(&txn.tx, member.id, now).await?;
            let member = ChannelMemberRecord {
                accepted_at: Some(now),
                joined_at: now,
                ..member
            };
            let sender = ChannelSender::from_member(&member);
            append_member_change(txn, &actor.channel, &sender, &member, MemberChange::Joined)?;
            let data = json!({"channel_id": &*actor.channel.public_id, "name": member.name, "via": member.via});
            record_activity(txn, "channel_member_added", &data);
            Ok(member)
        })
        .await?;
    member_list::describe_member(hub, &member)
}

/// Accepts or declines the caller's own invitation, whatever its name in the channel is. Accepting again changes nothing; what
/// is accepted cannot be declined.
pub async fn answer_own_invitation(
    principal: &Principal,
    hub: &HubContext,
    id: &str,
    accepts: bool,
) -> Result<()> {
    principal.require_agent()?;
    let channel = manage::get_channel(principal, hub, id).await?;
    let name = channel.member_name.ok_or(ErrorCode::NotFound)?;
    if accepts {
        return accept_invitation(principal, hub, id, &name).await.map(drop);
    }
    if channel.membership == Some(ChannelMembership::Joined) {
        return Err(Error::new(
            ErrorCode::Conflict,
            "you are in the channel already",
        ));
    }
    members::remove_member(principal, hub, id, &name)
        .await
        .map(drop)
}

/// Ends the agent's own invitation; `None` when it has none. The channel is told, so that its owner learns of it.
pub(super) async fn decline_invitation(
    txn: &mut WriteTxn<'_>,
    principal: &Principal,
    id: &str,
    folded_name: &str,
) -> Result<Option<ChannelMemberRecord>> {
    let Principal::Agent(agent) = principal else {
        return Ok(None);
    };
    let actor = find_invited_actor(&txn.tx, agent, id).await?;
    let Some(member) = actor.member.filter(|member| !member.has_joined()) else {
        return Ok(None);
    };
    // An agent that is only invited does not learn which other members there are.
    if mention::fold_name(&member.name) != folded_name {
        return Err(no_such_member());
    }
    channels::mark_member_left(&txn.tx, member.id, txn.now()).await?;
    let sender = ChannelSender::from_member(&member);
    append_member_change(
        txn,
        &actor.channel,
        &sender,
        &member,
        MemberChange::Declined,
    )?;
    let data = json!({"channel_id": &*actor.channel.public_id, "name": member.name});
    record_activity(txn, "channel_invitation_declined", &data);
    Ok(Some(member))
}
