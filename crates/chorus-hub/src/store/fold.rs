//! Trimming the market: ended jobs go with all they carried, and old postings are folded into one opening posting for each
//! account, so that what is left still rebuilds every balance (D-33).

use super::{DbError, Param, Row, Tx, Txn};
use chorus_wire::{limits, time::Micros};

/// Rows of one step. Each posting touches two accounts, and on PostgreSQL each account is a few round trips.
const STEP: i64 = 100;

/// One step; how many rows went.
pub(super) async fn step(txn: &mut Txn<'_>, keep: Micros) -> Result<u64, DbError> {
    // However little an operator keeps: a payment that is repeated within a day is made once.
    let keep = keep.min(txn.now().minus(limits::IDEMPOTENCY_KEPT));
    Ok(jobs(&txn.tx, keep).await?
        + judgements(&txn.tx, keep).await?
        + postings(&txn.tx, keep).await?)
}

/// The newest of all stays: the next number is counted from it, and a number names a hold and a judgement.
async fn jobs(tx: &Tx<'_>, keep: Micros) -> Result<u64, DbError> {
    // No job outlives its deadline, so among the first ones all that are old enough have ended.
    const SQL: &str = "delete from jobs where id in (
                           select id from (select id, ended_at from jobs order by id limit $2) o
                           where ended_at < $1 and id < (select max(id) from jobs))";
    tx.execute(SQL, &[Param::Int(keep.0), Param::Int(STEP)])
        .await
}

/// What a score came from; the score itself and its counts stay.
async fn judgements(tx: &Tx<'_>, keep: Micros) -> Result<u64, DbError> {
    const SQL: &str = "delete from judgements where job in (
                           select job from (select job, at from judgements order by job limit $2) o where at < $1)";
    tx.execute(SQL, &[Param::Int(keep.0), Param::Int(STEP)])
        .await
}

/// What an account has from the postings that go.
struct Net {
    account: i64,
    amount: i64,
    owner: Option<i64>,
    /// Of a hold.
    job_id: Option<String>,
}

fn net(mut row: Row) -> Result<Net, DbError> {
    Ok(Net {
        account: row.int(0)?,
        amount: row.int(1)?,
        owner: row.maybe_int(2)?,
        job_id: row.maybe_text(3)?,
    })
}

/// The newest posting stays, as the newest job does.
async fn postings(tx: &Tx<'_>, keep: Micros) -> Result<u64, DbError> {
    const LAST: &str = "
        select max(id) from (select id from (select id, at from postings where id > 0 order by id limit $2) o
                             where at < $1 and id < (select max(id) from postings)) t";
    let row = tx
        .one(LAST, &[Param::Int(keep.0), Param::Int(STEP)])
        .await?;
    let Some(last) = row
        .and_then(|row| row.maybe_int(0).transpose())
        .transpose()?
    else {
        return Ok(0);
    };
    const NETS: &str = "
        select account, cast(sum(amount) as bigint), max(owner), case when account % 2 = 1 then max(job_id) end
        from (select credit as account, amount, payee as owner, job_id from postings where id > 0 and id <= $1
              union all
              select debit, -amount, payer, job_id from postings where id > 0 and id <= $1) moved
        where account <> 0 group by account having sum(amount) <> 0";
    for row in tx.query(NETS, &[Param::Int(last)]).await? {
        open(tx, &net(row)?, keep).await?;
    }
    // A transfer is known again for as long as its posting is there.
    const TRANSFERS: &str = "delete from transfers where (payer, transfer_id) in (
                                 select payer, note from postings where id > 0 and id <= $1 and kind = 'transfer')";
    tx.execute(TRANSFERS, &[Param::Int(last)]).await?;
    tx.execute(
        "delete from postings where id > 0 and id <= $1",
        &[Param::Int(last)],
    )
    .await
}

/// Adds to the account's opening posting, whose number is the account's below zero: there is one, and it comes before all others.
/// It is taken from where credits are issued, since what all accounts open with is what had been issued.
async fn open(tx: &Tx<'_>, net: &Net, at: Micros) -> Result<(), DbError> {
    let id = Param::Int(-net.account);
    let row = tx
        .one("select amount from postings where id = $1", &[id])
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
        Param::Int(net.account),
        Param::Int(amount),
        Param::int(net.owner),
        Param::text(net.job_id.as_deref()),
        Param::Int(at.0),
    ];
    tx.execute(SQL, &params).await.map(drop)
}
