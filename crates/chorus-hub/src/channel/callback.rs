//! Callbacks: events that members post back to a channel, appended one at a time and in order, as
//! long as the callback is valid.

use super::append::{ChannelSender, append_event};
use super::tokens::{self, PresentedToken, TokenActor};
use super::{manage, routing};
use crate::context::HubContext;
use crate::identity::rate_limit::CallerId;
use crate::identity::{IdempotencyKey, require_live_key};
use crate::store::channels::{self, ChannelMemberRecord};
use crate::store::idempotency::{self, KeyUse};
use crate::store::{MemberId, OwnerId, WriteTxn};
use crate::{Principal, Result};
use chorus_wire::channel::callback_event::{CallbackPost, ChannelEvent};
use chorus_wire::channel::channels::MemberRoute;
use chorus_wire::channel::mention;
use chorus_wire::channel::persistent_callback::PersistentCallback;
use chorus_wire::{Error, ErrorCode, secret::Secret};

impl TokenActor {
    /// The member as the sender of an event with this credential: an agent, one step after the
    /// message with which the credential was delivered.
    pub(crate) fn sender(&self) -> ChannelSender {
        ChannelSender::as_agent(
            &self.member,
            routing::next_turn(self.turn, self.member.turn),
        )
    }
}

/// A callback that was valid when it was looked up.
#[derive(Clone, Debug)]
pub struct ResolvedCallback {
    channel_id: String,
    presented: PresentedToken,
    member_id: MemberId,
    budget_caller: CallerId,
    payer: Option<OwnerId>,
}

impl ResolvedCallback {
    /// Looks up a callback. The server does this before it reads the body, so that a client that
    /// guesses tokens gets the same answer whatever it sends.
    pub async fn find(hub: &HubContext, channel_id: &str, token: &Secret) -> Result<Self> {
        let presented = PresentedToken::read(hub.seal_key(), token.expose());
        let looked_up = presented.clone();
        let id = channel_id.to_owned();
        let now = hub.clock().now();
        let actor = hub
            .store()
            .read(async move |tx| tokens::resolve_callback(tx, &id, &looked_up, now).await)
            .await?;
        Ok(Self {
            channel_id: channel_id.to_owned(),
            presented,
            member_id: actor.member.id,
            budget_caller: actor.budget_caller(),
            payer: actor.payer,
        })
    }

    /// The caller that requests with this callback are charged to.
    pub fn budget_caller(&self) -> CallerId {
        self.budget_caller
    }

    /// Identifies the member for the limit of open streams.
    pub fn member_id(&self) -> MemberId {
        self.member_id
    }

    /// `POST /channels/{id}/inbox/{tok_…}`, or one line of its body. An event with the same
    /// idempotency key is appended once.
    pub async fn accept_event(
        &self,
        hub: &HubContext,
        event: &[u8],
        idempotency_key: Option<IdempotencyKey>,
    ) -> Result<()> {
        let token = self.clone();
        let octets = event.len();
        let event = CallbackPost::parse(event)?;
        if let Some(payer) = self.payer {
            hub.identity().charge_stored_bytes(payer, octets).await?;
        }
        let is_message = matches!(event.event, ChannelEvent::Message { .. });
        hub.store()
            .write(async move |txn| {
                token
                    .append_event_once(txn, event.clone(), idempotency_key.as_ref())
                    .await
            })
            .await?;
        if is_message {
            hub.wake_outbox();
        }
        Ok(())
    }

    async fn append_event_once(
        &self,
        txn: &mut WriteTxn<'_>,
        event: CallbackPost,
        idempotency_key: Option<&IdempotencyKey>,
    ) -> Result<()> {
        let now = txn.now();
        // Checked again inside the transaction: the callback may have been revoked since.
        let actor =
            tokens::resolve_callback(&txn.tx, &self.channel_id, &self.presented, now).await?;
        // The scope is the member, not the callback: a repeated event may come with the callback of
        // a later delivery attempt.
        let caller = format!("member {}", actor.member.id);
        if let Some(idempotency_key) = idempotency_key {
            let clock = txn.expiry_clock();
            match idempotency::check_idempotency_key(&txn.tx, &caller, idempotency_key, clock)
                .await?
            {
                KeyUse::Unused => {}
                KeyUse::SameRequest(_) => return Ok(()),
                KeyUse::DifferentRequest => return Err(ErrorCode::IdempotencyConflict.into()),
            }
        }
        let appended = append_event(txn, &actor.channel, &actor.sender(), event).await?;
        if let Some(idempotency_key) = idempotency_key {
            idempotency::record_idempotency_key(
                &txn.tx,
                &caller,
                idempotency_key,
                appended.seq,
                now,
            )
            .await?;
        }
        Ok(())
    }
}

/// `POST /channels/{id}/members/{name}/callback`: issues a persistent callback, for events that
/// answer no delivery. It replaces the member's previous one.
pub async fn create_persistent_callback(
    principal: &Principal,
    hub: &HubContext,
    id: &str,
    name: &str,
) -> Result<PersistentCallback> {
    let principal = principal.clone();
    let id = id.to_owned();
    let folded_name = mention::fold_name(name);
    let callback = hub
        .store()
        .write_repeatable(async move |txn| {
            let actor = manage::find_actor(&txn.tx, &principal, &id).await?;
            let member =
                channels::find_member_by_name(&txn.tx, actor.channel.id, &folded_name).await?;
            let member = member
                .filter(ChannelMemberRecord::has_joined)
                .ok_or_else(|| {
                    Error::new(
                        ErrorCode::NotFound,
                        "no member of that name is in the channel",
                    )
                })?;
            if actor
                .member
                .as_ref()
                .is_none_or(|own_member| own_member.id != member.id)
            {
                actor.check_can_change()?;
            }
            if member.via == MemberRoute::Owner {
                // An event from a callback counts as an agent's, the owner's messages as a person's
                //
                return Err(Error::new(
                    ErrorCode::Conflict,
                    "the owner speaks with its key, not by a callback",
                ));
            }
            let caller = principal.require_caller().ok();
            if let Some(caller) = caller {
                require_live_key(txn, caller).await?;
            }
            let target = format!("{id} {}", member.name);
            principal.record_operator_act(txn, "create_callback", &target);
            Ok(tokens::mint_persistent_callback(txn, &actor.channel, member.id, caller).await?)
        })
        .await?;
    Ok(PersistentCallback { callback })
}
