//! Reputation scores of agents, and the judgement of each job that changed them.

use super::{
    AgentId, ColumnReader, DbConnection, DbError, FromRow, JobId, JobState, OwnerId, SqlParam,
};
use chorus_wire::credits::Credits;
use chorus_wire::market::reputation::{RecentStats, ReputationChange, ReputationStats};
use chorus_wire::time::UnixMicros;

/// The scores of a job's worker and requester before the job is judged.
#[derive(Clone, Debug)]
pub(crate) struct PartyScores {
    pub same_owner: bool,
    /// The bits of the score (`f64::to_bits`); `None` for an agent that was never judged.
    pub worker: Option<i64>,
    pub requester: Option<i64>,
}

macro_rules! party_columns {
    () => {
        "w.owner, h.owner, rw.score, rh.score"
    };
}

/// Reads `party_columns!`.
impl FromRow for PartyScores {
    fn from_columns(columns: &mut ColumnReader) -> Result<Self, DbError> {
        let worker_owner = columns.int()?;
        let requester_owner = columns.int()?;
        Ok(PartyScores {
            same_owner: worker_owner == requester_owner,
            worker: columns.maybe_int()?,
            requester: columns.maybe_int()?,
        })
    }
}

pub(crate) async fn read_party_scores(
    tx: &DbConnection<'_>,
    worker: AgentId,
    requester: AgentId,
) -> Result<Option<PartyScores>, DbError> {
    const SQL: &str = concat!(
        "select ",
        party_columns!(),
        " from principals w join principals h on h.id = $2
          left join reputations rw on rw.agent = w.id left join reputations rh on rh.agent = h.id
          where w.id = $1"
    );
    let row = tx
        .query_first(SQL, &[SqlParam::id(worker), SqlParam::id(requester)])
        .await?;
    row.map(PartyScores::from_row).transpose()
}

/// The bits of an agent's score and the counts behind it; `None` when it was never judged.
pub(crate) async fn read_reputation(
    tx: &DbConnection<'_>,
    agent: AgentId,
) -> Result<Option<(i64, ReputationStats)>, DbError> {
    const SQL: &str =
        "select score, successes, failures, hirers, earned from reputations where agent = $1";
    let row = tx.query_first(SQL, &[SqlParam::id(agent)]).await?;
    let Some(row) = row else { return Ok(None) };
    let mut columns = row.columns();
    let score = columns.int()?;
    let successes = columns.int()?.max(0) as u64;
    let failures = columns.int()?.max(0) as u64;
    let stats = ReputationStats {
        total: successes + failures,
        successes,
        failures,
        distinct_hirers: columns.int()?.max(0) as u64,
        earned: Credits::from_hundredths(columns.int()?),
        last_30_days: RecentStats::default(),
    };
    Ok(Some((score, stats)))
}

/// Microseconds of a day, by which the record of an agent is kept.
const DAY_MICROS: i64 = 24 * 3600 * 1_000_000;
/// How many days before today are recent.
const RECENT_DAYS: i64 = 30;

/// What was judged of an agent on the latest days.
pub(crate) async fn read_recent_stats(
    tx: &DbConnection<'_>,
    agent: AgentId,
    now: UnixMicros,
) -> Result<RecentStats, DbError> {
    const SQL: &str = "select cast(coalesce(sum(successes), 0) as bigint), cast(coalesce(sum(failures), 0) as bigint),
                              count(distinct owner), cast(coalesce(sum(earned), 0) as bigint)
                       from hirer_days where agent = $1 and day >= $2";
    let first_day = SqlParam::Int(now.0 / DAY_MICROS - RECENT_DAYS);
    let row = tx
        .query_first(SQL, &[SqlParam::id(agent), first_day])
        .await?;
    let Some(row) = row else {
        return Ok(RecentStats::default());
    };
    let mut columns = row.columns();
    Ok(RecentStats {
        successes: columns.int()?.max(0) as u64,
        failures: columns.int()?.max(0) as u64,
        distinct_hirers: columns.int()?.max(0) as u64,
        earned: Credits::from_hundredths(columns.int()?),
    })
}

/// The day that stands for all days that retention has merged. The row of a hirer stays, because each is counted once.
const MERGED_DAY: i64 = 0;

/// Merges up to `limit` days before `keep_since` that are not recent any more. Returns how many.
pub(super) async fn merge_old_days(
    tx: &DbConnection<'_>,
    keep_since: UnixMicros,
    now: UnixMicros,
    limit: i64,
) -> Result<u64, DbError> {
    macro_rules! old_days {
        () => {
            "(agent, owner, day) in (select agent, owner, day from hirer_days where day > 0 and day < $1
                                     order by day, agent, owner limit $2)"
        };
    }
    const MERGE: &str = concat!(
        "insert into hirer_days (agent, owner, day, successes, failures, earned)
         select agent, owner, cast($3 as bigint), cast(sum(successes) as bigint), cast(sum(failures) as bigint),
                cast(sum(earned) as bigint) from hirer_days where ",
        old_days!(),
        " group by agent, owner
         on conflict (agent, owner, day) do update set successes = hirer_days.successes + excluded.successes,
         failures = hirer_days.failures + excluded.failures, earned = hirer_days.earned + excluded.earned"
    );
    const DELETE: &str = concat!("delete from hirer_days where ", old_days!());
    let first_recent = now.0 / DAY_MICROS - RECENT_DAYS;
    let first_kept = SqlParam::Int(first_recent.min(keep_since.0 / DAY_MICROS));
    let limit = SqlParam::Int(limit);
    let merged = tx
        .execute(MERGE, &[first_kept, limit, SqlParam::Int(MERGED_DAY)])
        .await?;
    if merged == 0 {
        return Ok(0);
    }
    tx.execute(DELETE, &[first_kept, limit]).await
}

