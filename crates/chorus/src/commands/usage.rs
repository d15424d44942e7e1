//! `chorus usage`: what your owner uses of its quotas at the hub.

use crate::{cli::CommonArgs, command_client::CommandClient, fail::Fail, output};
use serde_json::json;

pub async fn run(common: &CommonArgs) -> Result<(), Fail> {
    let command = CommandClient::open(common)?;
    let report = command.client.fetch_usage().await?;
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
