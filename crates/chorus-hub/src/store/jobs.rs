//! Jobs as they are kept: what was asked for, by whom, of whom, and what came of it.

use super::{DbConnection, DbError, SqlParam, SqlRow};
use crate::market::jobs::JobState;
use chorus_wire::limits;
use chorus_wire::market::credits::Credits;
use chorus_wire::time::UnixMicros;
use std::sync::Arc;

/// A job that is to be kept.
#[derive(Debug)]
pub(crate) struct NewJob<'a> {
    pub job_id: &'a str,
    pub fingerprint: &'a [u8; 32],
    pub requester: i64,
    pub worker: i64,
    pub payer: i64,
    pub payee: i64,
    pub skill: &'a str,
    pub budget: Credits,
    pub cost: Credits,
    pub state: JobState,
    pub endpoint: Option<&'a str>,
    pub callback_url: Option<&'a str>,
    /// What the worker gets.
    pub body: &'a str,
    pub deadline: UnixMicros,
    /// When its handing over may be tried (again).
    pub dispatch_due_at: UnixMicros,
}

impl NewJob<'_> {
    /// The job as it is once it has been kept.
    pub fn to_record(
        &self,
        id: i64,
        now: UnixMicros,
        requester_name: Arc<str>,
        worker_name: Arc<str>,
    ) -> JobRecord {
        JobRecord {
            id,
            job_id: self.job_id.to_owned(),
            fingerprint: self.fingerprint.to_vec(),
            requester: self.requester,
            requester_name,
            worker: self.worker,
            worker_name,
            payer: self.payer,
            payee: self.payee,
            skill: self.skill.to_owned(),
            budget: self.budget,
            cost: self.cost,
            state: self.state,
            endpoint: self.endpoint.map(str::to_owned),
            callback_url: self.callback_url.map(str::to_owned),
            body: self.body.to_owned(),
            requested_at: now,
            deadline: self.deadline,
            end: None,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct JobRecord {
    pub id: i64,
    pub job_id: String,
    pub fingerprint: Vec<u8>,
    pub requester: i64,
    pub requester_name: Arc<str>,
    pub worker: i64,
    pub worker_name: Arc<str>,
    pub payer: i64,
    pub payee: i64,
    pub skill: String,
    pub budget: Credits,
    pub cost: Credits,
    pub state: JobState,
    pub endpoint: Option<String>,
    pub callback_url: Option<String>,
    pub body: String,
    pub requested_at: UnixMicros,
    pub deadline: UnixMicros,
    pub end: Option<JobEndRecord>,
}

/// How a job ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct JobEndRecord {
    pub at: UnixMicros,
    pub paid: Option<Credits>,
    pub took_ms: Option<i64>,
    /// JSON.
    pub output: Option<String>,
    pub error_code: Option<String>,
    pub error: Option<String>,
}

/// Keeps a new job and gives it its number; `None` when the job_id is taken.
pub(crate) async fn insert_job(
    tx: &DbConnection<'_>,
    job: &NewJob<'_>,
    now: UnixMicros,
) -> Result<Option<i64>, DbError> {
    const SQL: &str = "
        insert into jobs (id, job_id, fingerprint, orchestrator, worker, payer, payee, skill, budget, cost, state, endpoint,
                          callback_url, body, requested_at, deadline, attempt_at)
        values ((select coalesce(max(id), 0) + 1 from jobs), $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
        on conflict (job_id) do nothing returning id";
    let params = [
        SqlParam::Text(job.job_id),
        SqlParam::Bytes(job.fingerprint),
        SqlParam::Int(job.requester),
        SqlParam::Int(job.worker),
        SqlParam::Int(job.payer),
        SqlParam::Int(job.payee),
        SqlParam::Text(job.skill),
        SqlParam::Int(job.budget.to_hundredths()),
        SqlParam::Int(job.cost.to_hundredths()),
        SqlParam::Text(job.state.as_str()),
        SqlParam::optional_text(job.endpoint),
        SqlParam::optional_text(job.callback_url),
        SqlParam::Text(job.body),
        SqlParam::Int(now.0),
        SqlParam::Int(job.deadline.0),
        SqlParam::Int(job.dispatch_due_at.0),
    ];
    tx.query_first(SQL, &params)
        .await?
        .map(|row| row.int(0))
        .transpose()
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "select j.id, j.job_id, j.fingerprint, j.orchestrator, o.agent_id, j.worker, w.agent_id, j.payer, j.payee, j.skill,
                    j.budget, j.cost, j.state, j.endpoint, j.callback_url, j.body, j.requested_at, j.deadline, j.ended_at,
                    j.paid, j.took_ms, j.output, j.error_code, j.error
             from jobs j left join principals o on o.id = j.orchestrator left join principals w on w.id = j.worker ",
            $rest
        )
    };
}

