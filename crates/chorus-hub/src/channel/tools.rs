//! The MCP tools of a channel, for a member that comes with the tool token of a delivery.

use super::append::append_event;
use super::history::{self, HistoryRange};
use super::member_list;
use super::tokens::{self, PresentedToken, TokenActor};
use crate::Result;
use crate::context::HubContext;
use crate::identity::rate_limit::CallerId;
use crate::store::WriteTxn;
use chorus_wire::channel::callback_event::{CallbackPost, ChannelEvent};
use chorus_wire::channel::channels::{ChannelMember, NewChannelMessage};
use chorus_wire::channel::history_row::ChannelRow;
use serde_json::value::RawValue;

/// A tool token that was valid when the request came. It admits one member to one channel, until it
/// expires or the member leaves.
#[derive(Clone, Debug)]
pub struct ToolToken {
    presented: PresentedToken,
    pub(super) actor: TokenActor,
}

impl ToolToken {
    /// Looks up a tool token. Every invalid token gets the same refusal.
    pub async fn open(hub: &HubContext, channel_id: &str, bearer: &str) -> Result<Self> {
        Ok(Self {
            presented: PresentedToken::read(hub.seal_key(), bearer),
            actor: tokens::resolve_tool_token(hub, channel_id, bearer).await?,
        })
    }

    /// The caller that requests with this token are charged to.
    pub fn budget_caller(&self) -> CallerId {
        self.actor.budget_caller()
    }

    pub fn channel_id(&self) -> &str {
        &self.actor.channel.public_id
    }

    /// Counts a write for the member's quota, or refuses it.
    pub(super) async fn charge_stored_bytes(&self, hub: &HubContext, octets: usize) -> Result<()> {
        match self.actor.payer {
            Some(payer) => hub.identity().charge_stored_bytes(payer, octets).await,
            None => Ok(()),
        }
    }

    /// Looks the token up again inside the write transaction, because it may have been revoked
    /// since the request came.
    pub(super) async fn recheck_actor(&self, txn: &WriteTxn<'_>) -> Result<TokenActor> {
        tokens::lookup_tool_token(
            &txn.tx,
            &self.actor.channel.public_id,
            &self.presented,
            txn.now(),
        )
        .await
    }
}

/// `read_history`
pub async fn read_history(
    token: &ToolToken,
    hub: &HubContext,
    range: HistoryRange,
    limit: usize,
) -> Result<Vec<Box<RawValue>>> {
    history::list_history_rows(hub, token.actor.channel.id, range, limit).await
}

/// `get_roster`
pub async fn get_roster(token: &ToolToken, hub: &HubContext) -> Result<Vec<ChannelMember>> {
    member_list::list_channel_members(hub, token.actor.channel.id).await
}

/// `send_message`: the message counts as an agent's.
pub async fn send_message(
    token: &ToolToken,
    hub: &HubContext,
    message: NewChannelMessage,
) -> Result<ChannelRow> {
    let NewChannelMessage { content, parts } = message.into_checked()?;
    append_tool_event(token, hub, ChannelEvent::Message { content, parts }).await
}

/// `set_status`: an empty status removes the present one.
pub async fn set_status(token: &ToolToken, hub: &HubContext, status: String) -> Result<ChannelRow> {
    append_tool_event(token, hub, ChannelEvent::Status { status }).await
}

async fn append_tool_event(
    token: &ToolToken,
    hub: &HubContext,
    event: ChannelEvent,
) -> Result<ChannelRow> {
    if let ChannelEvent::Message { content, parts } = &event {
        let octets = content.len() + parts.as_ref().map_or(0, |parts| parts.get().len());
        token.charge_stored_bytes(hub, octets).await?;
    }
    let token = token.clone();
    let row = hub
        .store()
        .write(async move |txn| {
            let actor = token.recheck_actor(txn).await?;
            Ok(append_event(
                txn,
                &actor.channel,
                &actor.sender(),
                CallbackPost {
                    event: event.clone(),
                    agent: None,
                },
            )
            .await?
            .row)
        })
        .await?;
    hub.wake_outbox();
    Ok(row)
}
