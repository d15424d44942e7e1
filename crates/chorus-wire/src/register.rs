//! Registration in its two forms, one request type.

use crate::market::skill::Skill;
use crate::{
    Error, Result, card::Card, identity::Address, identity::Name, json, json::Fields, limits,
    secret::Secret,
};
use serde_json::Value;

/// What a registration asks for, in either form or both.
#[derive(Clone, Debug)]
pub struct Registration {
    pub name: Name,
    /// The id as it was written; it is what the replies show.
    pub agent_id: String,
    pub card: Option<Card>,
    pub endpoint: Option<String>,
    pub invite_code: Option<Secret>,
    pub market: Option<MarketFace>,
}

/// What only the jobs document has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MarketFace {
    pub agent_name: Option<String>,
    pub owner_id: Option<String>,
    pub api_endpoint: Option<String>,
    pub skills: Vec<Skill>,
}

const MARKET_KEYS: [&str; 4] = ["agent_name", "owner_id", "api_endpoint", "skills"];

impl Registration {
    /// The body of `POST /register`.
    pub fn parse(body: &[u8]) -> Result<Self> {
        let text = json::text(body)?;
        let mut fields = json::object(text)?;
        let market = MARKET_KEYS.iter().any(|key| fields.has(key));
        let agent_id = fields.string("agent_id")?;
        let name = Name::parse("agent_id", &agent_id)?;
        let carded = fields.has("agent_card");
        match &name {
            Name::Address(_) => {}
            Name::Handle(_) => {
                return Err(Error::validation(
                    "agent_id must be an address name@host or a market id, not a handle",
                ));
            }
            Name::Short(_) | Name::Uuid(_) if carded && !market => {
                return Err(Error::validation(
                    "agent_id must be an address of the form name@host",
                ));
            }
            Name::Short(_) | Name::Uuid(_) if !market => {
                return Err(Error::validation(
                    "agent_id must be an address of the form name@host, or the request must have agent_name, owner_id, api_endpoint or skills",
                ));
            }
            // with a card the id is an address; a short name would claim one without saying so.
            Name::Short(_) if carded => {
                return Err(Error::validation(
                    "agent_id must be an address of the form name@host",
                ));
            }
            Name::Short(_) | Name::Uuid(_) => {}
        }
        let registration = Self {
            card: fields.take("agent_card").map(Card::check).transpose()?,
            endpoint: endpoint(&mut fields, "endpoint")?,
            invite_code: fields.optional_string("invite_code")?.map(Secret::new),
            market: if market {
                Some(MarketFace::take(&mut fields, text)?)
            } else {
                None
            },
            name,
            agent_id,
        };
        if market {
            fields.optional_label("version", limits::LABEL_CHARS)?;
            fields.optional_label("timestamp_utc", limits::LABEL_CHARS)?;
        }
        fields.end()?;
        Ok(registration)
    }

    /// The body of `POST /agents`: an address and, unlike above, an endpoint are required (TRN-29).
    pub fn parse_operator(body: &[u8]) -> Result<Self> {
        let mut fields = json::object(json::text(body)?)?;
        let agent_id = fields.string("agent_id")?;
        let name = Name::Address(Address::parse("agent_id", &agent_id)?);
        let endpoint = endpoint(&mut fields, "endpoint")?
            .ok_or_else(|| Error::validation("endpoint is required"))?;
        let card = fields.take("agent_card").map(Card::check).transpose()?;
        fields.end()?;
        Ok(Self {
            name,
            agent_id,
            card,
            endpoint: Some(endpoint),
            invite_code: None,
            market: None,
        })
    }

    /// Whether the reply is the bare one of the jobs document.
    pub fn is_market_form(&self) -> bool {
        self.market.is_some() && self.card.is_none() && !matches!(self.name, Name::Address(_))
    }
}

/// Whether a body that could not be read was meant in the jobs document's form: its errors have another shape.
pub fn looks_like_market(body: &[u8]) -> bool {
    let Ok(Value::Object(map)) = serde_json::from_slice::<Value>(body) else {
        return false;
    };
    let address = map
        .get("agent_id")
        .and_then(Value::as_str)
        .is_some_and(|id| id.contains('@'));
    !address
        && !map.contains_key("agent_card")
        && MARKET_KEYS.iter().any(|key| map.contains_key(*key))
}

impl MarketFace {
    fn take(fields: &mut Fields, body: &str) -> Result<Self> {
        Ok(Self {
            agent_name: fields.optional_label("agent_name", limits::LABEL_CHARS)?,
            owner_id: owner_id(fields)?,
            api_endpoint: endpoint(fields, "api_endpoint")?,
            skills: Skill::read_all(fields.take("skills"), body)?,
        })
    }
}

/// What an owner is called: printable, since it is a name that people compare.
fn owner_id(fields: &mut Fields) -> Result<Option<String>> {
    let owner = fields.optional_label("owner_id", limits::LABEL_CHARS)?;
    match &owner {
        Some(name) if name.chars().any(char::is_control) => Err(Error::validation(
            "owner_id must not have control characters",
        )),
        Some(_) | None => Ok(owner),
    }
}

/// An absolute http or https URL without user information. Where it leads is judged by the hub, not here.
pub(crate) fn endpoint(fields: &mut Fields, key: &str) -> Result<Option<String>> {
    let Some(text) = fields.optional_string(key)? else {
        return Ok(None);
    };
    let wrong = || Error::validation(format!("{key} must be an absolute http or https URL"));
    if text.len() > limits::URL_CHARS {
        return Err(Error::validation(format!(
            "{key} is longer than {} characters",
            limits::URL_CHARS
        )));
    }
    let url = match url::Url::parse(&text) {
        Ok(url) => url,
        // The jobs document prints `https://agent-host:port/jobs`, and what is printed is accepted: nobody is ever reached there.
        Err(url::ParseError::InvalidPort)
            if key == "api_endpoint" && !text.contains('@') && text.starts_with("http") =>
        {
            return Ok(Some(text));
        }
        Err(_) => return Err(wrong()),
    };
    let plain = matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none();
    if plain { Ok(Some(text)) } else { Err(wrong()) }
}
