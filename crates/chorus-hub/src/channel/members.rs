//! Who comes into a room and who goes: by connection string or by address, by the owner's hand or one's own.

use super::rooms::{Seat, blank, enter, seat, short_name};
use super::say::{Speaker, tell};
use super::{roster, seal, sign};
use crate::delivery::Ending;
use crate::identity::{self, Agent};
use crate::ops::happened;
use crate::store::channels::{self, Member};
use crate::store::{Notice, Txn, principals};
use crate::{Hub, Principal, Result};
use chorus_wire::channel::mention::{self, MemberName};
use chorus_wire::channel::room::{Deliver, Invited, Member as Shown, NewMember, Removed, Via};
use chorus_wire::channel::row::Change;
use chorus_wire::identity::Name;
use chorus_wire::{Code, Error, limits};
use serde_json::json;
use std::sync::Arc;

/// Whoever is to be let in, checked as far as it can be without the room.
enum Guest {
    Elsewhere {
        connection: Vec<u8>,
        signing: Option<Vec<u8>>,
    },
    Here(Arc<Agent>),
}

/// `POST /channels/{id}/members`
pub async fn add(who: &Principal, hub: &Hub, id: &str, new: NewMember) -> Result<Shown> {
    enter(who, hub, id).await?.may_change()?;
    let (guest, name) = match new.who {
        Invited::Connection {
            url,
            signing_secret,
        } => {
            signing_secret.as_ref().map_or(Ok(()), sign::check)?;
            hub.outgoing().admit(url.expose()).await?;
            let connection = seal::close(hub, &url)?;
            let signing = signing_secret
                .map(|secret| seal::close(hub, &secret))
                .transpose()?;
            let name = new
                .name
                .ok_or_else(|| Error::validation("name is required with a connection"))?;
            (
                Guest::Elsewhere {
                    connection,
                    signing,
                },
                name,
            )
        }
        Invited::Agent(named) => {
            let agent = identity::find(hub, &Name::parse("agent_id", &named)?)
                .await?
                .ok_or(Code::AgentNotFound)?;
            let name = new.name.map_or_else(|| short_name(&agent), Ok)?;
            (Guest::Here(agent), name)
        }
    };
    let (who, id, deliver) = (who.clone(), id.to_owned(), new.deliver);
    let member = hub
        .store()
        .write(async move |txn| join(txn, &who, &id, &guest, &name, deliver).await)
        .await?;
    roster::shown(hub, &member)
}

async fn join(
    txn: &mut Txn<'_>,
    who: &Principal,
    id: &str,
    guest: &Guest,
    name: &MemberName,
    deliver: Deliver,
) -> Result<Member> {
    let seat = seat(&txn.tx, who, id).await?;
    seat.may_change()?;
    if seat.room.members >= limits::ROOM_MEMBERS as i64 {
        let said = format!("a channel has at most {} members", limits::ROOM_MEMBERS);
        return Err(Error::new(Code::Conflict, said));
    }
    let member = match guest {
        Guest::Elsewhere {
            connection,
            signing,
        } => Member {
            connection: Some(connection.clone()),
            signing: signing.clone(),
            ..blank(txn, &seat.room, name, Via::Connection, deliver).await?
        },
        Guest::Here(agent) => {
            // It may have unregistered since it was looked up.
            principals::by_id(&txn.tx, agent.id)
                .await?
                .ok_or(Code::AgentNotFound)?;
            Member {
                principal: Some(agent.id),
                agent_id: Some(agent.agent_id.clone()),
                ..blank(txn, &seat.room, name, Via::Inbox, deliver).await?
            }
        }
    };
    if !channels::join(&txn.tx, &member, &name.folded()).await? {
        let said = format!("{name} is taken in this channel, or the agent is in it already");
        return Err(Error::new(Code::Conflict, said));
    }
    tell(txn, &seat.room, &seat.speaker(), &member, Change::Joined)?;
    let data = json!({"channel_id": &*seat.room.public_id, "name": member.name, "via": member.via});
    happened(txn, "channel_member_added", &data);
    Ok(member)
}

/// `DELETE /channels/{id}/members/{name}`: by the owner, an operator or the member itself; its tokens and streams end at once.
pub async fn remove(who: &Principal, hub: &Hub, id: &str, name: &str) -> Result<Removed> {
    let (who, id, folded) = (who.clone(), id.to_owned(), mention::fold(name));
    let member = hub
        .store()
        .write(async move |txn| {
            let seat = seat(&txn.tx, &who, &id).await?;
            let member = channels::called(&txn.tx, seat.room.id, &folded).await?;
            let member = member.ok_or_else(|| {
                Error::new(Code::NotFound, "nobody of that name is in the channel")
            })?;
            expel(txn, &seat, &member).await?;
            Ok(member)
        })
        .await?;
    hub.bus().end(member.id, Ending::Removed);
    Ok(Removed {
        name: MemberName::parse("name", &member.name)?,
        removed: true,
    })
}

async fn expel(txn: &mut Txn<'_>, seat: &Seat, member: &Member) -> Result<()> {
    let itself = seat
        .member
        .as_ref()
        .is_some_and(|mine| mine.id == member.id);
    if !itself {
        seat.may_change()?;
    }
    if member.via == Via::Owner {
        return Err(Error::new(
            Code::Conflict,
            "the owner stays as long as the channel; delete the channel instead",
        ));
    }
    channels::leave(&txn.tx, member.id, txn.now()).await?;
    txn.notice(&Notice::ended([member.id], Ending::Removed));
    let change = if itself {
        Change::Left
    } else {
        Change::Removed
    };
    tell(txn, &seat.room, &seat.speaker(), member, change)?;
    let data = json!({"channel_id": &*seat.room.public_id, "name": member.name});
    happened(txn, "channel_member_removed", &data);
    Ok(())
}

/// The agent is unregistered: it leaves every room, and its own are the operators' from here on.
pub(crate) async fn depart(txn: &mut Txn<'_>, agent: i64) -> Result<()> {
    for member in &channels::places(&txn.tx, agent).await? {
        channels::leave(&txn.tx, member.id, txn.now()).await?;
        if let Some(room) = channels::by_id(&txn.tx, member.channel).await? {
            tell(txn, &room, &Speaker::hub(), member, Change::Left)?;
        }
    }
    Ok(channels::disown(&txn.tx, agent).await?)
}
