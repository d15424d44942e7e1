//! What agents have earned, and every judgement that it came from.

use super::{DbConnection, DbError, SqlParam, SqlRow};
use chorus_wire::market::reputation::{ReputationChange, ReputationStats};
use chorus_wire::time::UnixMicros;

/// The two sides of a job before it is judged.
#[derive(Clone, Debug)]
pub(crate) struct PartyScores {
    pub same_owner: bool,
    /// Bits of the scores; none for an agent that was never judged.
    pub worker: Option<i64>,
    pub requester: Option<i64>,
}

pub(crate) async fn read_party_scores(
    tx: &DbConnection<'_>,
    worker: i64,
    requester: i64,
) -> Result<Option<PartyScores>, DbError> {
    const SQL: &str = "select w.owner, h.owner, rw.score, rh.score
                       from principals w join principals h on h.id = $2
                       left join reputations rw on rw.agent = w.id left join reputations rh on rh.agent = h.id
                       where w.id = $1";
    let row = tx
        .query_first(SQL, &[SqlParam::Int(worker), SqlParam::Int(requester)])
        .await?;
    let read_row = |row: SqlRow| {
        let same_owner = row.int(0)? == row.int(1)?;
        Ok(PartyScores {
            same_owner,
            worker: row.maybe_int(2)?,
            requester: row.maybe_int(3)?,
        })
    };
    row.map(read_row).transpose()
}

/// The bits of an agent's score and what it comes from; `None` when it was never judged.
pub(crate) async fn read_reputation(
    tx: &DbConnection<'_>,
    agent: i64,
) -> Result<Option<(i64, ReputationStats)>, DbError> {
    const SQL: &str = "select score, successes, failures from reputations where agent = $1";
    let row = tx.query_first(SQL, &[SqlParam::Int(agent)]).await?;
    let stats = |row: SqlRow| {
        let (successes, failures) = (row.int(1)?.max(0) as u64, row.int(2)?.max(0) as u64);
        Ok((
            row.int(0)?,
            ReputationStats {
                total: successes + failures,
                successes,
                failures,
            },
        ))
    };
    row.map(stats).transpose()
}

/// What is written down when a job is judged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JudgementRecord {
    pub job: i64,
    pub worker: i64,
    pub requester: i64,
    pub success: bool,
    pub score_before: i64,
    pub score_after: i64,
    pub at: UnixMicros,
}

/// Judges a job; false, and nothing changed, when it was judged before.
pub(crate) async fn record_judgement(
    tx: &DbConnection<'_>,
    judgement: &JudgementRecord,
) -> Result<bool, DbError> {
    const ONCE: &str =
        "insert into judgements (job, worker, hirer, success, score_before, score_after, at)
                        values ($1, $2, $3, $4, $5, $6, $7) on conflict (job) do nothing";
    const SCORE: &str =
        "insert into reputations (agent, score, successes, failures) values ($1, $2, $3, $4)
                         on conflict (agent) do update set score = excluded.score,
                         successes = reputations.successes + excluded.successes,
                         failures = reputations.failures + excluded.failures";
    let success = i64::from(judgement.success);
    let JudgementRecord {
        job,
        worker,
        requester,
        score_before,
        score_after,
        at,
        ..
    } = *judgement;
    if tx
        .execute(
            ONCE,
            &[
                job,
                worker,
                requester,
                success,
                score_before,
                score_after,
                at.0,
            ]
            .map(SqlParam::Int),
        )
        .await?
        == 0
    {
        return Ok(false);
    }
    tx.execute(
        SCORE,
        &[worker, score_after, success, 1 - success].map(SqlParam::Int),
    )
    .await?;
    Ok(true)
}

/// The latest judgements of an agent, newest first.
pub(crate) async fn list_judgements(
    tx: &DbConnection<'_>,
    worker: i64,
    limit: usize,
) -> Result<Vec<ReputationChange>, DbError> {
    const SQL: &str = "select success, score_before, score_after, at from judgements
                       where worker = $1 order by job desc limit $2";
    let rows = tx
        .query(SQL, &[SqlParam::Int(worker), SqlParam::Int(limit as i64)])
        .await?;
    let judgement = |row: SqlRow| {
        let score = |column| row.int(column).map(|bits| f64::from_bits(bits as u64));
        let (success, timestamp_utc) = (row.int(0)? == 1, UnixMicros(row.int(3)?));
        Ok(ReputationChange {
            success,
            score_before: score(1)?,
            score_after: score(2)?,
            timestamp_utc,
        })
    };
    rows.into_iter().map(judgement).collect()
}
