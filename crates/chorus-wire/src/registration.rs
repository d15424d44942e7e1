//! The registration request, in the form of the transport profile or of the jobs document (R-10).

use crate::channel::channels::is_secret_encoding;
use crate::contract::{
    self, ContractFault, FieldCheck, HTTP_URL, JsonNode, ObjectRule, TextGrammar, UTC_INSTANT,
    characters, is_http_url, list_of, single_line,
};
use crate::market::skill::SkillOffer;
use crate::{
    Result, agent_card::AgentCard, identity::AgentAddress, identity::AgentName, limits,
    secret::Secret, wire_object,
};
use serde_json::{Value, json};

/// A registration in either form, or with the fields of both.
#[derive(Clone, Debug)]
pub struct RegistrationRequest {
    pub name: AgentName,
    /// The id as the client wrote it; replies repeat it.
    pub agent_id: String,
    pub card: Option<AgentCard>,
    pub endpoint: Option<String>,
    /// Signs what the hub posts to its endpoints (R-96).
    pub endpoint_secret: Option<Secret>,
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

wire_object! {
    /// A registration: in the form of the transport profile, of the jobs document, or with the fields of both.
    RegistrationBody as "RegistrationRequest", refuses unknown, rules [REGISTRATION_RULE], example r#"{
        "agent_id": "alice@chorus",
        "agent_card": {"card_version": "0.3", "user_culture": "zh-TW", "supported_languages": ["zh-TW", "en"]}}"# => {
        /// An address `name@host`; in the form of the jobs document also a UUID or another id.
        required agent_id: AgentName = FieldCheck::Grammar(&REGISTERED_ID);
        /// How the agent presents itself.
        optional agent_card: AgentCard = FieldCheck::Object(AgentCard::SHAPE);
        /// Where the hub posts messages for the agent.
        optional endpoint: String = FieldCheck::Grammar(&HTTP_URL);
        /// Signs what the hub posts to `endpoint` and `api_endpoint`, as Standard Webhooks specifies.
        optional endpoint_secret: Secret = FieldCheck::Grammar(&ENDPOINT_SECRET);
        /// Needed where the hub asks for one.
        optional invite_code: Secret = characters(0, limits::LABEL_CHARS);
        /// The agent's name in the market.
        nullable agent_name: String = characters(1, limits::LABEL_CHARS);
        /// The owner, who has the account.
        nullable owner_id: String = single_line(1, limits::LABEL_CHARS);
        /// Where the hub posts jobs for the agent.
        nullable api_endpoint: String = FieldCheck::Grammar(&JOB_URL);
        /// The skills that the agent offers.
        nullable skills: Vec<SkillOffer> = list_of(limits::SKILLS_PER_AGENT, &FieldCheck::Object(SkillOffer::SHAPE));
        /// The agent's own version; the hub ignores it.
        nullable version: String = characters(1, limits::LABEL_CHARS);
        /// When the agent made the request; the hub ignores it.
        nullable timestamp_utc: String = FieldCheck::Grammar(&UTC_INSTANT);
    }
}

wire_object! {
    /// A registration by an operator.
    OperatorRegistration, refuses unknown, example r#"{
        "agent_id": "alice@chorus", "endpoint": "https://agent.example.com/hook"}"# => {
        /// The address of the agent.
        required agent_id: AgentAddress = FieldCheck::Grammar(&AgentAddress::GRAMMAR);
        /// How the agent presents itself.
        optional agent_card: AgentCard = FieldCheck::Object(AgentCard::SHAPE);
        /// Where the hub posts messages for the agent.
        required endpoint: String = FieldCheck::Grammar(&HTTP_URL);
        /// Signs what the hub posts to `endpoint`, as Standard Webhooks specifies.
        optional endpoint_secret: Secret = FieldCheck::Grammar(&ENDPOINT_SECRET);
    }
}

/// A secret of Standard Webhooks with its prefix (R-96).
const ENDPOINT_SECRET: TextGrammar = TextGrammar {
    accepts: |text| text.strip_prefix("whsec_").is_some_and(is_secret_encoding),
    requirement: "whsec_ and the base64 of 24 to 64 bytes",
    pattern: concat!(
        "^whsec_(?:(?:[A-Za-z0-9+/]{4}){8,21}|(?:[A-Za-z0-9+/]{4}){8,21}[A-Za-z0-9+/][AQgw]==",
        "|(?:[A-Za-z0-9+/]{4}){8,20}[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)$"
    ),
    refused_pattern: None,
    max_chars: 94,
    format: None,
    example: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
};

/// Every name of an agent but a handle.
const REGISTERED_ID: TextGrammar = TextGrammar {
    accepts: |text| {
        matches!(
            AgentName::parse("", text),
            Ok(AgentName::Address(_) | AgentName::Uuid(_) | AgentName::Short(_))
        )
    },
    requirement: "an address of the form name@host, a UUID or another market id, not a handle",
    pattern: "^(?:[A-Za-z0-9._-]+@[A-Za-z0-9._-]+|[A-Za-z0-9._:-]+)$",
    refused_pattern: None,
    max_chars: limits::ADDRESS_CHARS,
    format: None,
    example: "alice@chorus",
};

