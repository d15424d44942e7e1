//! Credits from one owner to another, once per `transfer_id` (R-65, failures 6 and 21).

use crate::store::ledger::{self, Account, NewPosting};
use crate::store::{Txn, principals};
use crate::{Hub, Principal, Result};
use chorus_wire::market::transfer::{Transfer, Transferred};
use chorus_wire::{Code, Error};
use sha2::{Digest, Sha256};

/// `POST /transfer`: the answer as JSON. The same transfer again gets the same answer again, byte for byte.
pub async fn transfer(who: &Principal, hub: &Hub, transfer: Transfer) -> Result<String> {
    may_pay(who, &transfer.from_owner)?;
    let fingerprint = Sha256::digest(transfer.canonical()).into();
    hub.store().write(async move |txn| perform(txn, transfer.clone(), fingerprint).await).await
}

/// A key of the owner, or an operator's; whoever has another key learns nothing of that owner.
pub(super) fn may_pay(who: &Principal, owner: &str) -> Result<()> {
    match who {
        Principal::Anyone => Err(Code::Unauthorized.into()),
        Principal::Agent(agent) if agent.owner_name == owner => Ok(()),
        Principal::Agent(_) => Err(Error::new(Code::Forbidden, "this needs a key of that owner")),
        Principal::Operator(_) => Ok(()),
    }
}

async fn perform(txn: &mut Txn<'_>, transfer: Transfer, fingerprint: [u8; 32]) -> Result<String> {
    let payer = owner(txn, "from_owner", &transfer.from_owner).await?;
    if let Some(made) = ledger::made(&txn.tx, payer, &transfer.transfer_id).await? {
        return if made.fingerprint == fingerprint { Ok(made.reply) } else { Err(Code::TransferConflict.into()) };
    }
    let payee = owner(txn, "to_owner", &transfer.to_owner).await?;
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
        Error::new(Code::TransferFailed, format!("from_owner has fewer than {} credits", transfer.amount))
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

/// The owner of this name; credits sent to nobody would be lost.
async fn owner(txn: &Txn<'_>, field: &str, name: &str) -> Result<i64> {
    let found = principals::owner(&txn.tx, name).await?;
    found.ok_or_else(|| Error::new(Code::NotFound, format!("{field} is not known here")))
}
