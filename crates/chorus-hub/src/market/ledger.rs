//! The credits of a job, moved in the caller's transaction: held when it is requested, then paid or
//! refunded.

use crate::Result;
use crate::store::ledger::{self, LedgerAccount, NewPosting};
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
    let posting = new_posting("hold", from, to, amount, job);
    ledger::apply_posting(&txn.tx, &posting, txn.now())
        .await?
        .ok_or_else(|| too_few_credits(amount))?;
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
    // A free skill has no hold.
    let held = ledger::take_hold(&txn.tx, job.id, payer, amount).await?;
    let held = match held {
        Some(held) => held,
        None if amount.is_zero() => Credits::ZERO,
        None => return Err(too_few_credits(amount)),
    };
    let from = LedgerAccount::Hold { job: job.id, payer };
    let rest = Credits::from_hundredths(held.to_hundredths() - amount.to_hundredths());
    let parts = [("pay", payee, amount), ("release", payer, rest)];
    for (kind, owner, part) in parts {
        if part.is_zero() {
            continue;
        }
        let to = LedgerAccount::Owner(owner);
        let posting = new_posting(kind, from, to, part, job);
        ledger::credit_from_hold(&txn.tx, &posting, txn.now()).await?;
    }
    txn.counter_deltas.market.held_credits -= held.to_hundredths();
    if payer != payee {
        txn.counter_deltas.market.volume += amount.to_hundredths();
    }
    Ok(())
}

/// Refunds the whole hold.
pub(crate) async fn release_hold(
    txn: &mut WriteTxn<'_>,
    job: JobRef<'_>,
    payer: OwnerId,
) -> Result<()> {
    pay_from_hold(txn, job, payer, payer, Credits::ZERO).await
}

fn new_posting<'a>(
    kind: &'static str,
    from: LedgerAccount,
    to: LedgerAccount,
    amount: Credits,
    job: JobRef<'a>,
) -> NewPosting<'a> {
    NewPosting {
        kind,
        from,
        to,
        amount,
        job_id: Some(job.job_id),
        note: None,
    }
}

fn too_few_credits(amount: Credits) -> Error {
    Error::new(
        ErrorCode::TransferFailed,
        format!("there are fewer than {amount} credits for this job"),
    )
}

#[cfg(test)]
mod tests;
