//! The agent card: an agent's culture, its languages and free fields of its own (ENV-17…20, R-20).

use crate::{CARD_VERSION, Error, Result, identity, limits};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// A checked card. Unknown fields are kept as the agent sent them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = Object)]
pub struct AgentCard(Map<String, Value>);

impl AgentCard {
    pub fn from_value(value: Value) -> Result<Self> {
        let Value::Object(map) = value else {
            return Err(Error::validation("agent_card must be an object"));
        };
        match map.get("card_version") {
            None if map.contains_key("chorus_version") => {
                return Err(Error::validation(format!(
                    "agent_card.chorus_version was renamed: send agent_card.card_version \"{CARD_VERSION}\""
                )));
            }
            None => {}
            Some(Value::String(version)) if version == CARD_VERSION => {}
            Some(_) => {
                return Err(Error::validation(format!(
                    "agent_card.card_version must be \"{CARD_VERSION}\""
                )));
            }
        }
        match map.get("user_culture") {
            None => {}
            Some(Value::String(tag)) => {
                identity::check_culture_tag("agent_card.user_culture", tag)?
            }
            Some(_) => {
                return Err(Error::validation(
                    "agent_card.user_culture must be a string",
                ));
            }
        }
        match map.get("supported_languages") {
            None => {}
            Some(Value::Array(tags)) if tags.len() <= limits::CARD_LANGUAGES => {
                check_languages(tags)?
            }
            Some(_) => {
                return Err(Error::validation(format!(
                    "agent_card.supported_languages must be an array of at most {} language tags",
                    limits::CARD_LANGUAGES
                )));
            }
        }
        let card = Self(map);
        if card.to_json().len() > limits::CARD_BYTES {
            return Err(Error::validation(format!(
                "agent_card is larger than {} bytes",
                limits::CARD_BYTES
            )));
        }
        Ok(card)
    }

    pub fn user_culture(&self) -> Option<&str> {
        self.0.get("user_culture")?.as_str()
    }

    pub fn supported_languages(&self) -> Vec<&str> {
        self.0
            .get("supported_languages")
            .and_then(Value::as_array)
            .map(|tags| tags.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default()
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(&self.0).unwrap_or_default()
    }
}

fn check_languages(tags: &[Value]) -> Result<()> {
    for (index, tag) in tags.iter().enumerate() {
        let field = format!("agent_card.supported_languages[{index}]");
        let tag = tag
            .as_str()
            .ok_or_else(|| Error::validation(format!("{field} must be a string")))?;
        identity::check_culture_tag(&field, tag)?;
    }
    Ok(())
}