fn read_job_row(mut row: SqlRow) -> Result<JobRecord, DbError> {
    let state = row.text(12)?;
    let end = match row.maybe_int(18)? {
        None => None,
        Some(at) => Some(JobEndRecord {
            at: UnixMicros(at),
            paid: row.maybe_int(19)?.map(Credits::from_hundredths),
            took_ms: row.maybe_int(20)?,
            output: row.maybe_text(21)?,
            error_code: row.maybe_text(22)?,
            error: row.maybe_text(23)?,
        }),
    };
    Ok(JobRecord {
        id: row.int(0)?,
        job_id: row.text(1)?,
        fingerprint: row.maybe_bytes(2)?.unwrap_or_default(),
        requester: row.int(3)?,
        requester_name: row.maybe_text(4)?.unwrap_or_default().into(),
        worker: row.int(5)?,
        worker_name: row.maybe_text(6)?.unwrap_or_default().into(),
        payer: row.int(7)?,
        payee: row.int(8)?,
        skill: row.text(9)?,
        budget: Credits::from_hundredths(row.int(10)?),
        cost: Credits::from_hundredths(row.int(11)?),
        state: JobState::parse(&state)
            .ok_or_else(|| DbError::Other(format!("a job is in a newer hub's state: {state}")))?,
        endpoint: row.maybe_text(13)?,
        callback_url: row.maybe_text(14)?,
        body: row.text(15)?,
        requested_at: UnixMicros(row.int(16)?),
        deadline: UnixMicros(row.int(17)?),
        end,
    })
}

pub(crate) async fn find_job(tx: &DbConnection<'_>, id: i64) -> Result<Option<JobRecord>, DbError> {
    tx.query_first(select!("where j.id = $1"), &[SqlParam::Int(id)])
        .await?
        .map(read_job_row)
        .transpose()
}

pub(crate) async fn find_job_by_job_id(
    tx: &DbConnection<'_>,
    job_id: &str,
) -> Result<Option<JobRecord>, DbError> {
    // PostgreSQL has no text with this in it, and would fail where nothing is found.
    if job_id.contains('\0') {
        return Ok(None);
    }
    tx.query_first(select!("where j.job_id = $1"), &[SqlParam::Text(job_id)])
        .await?
        .map(read_job_row)
        .transpose()
}

/// From one state to another; false when it was not there any more.
pub(crate) async fn change_job_state(
    tx: &DbConnection<'_>,
    id: i64,
    from: JobState,
    to: JobState,
) -> Result<bool, DbError> {
    const SQL: &str = "update jobs set state = $3 where id = $1 and state = $2";
    Ok(tx
        .execute(
            SQL,
            &[
                SqlParam::Int(id),
                SqlParam::Text(from.as_str()),
                SqlParam::Text(to.as_str()),
            ],
        )
        .await?
        == 1)
}

