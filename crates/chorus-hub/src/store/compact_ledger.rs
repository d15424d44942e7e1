//! Retention of the market: deletes ended jobs, and replaces old postings by one opening posting per account, so that the
//! remaining postings still rebuild every balance (D-33).

use super::{
    AccountId, ColumnReader, DbConnection, DbError, FromRow, OwnerId, SqlParam, WriteTxn,
    reputation,
};
use chorus_wire::{limits, time::UnixMicros};

/// Max rows of one step. Each posting touches two accounts, and on PostgreSQL each account takes a few round trips.
const STEP_ROWS: i64 = 100;

/// Runs one step. Returns how many rows it deleted.
pub(super) async fn run_compaction_step(
    txn: &mut WriteTxn<'_>,
    keep_since: UnixMicros,
) -> Result<u64, DbError> {
    // Also with a short `--retain`: a transfer that is repeated within a day is applied once.
    let keep_since = keep_since.min(txn.now().saturating_sub(limits::IDEMPOTENCY_RETENTION));
    Ok(delete_old_jobs(&txn.tx, keep_since).await?
        + delete_lost_updates(&txn.tx).await?
        + delete_old_judgements(&txn.tx, keep_since).await?
        + reputation::merge_old_days(&txn.tx, keep_since, txn.now(), STEP_ROWS).await?
        + compact_postings(&txn.tx, keep_since).await?)
}

/// Keeps the newest job: the next id is counted from it, and a reused id would name an old hold and judgement.
async fn delete_old_jobs(tx: &DbConnection<'_>, keep_since: UnixMicros) -> Result<u64, DbError> {
    // Every job ends by its deadline, so jobs with the lowest ids that are old enough have ended.
    const SQL: &str = "delete from jobs where id in (
                           select id from (select id, ended_at from jobs order by id limit $2) o
                           where ended_at < $1 and id < (select max(id) from jobs))";
    tx.execute(
        SQL,
        &[SqlParam::Int(keep_since.0), SqlParam::Int(STEP_ROWS)],
    )
    .await
}

/// Deletes the timelines of jobs that are gone. They are the oldest, because ids of jobs are never used again.
async fn delete_lost_updates(tx: &DbConnection<'_>) -> Result<u64, DbError> {
    const SQL: &str = "delete from job_updates where job in (
                           select job from (select distinct job from job_updates order by job limit $1) o
                           where not exists (select 1 from jobs where jobs.id = o.job))";
    tx.execute(SQL, &[SqlParam::Int(STEP_ROWS)]).await
}

/// Deletes the history of reputation changes; the scores and their counts stay.
async fn delete_old_judgements(
    tx: &DbConnection<'_>,
    keep_since: UnixMicros,
) -> Result<u64, DbError> {
    const SQL: &str = "delete from judgements where job in (
                           select job from (select job, at from judgements order by job limit $2) o where at < $1)";
    tx.execute(
        SQL,
        &[SqlParam::Int(keep_since.0), SqlParam::Int(STEP_ROWS)],
    )
    .await
}

/// The sum of one account's postings that are compacted.
struct NetMovement {
    account: AccountId,
    amount: i64,
    owner: Option<OwnerId>,
    /// Only for the account of a hold.
    job_id: Option<String>,
}

const NET_MOVEMENTS: &str = "
        select account, cast(sum(amount) as bigint), max(owner), case when account % 2 = 1 then max(job_id) end
        from (select credit as account, amount, payee as owner, job_id from postings where id > 0 and id <= $1
              union all
              select debit, -amount, payer, job_id from postings where id > 0 and id <= $1) moved
        where account <> 0 group by account having sum(amount) <> 0";

/// Reads the columns of [`NET_MOVEMENTS`].
impl FromRow for NetMovement {
    fn from_columns(columns: &mut ColumnReader) -> Result<Self, DbError> {
        Ok(NetMovement {
            account: columns.id()?,
            amount: columns.int()?,
            owner: columns.maybe_id()?,
            job_id: columns.maybe_text()?,
        })
    }
}

/// Keeps the newest posting: the next id is counted from it.
async fn compact_postings(tx: &DbConnection<'_>, keep_since: UnixMicros) -> Result<u64, DbError> {
    const LAST_OLD_POSTING: &str = "
        select max(id) from (select id from (select id, at from postings where id > 0 order by id limit $2) o
                             where at < $1 and id < (select max(id) from postings)) t";
    let row = tx
        .query_first(
            LAST_OLD_POSTING,
            &[SqlParam::Int(keep_since.0), SqlParam::Int(STEP_ROWS)],
        )
        .await?;
    let Some(last_id) = row
        .and_then(|row| row.maybe_int(0).transpose())
        .transpose()?
    else {
        return Ok(0);
    };
    for row in tx.query(NET_MOVEMENTS, &[SqlParam::Int(last_id)]).await? {
        add_to_opening_posting(tx, &NetMovement::from_row(row)?, keep_since).await?;
    }
    // A repeated transfer is recognised for as long as its posting exists.
    const TRANSFERS: &str = "delete from transfers where (payer, transfer_id) in (
                                 select payer, note from postings where id > 0 and id <= $1 and kind = 'transfer')";
    tx.execute(TRANSFERS, &[SqlParam::Int(last_id)]).await?;
    tx.execute(
        "delete from postings where id > 0 and id <= $1",
        &[SqlParam::Int(last_id)],
    )
    .await
}

/// Adds to the account's opening posting. Its id is the negated account id, so each account has one and it sorts before all others.
/// It debits the issue account, because the opening balances of all accounts add up to the credits issued.
async fn add_to_opening_posting(
    tx: &DbConnection<'_>,
    net: &NetMovement,
    at: UnixMicros,
) -> Result<(), DbError> {
    let id = SqlParam::Int(-net.account.0);
    let row = tx
        .query_first("select amount from postings where id = $1", &[id])
        .await?;
    let before = row.map_or(Ok(0), |row| row.int(0))?;
    let amount = before + net.amount;
    if amount < 0 {
        return Err(DbError::Other(format!(
            "account {} would open below zero",
            net.account
        )));
    }
    if amount == 0 {
        return tx
            .execute("delete from postings where id = $1", &[id])
            .await
            .map(drop);
    }
    const SQL: &str =
        "insert into postings (id, kind, debit, credit, amount, payer, payee, job_id, note, at)
                       values ($1, 'opening', 0, $2, $3, null, $4, $5, null, $6)
                       on conflict (id) do update set amount = excluded.amount, at = excluded.at";
    let params = [
        id,
        SqlParam::id(net.account),
        SqlParam::Int(amount),
        SqlParam::optional_id(net.owner),
        SqlParam::optional_text(net.job_id.as_deref()),
        SqlParam::Int(at.0),
    ];
    tx.execute(SQL, &params).await.map(drop)
}
