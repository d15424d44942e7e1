//! What an operator asks of a hub.

use crate::http::Call;
use crate::{Client, Result, limits};
use chorus_wire::reply::{Activity, Health};

impl Client {
    pub async fn health(&self) -> Result<Health> {
        let path = self.paths().await?.health.clone();
        self.data(Call::get(path)).await
    }

    /// One page of what happened after `since`.
    pub async fn activity(&self, since: u64) -> Result<Vec<Activity>> {
        let path = format!(
            "{}?since={since}&limit={}",
            self.paths().await?.activity,
            limits::PAGE
        );
        self.data(Call::get(path)).await
    }
}
