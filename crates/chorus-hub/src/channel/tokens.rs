//! What answers come back with: a callback and a key to the tools, made anew for every delivery and kept as hashes.

use crate::identity::hash_secret;
use crate::store::channel_deliveries::{self, ChannelToken, TokenPurpose};
use crate::store::channels::{self, ChannelMemberRecord, ChannelRecord};
use crate::store::{DbConnection, DbError, WriteTxn};
use crate::{Hub, Result, clock};
use chorus_wire::channel::delivery::ChannelMcp;
use chorus_wire::{Code, limits, secret::Secret};
use std::collections::BTreeMap;

/// Somebody whom a token let in: one member in one room, and how far from a person's word it speaks.
#[derive(Clone, Debug)]
pub struct TokenActor {
    pub(crate) channel: ChannelRecord,
    pub(crate) member: ChannelMemberRecord,
    pub(crate) turn: i64,
}

impl TokenActor {
    /// Tells one member from another, for whoever counts.
    pub fn member_id(&self) -> i64 {
        self.member.id
    }
}

/// The callback and the tools of one delivery.
pub(super) struct DeliveryCredentials {
    pub callback: Secret,
    pub mcp: ChannelMcp,
}

/// Makes both, good for a day.
pub(super) async fn mint_delivery_tokens(
    txn: &WriteTxn<'_>,
    channel: &ChannelRecord,
    member_id: i64,
    turn: u32,
) -> std::result::Result<DeliveryCredentials, DbError> {
    let (callback, bearer) = (clock::new_secret("tok_"), clock::new_secret("mcp_"));
    let expires_at = Some(txn.now().saturating_add(limits::CALLBACK_TTL));
    for (secret, opens) in [
        (&callback, TokenPurpose::Callback),
        (&bearer, TokenPurpose::Tools),
    ] {
        let token = ChannelToken {
            purpose: opens,
            channel: channel.id,
            member: member_id,
            turn: i64::from(turn),
            expires_at,
        };
        channel_deliveries::insert_channel_token(&txn.tx, &hash_secret(secret.expose()), &token)
            .await?;
    }
    let public = &txn.hub_settings().public_url;
    let bearer = Secret::new(format!("Bearer {}", bearer.expose()));
    let headers = BTreeMap::from([("Authorization".to_owned(), bearer)]);
    let mcp = ChannelMcp {
        url: format!("{public}/mcp/{}", channel.public_id),
        headers: Some(headers),
    };
    Ok(DeliveryCredentials {
        callback: callback_url(txn, channel, &callback),
        mcp,
    })
}

/// A standing callback in the place of the one before, which is dead from here on.
pub(super) async fn mint_persistent_callback(
    txn: &WriteTxn<'_>,
    channel: &ChannelRecord,
    member_id: i64,
) -> std::result::Result<Secret, DbError> {
    channel_deliveries::expire_persistent_callback(&txn.tx, member_id, txn.now()).await?;
    let secret = clock::new_secret("tok_");
    let token = ChannelToken {
        purpose: TokenPurpose::PersistentCallback,
        channel: channel.id,
        member: member_id,
        turn: 0,
        expires_at: None,
    };
    channel_deliveries::insert_channel_token(&txn.tx, &hash_secret(secret.expose()), &token)
        .await?;
    Ok(callback_url(txn, channel, &secret))
}

fn callback_url(txn: &WriteTxn<'_>, channel: &ChannelRecord, token: &Secret) -> Secret {
    let public = &txn.hub_settings().public_url;
    Secret::new(format!(
        "{public}/channels/{}/inbox/{}",
        channel.public_id,
        token.expose()
    ))
}

/// Whom a callback lets in. Never made, or made for another room: it is not there. Made and dead: it is gone.
pub(super) async fn resolve_callback(
    tx: &DbConnection<'_>,
    channel_id: &str,
    token_hash: &[u8; 32],
    now: chorus_wire::time::UnixMicros,
) -> Result<TokenActor> {
    let token = channel_deliveries::find_channel_token(tx, token_hash)
        .await?
        .ok_or(Code::NotFound)?;
    match token.purpose {
        TokenPurpose::Callback | TokenPurpose::PersistentCallback => {}
        TokenPurpose::Tools => return Err(Code::NotFound.into()),
    }
    let Some(channel) = channels::find_channel(tx, token.channel).await? else {
        return Err(
            if channels::has_public_id(tx, token.channel, channel_id).await? {
                Code::Gone.into()
            } else {
                Code::NotFound.into()
            },
        );
    };
    if *channel.public_id != *channel_id {
        return Err(Code::NotFound.into());
    }
    let member = channels::member_by_id(tx, token.member)
        .await?
        .filter(|member| member.left_at.is_none());
    let is_alive = token.expires_at.is_none_or(|expires_at| now < expires_at);
    match member {
        Some(member) if is_alive => Ok(TokenActor {
            channel,
            member,
            turn: token.turn,
        }),
        Some(_) | None => Err(Code::Gone.into()),
    }
}

/// Whom the bearer of a delivery's `mcp` lets into this channel's tools; whatever is wrong with it, it is the same refusal.
pub async fn resolve_tool_token(hub: &Hub, channel_id: &str, bearer: &str) -> Result<TokenActor> {
    let (token_hash, channel_id, now) = (
        hash_secret(bearer),
        channel_id.to_owned(),
        hub.clock().now(),
    );
    hub.store()
        .read(async move |tx| lookup_tool_token(tx, &channel_id, &token_hash, now).await)
        .await
}

/// The same inside a transaction, for what is to be undone together with a removal that came before.
pub(crate) async fn lookup_tool_token(
    tx: &DbConnection<'_>,
    channel_id: &str,
    token_hash: &[u8; 32],
    now: chorus_wire::time::UnixMicros,
) -> Result<TokenActor> {
    let token = channel_deliveries::find_channel_token(tx, token_hash)
        .await?
        .filter(|token| token.purpose == TokenPurpose::Tools);
    let token = token
        .filter(|token| token.expires_at.is_some_and(|expires_at| now < expires_at))
        .ok_or(Code::Unauthorized)?;
    let channel = channels::find_channel(tx, token.channel)
        .await?
        .filter(|channel| *channel.public_id == *channel_id);
    let member = channels::member_by_id(tx, token.member)
        .await?
        .filter(|member| member.left_at.is_none());
    match (channel, member) {
        (Some(channel), Some(member)) => Ok(TokenActor {
            channel,
            member,
            turn: token.turn,
        }),
        (Some(_) | None, Some(_) | None) => Err(Code::Unauthorized.into()),
    }
}
