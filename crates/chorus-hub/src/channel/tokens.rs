//! Channel tokens: each delivery gets a new callback and a new tool token.

use super::delivery_token::DeliveryClaims;
use crate::context::HubContext;
use crate::identity::rate_limit::CallerId;
use crate::identity::{AgentCaller, hash_secret};
use crate::seal::SealKey;
use crate::store::channel_tokens::{self, ChannelToken, TokenPurpose};
use crate::store::channels::{self, ChannelMemberRecord, ChannelRecord};
use crate::store::{DbConnection, DbError, MemberId, OwnerId, WriteTxn, owner_usage};
use crate::{Result, random};
use chorus_wire::channel::delivery::ChannelMcp;
use chorus_wire::time::UnixMicros;
use chorus_wire::{Error, ErrorCode, limits, secret::Secret};
use std::collections::BTreeMap;

/// The party that a token admits: one member in one channel, with the turn of the message that the
/// token was issued for.
#[derive(Clone, Debug)]
pub struct TokenActor {
    pub(crate) channel: ChannelRecord,
    pub(crate) member: ChannelMemberRecord,
    pub(crate) turn: i64,
    /// Whose quota its writes count for: the member's owner, or the channel's where the member is reached by a connection string.
    pub(crate) payer: Option<OwnerId>,
}

impl TokenActor {
    pub fn member_id(&self) -> MemberId {
        self.member.id
    }

    /// The caller that the member's requests are charged to: its agent, however many channels it is in, or for a member by
    /// connection string all such members of the owner together.
    pub fn budget_caller(&self) -> CallerId {
        match (self.member.principal, self.channel.owner) {
            (Some(agent), _) => CallerId::Agent(agent),
            (None, Some(owner)) => CallerId::OwnedMembers(owner),
            (None, None) => CallerId::Connection(self.member.id.into()),
        }
    }
}

/// A token as a client presents it.
#[derive(Clone, Debug)]
pub(super) enum PresentedToken {
    /// Issued with a delivery by a hub with this seal key (D-122).
    OfDelivery(TokenPurpose, DeliveryClaims),
    /// Everything else. Persistent callbacks are stored by this hash; a token that was never issued is not.
    Hashed([u8; 32]),
}

impl PresentedToken {
    pub fn read(seal_key: &SealKey, token: &str) -> Self {
        match DeliveryClaims::read_token(seal_key, token) {
            Some((purpose, claims)) => Self::OfDelivery(purpose, claims),
            None => Self::Hashed(hash_secret(token)),
        }
    }

    /// The token and the epoch that it was issued in, also when it has expired.
    async fn find(
        &self,
        tx: &DbConnection<'_>,
    ) -> std::result::Result<Option<(ChannelToken, Option<i64>)>, DbError> {
        match self {
            Self::OfDelivery(purpose, claims) => {
                let token = ChannelToken {
                    purpose: *purpose,
                    channel: claims.channel,
                    member: claims.member,
                    turn: i64::from(claims.turn),
                    expires_at: Some(claims.expires_at),
                    agent: None,
                    made_with: None,
                };
                Ok(Some((token, Some(claims.epoch))))
            }
            Self::Hashed(hash) => {
                let token = channel_tokens::find_channel_token(tx, hash).await?;
                Ok(token.map(|token| (token, None)))
            }
        }
    }
}

/// Whether a token admits its member now: it has not expired, the key that could read it has not ended, and the member
/// has not left.
fn is_valid(
    token: &ChannelToken,
    epoch: Option<i64>,
    member: &ChannelMemberRecord,
    now: UnixMicros,
) -> bool {
    token.expires_at.is_none_or(|expires_at| now < expires_at)
        && epoch.is_none_or(|epoch| epoch == member.token_epoch)
        && member.left_at.is_none()
}

async fn find_payer(
    tx: &DbConnection<'_>,
    channel: &ChannelRecord,
    member: &ChannelMemberRecord,
) -> std::result::Result<Option<OwnerId>, DbError> {
    match member.principal.or(channel.owner) {
        Some(agent) => owner_usage::find_agent_owner(tx, agent).await,
        None => Ok(None),
    }
}

/// The callback and the MCP access of one delivery.
pub(super) struct DeliveryCredentials {
    pub callback: Secret,
    pub mcp: ChannelMcp,
}

/// Issues the callback and the tool token of one delivery, both valid for a day.
pub(super) fn mint_delivery_tokens(
    txn: &WriteTxn<'_>,
    channel: &ChannelRecord,
    member: &ChannelMemberRecord,
    turn: u32,
) -> Result<DeliveryCredentials> {
    let seal_key = require_seal_key(txn)?;
    let expires_at = txn.now().saturating_add(limits::CALLBACK_TTL);
    let claims = DeliveryClaims::new(channel.id, member.id, turn, member.token_epoch, expires_at);
    let callback = claims.issue_token(seal_key, TokenPurpose::Callback);
    let bearer = claims.issue_token(seal_key, TokenPurpose::Tools);
    let public_url = &txn.hub_settings().public_url;
    let bearer = Secret::new(format!("Bearer {}", bearer.expose()));
    let headers = BTreeMap::from([("Authorization".to_owned(), bearer)]);
    let mcp = ChannelMcp {
        url: format!("{public_url}/mcp/{}", channel.public_id),
        headers: Some(headers),
    };
    Ok(DeliveryCredentials {
        callback: callback_url(txn, channel, &callback),
        mcp,
    })
}

