//! Credit transfers, owner accounts, and the ledger's replies (R-64, R-65, JOB-20).

use super::credits::Credits;
use super::{check_opaque_id, take_timestamp};
use crate::{Error, Result, json, limits, time::UnixMicros};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The checked body of `POST /transfer`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreditTransfer {
    #[schema(example = "7c9e6679-7425-40de-944b-e07fc1f90ae7")]
    pub transfer_id: String,
    #[schema(example = "orchestrator_owner_id")]
    pub from_owner: String,
    #[schema(example = "agent_owner_id")]
    pub to_owner: String,
    pub amount: Credits,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(example = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6")]
    pub job_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(example = "2026-02-11T14:15:09Z")]
    pub timestamp_utc: Option<String>,
}

impl CreditTransfer {
    pub fn parse(body: &[u8]) -> Result<Self> {
        let text = json::decode_utf8(body)?;
        let mut fields = json::parse_object(text)?;
        let transfer = Self {
            transfer_id: check_opaque_id("transfer_id", fields.required_string("transfer_id")?)?,
            from_owner: take_owner(&mut fields, "from_owner")?,
            to_owner: take_owner(&mut fields, "to_owner")?,
            amount: take_amount(text, &mut fields, "amount")?,
            job_id: fields
                .optional_string("job_id")?
                .map(|job| check_opaque_id("job_id", job))
                .transpose()?,
            timestamp_utc: take_timestamp(&mut fields)?,
        };
        fields.reject_unknown()?;
        if transfer.from_owner == transfer.to_owner {
            return Err(Error::validation(
                "to_owner must be another than from_owner",
            ));
        }
        Ok(transfer)
    }

    /// The canonical text, by which repeated transfers are compared (failure 17).
    pub fn to_canonical_json(&self) -> String {
        serde_json::to_value(self)
            .map(|value| json::to_canonical_json(&value))
            .unwrap_or_default()
    }
}

fn take_owner(fields: &mut json::JsonFields, key: &str) -> Result<String> {
    let name = fields.optional_label(key, limits::LABEL_CHARS)?;
    name.ok_or_else(|| Error::validation(format!("{key} is required")))
}

/// Takes the amount at `key` from the body's text: a parsed float does not distinguish 0.10 from 1e-1.
pub(super) fn take_amount(text: &str, fields: &mut json::JsonFields, key: &str) -> Result<Credits> {
    fields
        .take_value(key)
        .ok_or_else(|| Error::validation(format!("{key} is required")))?;
    Credits::parse(
        key,
        find_raw_value(text, key).as_deref().unwrap_or_default(),
    )
}

/// The raw JSON text of a field. The body has been parsed strictly before, so it has no duplicate keys.
pub(super) fn find_raw_value(text: &str, key: &str) -> Option<String> {
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
    fields.get(key).map(|value| value.get().to_owned())
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

/// The body of `POST /accounts/{owner}/credit`.
#[derive(Clone, Debug, PartialEq, Eq, ToSchema)]
#[schema(example = json!({"amount": 25.00, "reason": "paid by invoice 7"}))]
pub struct CreditIssue {
    pub amount: Credits,
    pub reason: Option<String>,
}

impl CreditIssue {
    pub fn parse(body: &[u8]) -> Result<Self> {
        let text = json::decode_utf8(body)?;
        let mut fields = json::parse_object(text)?;
        let amount = take_amount(text, &mut fields, "amount")?;
        let issue = Self {
            amount,
            reason: fields.optional_label("reason", limits::LABEL_CHARS)?,
        };
        fields.reject_unknown()?;
        Ok(issue)
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

/// One posting of the ledger; its legs sum to zero (invariant 7).
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
    /// The number of jobs by the document's status.
    pub jobs: BTreeMap<String, u64>,
    /// The number of jobs by the hub's state.
    pub job_states: BTreeMap<String, u64>,
}
