//! Channels and their members: the requests and replies of `/channels`.

use super::callback_event::{ChannelIdentity, check_message_size, take_text};
use super::mention::MemberName;
use super::message_part;
use crate::json::{self, JsonFields};
use crate::string_enum::string_enum;
use crate::{Error, Result, endpoint_url, limits, secret::Secret, time::UnixMicros};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};
use utoipa::ToSchema;

/// The body of `POST /channels`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewChannel {
    pub name: String,
    pub service: Option<String>,
    pub context: Option<String>,
}

impl NewChannel {
    pub fn parse(body: &[u8]) -> Result<Self> {
        let mut fields = json::parse_object(json::decode_utf8(body)?)?;
        let name = take_printable(&mut fields, "name", limits::LABEL_CHARS)?;
        let channel = Self {
            name: name.ok_or_else(|| Error::validation("name is required"))?,
            service: take_printable(&mut fields, "service", limits::LABEL_CHARS)?,
            context: take_printable(&mut fields, "context", limits::CHANNEL_CONTEXT_CHARS)?,
        };
        fields.reject_unknown()?;
        Ok(channel)
    }
}

/// The body of `PATCH /channels/{id}`: an absent field stays, `null` clears it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelChange {
    pub name: Option<String>,
    pub service: Option<Option<String>>,
    pub context: Option<Option<String>>,
}

impl ChannelChange {
    pub fn parse(body: &[u8]) -> Result<Self> {
        let mut fields = json::parse_object(json::decode_utf8(body)?)?;
        let change = Self {
            name: take_printable(&mut fields, "name", limits::LABEL_CHARS)?,
            service: take_nullable(&mut fields, "service", limits::LABEL_CHARS)?,
            context: take_nullable(&mut fields, "context", limits::CHANNEL_CONTEXT_CHARS)?,
        };
        fields.reject_unknown()?;
        if change == Self::default() {
            return Err(Error::validation("name, service or context is required"));
        }
        Ok(change)
    }
}

/// Takes an optional text that every delivery repeats. Control characters other than line breaks and tabs are refused, so
/// that no character takes more than two in JSON and the limits of a delivery hold.
fn take_printable(fields: &mut JsonFields, key: &str, max_chars: usize) -> Result<Option<String>> {
    let text = fields.optional_label(key, max_chars)?;
    match &text {
        Some(value)
            if value
                .chars()
                .any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) =>
        {
            Err(Error::validation(format!(
                "{key} must not have control characters in it"
            )))
        }
        Some(_) | None => Ok(text),
    }
}

fn take_nullable(
    fields: &mut JsonFields,
    key: &str,
    max_chars: usize,
) -> Result<Option<Option<String>>> {
    match fields.take_value(key) {
        None => Ok(None),
        Some(Value::Null) => Ok(Some(None)),
        Some(value) => {
            fields.insert(key, value);
            take_printable(fields, key, max_chars).map(Some)
        }
    }
}

/// A channel, as its owner, its members and operators see it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Channel {
    #[schema(example = "ch_0123456789abcdef")]
    pub id: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub service: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub context: Option<String>,
    /// The agent that may change it; null if an operator created it or its owner is gone.
    pub owner: Option<String>,
    /// The number of members, the owner included.
    pub members: u64,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: UnixMicros,
}

/// `data` of `DELETE /channels/{id}`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ChannelDeleted)]
pub struct ChannelDeleted {
    pub id: String,
    pub deleted: bool,
}

string_enum! {
    /// Which messages of a channel are delivered to a member.
    #[derive(ToSchema)]
    DeliveryMode {
        /// The messages of people, and agents' messages that mention the member.
        All "all",
        /// Only messages that mention the member.
        Mentions "mentions",
        /// None: the member reads the history itself. Only the owner, who is a person.
        None "none",
    }
}

/// Who wrote a message. It decides to whom the message is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SenderKind {
    Person,
    Agent,
    /// The hub itself, in rows about members that join, leave or become unreachable.
    Hub,
}

string_enum! {
    /// How messages reach a member.
    #[derive(ToSchema)]
    MemberRoute {
        /// Not at all: the owner reads the channel itself.
        Owner "owner",
        /// By the inbox of an agent of this hub.
        Inbox "inbox",
        /// By a connection string.
        Connection "connection",
    }
}

