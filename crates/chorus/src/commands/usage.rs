//! `chorus usage`: what your owner uses of its quotas at the hub.

use crate::{cli::CommonArgs, fail::Fail, output, session::ClientSession};
use serde_json::json;

pub async fn run(common: &CommonArgs) -> Result<(), Fail> {
    let session = ClientSession::open(common)?;
    let report = session.client.fetch_usage().await?;
    output::print_result(common.json, &json!(report), || {
        let lines = report.list_quotas().map(|(name, quota)| {
            format!("{:<14}{:>14} of {}", name.as_str(), quota.used, quota.bound)
        });
        format!(
            "owner {}\n{}",
            output::escape_controls(&report.owner_id),
            lines.join("\n")
        )
    });
    Ok(())
}
