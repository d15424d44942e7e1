//! What an operator asks: is it well, what happened, what is happening.

use crate::{Hub, Principal, Result, delivery::Feed};
use chorus_wire::reply::{Activity, Health};

/// `GET /health`
pub async fn health(_hub: &Hub) -> Result<Health> {
    todo!()
}

/// `GET /ready`: the store answers.
pub async fn ready(_hub: &Hub) -> Result<()> {
    todo!()
}

/// `GET /activity?since=`
pub async fn activity(_who: &Principal, _hub: &Hub, _since: u64, _limit: usize) -> Result<Vec<Activity>> {
    todo!()
}

/// `GET /events`: the same, live.
pub async fn events(_who: &Principal, _hub: &Hub, _since: Option<u64>) -> Result<Feed> {
    todo!()
}
