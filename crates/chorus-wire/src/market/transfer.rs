//! Credit transfers, owner accounts, and the ledger's replies (R-64, R-65, JOB-20).

use crate::contract::{
    self, ContractFault, FieldCheck, JsonNode, OPAQUE_ID, ObjectRule, UTC_INSTANT, characters,
};
use crate::credits::Credits;
use crate::{Result, json, limits, time::UnixMicros, wire_object};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use utoipa::ToSchema;

wire_object! {
    /// A payment from one owner to another.
    CreditTransfer, refuses unknown, rules [OTHER_OWNER_RULE], example r#"{
        "transfer_id": "7c9e6679-7425-40de-944b-e07fc1f90ae7", "from_owner": "orchestrator_owner_id",
        "to_owner": "agent_owner_id", "amount": 0.10, "job_id": "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
        "timestamp_utc": "2026-02-11T14:15:09Z"}"# => {
        /// A new id that names the payment; a repeated request keeps it and pays once.
        required transfer_id: String = FieldCheck::Grammar(&OPAQUE_ID);
        /// The owner that pays.
        required from_owner: String = OWNER_CHECK;
        /// The owner that is paid: another one than from_owner.
        required to_owner: String = OWNER_CHECK;
        /// The amount, in credits.
        required amount: Credits = FieldCheck::Credits { zero: false };
        /// The job that it pays for.
        nullable job_id: String = FieldCheck::Grammar(&OPAQUE_ID);
        /// When the client made the request.
        nullable timestamp_utc: String = FieldCheck::Grammar(&UTC_INSTANT);
    }
}

const OWNER_CHECK: FieldCheck = characters(1, limits::LABEL_CHARS);

const OTHER_OWNER_RULE: ObjectRule = ObjectRule {
    find_fault: |transfer| {
        let owner = |name: &str| transfer.get(name).and_then(JsonNode::as_text);
        (owner("from_owner") == owner("to_owner"))
            .then(|| ContractFault::invalid("to_owner", "another than from_owner"))
    },
    // JSON Schema cannot compare two fields; the description of to_owner says it.
    describe: |_, _| {},
};

impl CreditTransfer {
    pub fn parse(body: &[u8]) -> Result<Self> {
        Ok(contract::parse_body(body)?)
    }

    /// The canonical text, by which repeated transfers are compared (failure 17).
    pub fn to_canonical_json(&self) -> String {
        serde_json::to_value(self)
            .map(|value| json::to_canonical_json(&value))
            .unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for CreditTransfer {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(from)?;
        Self::parse(raw.get().as_bytes()).map_err(|e| de::Error::custom(e.message))
    }
}

/// The reply to `POST /transfer`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TransferReply {
    #[schema(example = "completed")]
    pub status: String,
    pub transfer: CreditTransfer,
    pub sender_balance: Credits,
    pub receiver_balance: Credits,
}

wire_object! {
    /// Credits that an operator issues to an owner.
    CreditIssue, refuses unknown, example r#"{"amount": 25.00, "reason": "paid by invoice 7"}"# => {
        /// The amount, in credits.
        required amount: Credits = FieldCheck::Credits { zero: false };
        /// Why, for the audit.
        nullable reason: String = characters(1, limits::LABEL_CHARS);
    }
}

impl CreditIssue {
    pub fn parse(body: &[u8]) -> Result<Self> {
        Ok(contract::parse_body(body)?)
    }
}

/// `GET /accounts/{owner}`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OwnerAccount {
    pub owner_id: String,
    /// The credits that can be spent.
    pub balance: Credits,
    /// The credits on hold for jobs without a result.
    pub held: Credits,
}

/// `GET /audit`
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditReply {
    pub postings: Vec<LedgerPosting>,
}

/// One posting of the ledger; its entries sum to zero (invariant 7).
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LedgerPosting {
    /// Negative for an `opening`, which precedes all others (D-33).
    pub id: i64,
    /// `grant`, `issue`, `transfer`, `hold`, `pay`, `release`, or `opening` for the balance of all older postings.
    pub kind: String,
    pub amount: Credits,
    pub entries: [PostingLeg; 2],
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub job_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub note: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    pub timestamp_utc: UnixMicros,
}

/// One leg of a posting: the change of one account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PostingLeg {
    /// `issue`, `owner` or `hold`.
    pub account: String,
    /// The owner of the account, or of the hold.
    #[schema(required = true)]
    pub owner_id: Option<String>,
    /// Negative for the account that pays.
    pub amount: Credits,
}

/// `GET /economy`
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EconomyReport {
    #[schema(example = "chorus_credits_v1")]
    pub currency: String,
    /// All credits ever granted or issued, which is the sum of all accounts and holds.
    pub issued: Credits,
    /// The credits on hold for open jobs.
    pub held: Credits,
    /// The credits paid between owners, by transfers and for jobs.
    pub volume: Credits,
    /// The number of jobs by status.
    pub jobs: BTreeMap<String, u64>,
    /// The number of jobs by state.
    pub job_states: BTreeMap<String, u64>,
}
