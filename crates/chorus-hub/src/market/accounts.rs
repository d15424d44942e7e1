//! What an owner has, what operators add to it, and how it came about (R-64, lesson 14).

use super::transfer::may_pay;
use crate::store::ledger::{self, Account as Place, Asked, NewPosting, Written};
use crate::store::{Tx, principals};
use crate::{Hub, Principal, Result};
use chorus_wire::market::transfer::{Account, Audit, Issue, Posting, PostingEntry};
use chorus_wire::{Code, Error, limits};

/// `GET /accounts/{owner}`
pub async fn account(who: &Principal, hub: &Hub, owner: &str) -> Result<Account> {
    may_pay(who, owner)?;
    let name = owner.to_owned();
    hub.store().read(async move |tx| standing(tx, name).await).await
}

async fn standing(tx: &Tx<'_>, owner_id: String) -> Result<Account> {
    let owner = principals::owner(tx, &owner_id).await?.ok_or(Code::NotFound)?;
    let (balance, held) = (ledger::balance(tx, Place::Owner(owner)).await?, ledger::held(tx, owner).await?);
    Ok(Account { owner_id, balance, held })
}

/// `POST /accounts/{owner}/credit`: new credits, from nowhere, so for operators only.
pub async fn credit(who: &Principal, hub: &Hub, owner: &str, issue: Issue) -> Result<Account> {
    who.operator()?;
    let name = owner.to_owned();
    hub.store()
        .write(async move |txn| {
            let owner = principals::owner(&txn.tx, &name).await?.ok_or(Code::NotFound)?;
            let issued = ledger::balance(&txn.tx, Place::Issue).await?.less(issue.amount);
            if issued.in_hundredths() < -limits::CREDITS_ISSUED {
                return Err(Error::new(Code::TransferFailed, "this hub has issued as many credits as it may"));
            }
            let posting = NewPosting {
                kind: "issue",
                from: Place::Issue,
                to: Place::Owner(owner),
                amount: issue.amount,
                job_id: None,
                note: issue.reason.as_deref(),
            };
            ledger::post(&txn.tx, &posting, txn.now()).await?;
            standing(&txn.tx, name.clone()).await
        })
        .await
}

/// `GET /audit`: an agent sees what concerns its owner, an operator everything.
pub async fn audit(
    who: &Principal,
    hub: &Hub,
    owner: Option<String>,
    job_id: Option<String>,
    before: Option<i64>,
    limit: usize,
) -> Result<Audit> {
    let own = match who {
        Principal::Anyone => return Err(Code::Unauthorized.into()),
        Principal::Agent(agent) => {
            may_pay(who, owner.as_deref().unwrap_or(&agent.owner_name))?;
            Some(agent.owner)
        }
        Principal::Operator(_) => None,
    };
    let postings = hub
        .store()
        .read(async move |tx| {
            let owner = match (own, owner) {
                (Some(own), _) => Some(own),
                (None, Some(name)) => Some(principals::owner(tx, &name).await?.ok_or(Code::NotFound)?),
                (None, None) => None,
            };
            Ok(ledger::audit(tx, &Asked { owner, job_id, before }, limit.clamp(1, limits::AUDIT_PAGE)).await?)
        })
        .await?;
    Ok(Audit { postings: postings.into_iter().map(shown).collect() })
}

fn shown(posting: Written) -> Posting {
    let entry = |account: i64, owner_id: Option<String>, amount| PostingEntry {
        account: Place::name(account).to_owned(),
        owner_id,
        amount,
    };
    let amount = posting.amount;
    Posting {
        id: posting.id,
        kind: posting.kind,
        amount,
        entries: [
            entry(posting.debit, posting.payer, chorus_wire::market::credits::Credits::ZERO.less(amount)),
            entry(posting.credit, posting.payee, amount),
        ],
        job_id: posting.job_id,
        note: posting.note,
        timestamp_utc: posting.at,
    }
}
