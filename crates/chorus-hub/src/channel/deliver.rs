//! What is said in a room, owed to those who are to hear it and brought to them: on their inbox, or by their connection string.

use super::say::{Message, Speaker};
use super::{loops, seal, sign, tokens};
use crate::delivery::outbox::{self, Came, Purpose};
use crate::store::channels::{self, Member, Room};
use crate::store::outbox::{Sort, Taken};
use crate::store::{Entry, Kind, NewEntry, Txn, deliveries, outbox as rows};
use crate::{Hub, Result};
use chorus_wire::channel::delivery::{Delivery, Message as Said, Where};
use chorus_wire::channel::room::Via;
use chorus_wire::channel::row::{Change, Row};
use chorus_wire::{Error, limits, secret::Secret, time::Micros};

/// Owes a message to everybody who is to hear it, in the transaction that keeps it.
pub(crate) async fn fan_out(
    txn: &mut Txn<'_>,
    room: &Room,
    message: &Message<'_>,
    from: &Speaker,
) -> Result<()> {
    let most = txn.terms().agent_turns;
    for member in message.roster {
        if !loops::hears(member, from, message.called.contains(&member.id), most) {
            continue;
        }
        if member.turn != i64::from(from.turn) {
            channels::set_turn(&txn.tx, member.id, i64::from(from.turn)).await?;
        }
        match member.via {
            Via::Owner => {}
            Via::Inbox => to_inbox(txn, room, message.row, member, from).await?,
            Via::Connection => {
                deliveries::owe(&txn.tx, member.id, message.seq).await?;
                // One that has nothing else to hear is owed one: only the others need their bound.
                let away = member.unreachable_at.is_some();
                if !wake(txn, member.id, away).await? || away {
                    let most = if away {
                        limits::BACKLOG + 1
                    } else {
                        limits::OWED
                    };
                    deliveries::keep_newest(&txn.tx, member.id, most).await?;
                }
            }
        }
    }
    Ok(())
}

/// An agent of this hub: the delivery is on its inbox with the message itself, and never goes over HTTP.
async fn to_inbox(
    txn: &mut Txn<'_>,
    room: &Room,
    row: &Row,
    member: &Member,
    from: &Speaker,
) -> Result<()> {
    let Some(agent) = member.principal else {
        return Ok(());
    };
    let minted = tokens::mint(txn, room, member.id, from.turn).await?;
    let body = body(room, said(row), Vec::new(), minted)?;
    txn.append(NewEntry {
        subject: agent,
        subject_name: member.agent_id.clone().unwrap_or_default(),
        kind: Kind::Channel,
        actor: from.id,
        actor_name: from.name.clone(),
        body: body.into(),
        otherwise: None,
    });
    Ok(())
}

fn body(room: &Room, message: Said, backlog: Vec<Said>, minted: tokens::Minted) -> Result<String> {
    let channel = Where {
        id: room.public_id.to_string(),
        name: Some(room.name.clone()),
        service: room.service.clone(),
        context: room.context.clone(),
    };
    let delivery = Delivery {
        channel,
        message,
        callback: minted.callback,
        mcp: Some(minted.mcp),
        backlog,
    };
    serde_json::to_string(&delivery).map_err(Error::internal)
}

fn said(row: &Row) -> Said {
    Said {
        id: row.id.clone().unwrap_or_default(),
        sender: row.sender.clone(),
        content: row.content.clone().unwrap_or_default(),
        parts: row.parts.clone(),
    }
}

fn lane(member: i64) -> String {
    format!("member {member}")
}

/// Somebody is to look at what this member is owed. It is one row however much that is, so a member that is away for a day
/// slows no look at the outbox. One that was given up on has failed before: it takes no place of those that did not (D-41).
/// False when somebody is at it already, or will be.
async fn wake(txn: &Txn<'_>, member: i64, away: bool) -> Result<bool> {
    let (lane, body) = (lane(member), member.to_string());
    let idle = !rows::has(&txn.tx, &lane).await?;
    if idle {
        let sort = if away { Sort::Failed } else { Sort::New };
        outbox::owe(txn, Purpose::Channel, sort, &lane, "", &body).await?;
    }
    Ok(idle)
}

