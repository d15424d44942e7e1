//! Trimming the market: ended jobs go with all they carried, and old postings are folded into one opening posting for each
//! account, so that what is left still rebuilds every balance (D-33).

use super::{DbConnection, DbError, SqlParam, SqlRow, WriteTxn};
use chorus_wire::{limits, time::UnixMicros};

/// Rows of one step. Each posting touches two accounts, and on PostgreSQL each account is a few round trips.
const STEP_ROWS: i64 = 100;

/// One step; how many rows went.
pub(super) async fn run_compaction_step(
    txn: &mut WriteTxn<'_>,
    keep_since: UnixMicros,
) -> Result<u64, DbError> {
    // However little an operator keeps: a payment that is repeated within a day is made once.
    let keep_since = keep_since.min(txn.now().saturating_sub(limits::IDEMPOTENCY_RETENTION));
    Ok(delete_old_jobs(&txn.tx, keep_since).await?
        + delete_old_judgements(&txn.tx, keep_since).await?
        + compact_postings(&txn.tx, keep_since).await?)
}

/// The newest of all stays: the next number is counted from it, and a number names a hold and a judgement.
async fn delete_old_jobs(tx: &DbConnection<'_>, keep_since: UnixMicros) -> Result<u64, DbError> {
    // No job outlives its deadline, so among the first ones all that are old enough have ended.
    const SQL: &str = "delete from jobs where id in (
                           select id from (select id, ended_at from jobs order by id limit $2) o
                           where ended_at < $1 and id < (select max(id) from jobs))";
    tx.execute(
        SQL,
        &[SqlParam::Int(keep_since.0), SqlParam::Int(STEP_ROWS)],
    )
    .await
}

/// What a score came from; the score itself and its counts stay.
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

/// What an account has from the postings that go.
struct NetMovement {
    account: i64,
    amount: i64,
    owner: Option<i64>,
    /// Of a hold.
    job_id: Option<String>,
}

fn read_net_row(mut row: SqlRow) -> Result<NetMovement, DbError> {
    Ok(NetMovement {
        account: row.int(0)?,
        amount: row.int(1)?,
        owner: row.maybe_int(2)?,
        job_id: row.maybe_text(3)?,
    })
}

/// The newest posting stays, as the newest job does.
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
    const NET_MOVEMENTS: &str = "
        select account, cast(sum(amount) as bigint), max(owner), case when account % 2 = 1 then max(job_id) end
        from (select credit as account, amount, payee as owner, job_id from postings where id > 0 and id <= $1
              union all
              select debit, -amount, payer, job_id from postings where id > 0 and id <= $1) moved
        where account <> 0 group by account having sum(amount) <> 0";
    for row in tx.query(NET_MOVEMENTS, &[SqlParam::Int(last_id)]).await? {
        add_to_opening_posting(tx, &read_net_row(row)?, keep_since).await?;
    }
    // A transfer is known again for as long as its posting is there.
    const TRANSFERS: &str = "delete from transfers where (payer, transfer_id) in (
                                 select payer, note from postings where id > 0 and id <= $1 and kind = 'transfer')";
    tx.execute(TRANSFERS, &[SqlParam::Int(last_id)]).await?;
    tx.execute(
        "delete from postings where id > 0 and id <= $1",
        &[SqlParam::Int(last_id)],
    )
    .await
}

/// Adds to the account's opening posting, whose number is the account's below zero: there is one, and it comes before all others.
/// It is taken from where credits are issued, since what all accounts open with is what had been issued.
async fn add_to_opening_posting(
    tx: &DbConnection<'_>,
    net: &NetMovement,
    at: UnixMicros,
) -> Result<(), DbError> {
    let id = SqlParam::Int(-net.account);
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
        SqlParam::Int(net.account),
        SqlParam::Int(amount),
        SqlParam::optional_int(net.owner),
        SqlParam::optional_text(net.job_id.as_deref()),
        SqlParam::Int(at.0),
    ];
    tx.execute(SQL, &params).await.map(drop)
}
