//! Creates, finds, changes and deletes channels, and decides which principals may act in them
//!

use super::append::ChannelSender;
use super::member_list::describe_membership;
use super::owner_quota::check_owner_quota;
use crate::context::HubContext;
use crate::store::channels::{self, ChannelMemberRecord, ChannelRecord};
use crate::store::{
    CacheInvalidation, ChannelId, DbConnection, RowId, WriteTxn, artifacts, channel_invitations,
    principals, record_activity,
};
use crate::stream_end::StreamEnd;
use crate::{Principal, Result, identity::Agent, random};
use chorus_wire::channel::channels::{
    Channel, ChannelChange, ChannelDeleted, DeliveryMode, MemberRoute, NewChannel,
};
use chorus_wire::channel::mention::MemberName;
use chorus_wire::identity::AgentName;
use chorus_wire::usage::QuotaName;
use chorus_wire::{Error, ErrorCode, limits};
use serde_json::json;

/// The party that acts in a channel: a member, or an operator, who has no membership.
#[derive(Clone, Debug)]
pub(crate) struct ChannelActor {
    pub channel: ChannelRecord,
    pub member: Option<ChannelMemberRecord>,
}

impl ChannelActor {
    /// Only the owner and operators may change a channel.
    pub fn check_can_change(&self) -> Result<()> {
        match &self.member {
            None => Ok(()),
            Some(member) if member.via == MemberRoute::Owner => Ok(()),
            Some(_) => Err(Error::new(
                ErrorCode::Forbidden,
                "only the channel's owner may do that",
            )),
        }
    }

    /// Whether the actor is this member.
    pub fn is_member(&self, member: &ChannelMemberRecord) -> bool {
        self.member
            .as_ref()
            .is_some_and(|own_member| own_member.id == member.id)
    }

    pub fn sender(&self) -> ChannelSender {
        self.member
            .as_ref()
            .map_or_else(ChannelSender::as_operator, ChannelSender::from_member)
    }
}

/// Finds the channel and the principal's membership. An agent that is no member gets 404, so that
/// it does not learn that the channel exists.
pub(crate) async fn find_actor(
    tx: &DbConnection<'_>,
    principal: &Principal,
    id: &str,
) -> Result<ChannelActor> {
    let channel = channels::find_channel_by_public_id(tx, id).await?;
    match principal {
        Principal::Anonymous => Err(ErrorCode::Unauthorized.into()),
        Principal::Operator(_) => Ok(ChannelActor {
            channel: channel.ok_or(ErrorCode::NotFound)?,
            member: None,
        }),
        Principal::Agent(agent) => {
            let channel = channel.ok_or(ErrorCode::NotFound)?;
            let member = channels::find_member_by_agent(tx, channel.id, agent.id)
                .await?
                .ok_or(ErrorCode::NotFound)?;
            Ok(ChannelActor {
                channel,
                member: Some(member),
            })
        }
    }
}

/// The same in a read transaction of its own.
pub(crate) async fn read_actor(
    principal: &Principal,
    hub: &HubContext,
    id: &str,
) -> Result<ChannelActor> {
    let principal = principal.clone();
    let id = id.to_owned();
    hub.store()
        .read(async move |tx| find_actor(tx, &principal, &id).await)
        .await
}

/// The channel and the agent's membership, also one that it has yet to accept: an agent may look at what it is invited to.
async fn read_membership(
    principal: &Principal,
    hub: &HubContext,
    id: &str,
) -> Result<ChannelActor> {
    let principal = principal.clone();
    let id = id.to_owned();
    hub.store()
        .read(async move |tx| match &principal {
            Principal::Anonymous | Principal::Operator(_) => find_actor(tx, &principal, &id).await,
            Principal::Agent(agent) => find_invited_actor(tx, agent, &id).await,
        })
        .await
}

/// The same as [`find_actor`], also for an agent that is only invited.
pub(super) async fn find_invited_actor(
    tx: &DbConnection<'_>,
    agent: &Agent,
    id: &str,
) -> Result<ChannelActor> {
    let channel = channels::find_channel_by_public_id(tx, id)
        .await?
        .ok_or(ErrorCode::NotFound)?;
    let member = channel_invitations::find_membership(tx, channel.id, agent.id)
        .await?
        .ok_or(ErrorCode::NotFound)?;
    Ok(ChannelActor {
        channel,
        member: Some(member),
    })
}

