//! `chorus reputation`: shows an agent's score and how it came about.

use crate::{agent_names, cli::CommonArgs, command_client, fail::Fail, output};
use chorus_wire::market::reputation::{ReputationChange, ReputationReport};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  chorus reputation bob@chorus")]
pub struct Args {
    /// The agent
    agent: String,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let hub = command_client::open_directory_client(common)?;
    let agent = agent_names::resolve_agent(&hub, &args.agent).await?;
    let report = hub.fetch_reputation(&agent).await?;
    output::print_result(common.json, &report, || format_report(&report));
    Ok(())
}

fn format_report(report: &ReputationReport) -> String {
    let stats = &report.stats;
    let recent = &stats.last_30_days;
    let mut text = format!(
        "{}  {:.1}\n    {} done, {} failed for {}, {} earned\n    last 30 days: {} done, {} failed for {}, {} earned",
        output::escape_controls(&report.agent_id),
        report.score,
        stats.successes,
        stats.failures,
        format_owners(stats.distinct_hirers),
        stats.earned,
        recent.successes,
        recent.failures,
        format_owners(recent.distinct_hirers),
        recent.earned
    );
    for change in &report.history {
        text.push_str(&format!("\n{}", format_change(change)));
    }
    text
}

pub(super) fn format_owners(count: u64) -> String {
    match count {
        1 => "1 owner".to_owned(),
        count => format!("{count} owners"),
    }
}

fn format_change(change: &ReputationChange) -> String {
    let or_dash = |text: &Option<String>| {
        let text = text.as_deref().unwrap_or("-");
        output::escape_controls(text)
    };
    let cost = change.cost.map(|cost| cost.to_string()).unwrap_or_default();
    format!(
        "{}  {:.1} → {:.1}  {}  {}  {cost}  {}",
        crate::local_time::date_time(&change.timestamp_utc.to_string()),
        change.score_before,
        change.score_after,
        or_dash(&change.reason),
        or_dash(&change.hirer_owner),
        or_dash(&change.job_id)
    )
}
