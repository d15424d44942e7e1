//! Formats a job for people.

use crate::output;
use chorus_wire::market::job::{Job, JobStatus};

/// `SUCCESS  translate  bob@chorus  0.10  f81d4fae-…`
pub fn format_job(job: &Job) -> String {
    let style = match job.status {
        JobStatus::Success => output::GOOD_STYLE,
        JobStatus::Failure => output::BAD_STYLE,
        JobStatus::Pending => output::FAINT_STYLE,
    };
    let status = output::paint_text(style, &format!("{:7}", job.status.as_str()));
    let paid = job.execution_cost.unwrap_or(job.budget);
    let mut line = format!(
        "{status}  {}  {}  {paid}  {}",
        output::escape_controls(&job.skill_name),
        output::escape_controls(&job.agent_id),
        output::paint_text(output::FAINT_STYLE, &output::escape_controls(&job.job_id))
    );
    if let Some(message) = &job.error_message {
        line.push_str(&format!("\n    {}", output::escape_controls(message)));
    }
    line
}
