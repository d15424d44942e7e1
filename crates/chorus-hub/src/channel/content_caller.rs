//! The caller that reads or writes what a channel keeps: a member with the tool token of a delivery, or a principal with a key.

use super::append::ChannelSender;
use super::manage::{find_actor, read_actor};
use super::tools::ToolToken;
use crate::context::HubContext;
use crate::store::WriteTxn;
use crate::store::channels::ChannelRecord;
use crate::{Principal, Result};

/// A caller and the channel that it names.
#[derive(Clone, Debug)]
pub enum ContentCaller {
    Token(Box<ToolToken>),
    Key {
        principal: Principal,
        channel_id: String,
    },
}

impl ContentCaller {
    pub fn with_key(principal: &Principal, channel_id: &str) -> Self {
        Self::Key {
            principal: principal.clone(),
            channel_id: channel_id.to_owned(),
        }
    }

    /// The channel, if the caller may read it.
    pub(super) async fn read_channel(&self, hub: &HubContext) -> Result<ChannelRecord> {
        match self {
            Self::Token(token) => Ok(token.actor.channel.clone()),
            Self::Key {
                principal,
                channel_id,
            } => Ok(read_actor(principal, hub, channel_id).await?.channel),
        }
    }

    /// The channel and the author of a write. Checked inside the write transaction, because the token may have been revoked,
    /// or the membership may have ended, since the request came.
    pub(super) async fn find_author(
        &self,
        txn: &WriteTxn<'_>,
    ) -> Result<(ChannelRecord, ChannelSender)> {
        match self {
            Self::Token(token) => {
                let actor = token.recheck_actor(txn).await?;
                let sender = actor.sender();
                Ok((actor.channel, sender))
            }
            Self::Key {
                principal,
                channel_id,
            } => {
                let actor = find_actor(&txn.tx, principal, channel_id).await?;
                let sender = actor.sender();
                Ok((actor.channel, sender))
            }
        }
    }

    /// Records the act of an operator.
    pub(super) fn record_operator_act(&self, txn: &mut WriteTxn<'_>, act: &str, name: &str) {
        if let Self::Key {
            principal,
            channel_id,
        } = self
        {
            principal.record_operator_act(txn, act, &format!("{channel_id} {name}"));
        }
    }
}

impl From<ToolToken> for ContentCaller {
    fn from(token: ToolToken) -> Self {
        Self::Token(Box::new(token))
    }
}
