//! The money of a job, moved in the caller's transaction: held when it is asked for, then paid or given back.

use crate::Result;
use crate::store::Txn;
use crate::store::ledger::{self, Account, Balances, NewPosting};
use chorus_wire::market::credits::Credits;
use chorus_wire::{Code, Error};

/// A job as the ledger knows it: by its number, and by the name that the audit shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobRef<'a> {
    pub id: i64,
    pub job_id: &'a str,
}

/// Puts the budget aside; `TRANSFER_FAILED` when the owner has not got it (JOB-31).
pub(crate) async fn hold(
    txn: &mut Txn<'_>,
    owner: i64,
    job: JobRef<'_>,
    amount: Credits,
) -> Result<()> {
    let (from, to) = (
        Account::Owner(owner),
        Account::Hold {
            job: job.id,
            payer: owner,
        },
    );
    moved(txn, "hold", from, to, amount, job).await?;
    txn.counts.market.held += amount.in_hundredths();
    Ok(())
}

/// Pays from the hold and returns the rest. More than is held is nobody's to pay: the caller has refused it before.
pub(crate) async fn settle(
    txn: &mut Txn<'_>,
    job: JobRef<'_>,
    payer: i64,
    payee: i64,
    paid: Credits,
) -> Result<()> {
    if paid.is_zero() {
        return release(txn, job, payer).await;
    }
    let from = Account::Hold { job: job.id, payer };
    let left = moved(txn, "pay", from, Account::Owner(payee), paid, job)
        .await?
        .from;
    txn.counts.market.held -= paid.in_hundredths();
    if payer != payee {
        txn.counts.market.volume += paid.in_hundredths();
    }
    give_back(txn, job, payer, left).await
}

/// Returns all that is held.
pub(crate) async fn release(txn: &mut Txn<'_>, job: JobRef<'_>, payer: i64) -> Result<()> {
    let left = ledger::balance(&txn.tx, Account::Hold { job: job.id, payer }).await?;
    give_back(txn, job, payer, left).await
}

/// Returns what is left in the hold, which is then gone.
async fn give_back(txn: &mut Txn<'_>, job: JobRef<'_>, payer: i64, left: Credits) -> Result<()> {
    let hold = Account::Hold { job: job.id, payer };
    if !left.is_zero() {
        moved(txn, "release", hold, Account::Owner(payer), left, job).await?;
        txn.counts.market.held -= left.in_hundredths();
    }
    Ok(ledger::close_hold(&txn.tx, job.id, payer).await?)
}

async fn moved(
    txn: &Txn<'_>,
    kind: &'static str,
    from: Account,
    to: Account,
    amount: Credits,
    job: JobRef<'_>,
) -> Result<Balances> {
    let posting = NewPosting {
        kind,
        from,
        to,
        amount,
        job_id: Some(job.job_id),
        note: None,
    };
    match ledger::post(&txn.tx, &posting, txn.now()).await? {
        Some(balances) => Ok(balances),
        None => Err(Error::new(
            Code::TransferFailed,
            format!("there are fewer than {amount} credits for this job"),
        )),
    }
}

#[cfg(test)]
mod tests;
