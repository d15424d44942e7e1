//! What an owner has, what it pays, and how it came about.

use crate::http::{Call, segment};
use crate::{Client, Error, Result};
use chorus_wire::market::transfer::{Account, Audit, Transfer, Transferred};

impl Client {
    pub async fn account(&self, owner: &str) -> Result<Account> {
        self.ask_patiently(Call::get(format!("/accounts/{}", segment(owner))))
            .await?
            .bare()
    }

    /// Pays another owner. A transfer has its own id, so one that is repeated is made once.
    pub async fn transfer(&self, transfer: &Transfer) -> Result<Transferred> {
        let body = serde_json::to_string(transfer).map_err(|e| Error::Input(e.to_string()))?;
        self.ask_patiently(Call::post("/transfer", body))
            .await?
            .bare()
    }

    /// The latest postings of an owner, or of one job.
    pub async fn audit(&self, owner: &str, job: Option<&str>, limit: usize) -> Result<Audit> {
        let job = job
            .map(|job| format!("&job_id={}", segment(job)))
            .unwrap_or_default();
        self.ask_patiently(Call::get(format!(
            "/audit?owner_id={}&limit={limit}{job}",
            segment(owner)
        )))
        .await?
        .bare()
    }
}
