//! The `jobs` table: skill calls with their requester, worker, state and result.

use super::{
    AgentId, ColumnReader, DbConnection, DbError, FromRow, JobId, JobState, OwnerId, SqlParam,
};
use chorus_wire::credits::Credits;
use chorus_wire::limits;
use chorus_wire::time::UnixMicros;
use std::sync::Arc;

/// A job to insert.
#[derive(Debug)]
pub(crate) struct NewJob<'a> {
    pub job_id: &'a str,
    pub fingerprint: &'a [u8; 32],
    pub requester: AgentId,
    pub worker: AgentId,
    pub payer: OwnerId,
    pub payee: OwnerId,
    pub skill: &'a str,
    pub budget: Credits,
    pub cost: Credits,
    pub state: JobState,
    pub endpoint: Option<&'a str>,
    pub callback_url: Option<&'a str>,
    /// The JSON that is dispatched to the worker.
    pub body: &'a str,
    /// When the result is due.
    pub deadline: UnixMicros,
    /// When the next dispatch may be attempted.
    pub dispatch_due_at: UnixMicros,
    pub terms: JobTerms,
}

/// Who may do a job and when it is paid.
#[derive(Clone, Debug, Default)]
pub(crate) struct JobTerms {
    /// The requester named only a skill.
    pub any_worker: bool,
    /// Any agent with the skill may claim it on the board.
    pub board: bool,
    /// How long the requester has to reject a delivery, in milliseconds.
    pub approve_ms: Option<i64>,
    /// The schema of the output when the worker got the job, as JSON.
    pub output_schema: Option<String>,
}

/// The worker of a job on the board that no agent has claimed. No agent has this id.
pub(crate) const NO_WORKER: AgentId = AgentId(0);
/// The owner of [`NO_WORKER`].
pub(crate) const NO_PAYEE: OwnerId = OwnerId(0);

/// What a worker and a requester have said about a job so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct JobTalk {
    /// The latest progress line.
    pub progress: Option<String>,
    pub question: Option<String>,
    pub answer: Option<String>,
}

