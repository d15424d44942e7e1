//! Formats a job for people.

use crate::output;
use crate::table::{self, TableCell, TableRow};
use chorus_wire::market::job::{Job, JobStatus, JobUpdate};
use chorus_wire::time::UnixMicros;

/// The columns of every list of jobs.
pub const JOB_TITLES: [&str; 5] = ["STATUS", "SKILL", "WITH", "CREDITS", "JOB"];

/// `SUCCESS  translate  bob@chorus  0.10  f81d4fae-…`
pub fn job_row(job: &Job) -> TableRow<5> {
    row_with_partner(job, job.agent_id.as_deref().unwrap_or("(on the board)"))
}

/// The same with the other party: for its worker that is the hirer.
pub fn job_row_for(job: &Job, reader: &str) -> TableRow<5> {
    match job.agent_id.as_deref() == Some(reader) && job.orchestrator_id != reader {
        true => row_with_partner(job, &format!("for {}", job.orchestrator_id)),
        false => job_row(job),
    }
}

/// One job on a line of its own.
pub fn format_job(job: &Job) -> String {
    table::format_single_row(&job_row(job))
}

fn row_with_partner(job: &Job, partner: &str) -> TableRow<5> {
    let style = match job.status {
        JobStatus::Success => output::GOOD_STYLE,
        JobStatus::Failure => output::BAD_STYLE,
        JobStatus::Pending => output::FAINT_STYLE,
    };
    // JOB-19: the cost of a job that has not ended is 0, but its budget is what is held for it.
    let amount = match job.status {
        JobStatus::Pending => job.budget,
        JobStatus::Success | JobStatus::Failure => job.execution_cost.unwrap_or(job.budget),
    };
    let mut row = TableRow::of_cells([
        TableCell::styled(style, job.status.as_str()),
        TableCell::from(&job.skill_name),
        TableCell::from(partner),
        TableCell::from(amount.to_string()),
        TableCell::styled(output::FAINT_STYLE, &job.job_id),
    ]);
    let is_open = job.status == JobStatus::Pending;
    if let Some(message) = &job.error_message {
        row.add_line(message);
    }
    if let Some(progress) = job.progress.as_deref().filter(|_| is_open) {
        row.add_line(&format!("progress: {progress}"));
    }
    if let Some(question) = &job.question {
        row.add_line(&format!("question: {question}"));
    }
    if let Some(answer) = &job.answer {
        row.add_line(&format!("answer:   {answer}"));
    }
    row
}

/// The job with its timeline and its output. The answer to an act has no timeline.
pub fn format_job_details(job: &Job, reader: &str) -> String {
    let mut text = table::format_single_row(&job_row_for(job, reader));
    for line in job
        .timeline
        .iter()
        .flat_map(|updates| list_steps(job, updates))
    {
        text.push_str(&format!("\n    {line}"));
    }
    if job.state == "delivered" {
        text.push_str(&format!(
            "\n    delivered; it is approved by itself at {}",
            crate::local_time::date_time(&job.deadline_utc.to_string())
        ));
    }
    if !job.output_data.is_null() {
        text.push_str(&format!("\n{}", job.output_data));
    }
    text
}

/// What happened to the job, each step with its time: also where its worker reported nothing before the end.
fn list_steps(job: &Job, updates: &[JobUpdate]) -> Vec<String> {
    let worker = job.agent_id.as_deref();
    let requester = Some(job.orchestrator_id.as_str());
    let mut steps = vec![format_step(job.requested_at, "requested", requester, "")];
    steps.extend(updates.iter().map(|update| {
        let said = update.text.as_deref().unwrap_or_default();
        let kind = update.kind.as_str();
        format_step(update.timestamp_utc, kind, update.agent_id.as_deref(), said)
    }));
    let ended_by = match job.state.as_str() {
        "done" | "failed" => worker,
        "cancelled" => requester,
        _ => None,
    };
    steps.push(match job.status {
        JobStatus::Success | JobStatus::Failure => {
            let code = job.error_code.as_deref().unwrap_or_default();
            format_step(job.timestamp_utc, &job.state, ended_by, code)
        }
        // When the hub gave it to the worker is not recorded: the worker has until the deadline.
        JobStatus::Pending => format_step(job.deadline_utc, "deadline", worker, &job.state),
    });
    steps
}

fn format_step(at: UnixMicros, kind: &str, by: Option<&str>, said: &str) -> String {
    let line = format!(
        "{}  {kind:11}  {}  {}",
        crate::local_time::date_time(&at.to_string()),
        output::escape_controls(by.unwrap_or("-")),
        output::escape_controls(said)
    );
    line.trim_end().to_owned()
}
