//! Who is in a room, how each is reached and what it is doing just now.

use super::rooms::enter;
use crate::store::channels::{self, Member};
use crate::{Hub, Principal, Result};
use chorus_wire::channel::mention::MemberName;
use chorus_wire::channel::room::{Member as Shown, Presence, Via, Voice};
use chorus_wire::{Error, limits};

/// `GET /channels/{id}/members`
pub async fn roster(who: &Principal, hub: &Hub, id: &str) -> Result<Vec<Shown>> {
    let room = enter(who, hub, id).await?.room.id;
    of(hub, room).await
}

/// The same for whoever is in the room by other means than a key.
pub(crate) async fn of(hub: &Hub, room: i64) -> Result<Vec<Shown>> {
    let members = hub
        .store()
        .read(async move |tx| Ok(channels::roster(tx, room).await?))
        .await?;
    members.iter().map(|member| shown(hub, member)).collect()
}

pub(super) fn shown(hub: &Hub, member: &Member) -> Result<Shown> {
    // A status that is not repeated is not true for ever: an agent that died does not search the web.
    let status = member
        .status
        .clone()
        .filter(|(_, at)| hub.clock().now() < at.plus(limits::STATUS_KEPT));
    let (status, status_at) = status.unzip();
    let presence = match (member.via, member.principal) {
        (Via::Owner | Via::Inbox, Some(agent)) if hub.bus().online(agent) => Presence::Online,
        (Via::Owner | Via::Inbox, Some(_) | None) => Presence::Offline,
        (Via::Connection, Some(_) | None) => Presence::Unknown,
    };
    Ok(Shown {
        name: MemberName::parse("name", &member.name).map_err(|e| Error::internal(e.message))?,
        kind: match member.via {
            Via::Owner => Voice::Person,
            Via::Inbox | Via::Connection => Voice::Agent,
        },
        deliver: member.deliver,
        status,
        status_at,
        via: member.via,
        agent_id: member.agent_id.as_deref().map(str::to_owned),
        presence,
        unreachable: member.unreachable_at.is_some(),
        signed: member.signing.is_some(),
        agent: member
            .identity
            .as_deref()
            .and_then(|text| serde_json::from_str(text).ok()),
        joined_at: member.joined_at,
    })
}
