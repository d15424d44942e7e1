//! The credits of a job, moved in the caller's transaction: held when it is requested, then paid or
//! refunded.

use crate::Result;
use crate::store::ledger::{self, LedgerAccount, NewPosting, PostingBalances};
use crate::store::{JobId, OwnerId, WriteTxn};
use chorus_wire::credits::Credits;
use chorus_wire::{Error, ErrorCode};

/// A job in the ledger: its row id, and the job id that the audit shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobRef<'a> {
    pub id: JobId,
    pub job_id: &'a str,
}

/// Holds the budget; `TRANSFER_FAILED` when it exceeds the owner's balance (JOB-31).
pub(crate) async fn hold_credits(
    txn: &mut WriteTxn<'_>,
    owner: OwnerId,
    job: JobRef<'_>,
    amount: Credits,
) -> Result<()> {
    // A free skill holds nothing.
    if amount.is_zero() {
        return Ok(());
    }
    let from = LedgerAccount::Owner(owner);
    let to = LedgerAccount::Hold {
        job: job.id,
        payer: owner,
    };
    post_movement(txn, "hold", from, to, amount, job).await?;
    txn.counter_deltas.market.held_credits += amount.to_hundredths();
    Ok(())
}

/// Pays from the hold and refunds the rest. Callers refuse an amount above the budget before they
/// call this.
pub(crate) async fn pay_from_hold(
    txn: &mut WriteTxn<'_>,
    job: JobRef<'_>,
    payer: OwnerId,
    payee: OwnerId,
    amount: Credits,
) -> Result<()> {
    if amount.is_zero() {
        return release_hold(txn, job, payer).await;
    }
    let from = LedgerAccount::Hold { job: job.id, payer };
    let remaining = post_movement(txn, "pay", from, LedgerAccount::Owner(payee), amount, job)
        .await?
        .from;
    txn.counter_deltas.market.held_credits -= amount.to_hundredths();
    if payer != payee {
        txn.counter_deltas.market.volume += amount.to_hundredths();
    }
    return_remainder(txn, job, payer, remaining).await
}

/// Refunds the whole hold.
pub(crate) async fn release_hold(
    txn: &mut WriteTxn<'_>,
    job: JobRef<'_>,
    payer: OwnerId,
) -> Result<()> {
    let remaining =
        ledger::read_balance(&txn.tx, LedgerAccount::Hold { job: job.id, payer }).await?;
    return_remainder(txn, job, payer, remaining).await
}

/// Refunds what is left in the hold, and closes it.
async fn return_remainder(
    txn: &mut WriteTxn<'_>,
    job: JobRef<'_>,
    payer: OwnerId,
    remaining: Credits,
) -> Result<()> {
    let hold = LedgerAccount::Hold { job: job.id, payer };
    if !remaining.is_zero() {
        post_movement(
            txn,
            "release",
            hold,
            LedgerAccount::Owner(payer),
            remaining,
            job,
        )
        .await?;
        txn.counter_deltas.market.held_credits -= remaining.to_hundredths();
    }
    Ok(ledger::close_hold(&txn.tx, job.id, payer).await?)
}

async fn post_movement(
    txn: &WriteTxn<'_>,
    kind: &'static str,
    from: LedgerAccount,
    to: LedgerAccount,
    amount: Credits,
    job: JobRef<'_>,
) -> Result<PostingBalances> {
    let posting = NewPosting {
        kind,
        from,
        to,
        amount,
        job_id: Some(job.job_id),
        note: None,
    };
    match ledger::apply_posting(&txn.tx, &posting, txn.now()).await? {
        Some(balances) => Ok(balances),
        None => Err(Error::new(
            ErrorCode::TransferFailed,
            format!("there are fewer than {amount} credits for this job"),
        )),
    }
}

#[cfg(test)]
mod tests;
