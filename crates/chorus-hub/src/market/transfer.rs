//! Credits from one owner to another, once per `transfer_id` (R-65, failures 6 and 21).

use crate::store::ledger::{self, Account, NewPosting};
use crate::store::{Tx, Txn, principals};
use crate::{Hub, Principal, Result};
use chorus_wire::market::transfer::{Transfer, Transferred};
use chorus_wire::{Code, Error};
use sha2::{Digest, Sha256};

/// `POST /transfer`: the answer as JSON. The same transfer again gets the same answer again, byte for byte.
pub async fn transfer(who: &Principal, hub: &Hub, transfer: Transfer) -> Result<String> {
    let fingerprint = Sha256::digest(transfer.canonical()).into();
    let who = who.clone();
    hub.store()
        .write(async move |txn| perform(txn, &who, transfer.clone(), fingerprint).await)
        .await
}

/// The owner of this name, for a key of it or an operator's; whoever has another key learns nothing of that owner. It is looked
/// up where it is paid from: the name that an agent knows its owner by may be another's by now (D-97).
pub(super) async fn own(tx: &Tx<'_>, who: &Principal, name: &str) -> Result<Option<i64>> {
    let found = principals::owner(tx, name).await?;
    match who {
        Principal::Anyone => Err(Code::Unauthorized.into()),
        Principal::Agent(agent) if found == Some(agent.owner) => Ok(found),
        Principal::Agent(_) => Err(Error::new(
            Code::Forbidden,
            "this needs a key of that owner",
        )),
        Principal::Operator(_) => Ok(found),
    }
}

async fn perform(
    txn: &mut Txn<'_>,
    who: &Principal,
    transfer: Transfer,
    fingerprint: [u8; 32],
) -> Result<String> {
    let payer = known("from_owner", own(&txn.tx, who, &transfer.from_owner).await?)?;
    if let Some(made) = ledger::made(&txn.tx, payer, &transfer.transfer_id).await? {
        return if made.fingerprint == fingerprint {
            Ok(made.reply)
        } else {
            Err(Code::TransferConflict.into())
        };
    }
    let payee = known(
        "to_owner",
        principals::owner(&txn.tx, &transfer.to_owner).await?,
    )?;
    let posting = NewPosting {
        kind: "transfer",
        from: Account::Owner(payer),
        to: Account::Owner(payee),
        amount: transfer.amount,
        job_id: transfer.job_id.as_deref(),
        note: Some(&transfer.transfer_id),
    };
    let balances = ledger::post(&txn.tx, &posting, txn.now()).await?;
    let balances = balances.ok_or_else(|| {
        Error::new(
            Code::TransferFailed,
            format!("from_owner has fewer than {} credits", transfer.amount),
        )
    })?;
    txn.counts.market.volume += transfer.amount.in_hundredths();
    let transfer_id = transfer.transfer_id.clone();
    let done = Transferred {
        status: "completed".into(),
        transfer,
        sender_balance: balances.from,
        receiver_balance: balances.to,
    };
    let reply = serde_json::to_string(&done).map_err(Error::internal)?;
    ledger::keep(&txn.tx, payer, &transfer_id, &fingerprint, &reply).await?;
    Ok(reply)
}

/// Credits sent to nobody would be lost.
fn known(field: &str, owner: Option<i64>) -> Result<i64> {
    owner.ok_or_else(|| Error::new(Code::NotFound, format!("{field} is not known here")))
}