impl NewJob<'_> {
    /// The record of the job after it was inserted.
    pub fn to_record(
        &self,
        id: JobId,
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
            closes_at: self.deadline,
            terms: self.terms.clone(),
            lease_until: None,
            talk: JobTalk::default(),
            end: None,
            delivery: None,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct JobRecord {
    pub id: JobId,
    pub job_id: String,
    pub fingerprint: Vec<u8>,
    pub requester: AgentId,
    pub requester_name: Arc<str>,
    pub worker: AgentId,
    pub worker_name: Arc<str>,
    pub payer: OwnerId,
    pub payee: OwnerId,
    pub skill: String,
    pub budget: Credits,
    pub cost: Credits,
    pub state: JobState,
    pub endpoint: Option<String>,
    pub callback_url: Option<String>,
    pub body: String,
    pub requested_at: UnixMicros,
    /// When the hub closes the job by itself: at the deadline of its result, and once that is delivered, at the end of the time
    /// for approval.
    pub closes_at: UnixMicros,
    pub terms: JobTerms,
    /// Until when the worker that claimed the job on the board has to report.
    pub lease_until: Option<UnixMicros>,
    pub talk: JobTalk,
    pub end: Option<JobEndRecord>,
    /// What was delivered and waits for approval: output, price and time.
    pub delivery: Option<JobEndRecord>,
}

impl JobRecord {
    pub fn has_worker(&self) -> bool {
        self.worker != NO_WORKER
    }
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

/// Inserts a job and returns its id; `None` when the job_id is taken.
pub(crate) async fn insert_job(
    tx: &DbConnection<'_>,
    job: &NewJob<'_>,
    now: UnixMicros,
) -> Result<Option<JobId>, DbError> {
    const SQL: &str = "
        insert into jobs (id, job_id, fingerprint, orchestrator, worker, payer, payee, skill, budget, cost, state, endpoint,
                          callback_url, body, requested_at, deadline, attempt_at, any_worker, board, approve_ms, output_schema)
        values ((select coalesce(max(id), 0) + 1 from jobs), $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
                $17, $18, $19, $20)
        on conflict (job_id) do nothing returning id";
    let params = [
        SqlParam::Text(job.job_id),
        SqlParam::Bytes(job.fingerprint),
        SqlParam::id(job.requester),
        SqlParam::id(job.worker),
        SqlParam::id(job.payer),
        SqlParam::id(job.payee),
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
        SqlParam::Int(i64::from(job.terms.any_worker)),
        SqlParam::Int(i64::from(job.terms.board)),
        SqlParam::optional_int(job.terms.approve_ms),
        SqlParam::optional_text(job.terms.output_schema.as_deref()),
    ];
    tx.query_first(SQL, &params)
        .await?
        .map(|row| row.id(0))
        .transpose()
}

macro_rules! select_jobs {
    ($rest:literal) => {
        concat!(
            "select j.id, j.job_id, j.fingerprint, j.orchestrator, o.agent_id, j.worker, w.agent_id, j.payer, j.payee, j.skill,
                    j.budget, j.cost, j.state, j.endpoint, j.callback_url, j.body, j.requested_at, j.deadline,
                    j.any_worker, j.board, j.approve_ms, j.output_schema, j.lease_until, j.progress, j.question, j.answer, j.ended_at,
                    j.paid, j.took_ms, j.output, j.error_code, j.error
             from jobs j left join principals o on o.id = j.orchestrator left join principals w on w.id = j.worker ",
            $rest
        )
    };
}

pub(super) use select_jobs;

/// Reads the columns of `select_jobs!`.
impl FromRow for JobRecord {
    fn from_columns(columns: &mut ColumnReader) -> Result<Self, DbError> {
        let mut job = JobRecord {
            id: columns.id()?,
            job_id: columns.text()?,
            fingerprint: columns.maybe_bytes()?.unwrap_or_default(),
            requester: columns.id()?,
            requester_name: columns.maybe_text()?.unwrap_or_default().into(),
            worker: columns.id()?,
            worker_name: columns.maybe_text()?.unwrap_or_default().into(),
            payer: columns.id()?,
            payee: columns.id()?,
            skill: columns.text()?,
            budget: Credits::from_hundredths(columns.int()?),
            cost: Credits::from_hundredths(columns.int()?),
            state: parse_stored_state(&columns.text()?)?,
            endpoint: columns.maybe_text()?,
            callback_url: columns.maybe_text()?,
            body: columns.text()?,
            requested_at: UnixMicros(columns.int()?),
            closes_at: UnixMicros(columns.int()?),
            terms: JobTerms {
                any_worker: columns.int()? == 1,
                board: columns.int()? == 1,
                approve_ms: columns.maybe_int()?,
                output_schema: columns.maybe_text()?,
            },
            lease_until: columns.maybe_int()?.map(UnixMicros),
            talk: JobTalk {
                progress: columns.maybe_text()?,
                question: columns.maybe_text()?,
                answer: columns.maybe_text()?,
            },
            end: None,
            delivery: None,
        };
        let ended_at = columns.maybe_int()?;
        let end = read_job_end(columns, ended_at)?;
        match (ended_at, job.state) {
            (Some(_), _) => job.end = Some(end),
            (None, JobState::Delivered) => job.delivery = Some(end),
            (
                None,
                JobState::Requested
                | JobState::Open
                | JobState::Held
                | JobState::Dispatched
                | JobState::InputRequired
                | JobState::Done
                | JobState::Failed
                | JobState::Cancelled
                | JobState::Expired,
            ) => {}
        }
        Ok(job)
    }
}

fn parse_stored_state(text: &str) -> Result<JobState, DbError> {
    JobState::parse(text)
        .ok_or_else(|| DbError::Other(format!("a job is in a newer hub's state: {text}")))
}

/// The last columns of `select_jobs!`. A delivered job has them too, but no `ended_at`.
fn read_job_end(
    columns: &mut ColumnReader,
    ended_at: Option<i64>,
) -> Result<JobEndRecord, DbError> {
    Ok(JobEndRecord {
        at: UnixMicros(ended_at.unwrap_or_default()),
        paid: columns.maybe_int()?.map(Credits::from_hundredths),
        took_ms: columns.maybe_int()?,
        output: columns.maybe_text()?,
        error_code: columns.maybe_text()?,
        error: columns.maybe_text()?,
    })
}

pub(crate) async fn find_job(
    tx: &DbConnection<'_>,
    id: JobId,
) -> Result<Option<JobRecord>, DbError> {
    tx.query_first(select_jobs!("where j.id = $1"), &[SqlParam::id(id)])
        .await?
        .map(JobRecord::from_row)
        .transpose()
}

pub(crate) async fn find_job_by_job_id(
    tx: &DbConnection<'_>,
    job_id: &str,
) -> Result<Option<JobRecord>, DbError> {
    // PostgreSQL rejects a text with a NUL character; no stored id contains one.
    if job_id.contains('\0') {
        return Ok(None);
    }
    tx.query_first(
        select_jobs!("where j.job_id = $1"),
        &[SqlParam::Text(job_id)],
    )
    .await?
    .map(JobRecord::from_row)
    .transpose()
}

/// Changes the state from `from` to `to`; false when the job is no longer in `from`.
pub(crate) async fn change_job_state(
    tx: &DbConnection<'_>,
    id: JobId,
    from: JobState,
    to: JobState,
) -> Result<bool, DbError> {
    const SQL: &str = "update jobs set state = $3 where id = $1 and state = $2";
    Ok(tx
        .execute(
            SQL,
            &[
                SqlParam::id(id),
                SqlParam::Text(from.as_str()),
                SqlParam::Text(to.as_str()),
            ],
        )
        .await?
        == 1)
}

/// Stores how the job ended.
pub(crate) async fn close_job(
    tx: &DbConnection<'_>,
    id: JobId,
    state: JobState,
    end: &JobEndRecord,
) -> Result<(), DbError> {
    const SQL: &str =
        "update jobs set state = $2, ended_at = $3, paid = $4, took_ms = $5, output = $6, error_code = $7, error = $8,
                       lease_until = null where id = $1";
    let params = [
        SqlParam::id(id),
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

/// In which role the agent takes part in the listed jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobRole {
    Requester,
    Worker,
    Either,
    /// The jobs of all agents, for operators.
    AnyAgent,
}

/// An agent's jobs, newest first, as many as fit into a page. `filter` is a state, a status of the protocol, or empty.
pub(crate) async fn list_jobs(
    tx: &DbConnection<'_>,
    agent: AgentId,
    role: JobRole,
    filter: &str,
    before: JobId,
    limit: usize,
) -> Result<JobPage, DbError> {
    macro_rules! job_ids_where {
        ($column:literal, $name:literal) => {
            concat!(
                "select id from (select id from jobs where ",
                $column,
                " = $1 and id < $2 and ($4 = '' or $4 = state or $4 = case when ended_at is null then 'PENDING'
                  when state = 'done' then 'SUCCESS' else 'FAILURE' end) order by id desc limit $3) as ",
                $name
            )
        };
    }
    macro_rules! jobs_with_ids {
        ($($ids:expr),+) => {
            concat!(select_jobs!("where j.id in ("), $($ids),+, ") order by j.id desc limit $3")
        };
    }
    const REQUESTED: &str = jobs_with_ids!(job_ids_where!("orchestrator", "asked"));
    const WORKED: &str = jobs_with_ids!(job_ids_where!("worker", "worked"));
    const BOTH: &str = jobs_with_ids!(
        job_ids_where!("orchestrator", "asked"),
        " union ",
        job_ids_where!("worker", "worked")
    );
    // True for every row, with the parameter in its place.
    const ALL: &str = jobs_with_ids!(job_ids_where!("0 * id + $1", "every"));
    let sql = match role {
        JobRole::AnyAgent => ALL,
        JobRole::Requester => REQUESTED,
        JobRole::Worker => WORKED,
        JobRole::Either => BOTH,
    };
    let params = [
        SqlParam::id(agent),
        SqlParam::id(before),
        SqlParam::Int(limit as i64),
        SqlParam::Text(filter),
    ];
    read_job_page(tx, sql, &params, limit).await
}

/// Some jobs in the order of a list; `is_complete` when no more follow.
pub(crate) struct JobPage {
    pub jobs: Vec<JobRecord>,
    pub is_complete: bool,
}

/// Reads a page of jobs, bounded in rows and in bytes.
pub(super) async fn read_job_page(
    tx: &DbConnection<'_>,
    sql: &'static str,
    params: &[SqlParam<'_>],
    limit: usize,
) -> Result<JobPage, DbError> {
    let (rows, has_all_rows) = tx
        .query_within_bytes(sql, params, limits::HISTORY_PAGE_BYTES)
        .await?;
    Ok(JobPage {
        is_complete: has_all_rows && rows.len() < limit,
        jobs: rows
            .into_iter()
            .map(JobRecord::from_row)
            .collect::<Result<_, _>>()?,
    })
}
