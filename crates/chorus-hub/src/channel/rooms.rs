//! Rooms: made, found, described and deleted; and who may come in.

use super::say::Speaker;
use crate::delivery::Ending;
use crate::ops::happened;
use crate::store::channels::{self, Member, Room};
use crate::store::{Notice, Tx, Txn, artifacts, principals};
use crate::{Hub, Principal, Result, clock, identity::Agent};
use chorus_wire::channel::mention::MemberName;
use chorus_wire::channel::room::{Channel, ChannelChange, Deleted, Deliver, NewChannel, Via};
use chorus_wire::identity::Name;
use chorus_wire::{Code, Error, limits};
use serde_json::json;

/// Somebody's place in a room: a member's, or an operator's without one.
#[derive(Clone, Debug)]
pub(crate) struct Seat {
    pub room: Room,
    pub member: Option<Member>,
}

impl Seat {
    /// The owner and operators change a room.
    pub fn may_change(&self) -> Result<()> {
        match &self.member {
            None => Ok(()),
            Some(member) if member.via == Via::Owner => Ok(()),
            Some(_) => Err(Error::new(
                Code::Forbidden,
                "only the channel's owner may do that",
            )),
        }
    }

    pub fn speaker(&self) -> Speaker {
        self.member
            .as_ref()
            .map_or_else(Speaker::operator, Speaker::of)
    }
}

/// The room, if this principal may be in it. To a stranger it is not there.
pub(crate) async fn seat(tx: &Tx<'_>, who: &Principal, id: &str) -> Result<Seat> {
    let room = channels::by_public(tx, id).await?;
    match who {
        Principal::Anyone => Err(Code::Unauthorized.into()),
        Principal::Operator(_) => Ok(Seat {
            room: room.ok_or(Code::NotFound)?,
            member: None,
        }),
        Principal::Agent(agent) => {
            let room = room.ok_or(Code::NotFound)?;
            let member = channels::place(tx, room.id, agent.id)
                .await?
                .ok_or(Code::NotFound)?;
            Ok(Seat {
                room,
                member: Some(member),
            })
        }
    }
}

/// The same for whoever only reads.
pub(crate) async fn enter(who: &Principal, hub: &Hub, id: &str) -> Result<Seat> {
    let (who, id) = (who.clone(), id.to_owned());
    hub.store()
        .read(async move |tx| seat(tx, &who, &id).await)
        .await
}

fn shown(room: &Room) -> Channel {
    Channel {
        id: room.public_id.to_string(),
        name: room.name.clone(),
        service: room.service.clone(),
        context: room.context.clone(),
        owner: room.owner_name.clone(),
        members: room.members.max(0) as u64,
        created_at: room.created_at,
    }
}

/// What an agent is called in a room when nobody says otherwise: its address without the host.
pub(super) fn short_name(agent: &Agent) -> Result<MemberName> {
    let name = match Name::parse("agent_id", &agent.agent_id) {
        Ok(Name::Address(address)) => MemberName::parse("name", address.name()),
        Ok(Name::Handle(_) | Name::Uuid(_) | Name::Short(_)) | Err(_) => {
            MemberName::parse("name", &agent.agent_id)
        }
    };
    name.map_err(|_| {
        Error::validation("name is required: the agent's own cannot be called with an @")
    })
}

/// `POST /channels`: the caller owns it, and is in it as a person.
pub async fn create(who: &Principal, hub: &Hub, new: NewChannel) -> Result<Channel> {
    let owner = match who {
        Principal::Anyone => return Err(Code::Unauthorized.into()),
        Principal::Agent(agent) => Some(agent.clone()),
        Principal::Operator(_) => None,
    };
    let room = hub
        .store()
        .write(async move |txn| found(txn, owner.as_deref(), new.clone()).await)
        .await?;
    Ok(shown(&room))
}

