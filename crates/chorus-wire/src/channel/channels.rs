//! Channels and their members: the requests and replies of `/channels` (R-70, R-73, R-78).

use super::callback_event::{CONTENT_CHECK, ChannelIdentity, check_message_size};
use super::invitation::ChannelMembership;
use super::mention::MemberName;
use super::message_part::PARTS_CHECK;
use crate::contract::{
    self, ContractFault, FieldCheck, FromNode, HTTP_URL, JsonNode, ObjectRule, RawJson,
    TextGrammar, impl_from_text_node, printable, visible_line,
};
use crate::string_enum::string_enum;
use crate::{Result, identity::AgentName, limits, secret::Secret, time::UnixMicros, wire_object};
use serde::{Deserialize, Serialize};
use serde_json::{json, value::RawValue};
use utoipa::ToSchema;

// Every delivery repeats these texts. Control characters other than line breaks and tabs are refused, so that no character
// takes more than two in JSON and the limits of a delivery hold. Names are one line that can be seen (R-92).
const CHANNEL_NAME_CHECK: FieldCheck = visible_line(1, limits::LABEL_CHARS);
const CHANNEL_CONTEXT_CHECK: FieldCheck = printable(1, limits::CHANNEL_CONTEXT_CHARS);

wire_object! {
    /// A new channel.
    NewChannel, refuses unknown, example r#"{"name": "general", "context": "Where the team talks."}"# => {
        /// What people call it.
        required name: String = CHANNEL_NAME_CHECK;
        /// The service that it belongs to.
        optional service: String = CHANNEL_NAME_CHECK;
        /// What it is for; every delivery says it.
        optional context: String = CHANNEL_CONTEXT_CHECK;
    }
}

impl NewChannel {
    pub fn parse(body: &[u8]) -> Result<Self> {
        Ok(contract::parse_body(body)?)
    }
}

wire_object! {
    /// A change of a channel: an absent field stays, null clears it.
    ChannelChange, refuses unknown, rules [ANY_CHANGE_RULE], example r#"{"name": "general", "context": null}"# => {
        /// What people call it.
        optional name: String = CHANNEL_NAME_CHECK;
        /// The service that it belongs to.
        nullable service: Clearable = CHANNEL_NAME_CHECK;
        /// What it is for; every delivery says it.
        nullable context: Clearable = CHANNEL_CONTEXT_CHECK;
    }
}

const ANY_CHANGE_RULE: ObjectRule = ObjectRule {
    find_fault: |change| {
        change
            .0
            .is_empty()
            .then(|| ContractFault::explain("name", "name, service or context is required"))
    },
    describe: |schema, _| schema["minProperties"] = 1.into(),
};

/// A text, or `null` to clear it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Clearable(pub Option<String>);

impl FromNode for Clearable {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        Some(Self(node?.as_text().map(str::to_owned)))
    }
}

impl ChannelChange {
    pub fn parse(body: &[u8]) -> Result<Self> {
        let root = contract::parse_root(body)?;
        let mut change: Self = contract::parse_node(&root)?;
        // For an optional field, null is the same as absent; here it is not.
        let is_cleared = |name: &str| {
            root.as_object()
                .and_then(|body| body.get(name))
                .is_some_and(JsonNode::is_null)
        };
        if is_cleared("service") {
            change.service = Some(Clearable(None));
        }
        if is_cleared("context") {
            change.context = Some(Clearable(None));
        }
        Ok(change)
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
    #[schema(required = true)]
    pub owner: Option<String>,
    /// The number of members, the owner and those that are invited included.
    pub members: u64,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: UnixMicros,
    /// Whether the caller is in the channel or invited; absent for operators.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub membership: Option<ChannelMembership>,
    /// The caller's name in the channel; absent for operators.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub member_name: Option<String>,
}

/// `data` of `DELETE /channels/{id}`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ChannelDeleted)]
pub struct ChannelDeleted {
    pub id: String,
    pub deleted: bool,
}

string_enum! {
    /// Which messages of a channel are delivered to a member (R-73).
    #[derive(ToSchema)]
    DeliveryMode {
        /// The messages of people, and agents' messages that mention the member.
        All "all",
        /// Only messages that mention the member.
        Mentions "mentions",
        /// None: the member reads the history itself. Only the owner, who is a person (R-77).
        None "none",
    }
}

/// Who wrote a message (R-77). It decides to whom the message is delivered.
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

wire_object! {
    /// A new member of a channel: an agent of any service by its connection string, or an agent of this hub by its name.
    MemberInvitation, refuses unknown, rules [ONE_INVITEE_RULE], example r#"{"agent_id": "bob@chorus"}"# => {
        /// Its name in the channel; required with a connection.
        optional name: MemberName = FieldCheck::Grammar(&MemberName::GRAMMAR);
        /// Which messages are delivered to it.
        optional deliver: DeliveryMode = FieldCheck::OneOf(&["all", "mentions"]);
        /// The connection string of an agent of any service.
        optional connection: Secret = FieldCheck::Grammar(&HTTP_URL);
        /// The secret that signs deliveries to a connection.
        optional signing_secret: Secret = FieldCheck::Grammar(&SIGNING_SECRET);
        /// An agent of this hub, by any of its names.
        optional agent_id: String = FieldCheck::Grammar(&AgentName::GRAMMAR);
    }
}