/// The jobs document prints `https://agent-host:port/jobs`, so that text is accepted although no post can reach it.
const JOB_URL: TextGrammar = TextGrammar {
    accepts: |text| is_http_url(text) || is_placeholder_url(text),
    format: None,
    ..HTTP_URL
};

fn is_placeholder_url(text: &str) -> bool {
    is_http_url(&text.replacen(":port", ":1", 1))
}

const MARKET_KEYS: [&str; 4] = ["agent_name", "owner_id", "api_endpoint", "skills"];
const IGNORED_MARKET_KEYS: [&str; 2] = ["version", "timestamp_utc"];

const ADDRESS_SENTENCE: &str = "agent_id must be an address of the form name@host";

/// R-10, R-38
const REGISTRATION_RULE: ObjectRule = ObjectRule {
    find_fault: |body| {
        let has = |key: &&str| body.get(key).is_some();
        let has_market_fields = MARKET_KEYS.iter().any(&has);
        if let Some(key) = IGNORED_MARKET_KEYS
            .iter()
            .find(|key| has(key) && !has_market_fields)
        {
            return Some(ContractFault::unknown(key));
        }
        let id = body.get("agent_id").and_then(JsonNode::as_text)?;
        let sentence = match (AgentName::parse("", id).ok()?, has(&"agent_card")) {
            (AgentName::Address(_) | AgentName::Handle(_), _) => return None,
            (AgentName::Uuid(_), _) if has_market_fields => return None,
            (AgentName::Short(_), false) if has_market_fields => return None,
            // A short name with a card would claim an address implicitly.
            (AgentName::Uuid(_) | AgentName::Short(_), true) => ADDRESS_SENTENCE.to_owned(),
            (AgentName::Uuid(_) | AgentName::Short(_), false) => format!(
                "{ADDRESS_SENTENCE}, or the request must have agent_name, owner_id, api_endpoint or skills"
            ),
        };
        Some(ContractFault::explain("agent_id", sentence))
    },
    describe: |schema, _| {
        let any_market_key: Vec<_> = MARKET_KEYS
            .iter()
            .map(|key| json!({"required": [key], "properties": {(*key): {}}}))
            .collect();
        let has_market_fields = json!({"anyOf": any_market_key});
        // Not as alternatives, which generators of clients would turn into several types.
        schema["if"] =
            json!({"properties": {"agent_id": {"pattern": AgentAddress::GRAMMAR.pattern}}});
        schema["else"] = json!({
            "anyOf": any_market_key,
            "if": {"properties": {"agent_id": {"pattern": UUID_PATTERN}}},
            "else": {"properties": {"agent_card": false}},
        });
        schema["dependentSchemas"] =
            json!({"version": has_market_fields, "timestamp_utc": has_market_fields});
    },
};

const UUID_PATTERN: &str =
    "^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$";

impl RegistrationRequest {
    /// Parses the body of `POST /register`.
    pub fn parse(body: &[u8]) -> Result<Self> {
        let root = contract::parse_root(body)?;
        let fields: RegistrationBody = contract::parse_node(&root)?;
        let has = |key: &&str| root.as_object().is_some_and(|body| body.get(key).is_some());
        let skills: Vec<SkillOffer> = fields.skills.unwrap_or_default();
        if let Some(index) = (1..skills.len()).find(|index| {
            let is_same = |other: &SkillOffer| other.skill_name == skills[*index].skill_name;
            skills[..*index].iter().any(is_same)
        }) {
            let field = format!("skills[{index}].skill_name");
            let sentence = format!("{field} is given twice");
            return Err(ContractFault::explain(field, sentence).into());
        }
        let market = MARKET_KEYS.iter().any(has).then(|| MarketProfile {
            agent_name: fields.agent_name,
            owner_id: fields.owner_id,
            api_endpoint: fields.api_endpoint,
            skills: skills
                .into_iter()
                .map(SkillOffer::without_empty_schemas)
                .collect(),
        });
        Ok(Self {
            agent_id: root
                .as_object()
                .and_then(|body| body.get("agent_id")?.as_text())
                .unwrap_or_default()
                .to_owned(),
            name: fields.agent_id,
            card: fields.agent_card,
            endpoint: fields.endpoint,
            endpoint_secret: fields.endpoint_secret,
            invite_code: fields.invite_code,
            market,
        })
    }

    /// Parses the body of `POST /agents`: an address and an endpoint are required (TRN-29).
    pub fn parse_operator(body: &[u8]) -> Result<Self> {
        let fields: OperatorRegistration = contract::parse_body(body)?;
        Ok(Self {
            agent_id: fields.agent_id.as_str().to_owned(),
            name: AgentName::Address(fields.agent_id),
            card: fields.agent_card,
            endpoint: Some(fields.endpoint),
            endpoint_secret: fields.endpoint_secret,
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