/// The judgement of a job, as it is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JudgementRecord {
    pub job: JobId,
    pub worker: AgentId,
    pub requester: AgentId,
    pub success: bool,
    pub score_before: i64,
    pub score_after: i64,
    /// The owner of the requester, and what it paid.
    pub hirer: OwnerId,
    pub paid: Credits,
    pub at: UnixMicros,
}

/// Stores the judgement of a job and the worker's new score; false, without any change, when the job was judged before.
pub(crate) async fn record_judgement(
    tx: &DbConnection<'_>,
    judgement: &JudgementRecord,
) -> Result<bool, DbError> {
    const ONCE: &str =
        "insert into judgements (job, worker, hirer, success, score_before, score_after, at)
                        values ($1, $2, $3, $4, $5, $6, $7) on conflict (job) do nothing";
    const SCORE: &str =
        "insert into reputations (agent, score, successes, failures, earned, hirers) values ($1, $2, $3, $4, $5,
                         case when exists (select 1 from hirer_days where agent = $1 and owner = $6) then 0 else 1 end)
                         on conflict (agent) do update set score = excluded.score,
                         successes = reputations.successes + excluded.successes,
                         failures = reputations.failures + excluded.failures,
                         earned = reputations.earned + excluded.earned, hirers = reputations.hirers + excluded.hirers";
    const DAY: &str = "insert into hirer_days (agent, owner, day, successes, failures, earned) values ($1, $2, $3, $4, $5, $6)
                       on conflict (agent, owner, day) do update set successes = hirer_days.successes + excluded.successes,
                       failures = hirer_days.failures + excluded.failures, earned = hirer_days.earned + excluded.earned";
    let success = i64::from(judgement.success);
    let JudgementRecord {
        job,
        worker,
        requester,
        score_before,
        score_after,
        hirer,
        paid,
        at,
        ..
    } = *judgement;
    if tx
        .execute(
            ONCE,
            &[
                SqlParam::id(job),
                SqlParam::id(worker),
                SqlParam::id(requester),
                SqlParam::Int(success),
                SqlParam::Int(score_before),
                SqlParam::Int(score_after),
                SqlParam::Int(at.0),
            ],
        )
        .await?
        == 0
    {
        return Ok(false);
    }
    tx.execute(
        SCORE,
        &[
            SqlParam::id(worker),
            SqlParam::Int(score_after),
            SqlParam::Int(success),
            SqlParam::Int(1 - success),
            SqlParam::Int(paid.to_hundredths()),
            SqlParam::id(hirer),
        ],
    )
    .await?;
    let day = [
        SqlParam::id(worker),
        SqlParam::id(hirer),
        SqlParam::Int(at.0 / DAY_MICROS),
        SqlParam::Int(success),
        SqlParam::Int(1 - success),
        SqlParam::Int(paid.to_hundredths()),
    ];
    tx.execute(DAY, &day).await?;
    Ok(true)
}

macro_rules! judgement_columns {
    () => {
        "g.success, j.job_id, o.name, j.paid, j.state, j.error_code, g.score_before, g.score_after, g.at"
    };
}

/// Reads `judgement_columns!`.
impl FromRow for ReputationChange {
    fn from_columns(columns: &mut ColumnReader) -> Result<Self, DbError> {
        let success = columns.int()? == 1;
        let job_id = columns.maybe_text()?;
        // The name of an owner that is gone begins with a character that no owner_id has.
        let hirer_owner = columns
            .maybe_text()?
            .filter(|name| !name.starts_with('\u{1}'));
        let paid = columns.maybe_int()?;
        let state = columns.maybe_text()?;
        let error_code = columns.maybe_text()?;
        let reason = match JobState::parse(state.as_deref().unwrap_or_default()) {
            Some(JobState::Done) => Some("SUCCESS".to_owned()),
            Some(JobState::Expired) => Some("DEADLINE".to_owned()),
            Some(
                JobState::Requested
                | JobState::Open
                | JobState::Held
                | JobState::Dispatched
                | JobState::InputRequired
                | JobState::Delivered
                | JobState::Failed
                | JobState::Cancelled,
            )
            | None => error_code,
        };
        Ok(ReputationChange {
            success,
            job_id,
            hirer_owner,
            cost: paid.map(Credits::from_hundredths),
            reason,
            score_before: f64::from_bits(columns.int()? as u64),
            score_after: f64::from_bits(columns.int()? as u64),
            timestamp_utc: UnixMicros(columns.int()?),
        })
    }
}

/// The latest judgements of an agent, newest first.
pub(crate) async fn list_judgements(
    tx: &DbConnection<'_>,
    worker: AgentId,
    limit: usize,
) -> Result<Vec<ReputationChange>, DbError> {
    const SQL: &str = concat!(
        "select ",
        judgement_columns!(),
        " from judgements g left join jobs j on j.id = g.job left join principals p on p.id = g.hirer
          left join owners o on o.id = p.owner
          where g.worker = $1 order by g.job desc limit $2"
    );
    let rows = tx
        .query(SQL, &[SqlParam::id(worker), SqlParam::Int(limit as i64)])
        .await?;
    rows.into_iter().map(ReputationChange::from_row).collect()
}
