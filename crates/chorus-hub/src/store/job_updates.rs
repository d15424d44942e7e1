//! The timelines of jobs: what happened to each between its request and its end.

use super::{AgentId, ColumnReader, DbConnection, DbError, FromRow, JobId, SqlParam};
use chorus_wire::limits;
use chorus_wire::market::job::{JobUpdate, JobUpdateKind};
use chorus_wire::time::UnixMicros;

/// An update to append to a job's timeline.
#[derive(Clone, Debug)]
pub(crate) struct NewUpdate<'a> {
    pub job: JobId,
    pub kind: JobUpdateKind,
    pub agent: AgentId,
    pub text: Option<&'a str>,
    pub at: UnixMicros,
}

/// Appends an update; false when the timeline is full. Declined and lapsed jobs are always noted, because they are not given to the
/// same agent again, and so are few.
pub(crate) async fn append_update(
    tx: &DbConnection<'_>,
    update: &NewUpdate<'_>,
) -> Result<bool, DbError> {
    const SQL: &str = "insert into job_updates (job, n, kind, agent, text, at)
                       values ($1, (select coalesce(max(n), 0) + 1 from job_updates where job = $1), $2, $3, $4, $5)";
    let is_limited = match update.kind {
        JobUpdateKind::Progress | JobUpdateKind::Refused => true,
        JobUpdateKind::Claimed
        | JobUpdateKind::Question
        | JobUpdateKind::Answer
        | JobUpdateKind::Declined
        | JobUpdateKind::Unreachable
        | JobUpdateKind::Lapsed
        | JobUpdateKind::Delivered
        | JobUpdateKind::Rejected => false,
    };
    if is_limited && count_updates(tx, update.job).await? >= limits::JOB_UPDATES as i64 {
        return Ok(false);
    }
    let params = [
        SqlParam::id(update.job),
        SqlParam::Text(update.kind.as_str()),
        SqlParam::id(update.agent),
        SqlParam::optional_text(update.text),
        SqlParam::Int(update.at.0),
    ];
    tx.execute(SQL, &params).await?;
    Ok(true)
}

async fn count_updates(tx: &DbConnection<'_>, job: JobId) -> Result<i64, DbError> {
    const SQL: &str = "select coalesce(max(n), 0) from job_updates where job = $1";
    let row = tx.query_first(SQL, &[SqlParam::id(job)]).await?;
    row.map_or(Ok(0), |row| row.int(0))
}

macro_rules! update_columns {
    () => {
        "u.kind, p.agent_id, u.text, u.at"
    };
}

/// Reads `update_columns!`.
impl FromRow for JobUpdate {
    fn from_columns(columns: &mut ColumnReader) -> Result<Self, DbError> {
        let kind = columns.text()?;
        Ok(JobUpdate {
            kind: JobUpdateKind::parse(&kind)
                .ok_or_else(|| DbError::Other(format!("an update of a newer hub: {kind}")))?,
            agent_id: columns.maybe_text()?,
            text: columns.maybe_text()?,
            timestamp_utc: UnixMicros(columns.int()?),
        })
    }
}

/// The updates of a job, oldest first. A job that many agents declined shows the first of them.
pub(crate) async fn list_updates(
    tx: &DbConnection<'_>,
    job: JobId,
) -> Result<Vec<JobUpdate>, DbError> {
    const SQL: &str = concat!(
        "select ",
        update_columns!(),
        " from job_updates u left join principals p on p.id = u.agent where u.job = $1 order by u.n limit $2"
    );
    let max_rows = SqlParam::Int(2 * limits::JOB_UPDATES as i64);
    let rows = tx.query(SQL, &[SqlParam::id(job), max_rows]).await?;
    rows.into_iter().map(JobUpdate::from_row).collect()
}

/// The agents that had the job and do not get it again: they declined it, could not be reached, or let the lease lapse.
pub(crate) async fn list_former_workers(
    tx: &DbConnection<'_>,
    job: JobId,
) -> Result<Vec<AgentId>, DbError> {
    const SQL: &str = "select distinct agent from job_updates
                       where job = $1 and kind in ('declined', 'unreachable', 'lapsed')";
    let rows = tx.query(SQL, &[SqlParam::id(job)]).await?;
    rows.iter().map(|row| row.id(0)).collect()
}

/// The latest progress line, which listings show.
pub(crate) async fn store_progress(
    tx: &DbConnection<'_>,
    job: JobId,
    text: &str,
) -> Result<(), DbError> {
    const SQL: &str = "update jobs set progress = $2 where id = $1";
    tx.execute(SQL, &[SqlParam::id(job), SqlParam::Text(text)])
        .await
        .map(drop)
}

pub(crate) async fn store_question(
    tx: &DbConnection<'_>,
    job: JobId,
    text: &str,
) -> Result<(), DbError> {
    const SQL: &str = "update jobs set question = $2, lease_until = null where id = $1";
    tx.execute(SQL, &[SqlParam::id(job), SqlParam::Text(text)])
        .await
        .map(drop)
}

/// Stores the answer, and the body that the worker gets with it.
pub(crate) async fn store_answer(
    tx: &DbConnection<'_>,
    job: JobId,
    text: &str,
    body: &str,
    dispatch_due_at: UnixMicros,
) -> Result<(), DbError> {
    const SQL: &str = "update jobs set answer = $2, body = $3, attempt_at = $4 where id = $1";
    let params = [
        SqlParam::id(job),
        SqlParam::Text(text),
        SqlParam::Text(body),
        SqlParam::Int(dispatch_due_at.0),
    ];
    tx.execute(SQL, &params).await.map(drop)
}
