//! Transfers credits from one owner to another, once per `transfer_id` (R-65, failures 6 and 21).

use crate::context::HubContext;
use crate::store::ledger::{self, LedgerAccount, NewPosting};
use crate::store::{DbConnection, OwnerId, WriteTxn, jobs, principals};
use crate::{Principal, Result};
use chorus_wire::market::transfer::{CreditTransfer, TransferReply};
use chorus_wire::{Error, ErrorCode};
use sha2::{Digest, Sha256};

/// `POST /transfer`: returns the reply as JSON. A repeated transfer gets the same reply, byte for
/// byte.
pub async fn transfer_credits(
    principal: &Principal,
    hub: &HubContext,
    transfer: CreditTransfer,
) -> Result<String> {
    let fingerprint = Sha256::digest(transfer.to_canonical_json()).into();
    let principal = principal.clone();
    hub.store()
        .write(async move |txn| {
            execute_transfer(txn, &principal, transfer.clone(), fingerprint).await
        })
        .await
}

/// The owner with this name, for a key of that owner or of an operator. Any other key is refused
/// and learns nothing about the owner. The look-up is in the caller's transaction, because the
/// owner name in an agent's record may belong to another owner by now (D-97).
pub(super) async fn authorize_owner(
    tx: &DbConnection<'_>,
    principal: &Principal,
    name: &str,
) -> Result<Option<OwnerId>> {
    let found = principals::find_owner_id(tx, name).await?;
    match principal {
        Principal::Anonymous => Err(ErrorCode::Unauthorized.into()),
        Principal::Agent(agent) if found == Some(agent.owner) => Ok(found),
        Principal::Agent(_) => Err(Error::new(
            ErrorCode::Forbidden,
            "this needs a key of that owner",
        )),
        Principal::Operator(_) => Ok(found),
    }
}

async fn execute_transfer(
    txn: &mut WriteTxn<'_>,
    principal: &Principal,
    transfer: CreditTransfer,
    fingerprint: [u8; 32],
) -> Result<String> {
    let payer = require_owner(
        "from_owner",
        authorize_owner(&txn.tx, principal, &transfer.from_owner).await?,
    )?;
    if let Some(earlier) = ledger::find_transfer(&txn.tx, payer, &transfer.transfer_id).await? {
        return if earlier.fingerprint == fingerprint {
            Ok(earlier.reply)
        } else {
            Err(ErrorCode::TransferConflict.into())
        };
    }
    let payee = require_owner(
        "to_owner",
        principals::find_owner_id(&txn.tx, &transfer.to_owner).await?,
    )?;
    if let Some(job_id) = &transfer.job_id {
        check_named_job(txn, payer, payee, job_id).await?;
    }
    let posting = NewPosting {
        kind: "transfer",
        from: LedgerAccount::Owner(payer),
        to: LedgerAccount::Owner(payee),
        amount: transfer.amount,
        job_id: transfer.job_id.as_deref(),
        note: Some(&transfer.transfer_id),
    };
    let balances = ledger::apply_posting(&txn.tx, &posting, txn.now()).await?;
    let balances = balances.ok_or_else(|| {
        Error::new(
            ErrorCode::TransferFailed,
            format!("from_owner has fewer than {} credits", transfer.amount),
        )
    })?;
    txn.counter_deltas.market.volume += transfer.amount.to_hundredths();
    principal.record_operator_act(txn, "transfer", &transfer.from_owner);
    let transfer_id = transfer.transfer_id.clone();
    let response = TransferReply {
        status: "completed".into(),
        transfer,
        sender_balance: balances.from,
        receiver_balance: balances.to,
    };
    let reply = serde_json::to_string(&response).map_err(Error::internal)?;
    ledger::insert_transfer(&txn.tx, payer, &transfer_id, &fingerprint, &reply).await?;
    Ok(reply)
}

/// Refuses an unknown owner, because credits sent to it would be lost.
fn require_owner(field: &str, owner: Option<OwnerId>) -> Result<OwnerId> {
    owner.ok_or_else(|| Error::new(ErrorCode::NotFound, format!("{field} is not known here")))
}

/// A job that this hub brokers is settled by the hub, after success and once (R-89, JOB-21). A job that was sent directly between
/// agents is paid once by the same payer to the same payee.
async fn check_named_job(
    txn: &WriteTxn<'_>,
    payer: OwnerId,
    payee: OwnerId,
    job_id: &str,
) -> Result<()> {
    let refuse = |message: &str| Err(Error::new(ErrorCode::JobSettled, message));
    if jobs::find_job_by_job_id(&txn.tx, job_id).await?.is_some() {
        return refuse("this hub pays for the job that job_id names, when it succeeds");
    }
    if ledger::has_transfer_for_job(&txn.tx, payer, payee, job_id).await? {
        return refuse("from_owner has paid to_owner for the job that job_id names");
    }
    Ok(())
}