/// What one attempt posts. It is put together now, from ids: the row of the outbox has no secret, and every attempt has fresh
/// credentials.
struct Ready {
    url: Secret,
    signing: Option<Secret>,
    message_id: String,
    /// Its place, and with it that of everything before it.
    seq: i64,
    body: String,
}

enum Prepared {
    /// Nothing is owed any more.
    Nothing,
    /// What the member is reached by was sealed with another key.
    Sealed(i64),
    Ready(Ready),
}

/// One attempt to bring a member the next thing that it is owed.
pub(crate) async fn attempt(hub: &Hub, one: Taken) -> Result<()> {
    let member: i64 = one
        .body
        .parse()
        .map_err(|_| Error::internal("a row of the outbox is for no member"))?;
    let (of, lease) = (hub.clone(), one.clone());
    let prepared = hub
        .store()
        .write(async move |txn| prepare(&of, txn, &lease, member).await)
        .await?;
    let (seq, came) = match prepared {
        Prepared::Nothing => return Ok(()),
        Prepared::Sealed(seq) => {
            tracing::error!(
                member,
                "a connection string cannot be read: it was sealed with another key"
            );
            (
                seq,
                Came::Never("its connection string cannot be read".into()),
            )
        }
        Prepared::Ready(ready) => (ready.seq, post(hub, &one, ready).await),
    };
    let again = outbox::next(&one, hub.clock().now());
    hub.store()
        .write(async move |txn| settle(txn, &one, member, seq, &came, again).await)
        .await
}

async fn prepare(hub: &Hub, txn: &mut Txn<'_>, one: &Taken, id: i64) -> Result<Prepared> {
    // Asked again here: whoever came too late leaves it to the one who has it (D-89).
    if !rows::held(&txn.tx, one).await? {
        return Ok(Prepared::Nothing);
    }
    let member = channels::member_by_id(&txn.tx, id)
        .await?
        .filter(|member| member.left_at.is_none());
    let room = match &member {
        Some(member) => channels::by_id(&txn.tx, member.channel).await?,
        None => None,
    };
    let (Some(member), Some(room)) = (member, room) else {
        deliveries::forget(&txn.tx, id).await?;
        rows::done(&txn.tx, one).await?;
        return Ok(Prepared::Nothing);
    };
    let Some(waiting) = owed(txn, &member).await? else {
        rows::done(&txn.tx, one).await?;
        return Ok(Prepared::Nothing);
    };
    let url = member
        .connection
        .as_deref()
        .and_then(|sealed| seal::open(hub, sealed));
    let signing = member
        .signing
        .as_deref()
        .map(|sealed| seal::open(hub, sealed));
    let (Some(url), None | Some(Some(_))) = (url, &signing) else {
        return Ok(Prepared::Sealed(waiting.seq));
    };
    let Waiting { seq, row, backlog } = waiting;
    let minted = tokens::mint(txn, &room, member.id, row.turn.unwrap_or(0)).await?;
    let message = said(&row);
    let message_id = message.id.clone();
    let body = body(&room, message, backlog, minted)?;
    Ok(Prepared::Ready(Ready {
        url,
        signing: signing.flatten(),
        message_id,
        seq,
        body,
    }))
}

/// The next message, and what is caught up on with it.
struct Waiting {
    seq: i64,
    row: Row,
    backlog: Vec<Said>,
}

/// One by one in order to a member that is reached. To one that was given up on, the newest, with what it missed before it
/// . What was trimmed from the log before it could be heard is let go.
async fn owed(txn: &Txn<'_>, member: &Member) -> Result<Option<Waiting>> {
    if member.unreachable_at.is_some() {
        let mut lines = channels::owed(&txn.tx, member.id, limits::BACKLOG + 1)
            .await?
            .into_iter();
        let Some(newest) = lines.next() else {
            deliveries::forget(&txn.tx, member.id).await?;
            return Ok(None);
        };
        let row = read(&newest)?;
        return Ok(Some(Waiting {
            seq: newest.seq,
            backlog: missed(&row, lines)?,
            row,
        }));
    }
    while let Some(seq) = deliveries::first(&txn.tx, member.id).await? {
        if let Some(line) = channels::line(&txn.tx, seq).await? {
            return Ok(Some(Waiting {
                seq,
                row: read(&line)?,
                backlog: Vec::new(),
            }));
        }
        deliveries::settle(&txn.tx, member.id, seq).await?;
    }
    Ok(None)
}

