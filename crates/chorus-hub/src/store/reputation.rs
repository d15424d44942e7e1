//! What agents have earned, and every judgement that it came from.

use super::{DbError, Param, Row, Tx};
use chorus_wire::market::reputation::{Judgement, Stats};
use chorus_wire::time::Micros;

/// The two sides of a job before it is judged.
#[derive(Clone, Debug)]
pub(crate) struct Sides {
    pub same_owner: bool,
    /// Bits of the scores; none for an agent that was never judged.
    pub worker: Option<i64>,
    pub hirer: Option<i64>,
}

pub(crate) async fn sides(tx: &Tx<'_>, worker: i64, hirer: i64) -> Result<Option<Sides>, DbError> {
    const SQL: &str = "select w.owner, h.owner, rw.score, rh.score
                       from principals w join principals h on h.id = $2
                       left join reputations rw on rw.agent = w.id left join reputations rh on rh.agent = h.id
                       where w.id = $1";
    let row = tx
        .one(SQL, &[Param::Int(worker), Param::Int(hirer)])
        .await?;
    let sides = |row: Row| {
        let same_owner = row.int(0)? == row.int(1)?;
        Ok(Sides {
            same_owner,
            worker: row.maybe_int(2)?,
            hirer: row.maybe_int(3)?,
        })
    };
    row.map(sides).transpose()
}

/// The bits of an agent's score and what it comes from; `None` when it was never judged.
pub(crate) async fn score(tx: &Tx<'_>, agent: i64) -> Result<Option<(i64, Stats)>, DbError> {
    const SQL: &str = "select score, successes, failures from reputations where agent = $1";
    let row = tx.one(SQL, &[Param::Int(agent)]).await?;
    let stats = |row: Row| {
        let (successes, failures) = (row.int(1)?.max(0) as u64, row.int(2)?.max(0) as u64);
        Ok((
            row.int(0)?,
            Stats {
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
pub(crate) struct Verdict {
    pub job: i64,
    pub worker: i64,
    pub hirer: i64,
    pub success: bool,
    pub before: i64,
    pub after: i64,
    pub at: Micros,
}

/// Judges a job; false, and nothing changed, when it was judged before.
pub(crate) async fn judge(tx: &Tx<'_>, verdict: &Verdict) -> Result<bool, DbError> {
    const ONCE: &str =
        "insert into judgements (job, worker, hirer, success, score_before, score_after, at)
                        values ($1, $2, $3, $4, $5, $6, $7) on conflict (job) do nothing";
    const SCORE: &str =
        "insert into reputations (agent, score, successes, failures) values ($1, $2, $3, $4)
                         on conflict (agent) do update set score = excluded.score,
                         successes = reputations.successes + excluded.successes,
                         failures = reputations.failures + excluded.failures";
    let success = i64::from(verdict.success);
    let Verdict {
        job,
        worker,
        hirer,
        before,
        after,
        at,
        ..
    } = *verdict;
    if tx
        .execute(
            ONCE,
            &[job, worker, hirer, success, before, after, at.0].map(Param::Int),
        )
        .await?
        == 0
    {
        return Ok(false);
    }
    tx.execute(
        SCORE,
        &[worker, after, success, 1 - success].map(Param::Int),
    )
    .await?;
    Ok(true)
}

/// The latest judgements of an agent, newest first.
pub(crate) async fn history(
    tx: &Tx<'_>,
    worker: i64,
    limit: usize,
) -> Result<Vec<Judgement>, DbError> {
    const SQL: &str = "select success, score_before, score_after, at from judgements
                       where worker = $1 order by job desc limit $2";
    let rows = tx
        .query(SQL, &[Param::Int(worker), Param::Int(limit as i64)])
        .await?;
    let judgement = |row: Row| {
        let score = |column| row.int(column).map(|bits| f64::from_bits(bits as u64));
        let (success, timestamp_utc) = (row.int(0)? == 1, Micros(row.int(3)?));
        Ok(Judgement {
            success,
            score_before: score(1)?,
            score_after: score(2)?,
            timestamp_utc,
        })
    };
    rows.into_iter().map(judgement).collect()
}