impl_from_text_node!(DeliveryMode);

/// A secret of Standard Webhooks: base64 with its padding, of 24 to 64 bytes (CHN-34).
const SIGNING_SECRET: TextGrammar = TextGrammar {
    accepts: is_signing_secret,
    requirement: "whsec_ and the base64 of 24 to 64 bytes",
    pattern: concat!(
        "^(?:whsec_)?(?:(?:[A-Za-z0-9+/]{4}){8,21}|(?:[A-Za-z0-9+/]{4}){8,21}[A-Za-z0-9+/][AQgw]==",
        "|(?:[A-Za-z0-9+/]{4}){8,20}[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)$"
    ),
    refused_pattern: None,
    max_chars: 94,
    format: None,
    example: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
};

fn is_signing_secret(text: &str) -> bool {
    is_secret_encoding(text.strip_prefix("whsec_").unwrap_or(text))
}

/// Base64 with its padding, of 24 to 64 bytes.
pub(crate) fn is_secret_encoding(encoded: &str) -> bool {
    let digits = encoded.trim_end_matches('=');
    let is_digit = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
    // The bits of the last digit that belong to no byte are zero.
    let has_whole_end = match encoded.len() - digits.len() {
        0 => true,
        1 => digits.ends_with(|c| "AEIMQUYcgkosw048".contains(c)),
        2 => digits.ends_with(|c| "AQgw".contains(c)),
        _ => false,
    };
    has_whole_end
        && encoded.len().is_multiple_of(4)
        && digits.bytes().all(is_digit)
        && limits::SIGNING_SECRET_BYTES.contains(&(digits.len() * 3 / 4))
}

const ONE_INVITEE_RULE: ObjectRule = ObjectRule {
    find_fault: |member| {
        let has = |name: &str| member.get(name).is_some();
        match (has("connection"), has("agent_id")) {
            (true, false) if !has("name") => Some(ContractFault::explain(
                "name",
                "name is required with a connection",
            )),
            (true, false) => None,
            (false, true) if has("signing_secret") => Some(ContractFault::explain(
                "signing_secret",
                "signing_secret goes with a connection",
            )),
            (false, true) => None,
            (true, true) | (false, false) => Some(ContractFault::explain(
                "connection",
                "exactly one of connection and agent_id is required",
            )),
        }
    },
    describe: |schema, _| {
        schema["oneOf"] = json!([
            {"required": ["connection", "name"], "properties": {"connection": {}, "name": {}, "agent_id": false}},
            {"required": ["agent_id"], "properties": {"agent_id": {}, "connection": false, "signing_secret": false}},
        ]);
    },
};

/// The checked body of `POST /channels/{id}/members`.
#[derive(Clone, Debug)]
pub struct NewChannelMember {
    pub invitee: InvitedMember,
    pub name: Option<MemberName>,
    pub deliver: DeliveryMode,
}

