//! Jobs in the words that people read.

use crate::out;
use chorus_wire::market::job::{Job, Status};

/// `SUCCESS  translate  bob@chorus  0.10  f81d4fae-…`
pub fn job(job: &Job) -> String {
    let style = match job.status {
        Status::Success => out::GOOD,
        Status::Failure => out::BAD,
        Status::Pending => out::FAINT,
    };
    let status = out::painted(style, &format!("{:7}", job.status.as_str()));
    let paid = job.execution_cost.unwrap_or(job.budget);
    let mut line = format!(
        "{status}  {}  {}  {paid}  {}",
        out::harmless(&job.skill_name),
        out::harmless(&job.agent_id),
        out::painted(out::FAINT, &out::harmless(&job.job_id))
    );
    if let Some(why) = &job.error_message {
        line.push_str(&format!("\n    {}", out::harmless(why)));
    }
    line
}