/// The key of the hub that writes.
pub(super) fn require_seal_key<'t>(txn: &'t WriteTxn<'_>) -> Result<&'t SealKey> {
    txn.hub_settings()
        .seal_key
        .as_deref()
        .ok_or_else(|| Error::internal("the store has no seal key"))
}

/// Issues a persistent callback that ends with the key of the agent that asked for it. The member's previous one is invalid from then on.
pub(super) async fn mint_persistent_callback(
    txn: &WriteTxn<'_>,
    channel: &ChannelRecord,
    member_id: MemberId,
    made_by: Option<&AgentCaller>,
) -> std::result::Result<Secret, DbError> {
    channel_tokens::expire_persistent_callback(&txn.tx, member_id, txn.now()).await?;
    let secret = random::new_secret("tok_");
    let token = ChannelToken {
        purpose: TokenPurpose::PersistentCallback,
        channel: channel.id,
        member: member_id,
        turn: 0,
        expires_at: None,
        agent: made_by.map(|caller| caller.id),
        made_with: made_by
            .and_then(|caller| caller.key.id.as_deref())
            .map(str::to_owned),
    };
    channel_tokens::insert_channel_token(&txn.tx, &hash_secret(secret.expose()), &token).await?;
    Ok(callback_url(txn, channel, &secret))
}

fn callback_url(txn: &WriteTxn<'_>, channel: &ChannelRecord, token: &Secret) -> Secret {
    let public_url = &txn.hub_settings().public_url;
    Secret::new(format!(
        "{public_url}/channels/{}/inbox/{}",
        channel.public_id,
        token.expose()
    ))
}

/// The member that a callback admits. A token that was never issued, or was issued for another
/// channel, gets 404. One that has expired or was revoked gets 410 for a week, then 404.
pub(super) async fn resolve_callback(
    tx: &DbConnection<'_>,
    channel_id: &str,
    presented: &PresentedToken,
    now: UnixMicros,
) -> Result<TokenActor> {
    let (token, epoch) = presented.find(tx).await?.ok_or(ErrorCode::NotFound)?;
    match token.purpose {
        TokenPurpose::Callback | TokenPurpose::PersistentCallback => {}
        TokenPurpose::Tools => return Err(ErrorCode::NotFound.into()),
    }
    // The row of a stored token is deleted by then; one that is not stored says it itself.
    let forgotten_before = now.saturating_sub(limits::EXPIRED_CALLBACK_RETENTION);
    if token
        .expires_at
        .is_some_and(|expires_at| expires_at < forgotten_before)
    {
        return Err(ErrorCode::NotFound.into());
    }
    let Some(channel) = channels::find_channel(tx, token.channel).await? else {
        // The row of a deleted channel is trimmed with what the hub retains. The token is from it all the same.
        let public_id = channels::find_public_id(tx, token.channel).await?;
        let is_another = public_id.is_some_and(|public_id| public_id != channel_id);
        return Err(if is_another {
            ErrorCode::NotFound.into()
        } else {
            ErrorCode::Gone.into()
        });
    };
    if *channel.public_id != *channel_id {
        return Err(ErrorCode::NotFound.into());
    }
    let member = channels::member_by_id(tx, token.member).await?;
    match member {
        Some(member) if is_valid(&token, epoch, &member, now) => Ok(TokenActor {
            payer: find_payer(tx, &channel, &member).await?,
            channel,
            member,
            turn: token.turn,
        }),
        Some(_) | None => Err(ErrorCode::Gone.into()),
    }
}

/// The member that a tool token admits to this channel's tools. Every invalid token gets the same
/// refusal.
pub async fn resolve_tool_token(
    hub: &HubContext,
    channel_id: &str,
    bearer: &str,
) -> Result<TokenActor> {
    let presented = PresentedToken::read(hub.seal_key(), bearer);
    let channel_id = channel_id.to_owned();
    let now = hub.clock().now();
    hub.store()
        .read(async move |tx| lookup_tool_token(tx, &channel_id, &presented, now).await)
        .await
}

/// The same inside a transaction, so that a write is refused if the member was removed before it.
pub(super) async fn lookup_tool_token(
    tx: &DbConnection<'_>,
    channel_id: &str,
    presented: &PresentedToken,
    now: UnixMicros,
) -> Result<TokenActor> {
    let (token, epoch) = presented
        .find(tx)
        .await?
        .filter(|(token, _)| token.purpose == TokenPurpose::Tools)
        .ok_or(ErrorCode::Unauthorized)?;
    let channel = channels::find_channel(tx, token.channel)
        .await?
        .filter(|channel| *channel.public_id == *channel_id);
    let member = channels::member_by_id(tx, token.member)
        .await?
        .filter(|member| is_valid(&token, epoch, member, now));
    match (channel, member) {
        (Some(channel), Some(member)) => Ok(TokenActor {
            payer: find_payer(tx, &channel, &member).await?,
            channel,
            member,
            turn: token.turn,
        }),
        (Some(_) | None, Some(_) | None) => Err(ErrorCode::Unauthorized.into()),
    }
}