/// Whether a member is online. The hub does not know it of a member with a connection string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemberPresence {
    Online,
    Offline,
    Unknown,
}

/// Who is invited to a channel.
#[derive(Clone, Debug)]
pub enum InvitedMember {
    /// An agent of any service, by its connection string (CHN-01…03), and the secret that signs deliveries to it.
    Connection {
        url: Secret,
        signing_secret: Option<Secret>,
    },
    /// An agent of this hub, by any of its names.
    Agent(String),
}

/// The body of `POST /channels/{id}/members`.
#[derive(Clone, Debug)]
pub struct NewChannelMember {
    pub invitee: InvitedMember,
    pub name: Option<MemberName>,
    pub deliver: DeliveryMode,
}

impl NewChannelMember {
    pub fn parse(body: &[u8]) -> Result<Self> {
        let mut fields = json::parse_object(json::decode_utf8(body)?)?;
        let name = fields
            .optional_string("name")?
            .map(|name| MemberName::parse("name", &name))
            .transpose()?;
        let deliver = match fields.optional_string("deliver")?.as_deref() {
            None | Some("all") => DeliveryMode::All,
            Some("mentions") => DeliveryMode::Mentions,
            Some(_) => return Err(Error::validation("deliver must be all or mentions")),
        };
        let url = endpoint_url::parse_endpoint(&mut fields, "connection")?;
        let signing_secret = fields.optional_label("signing_secret", limits::LABEL_CHARS)?;
        let agent = fields.optional_label("agent_id", limits::ADDRESS_CHARS)?;
        fields.reject_unknown()?;
        let invitee = match (url, agent) {
            (Some(url), None) => {
                if name.is_none() {
                    return Err(Error::validation("name is required with a connection"));
                }
                InvitedMember::Connection {
                    url: Secret::new(url),
                    signing_secret: signing_secret.map(Secret::new),
                }
            }
            (None, Some(_)) if signing_secret.is_some() => {
                return Err(Error::validation("signing_secret goes with a connection"));
            }
            (None, Some(agent)) => InvitedMember::Agent(agent),
            (Some(_), Some(_)) | (None, None) => {
                return Err(Error::validation(
                    "exactly one of connection and agent_id is required",
                ));
            }
        };
        Ok(Self {
            invitee,
            name,
            deliver,
        })
    }
}

/// A member on the roster. Its connection string is never shown again.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ChannelMember)]
pub struct ChannelMember {
    pub name: MemberName,
    pub kind: SenderKind,
    pub deliver: DeliveryMode,
    /// What the member reports to be doing; null if it has not reported lately.
    pub status: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub status_at: Option<UnixMicros>,
    pub via: MemberRoute,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agent_id: Option<String>,
    pub presence: MemberPresence,
    /// The hub gave up on its deliveries.
    pub unreachable: bool,
    /// Whether deliveries to it are signed.
    pub signed: bool,
    /// How the agent presents itself.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agent: Option<ChannelIdentity>,
    #[schema(value_type = String, format = DateTime)]
    pub joined_at: UnixMicros,
}

/// `data` of `DELETE /channels/{id}/members/{name}`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ChannelMemberRemoved)]
pub struct ChannelMemberRemoved {
    pub name: MemberName,
    pub removed: bool,
}

/// The body of `POST /channels/{id}/messages`.
#[derive(Clone, Debug)]
pub struct NewChannelMessage {
    pub content: String,
    pub parts: Option<Box<RawValue>>,
}

impl NewChannelMessage {
    pub fn parse(body: &[u8]) -> Result<Self> {
        let mut fields = json::parse_object(json::decode_utf8(body)?)?;
        let message = Self {
            content: take_text(&mut fields, "content")?,
            parts: message_part::take_parts(&mut fields)?,
        };
        fields.reject_unknown()?;
        message.into_checked()
    }

    /// Applies the same rules to a message that did not arrive by HTTP.
    pub fn into_checked(self) -> Result<Self> {
        if self.content.is_empty() && self.parts.is_none() {
            return Err(Error::validation("content must not be empty"));
        }
        check_message_size(&self.content, self.parts.as_deref())?;
        Ok(self)
    }
}
