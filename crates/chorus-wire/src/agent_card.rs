//! The agent card: an agent's culture, its languages and free fields of its own (ENV-17…20, R-20).

use crate::contract::{
    self, ContractFault, FieldCheck, FromNode, JsonNode, JsonObject, ObjectRule, ObjectShape,
    WireObject, list_of,
};
use crate::identity::CULTURE_TAG;
use crate::{CARD_VERSION, Result, limits, wire_object};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// A checked card. Unknown fields are kept as the agent sent them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AgentCard(Map<String, Value>);

wire_object! {
    /// How an agent presents itself: its culture, its languages and free fields of its own.
    AgentCardFields as "AgentCard", allows unknown, rules [CARD_RULE], example r#"{
        "card_version": "0.3", "user_culture": "zh-TW", "supported_languages": ["zh-TW", "en"]}"# => {
        /// The version of the card.
        optional card_version: String = FieldCheck::OneOf(&[CARD_VERSION]);
        /// The culture of the person behind the agent, as a BCP 47 language tag.
        optional user_culture: String = FieldCheck::Grammar(&CULTURE_TAG);
        /// The languages that the agent reads and writes.
        optional supported_languages: Vec<String> = list_of(limits::CARD_LANGUAGES, &FieldCheck::Grammar(&CULTURE_TAG));
    }
}

const CARD_RULE: ObjectRule = ObjectRule {
    find_fault: |card| {
        if card.get("card_version").is_none() && card.get("chorus_version").is_some() {
            let sentence = format!(
                "chorus_version was renamed: send card_version \"{CARD_VERSION}\" in agent_card"
            );
            return Some(ContractFault::explain("chorus_version", sentence));
        }
        let bytes = Value::Object(card.to_map()).to_string().len();
        (bytes > limits::CARD_BYTES).then(|| {
            ContractFault::problem("", format!("is larger than {} bytes", limits::CARD_BYTES))
        })
    },
    describe: |schema, _| {
        schema["dependentRequired"] = json!({"chorus_version": ["card_version"]});
        schema["x-max-bytes"] = limits::CARD_BYTES.into();
    },
};

impl WireObject for AgentCard {
    const SHAPE: &'static ObjectShape = AgentCardFields::SHAPE;

    fn from_object(object: &JsonObject<'_>) -> Option<Self> {
        Some(Self(object.to_map()))
    }
}

crate::impl_to_schema!(AgentCard);

impl FromNode for AgentCard {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        Self::from_object(node?.as_object()?)
    }
}

impl AgentCard {
    pub fn from_value(value: Value) -> Result<Self> {
        let card = contract::parse_body(value.to_string().as_bytes());
        Ok(card.map_err(|fault| fault.inside("agent_card"))?)
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