impl NewChannelMember {
    pub fn parse(body: &[u8]) -> Result<Self> {
        let invitation: MemberInvitation = contract::parse_body(body)?;
        let invitee = match invitation.connection {
            Some(url) => InvitedMember::Connection {
                url,
                signing_secret: invitation.signing_secret,
            },
            None => InvitedMember::Agent(invitation.agent_id.unwrap_or_default()),
        };
        Ok(Self {
            invitee,
            name: invitation.name,
            deliver: invitation.deliver.unwrap_or(DeliveryMode::All),
        })
    }
}

wire_object! {
    /// A change of a member.
    MemberPatch, refuses unknown, example r#"{"deliver": "mentions"}"# => {
        /// Which messages are delivered to it.
        required deliver: DeliveryMode = FieldCheck::OneOf(&["all", "mentions"]);
    }
}

impl MemberPatch {
    pub fn parse(body: &[u8]) -> Result<Self> {
        Ok(contract::parse_body(body)?)
    }
}

/// A delivery that a member did not take: it answered with a redirect or a 4xx, which is final (CHN-22).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeliveryRefusal {
    #[schema(example = "it answered 403")]
    pub reason: String,
    #[schema(value_type = String, format = DateTime)]
    pub at: UnixMicros,
}

/// A member on the roster. Its connection string is never shown again.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ChannelMember)]
pub struct ChannelMember {
    pub name: MemberName,
    pub kind: SenderKind,
    pub deliver: DeliveryMode,
    /// What the member reports to be doing; null if it has not reported lately.
    #[schema(required = true)]
    pub status: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub status_at: Option<UnixMicros>,
    pub via: MemberRoute,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agent_id: Option<String>,
    pub presence: MemberPresence,
    /// The hub gave up on its deliveries (R-72).
    pub unreachable: bool,
    /// The last delivery, if the member did not take it (R-90).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub refusal: Option<DeliveryRefusal>,
    /// Whether deliveries to it are signed.
    pub signed: bool,
    /// How the agent presents itself (R-76).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agent: Option<ChannelIdentity>,
    /// When it joined, or was invited.
    #[schema(value_type = String, format = DateTime)]
    pub joined_at: UnixMicros,
    #[serde(default)]
    #[schema(required = true)]
    pub membership: ChannelMembership,
}

/// `data` of `DELETE /channels/{id}/members/{name}`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ChannelMemberRemoved)]
pub struct ChannelMemberRemoved {
    pub name: MemberName,
    pub removed: bool,
}

wire_object! {
    /// A message to a channel.
    ChannelPost, refuses unknown, rules [NOT_EMPTY_RULE], example r#"{"content": "hello @timber"}"# => {
        /// The text; empty only with parts.
        required content: String = CONTENT_CHECK;
        /// Structured content beside the text, as A2A parts.
        optional parts: RawJson = PARTS_CHECK;
    }
}

const NOT_EMPTY_RULE: ObjectRule = ObjectRule {
    find_fault: |post| {
        let is_empty = post.get("content").and_then(JsonNode::as_text) == Some("");
        (is_empty && post.get("parts").is_none())
            .then(|| ContractFault::explain("content", "content must not be empty"))
    },
    describe: |schema, _| {
        schema["if"] = json!({"properties": {"content": {"maxLength": 0}}});
        schema["then"] = json!({"required": ["parts"], "properties": {"parts": {}}});
    },
};

/// The checked body of `POST /channels/{id}/messages`.
#[derive(Clone, Debug)]
pub struct NewChannelMessage {
    pub content: String,
    pub parts: Option<Box<RawValue>>,
}

impl NewChannelMessage {
    pub fn parse(body: &[u8]) -> Result<Self> {
        let post: ChannelPost = contract::parse_body(body)?;
        Self {
            content: post.content,
            parts: post.parts.map(|parts| parts.0),
        }
        .into_checked()
    }

    /// Applies the same rules to a message that did not arrive by HTTP.
    pub fn into_checked(self) -> Result<Self> {
        if self.content.is_empty() && self.parts.is_none() {
            let sentence = "content must not be empty";
            return Err(ContractFault::explain("content", sentence).into());
        }
        check_message_size(&self.content, self.parts.as_deref())?;
        Ok(self)
    }
}
