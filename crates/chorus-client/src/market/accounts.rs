//! An owner's balance, transfers and ledger audit.

use crate::http::{ApiCall, encode_segment};
use crate::{Error, HubClient, Result};
use chorus_wire::market::transfer::{
    AuditReply, CreditIssue, CreditTransfer, OwnerAccount, TransferReply,
};

impl HubClient {
    pub async fn fetch_account(&self, owner: &str) -> Result<OwnerAccount> {
        self.send_with_retry(ApiCall::get(format!("/accounts/{}", encode_segment(owner))))
            .await?
            .into_bare()
    }

    /// The account of this agent's owner, whatever the owner is called.
    pub async fn fetch_own_account(&self) -> Result<OwnerAccount> {
        let owner = self.fetch_usage().await?.owner_id;
        self.fetch_account(&owner).await
    }

    /// Issues new credits to an owner; for operators.
    pub async fn issue_credits(&self, owner: &str, issue: &CreditIssue) -> Result<OwnerAccount> {
        let body = serde_json::to_string(issue).map_err(|e| Error::Input(e.to_string()))?;
        let path = format!("/accounts/{}/credit", encode_segment(owner));
        // Never retried: if the first request arrived, a second one would issue them again.
        self.send_call(ApiCall::post(path, body)).await?.into_bare()
    }

    /// Pays another owner. A retry repeats the transfer's id, so it is made once.
    pub async fn transfer_credits(&self, transfer: &CreditTransfer) -> Result<TransferReply> {
        let body = serde_json::to_string(transfer).map_err(|e| Error::Input(e.to_string()))?;
        self.send_with_retry(ApiCall::post("/transfer", body))
            .await?
            .into_bare()
    }

    /// The latest postings of an owner, or of one job; without an owner, of this agent's.
    pub async fn fetch_audit(
        &self,
        owner: Option<&str>,
        job: Option<&str>,
        limit: usize,
    ) -> Result<AuditReply> {
        let job = job
            .map(|job| format!("&job_id={}", encode_segment(job)))
            .unwrap_or_default();
        let owner = owner
            .map(|owner| format!("&owner_id={}", encode_segment(owner)))
            .unwrap_or_default();
        self.send_with_retry(ApiCall::get(format!("/audit?limit={limit}{owner}{job}")))
            .await?
            .into_bare()
    }
}
