//! What answers come back with: a callback and a key to the tools, made anew for every delivery and kept as hashes.

use crate::identity::hash;
use crate::store::channels::{self, Member, Room};
use crate::store::deliveries::{self, Opens, Token};
use crate::store::{DbError, Tx, Txn};
use crate::{Hub, Result, clock};
use chorus_wire::channel::delivery::Mcp;
use chorus_wire::{Code, limits, secret::Secret};
use std::collections::BTreeMap;

/// Somebody whom a token let in: one member in one room, and how far from a person's word it speaks.
#[derive(Clone, Debug)]
pub struct Pass {
    pub(crate) room: Room,
    pub(crate) member: Member,
    pub(crate) turn: i64,
}

impl Pass {
    /// Tells one member from another, for whoever counts.
    pub fn number(&self) -> i64 {
        self.member.id
    }
}

/// The callback and the tools of one delivery.
pub(super) struct Minted {
    pub callback: Secret,
    pub mcp: Mcp,
}

/// Makes both, good for a day.
pub(super) async fn mint(
    txn: &Txn<'_>,
    room: &Room,
    member: i64,
    turn: u32,
) -> std::result::Result<Minted, DbError> {
    let (callback, bearer) = (clock::new_secret("tok_"), clock::new_secret("mcp_"));
    let until = Some(txn.now().plus(limits::CALLBACK_LIFE));
    for (secret, opens) in [(&callback, Opens::Callback), (&bearer, Opens::Tools)] {
        let token = Token {
            opens,
            channel: room.id,
            member,
            turn: i64::from(turn),
            expires_at: until,
        };
        deliveries::mint(&txn.tx, &hash(secret.expose()), &token).await?;
    }
    let public = &txn.terms().public_url;
    let bearer = Secret::new(format!("Bearer {}", bearer.expose()));
    let headers = BTreeMap::from([("Authorization".to_owned(), bearer)]);
    let mcp = Mcp {
        url: format!("{public}/mcp/{}", room.public_id),
        headers: Some(headers),
    };
    Ok(Minted {
        callback: url(txn, room, &callback),
        mcp,
    })
}

/// A standing callback in the place of the one before, which is dead from here on.
pub(super) async fn stand(
    txn: &Txn<'_>,
    room: &Room,
    member: i64,
) -> std::result::Result<Secret, DbError> {
    deliveries::end_standing(&txn.tx, member, txn.now()).await?;
    let secret = clock::new_secret("tok_");
    let token = Token {
        opens: Opens::Standing,
        channel: room.id,
        member,
        turn: 0,
        expires_at: None,
    };
    deliveries::mint(&txn.tx, &hash(secret.expose()), &token).await?;
    Ok(url(txn, room, &secret))
}

fn url(txn: &Txn<'_>, room: &Room, token: &Secret) -> Secret {
    let public = &txn.terms().public_url;
    Secret::new(format!(
        "{public}/channels/{}/inbox/{}",
        room.public_id,
        token.expose()
    ))
}

/// Whom a callback lets in. Never made, or made for another room: it is not there. Made and dead: it is gone.
pub(super) async fn callback(
    tx: &Tx<'_>,
    channel: &str,
    hash: &[u8; 32],
    now: chorus_wire::time::Micros,
) -> Result<Pass> {
    let token = deliveries::token(tx, hash).await?.ok_or(Code::NotFound)?;
    match token.opens {
        Opens::Callback | Opens::Standing => {}
        Opens::Tools => return Err(Code::NotFound.into()),
    }
    let Some(room) = channels::by_id(tx, token.channel).await? else {
        return Err(if channels::was(tx, token.channel, channel).await? {
            Code::Gone.into()
        } else {
            Code::NotFound.into()
        });
    };
    if *room.public_id != *channel {
        return Err(Code::NotFound.into());
    }
    let member = channels::member_by_id(tx, token.member)
        .await?
        .filter(|member| member.left_at.is_none());
    let alive = token.expires_at.is_none_or(|until| now < until);
    match member {
        Some(member) if alive => Ok(Pass {
            room,
            member,
            turn: token.turn,
        }),
        Some(_) | None => Err(Code::Gone.into()),
    }
}

/// Whom the bearer of a delivery's `mcp` lets into this channel's tools; whatever is wrong with it, it is the same refusal.
pub async fn open(hub: &Hub, channel: &str, bearer: &str) -> Result<Pass> {
    let (hash, channel, now) = (hash(bearer), channel.to_owned(), hub.clock().now());
    hub.store()
        .read(async move |tx| enter(tx, &channel, &hash, now).await)
        .await
}

/// The same inside a transaction, for what is to be undone together with a removal that came before.
pub(crate) async fn enter(
    tx: &Tx<'_>,
    channel: &str,
    hash: &[u8; 32],
    now: chorus_wire::time::Micros,
) -> Result<Pass> {
    let token = deliveries::token(tx, hash)
        .await?
        .filter(|token| token.opens == Opens::Tools);
    let token = token
        .filter(|token| token.expires_at.is_some_and(|until| now < until))
        .ok_or(Code::Unauthorized)?;
    let room = channels::by_id(tx, token.channel)
        .await?
        .filter(|room| *room.public_id == *channel);
    let member = channels::member_by_id(tx, token.member)
        .await?
        .filter(|member| member.left_at.is_none());
    match (room, member) {
        (Some(room), Some(member)) => Ok(Pass {
            room,
            member,
            turn: token.turn,
        }),
        (Some(_) | None, Some(_) | None) => Err(Code::Unauthorized.into()),
    }
}
