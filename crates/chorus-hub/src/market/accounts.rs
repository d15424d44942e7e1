//! Owner accounts: the balance, the credits that operators issue, and the postings behind both
//! (R-64, lesson 14).

use super::transfer::authorize_owner;
use crate::context::HubContext;
use crate::store::ledger::{self, LedgerAccount, NewPosting, PostingFilter, PostingRow};
use crate::store::{AccountId, DbConnection, OwnerId, PostingId, principals};
use crate::{Principal, Result};
use chorus_wire::list_page::ListPage;
use chorus_wire::market::transfer::{CreditIssue, LedgerPosting, OwnerAccount, PostingLeg};
use chorus_wire::{Error, ErrorCode, limits};

/// `GET /accounts/{owner}`; without a name, the account of the calling agent's owner.
pub async fn get_account(
    principal: &Principal,
    hub: &HubContext,
    owner: Option<&str>,
) -> Result<OwnerAccount> {
    let principal = principal.clone();
    let owner = owner.map(str::to_owned);
    hub.store()
        .read(async move |tx| {
            let (owner, name) = match owner {
                Some(name) => (authorize_owner(tx, &principal, &name).await?, Some(name)),
                None => (
                    Some(principal.require_agent()?.owner),
                    principals::find_owner_name(tx, principal.require_agent()?.owner).await?,
                ),
            };
            read_account(
                tx,
                owner.ok_or(ErrorCode::NotFound)?,
                name.ok_or(ErrorCode::NotFound)?,
            )
            .await
        })
        .await
}

async fn read_account(
    tx: &DbConnection<'_>,
    owner: OwnerId,
    owner_id: String,
) -> Result<OwnerAccount> {
    let balance = ledger::read_balance(tx, LedgerAccount::Owner(owner)).await?;
    let held = ledger::read_held_credits(tx, owner).await?;
    Ok(OwnerAccount {
        owner_id,
        balance,
        held,
    })
}

/// `POST /accounts/{owner}/credit`: creates new credits, so only operators may do it.
pub async fn issue_credits(
    principal: &Principal,
    hub: &HubContext,
    owner: &str,
    issue: CreditIssue,
) -> Result<OwnerAccount> {
    let operator = principal.require_operator()?.clone();
    let name = owner.to_owned();
    hub.store()
        .write_repeatable(async move |txn| {
            let owner = principals::find_owner_id(&txn.tx, &name)
                .await?
                .ok_or(ErrorCode::NotFound)?;
            let issued = ledger::read_balance(&txn.tx, LedgerAccount::Issue)
                .await?
                .saturating_sub(issue.amount);
            if issued.to_hundredths() < -limits::CREDITS_ISSUED_MAX {
                return Err(Error::new(
                    ErrorCode::TransferFailed,
                    "this hub has issued as many credits as it may",
                ));
            }
            let posting = NewPosting {
                kind: "issue",
                from: LedgerAccount::Issue,
                to: LedgerAccount::Owner(owner),
                amount: issue.amount,
                job_id: None,
                note: issue.reason.as_deref(),
            };
            ledger::apply_posting(&txn.tx, &posting, txn.now()).await?;
            operator.record_act(txn, "credit", &name);
            read_account(&txn.tx, owner, name.clone()).await
        })
        .await
}

/// `GET /audit`: an agent sees its owner's postings, an operator sees all.
pub async fn list_postings(
    principal: &Principal,
    hub: &HubContext,
    owner: Option<String>,
    job_id: Option<String>,
    before: Option<i64>,
    limit: usize,
) -> Result<ListPage<LedgerPosting>> {
    let caller_owner = match principal {
        Principal::Anonymous => return Err(ErrorCode::Unauthorized.into()),
        Principal::Agent(agent) => Some(agent.owner),
        Principal::Operator(_) => None,
    };
    // PostgreSQL refuses NUL in text: the query would fail instead of finding nothing.
    if job_id.as_ref().is_some_and(|job_id| job_id.contains('\0')) {
        return Ok(ListPage {
            rows: Vec::new(),
            next: None,
        });
    }
    let limit = limit.clamp(1, limits::AUDIT_PAGE);
    let principal = principal.clone();
    let postings = hub
        .store()
        .read(async move |tx| {
            let owner = match owner {
                Some(name) => Some(
                    authorize_owner(tx, &principal, &name)
                        .await?
                        .ok_or(ErrorCode::NotFound)?,
                ),
                None => caller_owner,
            };
            Ok(ledger::list_postings(
                tx,
                &PostingFilter {
                    owner,
                    job_id,
                    before: before.map(PostingId),
                },
                limit,
            )
            .await?)
        })
        .await?;
    let last = postings.last().filter(|_| postings.len() == limit);
    Ok(ListPage {
        next: last.map(|posting| posting.id.to_string()),
        rows: postings.into_iter().map(describe_posting).collect(),
    })
}

fn describe_posting(posting: PostingRow) -> LedgerPosting {
    let posting_leg = |account: AccountId, owner_id: Option<String>, amount| PostingLeg {
        account: LedgerAccount::kind_name(account).to_owned(),
        owner_id,
        amount,
    };
    let amount = posting.amount;
    LedgerPosting {
        id: posting.id.0,
        kind: posting.kind,
        amount,
        entries: [
            posting_leg(
                posting.debit,
                posting.payer,
                chorus_wire::credits::Credits::ZERO.saturating_sub(amount),
            ),
            posting_leg(posting.credit, posting.payee, amount),
        ],
        job_id: posting.job_id,
        note: posting.note,
        timestamp_utc: posting.at,
    }
}