fn read(line: &Entry) -> Result<Row> {
    serde_json::from_str(&line.body).map_err(Error::internal)
}

/// Those before the newest, oldest first, and no more than a delivery holds: the rest is in the history.
fn missed(newest: &Row, before: impl Iterator<Item = Entry>) -> Result<Vec<Said>> {
    let size = |said: &Said| serde_json::to_string(said).map_or(0, |text| text.len());
    let mut left = limits::BACKLOG_BYTES.saturating_sub(size(&said(newest)));
    let mut backlog = Vec::new();
    for line in before {
        let said = said(&read(&line)?);
        let Some(rest) = left.checked_sub(size(&said) + 1) else {
            break;
        };
        left = rest;
        backlog.push(said);
    }
    backlog.reverse();
    Ok(backlog)
}

/// Signed for whoever was added with a secret; a service-agnostic agent ignores that.
async fn post(hub: &Hub, one: &Taken, ready: Ready) -> Came {
    let signed = match &ready.signing {
        None => Some(Vec::new()),
        Some(secret) => sign::headers(secret, &ready.message_id, &ready.body, hub.clock().now()),
    };
    let Some(headers) = signed else {
        return Came::Never("its signing secret cannot be used".into());
    };
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    outbox::post(hub, one, ready.url.expose(), &headers, ready.body).await
}

/// What follows from an attempt. `seq` is what was posted; `again` is when to try once more, if that is still in time.
async fn settle(
    txn: &mut Txn<'_>,
    one: &Taken,
    id: i64,
    seq: i64,
    came: &Came,
    again: Option<Micros>,
) -> Result<()> {
    let member = channels::member_by_id(&txn.tx, id)
        .await?
        .filter(|member| member.left_at.is_none());
    let Some(member) = member else {
        deliveries::forget(&txn.tx, id).await?;
        rows::done(&txn.tx, one).await?;
        return Ok(());
    };
    let probing = member.unreachable_at.is_some();
    if let (Came::Again(_), Some(due), false) = (came, again, probing) {
        return Ok(rows::later(&txn.tx, one, due).await?);
    }
    if !rows::done(&txn.tx, one).await? {
        // Somebody else has it by now, and will settle it.
        return Ok(());
    }
    let away = match came {
        Came::Taken => {
            deliveries::settle_to(&txn.tx, id, seq).await?;
            mark(txn, &member, Change::Reachable).await?;
            false
        }
        // It is there and does not want this one: the next may be another matter.
        Came::Refused { gone: false } => {
            deliveries::settle(&txn.tx, id, seq).await?;
            mark(txn, &member, Change::Reachable).await?;
            false
        }
        Came::Refused { gone: true } | Came::Again(_) | Came::Never(_) => {
            deliveries::keep_newest(&txn.tx, id, limits::BACKLOG).await?;
            mark(txn, &member, Change::Unreachable).await?;
            // One attempt for each new message: what came while this one was under way has not had its own.
            let newest = deliveries::newest(&txn.tx, id, 1).await?.into_iter().next();
            if !probing || newest.is_none_or(|newest| newest <= seq) {
                return Ok(());
            }
            true
        }
    };
    if deliveries::first(&txn.tx, id).await?.is_some() {
        wake(txn, id, away).await?;
    }
    Ok(())
}

/// Marks the member and tells the room, once.
async fn mark(txn: &mut Txn<'_>, member: &Member, change: Change) -> Result<()> {
    let since = (change == Change::Unreachable).then(|| txn.now());
    if channels::set_unreachable(&txn.tx, member.id, since).await?
        && let Some(room) = channels::by_id(&txn.tx, member.channel).await?
    {
        super::say::tell(txn, &room, &Speaker::hub(), member, change)?;
    }
    Ok(())
}
