//! A skill that an agent offers: its name, price, and schemas of input and output (JOB-09).

use crate::contract::{self, ContractFault, CustomCheck, FieldCheck, characters};
use crate::credits::Credits;
use crate::market::discover::FoundAgent;
use crate::{Result, limits, wire_object};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Map, Value, json, value::RawValue};
use utoipa::ToSchema;

wire_object! {
    /// A skill that an agent offers for hire.
    SkillOffer, refuses unknown, example r#"{
        "skill_name": "analyze_text", "description": "Finds the mood of a text.", "cost_per_call": 0.10,
        "input_schema": {"type": "object", "required": ["text"]}}"# => {
        /// The name by which it is found.
        required skill_name: String = SKILL_NAME_CHECK;
        /// What it does.
        nullable description: String = DESCRIPTION_CHECK;
        /// The price of one job, in credits; 0 for free.
        required cost_per_call: Credits = PRICE_CHECK;
        /// A JSON Schema of the input; any input if absent or empty.
        nullable input_schema: Value = SCHEMA_CHECK;
        /// A JSON Schema of the output; any output if absent or empty.
        nullable output_schema: Value = SCHEMA_CHECK;
    }
}

wire_object! {
    /// A skill to offer under the name in the path.
    SkillUpdate, refuses unknown, example r#"{"description": "Finds the mood of a text.", "cost_per_call": 0.10}"# => {
        /// The same name as in the path.
        nullable skill_name: String = SKILL_NAME_CHECK;
        /// What it does.
        nullable description: String = DESCRIPTION_CHECK;
        /// The price of one job, in credits; 0 for free.
        required cost_per_call: Credits = PRICE_CHECK;
        /// A JSON Schema of the input; any input if absent or empty.
        nullable input_schema: Value = SCHEMA_CHECK;
        /// A JSON Schema of the output; any output if absent or empty.
        nullable output_schema: Value = SCHEMA_CHECK;
    }
}

const SKILL_NAME_CHECK: FieldCheck = characters(1, limits::LABEL_CHARS);
const DESCRIPTION_CHECK: FieldCheck = characters(1, limits::SKILL_DESCRIPTION_CHARS);
const PRICE_CHECK: FieldCheck = FieldCheck::Credits { zero: true };

/// The hub checks elsewhere whether it is a JSON Schema.
const SCHEMA_CHECK: FieldCheck = FieldCheck::Custom(&CustomCheck {
    find_fault: |value| match value.node.as_object() {
        None => Some(ContractFault::invalid("", "an object")),
        Some(object) => {
            let bytes = Value::Object(object.to_map()).to_string().len();
            (bytes > limits::SCHEMA_BYTES).then(|| {
                ContractFault::problem("", format!("is larger than {} bytes", limits::SCHEMA_BYTES))
            })
        }
    },
    schema: |_| json!({"type": "object", "x-max-bytes": limits::SCHEMA_BYTES}),
    nested: &[],
});

impl SkillOffer {
    /// Parses the body of `PUT /skills/{name}`, which may omit the name.
    pub fn parse(name: &str, body: &[u8]) -> Result<Self> {
        let update: SkillUpdate = contract::parse_body(body)?;
        if update.skill_name.is_some_and(|own_name| own_name != name) {
            let sentence = "skill_name is another one than in the path";
            return Err(ContractFault::explain("skill_name", sentence).into());
        }
        let has_valid_length = (1..=limits::LABEL_CHARS).contains(&name.chars().count());
        if !has_valid_length || name.contains('\0') {
            let requirement = SKILL_NAME_CHECK.requirement();
            return Err(ContractFault::invalid("skill_name", requirement).into());
        }
        Ok(Self {
            skill_name: name.to_owned(),
            description: update.description,
            cost_per_call: update.cost_per_call,
            input_schema: update.input_schema,
            output_schema: update.output_schema,
        }
        .without_empty_schemas())
    }

    /// An empty schema accepts everything, as an absent one does.
    pub fn without_empty_schemas(mut self) -> Self {
        let is_empty = |schema: &Value| schema.as_object().is_some_and(Map::is_empty);
        self.input_schema = self.input_schema.filter(|schema| !is_empty(schema));
        self.output_schema = self.output_schema.filter(|schema| !is_empty(schema));
        self
    }
}

impl<'de> Deserialize<'de> for SkillOffer {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(from)?;
        contract::parse_body(raw.get().as_bytes())
            .map_err(|fault| de::Error::custom(fault.message()))
    }
}

/// `GET /skills`: the offered skills and how many agents offer each.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SkillCatalogue {
    pub skills: Vec<SkillRow>,
    /// Agents that offer at least one skill.
    pub total_agents: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SkillRow {
    #[schema(example = "analyze_text")]
    pub skill_name: String,
    pub agents: u64,
    pub min_cost: Credits,
    /// What the best offer says that it does.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub description: Option<String>,
    /// The input that the best offer takes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub input_schema: Option<Value>,
    /// The output that the best offer gives.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub output_schema: Option<Value>,
}

/// `GET /skills/{name}`: one skill, and the agents that offer it, the best first.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SkillPage {
    pub skill: SkillRow,
    pub offers: Vec<FoundAgent>,
}
