//! Operator calls: health and activity.

use crate::http::ApiCall;
use crate::{HubClient, Result, limits};
use chorus_wire::reply::{ActivityRow, HealthReport};

impl HubClient {
    pub async fn fetch_health(&self) -> Result<HealthReport> {
        let path = self.fetch_paths().await?.health.clone();
        self.fetch_data(ApiCall::get(path)).await
    }

    /// One page of activity after `since`.
    pub async fn fetch_activity(&self, since: u64) -> Result<Vec<ActivityRow>> {
        let path = format!(
            "{}?since={since}&limit={}",
            self.fetch_paths().await?.activity,
            limits::PAGE_SIZE
        );
        self.fetch_data(ApiCall::get(path)).await
    }
}
