//! The registration request, in the form of the transport profile or of the jobs document.

use crate::market::skill::SkillOffer;
use crate::{
    Error, Result, agent_card::AgentCard, endpoint_url::parse_endpoint, identity::AgentAddress,
    identity::AgentName, json, json::JsonFields, limits, secret::Secret,
};
use serde_json::Value;

/// A registration in either form, or with the fields of both.
#[derive(Clone, Debug)]
pub struct RegistrationRequest {
    pub name: AgentName,
    /// The id as the client wrote it; replies repeat it.
    pub agent_id: String,
    pub card: Option<AgentCard>,
    pub endpoint: Option<String>,
    pub invite_code: Option<Secret>,
    pub market: Option<MarketProfile>,
}

/// The fields that only the jobs document has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MarketProfile {
    pub agent_name: Option<String>,
    pub owner_id: Option<String>,
    pub api_endpoint: Option<String>,
    pub skills: Vec<SkillOffer>,
}

const MARKET_KEYS: [&str; 4] = ["agent_name", "owner_id", "api_endpoint", "skills"];

impl RegistrationRequest {
    /// Parses the body of `POST /register`.
    pub fn parse(body: &[u8]) -> Result<Self> {
        let text = json::decode_utf8(body)?;
        let mut fields = json::parse_object(text)?;
        let has_market_fields = MARKET_KEYS.iter().any(|key| fields.contains_key(key));
        let agent_id = fields.required_string("agent_id")?;
        let name = AgentName::parse("agent_id", &agent_id)?;
        let has_card = fields.contains_key("agent_card");
        match &name {
            AgentName::Address(_) => {}
            AgentName::Handle(_) => {
                return Err(Error::validation(
                    "agent_id must be an address name@host or a market id, not a handle",
                ));
            }
            AgentName::Short(_) | AgentName::Uuid(_) if has_card && !has_market_fields => {
                return Err(Error::validation(
                    "agent_id must be an address of the form name@host",
                ));
            }
            AgentName::Short(_) | AgentName::Uuid(_) if !has_market_fields => {
                return Err(Error::validation(
                    "agent_id must be an address of the form name@host, or the request must have agent_name, owner_id, api_endpoint or skills",
                ));
            }
            // an id with a card is an address. A short name would claim an address implicitly.
            AgentName::Short(_) if has_card => {
                return Err(Error::validation(
                    "agent_id must be an address of the form name@host",
                ));
            }
            AgentName::Short(_) | AgentName::Uuid(_) => {}
        }
        let registration = Self {
            card: fields
                .take_value("agent_card")
                .map(AgentCard::from_value)
                .transpose()?,
            endpoint: parse_endpoint(&mut fields, "endpoint")?,
            invite_code: fields.optional_string("invite_code")?.map(Secret::new),
            market: if has_market_fields {
                Some(MarketProfile::from_fields(&mut fields, text)?)
            } else {
                None
            },
            name,
            agent_id,
        };
        if has_market_fields {
            fields.optional_label("version", limits::LABEL_CHARS)?;
            fields.optional_label("timestamp_utc", limits::LABEL_CHARS)?;
        }
        fields.reject_unknown()?;
        Ok(registration)
    }

    /// Parses the body of `POST /agents`: an address and an endpoint are required (TRN-29).
    pub fn parse_operator(body: &[u8]) -> Result<Self> {
        let mut fields = json::parse_object(json::decode_utf8(body)?)?;
        let agent_id = fields.required_string("agent_id")?;
        let name = AgentName::Address(AgentAddress::parse("agent_id", &agent_id)?);
        let endpoint = parse_endpoint(&mut fields, "endpoint")?
            .ok_or_else(|| Error::validation("endpoint is required"))?;
        let card = fields
            .take_value("agent_card")
            .map(AgentCard::from_value)
            .transpose()?;
        fields.reject_unknown()?;
        Ok(Self {
            name,
            agent_id,
            card,
            endpoint: Some(endpoint),
            invite_code: None,
            market: None,
        })
    }

    /// Whether the reply is the unwrapped one of the jobs document.
    pub fn is_market_form(&self) -> bool {
        self.market.is_some() && self.card.is_none() && !matches!(self.name, AgentName::Address(_))
    }
}

/// Whether a body that failed to parse was meant in the form of the jobs document, whose errors have another shape.
pub fn looks_like_market(body: &[u8]) -> bool {
    let Ok(Value::Object(map)) = serde_json::from_slice::<Value>(body) else {
        return false;
    };
    let is_address = map
        .get("agent_id")
        .and_then(Value::as_str)
        .is_some_and(|id| id.contains('@'));
    !is_address
        && !map.contains_key("agent_card")
        && MARKET_KEYS.iter().any(|key| map.contains_key(*key))
}

impl MarketProfile {
    fn from_fields(fields: &mut JsonFields, body: &str) -> Result<Self> {
        Ok(Self {
            agent_name: fields.optional_label("agent_name", limits::LABEL_CHARS)?,
            owner_id: parse_owner_id(fields)?,
            api_endpoint: parse_endpoint(fields, "api_endpoint")?,
            skills: SkillOffer::parse_all(fields.take_value("skills"), body)?,
        })
    }
}

/// The owner's name. Control characters are refused, because people compare it by eye.
fn parse_owner_id(fields: &mut JsonFields) -> Result<Option<String>> {
    let owner = fields.optional_label("owner_id", limits::LABEL_CHARS)?;
    match &owner {
        Some(name) if name.chars().any(char::is_control) => Err(Error::validation(
            "owner_id must not have control characters",
        )),
        Some(_) | None => Ok(owner),
    }
}
