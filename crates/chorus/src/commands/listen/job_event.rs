//! Describes the market's events on the inbox: a job to do, what happened to one, and its end.

use crate::commands::market::format_job::format_job;
use crate::output;
use chorus_client::market::PendingJob;
use chorus_wire::market::job::{Job, JobUpdateKind};

/// A sentence about the event, with the command that goes on; `None` for another kind of event, or one that is not understood.
pub fn describe_job_event(name: &str, data: &str) -> Option<String> {
    match name {
        "job" => Some(describe_pending(&serde_json::from_str(data).ok()?)),
        "job_update" => describe_update(&serde_json::from_str(data).ok()?),
        "job_result" => {
            let job: Job = serde_json::from_str(data).ok()?;
            Some(format!("job {}: {}", job.state, format_job(&job)))
        }
        _ => None,
    }
}

fn describe_pending(job: &PendingJob) -> String {
    let next = "--done JSON, or --decline REASON";
    format!(
        "job for you: {} for {} (chorus jobs {} {next})",
        output::escape_controls(&job.skill_name),
        output::escape_controls(&job.orchestrator_id),
        output::escape_controls(&job.job_id)
    )
}

fn describe_update(job: &Job) -> Option<String> {
    let update = job.timeline.as_deref()?.last()?;
    let next = match update.kind {
        JobUpdateKind::Question => " --answer TEXT",
        JobUpdateKind::Delivered => " --approve, or --reject REASON",
        JobUpdateKind::Claimed
        | JobUpdateKind::Progress
        | JobUpdateKind::Answer
        | JobUpdateKind::Refused
        | JobUpdateKind::Declined
        | JobUpdateKind::Unreachable
        | JobUpdateKind::Lapsed
        | JobUpdateKind::Rejected => "",
    };
    let said = update.text.as_deref().map(|text| format!(": {text}"));
    Some(format!(
        "job {}, {}{} (chorus jobs {}{next})",
        output::escape_controls(&job.skill_name),
        update.kind,
        output::escape_controls(&said.unwrap_or_default()),
        output::escape_controls(&job.job_id)
    ))
}
