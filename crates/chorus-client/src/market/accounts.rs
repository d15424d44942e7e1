//! An owner's balance, transfers and ledger audit.

use crate::http::{ApiCall, encode_segment};
use crate::{Error, HubClient, Result};
use chorus_wire::market::transfer::{AuditReply, CreditTransfer, OwnerAccount, TransferReply};

impl HubClient {
    pub async fn fetch_account(&self, owner: &str) -> Result<OwnerAccount> {
        self.send_with_retry(ApiCall::get(format!("/accounts/{}", encode_segment(owner))))
            .await?
            .into_bare()
    }

    /// Pays another owner. A retry repeats the transfer's id, so it is made once.
    pub async fn transfer_credits(&self, transfer: &CreditTransfer) -> Result<TransferReply> {
        let body = serde_json::to_string(transfer).map_err(|e| Error::Input(e.to_string()))?;
        self.send_with_retry(ApiCall::post("/transfer", body))
            .await?
            .into_bare()
    }

    /// The latest postings of an owner, or of one job.
    pub async fn fetch_audit(
        &self,
        owner: &str,
        job: Option<&str>,
        limit: usize,
    ) -> Result<AuditReply> {
        let job = job
            .map(|job| format!("&job_id={}", encode_segment(job)))
            .unwrap_or_default();
        self.send_with_retry(ApiCall::get(format!(
            "/audit?owner_id={}&limit={limit}{job}",
            encode_segment(owner)
        )))
        .await?
        .into_bare()
    }
}