async fn found(txn: &mut Txn<'_>, owner: Option<&Agent>, new: NewChannel) -> Result<Room> {
    let public_id = format!("ch_{}", clock::new_id().simple());
    let room = Room {
        id: principals::new_subject(&txn.tx).await?,
        public_id: public_id.into(),
        name: new.name,
        service: new.service,
        context: new.context,
        owner: owner.map(|owner| owner.id),
        owner_name: owner.map(|owner| owner.agent_id.to_string()),
        members: owner.iter().count() as i64,
        created_at: txn.now(),
    };
    if let Some(owner) = owner {
        principals::by_id(&txn.tx, owner.id)
            .await?
            .ok_or(Code::Unauthorized)?;
        if channels::owned(&txn.tx, owner.id).await? >= limits::ROOMS_OWNED as i64 {
            let said = format!("an agent owns at most {} channels", limits::ROOMS_OWNED);
            return Err(Error::new(Code::Conflict, said));
        }
        // A name that cannot be called is no reason to keep somebody from having a room.
        let name = short_name(owner).or_else(|_| MemberName::parse("name", "owner"))?;
        let member = Member {
            principal: Some(owner.id),
            agent_id: Some(owner.agent_id.clone()),
            ..blank(txn, &room, &name, Via::Owner, Deliver::None).await?
        };
        channels::join(&txn.tx, &member, &name.folded()).await?;
    }
    channels::insert(&txn.tx, &room).await?;
    happened(
        txn,
        "channel_created",
        &json!({"channel_id": &*room.public_id, "owner": room.owner_name}),
    );
    Ok(room)
}

/// A new place in a room, with nothing said or heard yet.
pub(super) async fn blank(
    txn: &Txn<'_>,
    room: &Room,
    name: &MemberName,
    via: Via,
    deliver: Deliver,
) -> Result<Member> {
    Ok(Member {
        id: principals::new_subject(&txn.tx).await?,
        channel: room.id,
        name: name.to_string(),
        principal: None,
        agent_id: None,
        via,
        deliver,
        connection: None,
        signing: None,
        status: None,
        identity: None,
        unreachable_at: None,
        turn: 0,
        joined_at: txn.now(),
        left_at: None,
    })
}

/// `GET /channels`: mine, or all of them for an operator; after the channel of this id.
pub async fn list(
    who: &Principal,
    hub: &Hub,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<Channel>> {
    let mine = match who {
        Principal::Anyone => return Err(Code::Unauthorized.into()),
        Principal::Agent(agent) => Some(agent.id),
        Principal::Operator(_) => None,
    };
    let after = match after {
        None => 0,
        Some(id) => enter(who, hub, id).await?.room.id,
    };
    let limit = limit.clamp(1, limits::ROOMS_PAGE);
    let rooms = hub
        .store()
        .read(async move |tx| Ok(channels::list(tx, mine, after, limit).await?))
        .await?;
    Ok(rooms.iter().map(shown).collect())
}

/// `GET /channels/{id}`
pub async fn show(who: &Principal, hub: &Hub, id: &str) -> Result<Channel> {
    Ok(shown(&enter(who, hub, id).await?.room))
}

/// `PATCH /channels/{id}`: the next delivery has it.
pub async fn change(
    who: &Principal,
    hub: &Hub,
    id: &str,
    change: ChannelChange,
) -> Result<Channel> {
    let (who, id) = (who.clone(), id.to_owned());
    let room = hub
        .store()
        .write(async move |txn| {
            let seat = seat(&txn.tx, &who, &id).await?;
            seat.may_change()?;
            let mut room = seat.room;
            room.name = change.name.clone().unwrap_or(room.name);
            room.service = change.service.clone().unwrap_or(room.service);
            room.context = change.context.clone().unwrap_or(room.context);
            channels::describe(&txn.tx, &room).await?;
            Ok(room)
        })
        .await?;
    Ok(shown(&room))
}

/// `DELETE /channels/{id}`: its streams end, its tokens are dead, and nobody finds it any more.
pub async fn delete(who: &Principal, hub: &Hub, id: &str) -> Result<Deleted> {
    let (who, named) = (who.clone(), id.to_owned());
    let room = hub
        .store()
        .write(async move |txn| {
            let seat = seat(&txn.tx, &who, &named).await?;
            seat.may_change()?;
            channels::bury(&txn.tx, seat.room.id, txn.now()).await?;
            artifacts::forget(&txn.tx, seat.room.id).await?;
            happened(
                txn,
                "channel_deleted",
                &json!({"channel_id": &*seat.room.public_id}),
            );
            txn.notice(&Notice::ended([seat.room.id], Ending::ChannelDeleted));
            Ok(seat.room.id)
        })
        .await?;
    hub.bus().end(room, Ending::ChannelDeleted);
    Ok(Deleted {
        id: id.to_owned(),
        deleted: true,
    })
}