fn describe_channel(channel: &ChannelRecord, member: Option<&ChannelMemberRecord>) -> Channel {
    Channel {
        id: channel.public_id.to_string(),
        name: channel.name.clone(),
        service: channel.service.clone(),
        context: channel.context.clone(),
        owner: channel.owner_name.clone(),
        members: channel.member_count.max(0) as u64,
        created_at: channel.created_at,
        membership: member.map(describe_membership),
        member_name: member.map(|member| member.name.clone()),
    }
}

/// An agent's default name in a channel: its address without the host.
pub(super) fn default_member_name(agent: &Agent) -> Result<MemberName> {
    let name = match AgentName::parse("agent_id", &agent.agent_id) {
        Ok(AgentName::Address(address)) => MemberName::parse("name", address.name()),
        Ok(AgentName::Handle(_) | AgentName::Uuid(_) | AgentName::Short(_)) | Err(_) => {
            MemberName::parse("name", &agent.agent_id)
        }
    };
    name.map_err(|_| {
        Error::validation("name is required: the agent's own cannot be called with an @")
    })
}

/// `POST /channels`: the caller owns the channel, and is a member that counts as a person.
pub async fn create_channel(
    principal: &Principal,
    hub: &HubContext,
    new: NewChannel,
) -> Result<Channel> {
    let owner = match principal {
        Principal::Anonymous => return Err(ErrorCode::Unauthorized.into()),
        Principal::Agent(caller) => Some(caller.agent.clone()),
        Principal::Operator(_) => None,
    };
    let principal = principal.clone();
    hub.store()
        .write_repeatable(async move |txn| {
            let actor = insert_channel(txn, owner.as_deref(), new.clone()).await?;
            principal.record_operator_act(txn, "create_channel", &actor.channel.public_id);
            Ok(describe_channel(&actor.channel, actor.member.as_ref()))
        })
        .await
}

async fn insert_channel(
    txn: &mut WriteTxn<'_>,
    owner: Option<&Agent>,
    new: NewChannel,
) -> Result<ChannelActor> {
    let public_id = format!("ch_{}", random::new_id().simple());
    let channel = ChannelRecord {
        id: principals::allocate_subject_id(&txn.tx).await?,
        public_id: public_id.into(),
        name: new.name,
        service: new.service,
        context: new.context,
        owner: owner.map(|owner| owner.id),
        owner_name: owner.map(|owner| owner.agent_id.to_string()),
        member_count: owner.iter().count() as i64,
        created_at: txn.now(),
    };
    let mut owner_member = None;
    if let Some(owner) = owner {
        principals::find_agent(&txn.tx, owner.id)
            .await?
            .ok_or(ErrorCode::Unauthorized)?;
        if channels::count_owned_channels(&txn.tx, owner.id).await?
            >= limits::CHANNELS_PER_OWNER as i64
        {
            let message = format!(
                "an agent owns at most {} channels",
                limits::CHANNELS_PER_OWNER
            );
            return Err(Error::new(ErrorCode::Conflict, message));
        }
        check_owner_quota(txn, Some(owner.id), QuotaName::Channels).await?;
        // An agent whose own name cannot be mentioned with an @ is called `owner`.
        let name = default_member_name(owner).or_else(|_| MemberName::parse("name", "owner"))?;
        let member = ChannelMemberRecord {
            principal: Some(owner.id),
            agent_id: Some(owner.agent_id.clone()),
            ..blank_member(txn, &channel, &name, MemberRoute::Owner, DeliveryMode::None).await?
        };
        channels::insert_member(&txn.tx, &member, &name.folded_name()).await?;
        owner_member = Some(member);
    }
    channels::insert_channel(&txn.tx, &channel).await?;
    record_activity(
        txn,
        "channel_created",
        &json!({"channel_id": &*channel.public_id, "owner": channel.owner_name}),
    );
    Ok(ChannelActor {
        channel,
        member: owner_member,
    })
}

/// The record of a new member that has joined, with all optional fields empty.
pub(super) async fn blank_member(
    txn: &WriteTxn<'_>,
    channel: &ChannelRecord,
    name: &MemberName,
    via: MemberRoute,
    deliver: DeliveryMode,
) -> Result<ChannelMemberRecord> {
    Ok(ChannelMemberRecord {
        id: principals::allocate_subject_id(&txn.tx).await?,
        channel: channel.id,
        name: name.to_string(),
        principal: None,
        agent_id: None,
        via,
        deliver,
        sealed_connection: None,
        sealed_signing_secret: None,
        status: None,
        identity: None,
        unreachable_at: None,
        refusal: None,
        has_endpoint: false,
        turn: 0,
        joined_at: txn.now(),
        left_at: None,
        accepted_at: Some(txn.now()),
        token_epoch: 0,
    })
}

