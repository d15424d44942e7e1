//! Invitations to channels: an agent of another owner joins only when it accepts.

use super::mention::MemberName;
use crate::string_enum::string_enum;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

string_enum! {
    /// Whether a member has joined a channel.
    #[derive(Default, ToSchema)]
    ChannelMembership {
        /// It has been asked and has not answered. Nothing is delivered to it.
        Invited "invited",
        /// It is in the channel.
        #[default]
        Joined "joined",
    }
}

/// The event `channel_invite` on the inbox of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChannelInvite {
    #[schema(inline)]
    pub channel: InvitingChannel,
    /// The agent's name in the channel; it accepts and declines under it.
    pub name: MemberName,
    /// The agent that invites, or `operator`.
    pub invited_by: String,
}

/// The channel of an invitation. Its `context` comes with the first delivery, after the agent has accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InvitingChannel {
    #[schema(example = "ch_0123456789abcdef")]
    pub id: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub service: Option<String>,
    /// The agent that owns the channel; null if an operator created it or its owner is gone.
    #[schema(required = true)]
    pub owner: Option<String>,
}