/// Writes down how it ended.
pub(crate) async fn close_job(
    tx: &DbConnection<'_>,
    id: i64,
    state: JobState,
    end: &JobEndRecord,
) -> Result<(), DbError> {
    const SQL: &str =
        "update jobs set state = $2, ended_at = $3, paid = $4, took_ms = $5, output = $6, error_code = $7, error = $8
                       where id = $1";
    let params = [
        SqlParam::Int(id),
        SqlParam::Text(state.as_str()),
        SqlParam::Int(end.at.0),
        SqlParam::optional_int(end.paid.map(Credits::to_hundredths)),
        SqlParam::optional_int(end.took_ms),
        SqlParam::optional_text(end.output.as_deref()),
        SqlParam::optional_text(end.error_code.as_deref()),
        SqlParam::optional_text(end.error.as_deref()),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

/// Open jobs whose time is over.
pub(crate) async fn list_overdue_jobs(
    tx: &DbConnection<'_>,
    now: UnixMicros,
    limit: usize,
) -> Result<Vec<i64>, DbError> {
    const SQL: &str =
        "select id from jobs where ended_at is null and deadline <= $1 order by deadline limit $2";
    let rows = tx
        .query(SQL, &[SqlParam::Int(now.0), SqlParam::Int(limit as i64)])
        .await?;
    rows.iter().map(|row| row.int(0)).collect()
}

/// Jobs that nobody has handed over in the time there was for it: their hub stopped, or was too busy.
pub(crate) async fn list_undispatched_jobs(
    tx: &DbConnection<'_>,
    now: UnixMicros,
    limit: usize,
) -> Result<Vec<i64>, DbError> {
    const SQL: &str = "select id from jobs where state = 'held' and attempt_at <= $1 order by attempt_at limit $2";
    let rows = tx
        .query(SQL, &[SqlParam::Int(now.0), SqlParam::Int(limit as i64)])
        .await?;
    rows.iter().map(|row| row.int(0)).collect()
}

/// Claims the handing over until `until`; false when it is not to be tried now.
pub(crate) async fn lease_dispatch(
    tx: &DbConnection<'_>,
    id: i64,
    now: UnixMicros,
    lease_until: UnixMicros,
) -> Result<bool, DbError> {
    const SQL: &str =
        "update jobs set attempt_at = $3 where id = $1 and state = 'held' and attempt_at <= $2";
    Ok(tx
        .execute(
            SQL,
            &[
                SqlParam::Int(id),
                SqlParam::Int(now.0),
                SqlParam::Int(lease_until.0),
            ],
        )
        .await?
        == 1)
}

/// Whose jobs are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobRole {
    Requester,
    Worker,
    Either,
}

/// An agent's jobs, newest first, as many as fit into a page; `filter` is a state, a status of the document, or empty.
pub(crate) async fn list_jobs(
    tx: &DbConnection<'_>,
    agent: i64,
    role: JobRole,
    filter: &str,
    before: i64,
    limit: usize,
) -> Result<Vec<JobRecord>, DbError> {
    macro_rules! chosen {
        ($column:literal) => {
            concat!(
                "select id from (select id from jobs where ",
                $column,
                " = $1 and id < $2 and ($4 = '' or $4 = state or $4 = case when ended_at is null then 'PENDING'
                  when state = 'done' then 'SUCCESS' else 'FAILURE' end) order by id desc limit $3) as ",
                $column
            )
        };
    }
    macro_rules! listed {
        ($($ids:expr),+) => {
            concat!(select!("where j.id in ("), $($ids),+, ") order by j.id desc limit $3")
        };
    }
    const REQUESTED: &str = listed!(chosen!("orchestrator"));
    const WORKED: &str = listed!(chosen!("worker"));
    const BOTH: &str = listed!(chosen!("orchestrator"), " union ", chosen!("worker"));
    let sql = match role {
        JobRole::Requester => REQUESTED,
        JobRole::Worker => WORKED,
        JobRole::Either => BOTH,
    };
    let params = [
        SqlParam::Int(agent),
        SqlParam::Int(before),
        SqlParam::Int(limit as i64),
        SqlParam::Text(filter),
    ];
    let (rows, _) = tx
        .query_within_bytes(sql, &params, limits::HISTORY_PAGE_BYTES)
        .await?;
    rows.into_iter().map(read_job_row).collect()
}
