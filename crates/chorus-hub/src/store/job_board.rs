//! Who has a job: the board, claims with their leases, the next worker, and deliveries that wait for approval.

use super::jobs::{JobEndRecord, JobPage, read_job_page, select_jobs};
use super::{AgentId, DbConnection, DbError, JobId, OwnerId, SqlParam};
use chorus_wire::credits::Credits;
use chorus_wire::time::UnixMicros;

/// A worker of a job, with what is agreed when it gets the job.
#[derive(Clone, Debug)]
pub(crate) struct JobAssignment<'a> {
    pub worker: AgentId,
    pub payee: OwnerId,
    pub cost: Credits,
    pub endpoint: Option<&'a str>,
    pub output_schema: Option<&'a str>,
    /// Until when a worker that claimed the job has to report.
    pub lease_until: Option<UnixMicros>,
    /// When the next dispatch may be attempted.
    pub dispatch_due_at: UnixMicros,
}

/// Gives a job to a worker. What the worker before it said is no longer shown beside the job; its timeline keeps it.
pub(crate) async fn assign_worker(
    tx: &DbConnection<'_>,
    job: JobId,
    assignment: &JobAssignment<'_>,
) -> Result<(), DbError> {
    const SQL: &str = "update jobs set worker = $2, payee = $3, cost = $4, endpoint = $5, output_schema = $6, lease_until = $7,
                       attempt_at = $8, progress = null where id = $1";
    let params = [
        SqlParam::id(job),
        SqlParam::id(assignment.worker),
        SqlParam::id(assignment.payee),
        SqlParam::Int(assignment.cost.to_hundredths()),
        SqlParam::optional_text(assignment.endpoint),
        SqlParam::optional_text(assignment.output_schema),
        SqlParam::optional_int(assignment.lease_until.map(|until| until.0)),
        SqlParam::Int(assignment.dispatch_due_at.0),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

pub(crate) async fn renew_lease(
    tx: &DbConnection<'_>,
    job: JobId,
    lease_until: UnixMicros,
) -> Result<(), DbError> {
    const SQL: &str = "update jobs set lease_until = $2 where id = $1";
    tx.execute(SQL, &[SqlParam::id(job), SqlParam::Int(lease_until.0)])
        .await
        .map(drop)
}

/// Stores what was delivered. The job now closes when the time for approval ends.
pub(crate) async fn store_delivery(
    tx: &DbConnection<'_>,
    job: JobId,
    delivery: &JobEndRecord,
    approve_until: UnixMicros,
) -> Result<(), DbError> {
    const SQL: &str = "update jobs set output = $2, paid = $3, took_ms = $4, deadline = $5, lease_until = null where id = $1";
    let params = [
        SqlParam::id(job),
        SqlParam::optional_text(delivery.output.as_deref()),
        SqlParam::optional_int(delivery.paid.map(Credits::to_hundredths)),
        SqlParam::optional_int(delivery.took_ms),
        SqlParam::Int(approve_until.0),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

/// The jobs on the board after `after`, oldest first, as many as fit into a page.
pub(crate) async fn list_open_jobs(
    tx: &DbConnection<'_>,
    skill: Option<&str>,
    after: JobId,
    limit: usize,
) -> Result<JobPage, DbError> {
    const ALL: &str = select_jobs!("where j.state = 'open' and j.id > $1 order by j.id limit $2");
    const OF_SKILL: &str = select_jobs!(
        "where j.state = 'open' and j.skill = $3 and j.id > $1 order by j.id limit $2"
    );
    let page = [SqlParam::id(after), SqlParam::Int(limit as i64)];
    match skill {
        Some(skill) => {
            let params = [page[0], page[1], SqlParam::Text(skill)];
            read_job_page(tx, OF_SKILL, &params, limit).await
        }
        None => read_job_page(tx, ALL, &page, limit).await,
    }
}
