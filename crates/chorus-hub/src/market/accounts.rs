//! What an owner has, what operators add to it, and how it came about (R-64, lesson 14).

use super::transfer::own;
use crate::store::ledger::{self, Account as Place, Asked, NewPosting, Written};
use crate::store::{Tx, principals};
use crate::{Hub, Principal, Result};
use chorus_wire::market::transfer::{Account, Audit, Issue, Posting, PostingEntry};
use chorus_wire::{Code, Error, limits};

/// `GET /accounts/{owner}`; without a name, that of the agent who asks.
pub async fn account(who: &Principal, hub: &Hub, owner: Option<&str>) -> Result<Account> {
    let (who, owner) = (who.clone(), owner.map(str::to_owned));
    hub.store()
        .read(async move |tx| {
            let (owner, name) = match owner {
                Some(name) => (own(tx, &who, &name).await?, Some(name)),
                None => (
                    Some(who.agent()?.owner),
                    principals::owner_name(tx, who.agent()?.owner).await?,
                ),
            };
            standing(
                tx,
                owner.ok_or(Code::NotFound)?,
                name.ok_or(Code::NotFound)?,
            )
            .await
        })
        .await
}

async fn standing(tx: &Tx<'_>, owner: i64, owner_id: String) -> Result<Account> {
    let (balance, held) = (
        ledger::balance(tx, Place::Owner(owner)).await?,
        ledger::held(tx, owner).await?,
    );
    Ok(Account {
        owner_id,
        balance,
        held,
    })
}

/// `POST /accounts/{owner}/credit`: new credits, from nowhere, so for operators only.
pub async fn credit(who: &Principal, hub: &Hub, owner: &str, issue: Issue) -> Result<Account> {
    who.operator()?;
    let name = owner.to_owned();
    hub.store()
        .write(async move |txn| {
            let owner = principals::owner(&txn.tx, &name)
                .await?
                .ok_or(Code::NotFound)?;
            let issued = ledger::balance(&txn.tx, Place::Issue)
                .await?
                .less(issue.amount);
            if issued.in_hundredths() < -limits::CREDITS_ISSUED {
                return Err(Error::new(
                    Code::TransferFailed,
                    "this hub has issued as many credits as it may",
                ));
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
            standing(&txn.tx, owner, name.clone()).await
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
    let own_owner = match who {
        Principal::Anyone => return Err(Code::Unauthorized.into()),
        Principal::Agent(agent) => Some(agent.owner),
        Principal::Operator(_) => None,
    };
    // PostgreSQL has no text with this in it, and would fail where nothing is found.
    if job_id.as_ref().is_some_and(|job_id| job_id.contains('\0')) {
        return Ok(Audit {
            postings: Vec::new(),
        });
    }
    let who = who.clone();
    let postings = hub
        .store()
        .read(async move |tx| {
            let owner = match owner {
                Some(name) => Some(own(tx, &who, &name).await?.ok_or(Code::NotFound)?),
                None => own_owner,
            };
            Ok(ledger::audit(
                tx,
                &Asked {
                    owner,
                    job_id,
                    before,
                },
                limit.clamp(1, limits::AUDIT_PAGE),
            )
            .await?)
        })
        .await?;
    Ok(Audit {
        postings: postings.into_iter().map(shown).collect(),
    })
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
            entry(
                posting.debit,
                posting.payer,
                chorus_wire::market::credits::Credits::ZERO.less(amount),
            ),
            entry(posting.credit, posting.payee, amount),
        ],
        job_id: posting.job_id,
        note: posting.note,
        timestamp_utc: posting.at,
    }
}