/// `GET /channels`: the caller's channels and those that it is invited to, or all of them for an operator. The page starts after
/// the channel with the id `after`.
pub async fn list_channels(
    principal: &Principal,
    hub: &HubContext,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<Channel>> {
    let member_agent = match principal {
        Principal::Anonymous => return Err(ErrorCode::Unauthorized.into()),
        Principal::Agent(agent) => Some(agent.id),
        Principal::Operator(_) => None,
    };
    let after_id = match after {
        None => ChannelId::BEFORE_ALL,
        Some(id) => read_membership(principal, hub, id).await?.channel.id,
    };
    let limit = limit.clamp(1, limits::CHANNELS_PAGE);
    let (channels_page, memberships) = hub
        .store()
        .read(async move |tx| {
            let memberships = match member_agent {
                None => Vec::new(),
                Some(agent) => {
                    channel_invitations::list_memberships_page(tx, agent, after_id, limit).await?
                }
            };
            let page = channels::list_channels(tx, member_agent, after_id, limit).await?;
            Ok((page, memberships))
        })
        .await?;
    let describe = |channel: &ChannelRecord| {
        let member = memberships
            .binary_search_by_key(&channel.id, |member| member.channel)
            .ok()
            .and_then(|index| memberships.get(index));
        describe_channel(channel, member)
    };
    Ok(channels_page.iter().map(describe).collect())
}

/// `GET /channels/{id}`
pub async fn get_channel(principal: &Principal, hub: &HubContext, id: &str) -> Result<Channel> {
    let actor = read_membership(principal, hub, id).await?;
    Ok(describe_channel(&actor.channel, actor.member.as_ref()))
}

/// `PATCH /channels/{id}`: the next delivery contains the change.
pub async fn update_channel(
    principal: &Principal,
    hub: &HubContext,
    id: &str,
    change: ChannelChange,
) -> Result<Channel> {
    let principal = principal.clone();
    let id = id.to_owned();
    let actor = hub
        .store()
        .write(async move |txn| {
            let mut actor = find_actor(&txn.tx, &principal, &id).await?;
            actor.check_can_change()?;
            let mut channel = actor.channel;
            channel.name = change.name.clone().unwrap_or(channel.name);
            channel.service = change
                .service
                .clone()
                .map_or(channel.service, |text| text.0);
            channel.context = change
                .context
                .clone()
                .map_or(channel.context, |text| text.0);
            channels::update_channel(&txn.tx, &channel).await?;
            principal.record_operator_act(txn, "change_channel", &id);
            actor.channel = channel;
            Ok(actor)
        })
        .await?;
    Ok(describe_channel(&actor.channel, actor.member.as_ref()))
}

/// `DELETE /channels/{id}`: ends the channel's streams and tokens. From then on the channel is not
/// found.
pub async fn delete_channel(
    principal: &Principal,
    hub: &HubContext,
    id: &str,
) -> Result<ChannelDeleted> {
    let principal = principal.clone();
    let public_id = id.to_owned();
    let channel_id = hub
        .store()
        .write(async move |txn| {
            let actor = find_actor(&txn.tx, &principal, &public_id).await?;
            actor.check_can_change()?;
            channels::mark_channel_deleted(&txn.tx, actor.channel.id, txn.now()).await?;
            artifacts::delete_channel_content(&txn.tx, actor.channel.id).await?;
            record_activity(
                txn,
                "channel_deleted",
                &json!({"channel_id": &*actor.channel.public_id}),
            );
            principal.record_operator_act(txn, "delete_channel", &public_id);
            txn.invalidate_caches(&CacheInvalidation::for_ended_streams(
                [actor.channel.id.into()],
                StreamEnd::ChannelDeleted,
            ));
            Ok(actor.channel.id)
        })
        .await?;
    hub.live_streams()
        .end_streams(channel_id.into(), StreamEnd::ChannelDeleted);
    Ok(ChannelDeleted {
        id: id.to_owned(),
        deleted: true,
    })
}
