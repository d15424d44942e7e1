//! Rooms and who is in them: what is asked of `/channels`, and how it answers.

use super::callback_event::{ChannelIdentity, check_message_size, take_text};
use super::mention::MemberName;
use super::message_part;
use crate::json::{self, JsonFields};
use crate::{Error, Result, limits, registration, secret::Secret, time::UnixMicros};
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

/// The body of `PATCH /channels/{id}`: what is absent stays, `null` takes away.
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

/// What goes with every delivery: a text in which no character takes more than two as JSON, so that its bound holds there too.
fn take_printable(fields: &mut JsonFields, key: &str, most: usize) -> Result<Option<String>> {
    let text = fields.optional_label(key, most)?;
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
    most: usize,
) -> Result<Option<Option<String>>> {
    match fields.take_value(key) {
        None => Ok(None),
        Some(Value::Null) => Ok(Some(None)),
        Some(value) => {
            fields.insert(key, value);
            take_printable(fields, key, most).map(Some)
        }
    }
}

/// A room as whoever may enter it sees it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Channel {
    #[schema(example = "ch_0123456789abcdef")]
    pub id: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub service: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub context: Option<String>,
    /// The agent that may change it; null when operators made it, or when its owner is gone.
    pub owner: Option<String>,
    /// How many are in it, its owner included.
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

/// What a member hears of what is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DeliveryMode {
    /// What people say, and what agents say to it by name.
    All,
    /// Only what is said to it by name.
    Mentions,
    /// Nothing: it looks for itself. Only the owner, who is a person.
    None,
}

impl DeliveryMode {
    pub const ALL: [Self; 3] = [Self::All, Self::Mentions, Self::None];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Mentions => "mentions",
            Self::None => "none",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|deliver| deliver.as_str() == text)
    }
}

/// Whose word it is: it decides who hears it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SenderKind {
    Person,
    Agent,
    /// The room itself: who came, who went, who cannot be reached.
    Hub,
}

/// How a member is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemberRoute {
    /// It made the room and reads it by itself.
    Owner,
    /// An agent of this hub, on its inbox.
    Inbox,
    /// By a connection string.
    Connection,
}

impl MemberRoute {
    pub const ALL: [Self; 3] = [Self::Owner, Self::Inbox, Self::Connection];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Inbox => "inbox",
            Self::Connection => "connection",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|via| via.as_str() == text)
    }
}

/// Whether a member is there now; of an agent somewhere else nobody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemberPresence {
    Online,
    Offline,
    Unknown,
}

/// Who is to come into the room.
#[derive(Clone, Debug)]
pub enum InvitedMember {
    /// Any agent anywhere, by the URL that is its secret (CHN-01…03), and what to sign deliveries with.
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
        let url = registration::parse_endpoint(&mut fields, "connection")?;
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
    /// What it says it is doing; null when it has not said so lately.
    pub status: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub status_at: Option<UnixMicros>,
    pub via: MemberRoute,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agent_id: Option<String>,
    pub presence: MemberPresence,
    /// What was owed to it was given up.
    pub unreachable: bool,
    /// Deliveries to it are signed.
    pub signed: bool,
    /// How it presents itself.
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

    /// The same rule for whoever did not come by HTTP.
    pub fn into_checked(self) -> Result<Self> {
        if self.content.is_empty() && self.parts.is_none() {
            return Err(Error::validation("content must not be empty"));
        }
        check_message_size(&self.content, self.parts.as_deref())?;
        Ok(self)
    }
}
