//! Jobs as they are kept: what was asked for, by whom, of whom, and what came of it.

use super::{DbError, Param, Row, Tx};
use crate::market::jobs::State;
use chorus_wire::limits;
use chorus_wire::market::credits::Credits;
use chorus_wire::time::Micros;
use std::sync::Arc;

/// A job that is to be kept.
#[derive(Debug)]
pub(crate) struct NewJob<'a> {
    pub job_id: &'a str,
    pub fingerprint: &'a [u8; 32],
    pub orchestrator: i64,
    pub worker: i64,
    pub payer: i64,
    pub payee: i64,
    pub skill: &'a str,
    pub budget: Credits,
    pub cost: Credits,
    pub state: State,
    pub endpoint: Option<&'a str>,
    pub callback_url: Option<&'a str>,
    /// What the worker gets.
    pub body: &'a str,
    pub deadline: Micros,
    /// When its handing over may be tried (again).
    pub attempt_at: Micros,
}

impl NewJob<'_> {
    /// The job as it is once it has been kept.
    pub fn kept(
        &self,
        id: i64,
        now: Micros,
        orchestrator_name: Arc<str>,
        worker_name: Arc<str>,
    ) -> Job {
        Job {
            id,
            job_id: self.job_id.to_owned(),
            fingerprint: self.fingerprint.to_vec(),
            orchestrator: self.orchestrator,
            orchestrator_name,
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
pub(crate) struct Job {
    pub id: i64,
    pub job_id: String,
    pub fingerprint: Vec<u8>,
    pub orchestrator: i64,
    pub orchestrator_name: Arc<str>,
    pub worker: i64,
    pub worker_name: Arc<str>,
    pub payer: i64,
    pub payee: i64,
    pub skill: String,
    pub budget: Credits,
    pub cost: Credits,
    pub state: State,
    pub endpoint: Option<String>,
    pub callback_url: Option<String>,
    pub body: String,
    pub requested_at: Micros,
    pub deadline: Micros,
    pub end: Option<End>,
}

/// How a job ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct End {
    pub at: Micros,
    pub paid: Option<Credits>,
    pub took_ms: Option<i64>,
    /// JSON.
    pub output: Option<String>,
    pub error_code: Option<String>,
    pub error: Option<String>,
}

/// Keeps a new job and gives it its number; `None` when the job_id is taken.
pub(crate) async fn insert(
    tx: &Tx<'_>,
    job: &NewJob<'_>,
    now: Micros,
) -> Result<Option<i64>, DbError> {
    const SQL: &str = "
        insert into jobs (id, job_id, fingerprint, orchestrator, worker, payer, payee, skill, budget, cost, state, endpoint,
                          callback_url, body, requested_at, deadline, attempt_at)
        values ((select coalesce(max(id), 0) + 1 from jobs), $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
        on conflict (job_id) do nothing returning id";
    let params = [
        Param::Text(job.job_id),
        Param::Bytes(job.fingerprint),
        Param::Int(job.orchestrator),
        Param::Int(job.worker),
        Param::Int(job.payer),
        Param::Int(job.payee),
        Param::Text(job.skill),
        Param::Int(job.budget.in_hundredths()),
        Param::Int(job.cost.in_hundredths()),
        Param::Text(job.state.as_str()),
        Param::text(job.endpoint),
        Param::text(job.callback_url),
        Param::Text(job.body),
        Param::Int(now.0),
        Param::Int(job.deadline.0),
        Param::Int(job.attempt_at.0),
    ];
    tx.one(SQL, &params)
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

fn job(mut row: Row) -> Result<Job, DbError> {
    let state = row.text(12)?;
    let end = match row.maybe_int(18)? {
        None => None,
        Some(at) => Some(End {
            at: Micros(at),
            paid: row.maybe_int(19)?.map(Credits::hundredths),
            took_ms: row.maybe_int(20)?,
            output: row.maybe_text(21)?,
            error_code: row.maybe_text(22)?,
            error: row.maybe_text(23)?,
        }),
    };
    Ok(Job {
        id: row.int(0)?,
        job_id: row.text(1)?,
        fingerprint: row.maybe_bytes(2)?.unwrap_or_default(),
        orchestrator: row.int(3)?,
        orchestrator_name: row.maybe_text(4)?.unwrap_or_default().into(),
        worker: row.int(5)?,
        worker_name: row.maybe_text(6)?.unwrap_or_default().into(),
        payer: row.int(7)?,
        payee: row.int(8)?,
        skill: row.text(9)?,
        budget: Credits::hundredths(row.int(10)?),
        cost: Credits::hundredths(row.int(11)?),
        state: State::parse(&state)
            .ok_or_else(|| DbError::Other(format!("a job is in a newer hub's state: {state}")))?,
        endpoint: row.maybe_text(13)?,
        callback_url: row.maybe_text(14)?,
        body: row.text(15)?,
        requested_at: Micros(row.int(16)?),
        deadline: Micros(row.int(17)?),
        end,
    })
}

pub(crate) async fn by_id(tx: &Tx<'_>, id: i64) -> Result<Option<Job>, DbError> {
    tx.one(select!("where j.id = $1"), &[Param::Int(id)])
        .await?
        .map(job)
        .transpose()
}

pub(crate) async fn by_name(tx: &Tx<'_>, job_id: &str) -> Result<Option<Job>, DbError> {
    // PostgreSQL has no text with this in it, and would fail where nothing is found.
    if job_id.contains('\0') {
        return Ok(None);
    }
    tx.one(select!("where j.job_id = $1"), &[Param::Text(job_id)])
        .await?
        .map(job)
        .transpose()
}

/// From one state to another; false when it was not there any more.
pub(crate) async fn step(tx: &Tx<'_>, id: i64, from: State, to: State) -> Result<bool, DbError> {
    const SQL: &str = "update jobs set state = $3 where id = $1 and state = $2";
    Ok(tx
        .execute(
            SQL,
            &[
                Param::Int(id),
                Param::Text(from.as_str()),
                Param::Text(to.as_str()),
            ],
        )
        .await?
        == 1)
}

/// Writes down how it ended.
pub(crate) async fn close(tx: &Tx<'_>, id: i64, state: State, end: &End) -> Result<(), DbError> {
    const SQL: &str =
        "update jobs set state = $2, ended_at = $3, paid = $4, took_ms = $5, output = $6, error_code = $7, error = $8
                       where id = $1";
    let params = [
        Param::Int(id),
        Param::Text(state.as_str()),
        Param::Int(end.at.0),
        Param::int(end.paid.map(Credits::in_hundredths)),
        Param::int(end.took_ms),
        Param::text(end.output.as_deref()),
        Param::text(end.error_code.as_deref()),
        Param::text(end.error.as_deref()),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

/// Open jobs whose time is over.
pub(crate) async fn overdue(tx: &Tx<'_>, now: Micros, limit: usize) -> Result<Vec<i64>, DbError> {
    const SQL: &str =
        "select id from jobs where ended_at is null and deadline <= $1 order by deadline limit $2";
    let rows = tx
        .query(SQL, &[Param::Int(now.0), Param::Int(limit as i64)])
        .await?;
    rows.iter().map(|row| row.int(0)).collect()
}

/// Jobs that nobody has handed over in the time there was for it: their hub stopped, or was too busy.
pub(crate) async fn waiting(tx: &Tx<'_>, now: Micros, limit: usize) -> Result<Vec<i64>, DbError> {
    const SQL: &str = "select id from jobs where state = 'held' and attempt_at <= $1 order by attempt_at limit $2";
    let rows = tx
        .query(SQL, &[Param::Int(now.0), Param::Int(limit as i64)])
        .await?;
    rows.iter().map(|row| row.int(0)).collect()
}

/// Claims the handing over until `until`; false when it is not to be tried now.
pub(crate) async fn attempt(
    tx: &Tx<'_>,
    id: i64,
    now: Micros,
    until: Micros,
) -> Result<bool, DbError> {
    const SQL: &str =
        "update jobs set attempt_at = $3 where id = $1 and state = 'held' and attempt_at <= $2";
    Ok(tx
        .execute(
            SQL,
            &[Param::Int(id), Param::Int(now.0), Param::Int(until.0)],
        )
        .await?
        == 1)
}

/// Whose jobs are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Orchestrator,
    Worker,
    Either,
}

/// An agent's jobs, newest first, as many as fit into a page; `filter` is a state, a status of the document, or empty.
pub(crate) async fn list(
    tx: &Tx<'_>,
    agent: i64,
    part: Part,
    filter: &str,
    before: i64,
    limit: usize,
) -> Result<Vec<Job>, DbError> {
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
    const ASKED: &str = listed!(chosen!("orchestrator"));
    const WORKED: &str = listed!(chosen!("worker"));
    const BOTH: &str = listed!(chosen!("orchestrator"), " union ", chosen!("worker"));
    let sql = match part {
        Part::Orchestrator => ASKED,
        Part::Worker => WORKED,
        Part::Either => BOTH,
    };
    let params = [
        Param::Int(agent),
        Param::Int(before),
        Param::Int(limit as i64),
        Param::Text(filter),
    ];
    let (rows, _) = tx.query_within(sql, &params, limits::HISTORY_BYTES).await?;
    rows.into_iter().map(job).collect()
}
