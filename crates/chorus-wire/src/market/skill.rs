//! A skill that an agent offers: its name, price, and schemas of input and output (JOB-09).

use crate::json::{self, JsonFields};
use crate::market::credits::Credits;
use crate::{Error, Result, limits};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};
use utoipa::ToSchema;

/// One checked skill of a registration. The hub checks whether its schemas are JSON Schemas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SkillOffer {
    #[schema(example = "analyze_text")]
    pub skill_name: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub description: Option<String>,
    pub cost_per_call: Credits,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(value_type = Option<Object>, example = json!({"text": "string"}))]
    pub input_schema: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(value_type = Option<Object>)]
    pub output_schema: Option<Value>,
}

/// The prices of a registration as raw text: a parsed number does not distinguish `0.10` from `1e-1`.
#[derive(Deserialize)]
struct RawSkillPrices<'a> {
    #[serde(borrow, default)]
    skills: Vec<RawSkillPrice<'a>>,
}

#[derive(Deserialize)]
struct RawSkillPrice<'a> {
    #[serde(borrow)]
    cost_per_call: Option<&'a RawValue>,
}

impl SkillOffer {
    /// Parses the `skills` of a registration. `value` has been parsed strictly; the prices are read from the text `body`.
    pub fn parse_all(value: Option<Value>, body: &str) -> Result<Vec<Self>> {
        let skills = match value {
            None => return Ok(Vec::new()),
            Some(Value::Array(skills)) if skills.len() <= limits::SKILLS_PER_AGENT => skills,
            Some(_) => {
                return Err(Error::validation(format!(
                    "skills must be an array of at most {} skills",
                    limits::SKILLS_PER_AGENT
                )));
            }
        };
        let mut fields = Vec::with_capacity(skills.len());
        for (index, skill) in skills.into_iter().enumerate() {
            fields.push(JsonFields::from_value(&format!("skills[{index}]"), skill)?);
        }
        let raw_prices: RawSkillPrices<'_> =
            serde_json::from_str(body).map_err(|e| json::map_serde_error(&e))?;
        let mut parsed: Vec<Self> = Vec::with_capacity(fields.len());
        for (index, (fields, price)) in fields.into_iter().zip(raw_prices.skills).enumerate() {
            let skill =
                Self::from_fields(&format!("skills[{index}]."), fields, price.cost_per_call)?;
            if parsed
                .iter()
                .any(|other| other.skill_name == skill.skill_name)
            {
                return Err(Error::validation(format!(
                    "skills[{index}].skill_name is given twice"
                )));
            }
            parsed.push(skill);
        }
        Ok(parsed)
    }

    /// Parses the body of `PUT /skills/{name}`, which may omit the name.
    pub fn parse(name: &str, body: &[u8]) -> Result<Self> {
        let text = json::decode_utf8(body)?;
        let mut fields = json::parse_object(text)?;
        if !fields.contains_key("skill_name") {
            fields.insert("skill_name", name.into());
        }
        let price: RawSkillPrice<'_> =
            serde_json::from_str(text).map_err(|e| json::map_serde_error(&e))?;
        let skill = Self::from_fields("", fields, price.cost_per_call)?;
        if skill.skill_name == name {
            Ok(skill)
        } else {
            Err(Error::validation(
                "skill_name is another one than in the path",
            ))
        }
    }

    fn from_fields(path: &str, mut fields: JsonFields, price: Option<&RawValue>) -> Result<Self> {
        let path = |key: &str| format!("{path}{key}");
        let missing_field = |key: &str| Error::validation(format!("{} is required", path(key)));
        let skill_name = fields
            .optional_label("skill_name", limits::LABEL_CHARS)?
            .ok_or_else(|| missing_field("skill_name"))?;
        fields.take_value("cost_per_call");
        let price = price.ok_or_else(|| missing_field("cost_per_call"))?;
        let skill = Self {
            cost_per_call: Credits::parse(&path("cost_per_call"), price.get())?,
            description: fields.optional_label("description", limits::SKILL_DESCRIPTION_CHARS)?,
            input_schema: check_schema(&path("input_schema"), fields.take_value("input_schema"))?,
            output_schema: check_schema(
                &path("output_schema"),
                fields.take_value("output_schema"),
            )?,
            skill_name,
        };
        fields.reject_unknown()?;
        Ok(skill)
    }
}

fn check_schema(field: &str, value: Option<Value>) -> Result<Option<Value>> {
    match value {
        None => Ok(None),
        Some(Value::Object(map)) if map.is_empty() => Ok(None),
        Some(value @ Value::Object(_)) if value.to_string().len() <= limits::SCHEMA_BYTES => {
            Ok(Some(value))
        }
        Some(Value::Object(_)) => Err(Error::validation(format!(
            "{field} is larger than {} bytes",
            limits::SCHEMA_BYTES
        ))),
        Some(
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_),
        ) => Err(Error::validation(format!("{field} must be an object"))),
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
}
