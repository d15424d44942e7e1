//! The ledger: accounts, the postings that move credits between them, and the reply to each transfer (invariant 7).

use super::{
    AccountId, ColumnReader, DbConnection, DbError, FromRow, JobId, OwnerId, PostingId, RowId,
    SqlParam, WriteTxn,
};
use chorus_wire::credits::Credits;
use chorus_wire::time::UnixMicros;

/// An account of the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LedgerAccount {
    /// The source of all credits. Its balance is the negated sum of the credits issued.
    Issue,
    Owner(OwnerId),
    /// The credits of `payer` that are held for a job.
    Hold {
        job: JobId,
        payer: OwnerId,
    },
}

impl LedgerAccount {
    /// The id in the table `accounts`.
    const fn account_id(self) -> AccountId {
        match self {
            LedgerAccount::Issue => AccountId(0),
            LedgerAccount::Owner(owner) => AccountId(owner.0 * 2),
            LedgerAccount::Hold { job, .. } => AccountId(job.0 * 2 + 1),
        }
    }

    /// The owner of the credits; for a hold, the payer.
    const fn owner_id(self) -> Option<OwnerId> {
        match self {
            LedgerAccount::Issue => None,
            LedgerAccount::Owner(owner) => Some(owner),
            LedgerAccount::Hold { payer, .. } => Some(payer),
        }
    }

    const fn hold_payer(self) -> Option<OwnerId> {
        match self {
            LedgerAccount::Issue | LedgerAccount::Owner(_) => None,
            LedgerAccount::Hold { payer, .. } => Some(payer),
        }
    }

    /// The kind of the account of this id, as the audit shows it.
    pub const fn kind_name(id: AccountId) -> &'static str {
        match (id.0, id.0 % 2) {
            (0, _) => "issue",
            (_, 0) => "owner",
            (_, _) => "hold",
        }
    }
}

/// A posting to apply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewPosting<'a> {
    pub kind: &'static str,
    pub from: LedgerAccount,
    pub to: LedgerAccount,
    pub amount: Credits,
    pub job_id: Option<&'a str>,
    pub note: Option<&'a str>,
}

/// Moves the amount and inserts the posting. `None`, without any change, when the balance of `from` is too low.
pub(crate) async fn apply_posting(
    tx: &DbConnection<'_>,
    new: &NewPosting<'_>,
    now: UnixMicros,
) -> Result<Option<PostingBalances>, DbError> {
    let amount = SqlParam::Int(new.amount.to_hundredths());
    // The update itself checks the balance, so only one of two concurrent postings gets the last credit.
    const DEBIT: &str = "update accounts set balance = balance - $2 where id = $1 and (id = 0 or balance >= $2) returning balance";
    let Some(from) = tx
        .query_first(DEBIT, &[SqlParam::id(new.from.account_id()), amount])
        .await?
    else {
        return Ok(None);
    };
    let to = credit_account(tx, new.to, new.amount).await?;
    insert_posting(tx, new, now).await?;
    Ok(Some(PostingBalances {
        from: Credits::from_hundredths(from.int(0)?),
        to,
    }))
}

/// Adds the amount to an account, which is created when it is new. Returns its balance.
async fn credit_account(
    tx: &DbConnection<'_>,
    account: LedgerAccount,
    amount: Credits,
) -> Result<Credits, DbError> {
    const SQL: &str = "insert into accounts (id, held_by, balance) values ($1, $2, $3)
                       on conflict (id) do update set balance = accounts.balance + excluded.balance returning balance";
    let params = [
        SqlParam::id(account.account_id()),
        SqlParam::optional_id(account.hold_payer()),
        SqlParam::Int(amount.to_hundredths()),
    ];
    let row = tx
        .query_first(SQL, &params)
        .await?
        .ok_or_else(|| DbError::Other("an account took nothing".into()))?;
    Ok(Credits::from_hundredths(row.int(0)?))
}

async fn insert_posting(
    tx: &DbConnection<'_>,
    new: &NewPosting<'_>,
    now: UnixMicros,
) -> Result<(), DbError> {
    const SQL: &str = "insert into postings (id, kind, debit, credit, amount, payer, payee, job_id, note, at)
                       values ((select coalesce(max(id), 0) + 1 from postings), $1, $2, $3, $4, $5, $6, $7, $8, $9)";
    let params = [
        SqlParam::Text(new.kind),
        SqlParam::id(new.from.account_id()),
        SqlParam::id(new.to.account_id()),
        SqlParam::Int(new.amount.to_hundredths()),
        SqlParam::optional_id(new.from.owner_id()),
        SqlParam::optional_id(new.to.owner_id()),
        SqlParam::optional_text(new.job_id),
        SqlParam::optional_text(new.note),
        SqlParam::Int(now.0),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

/// Removes the account of a hold and returns what it held; `None`, without any change, when that is less than `at_least`. The caller
/// applies postings of the whole amount with [`credit_from_hold`], in the same transaction.
pub(crate) async fn take_hold(
    tx: &DbConnection<'_>,
    job: JobId,
    payer: OwnerId,
    at_least: Credits,
) -> Result<Option<Credits>, DbError> {
    const SQL: &str = "delete from accounts where id = $1 and balance >= $2 returning balance";
    let params = [
        SqlParam::id(LedgerAccount::Hold { job, payer }.account_id()),
        SqlParam::Int(at_least.to_hundredths()),
    ];
    let row = tx.query_first(SQL, &params).await?;
    row.map(|row| row.int(0).map(Credits::from_hundredths))
        .transpose()
}

/// Applies a posting from a hold that [`take_hold`] has removed.
pub(crate) async fn credit_from_hold(
    tx: &DbConnection<'_>,
    new: &NewPosting<'_>,
    now: UnixMicros,
) -> Result<(), DbError> {
    credit_account(tx, new.to, new.amount).await?;
    insert_posting(tx, new, now).await
}

/// The balances of both accounts after a posting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PostingBalances {
    pub from: Credits,
    pub to: Credits,
}

/// Records that these names had their opening grant; false when one of them had it before. Otherwise an agent could create credits
/// by registering and leaving again and again.
async fn claim_grant(tx: &DbConnection<'_>, names: [&str; 2]) -> Result<bool, DbError> {
    const SQL: &str = "insert into granted_names (name) values ($1) on conflict (name) do nothing";
    let first_new = tx.execute(SQL, &[SqlParam::Text(names[0])]).await? == 1;
    if names[0] == names[1] {
        return Ok(first_new);
    }
    let second_new = tx.execute(SQL, &[SqlParam::Text(names[1])]).await? == 1;
    Ok(first_new && second_new)
}

/// Grants a new owner its opening credits. An owner that has an account, or one whose name or agent's name was granted before,
/// gets none.
pub(crate) async fn grant_opening_credits(
    txn: &mut WriteTxn<'_>,
    owner: OwnerId,
    names: [&str; 2],
    amount: Credits,
) -> Result<(), DbError> {
    const OPEN: &str = "insert into accounts (id, held_by, balance) values ($1, null, 0) on conflict (id) do nothing";
    let to = LedgerAccount::Owner(owner);
    let new = txn
        .tx
        .execute(OPEN, &[SqlParam::id(to.account_id())])
        .await?
        == 1;
    if !new || amount.is_zero() || !claim_grant(&txn.tx, names).await? {
        return Ok(());
    }
    let grant = NewPosting {
        kind: "grant",
        from: LedgerAccount::Issue,
        to,
        amount,
        job_id: None,
        note: None,
    };
    apply_posting(&txn.tx, &grant, txn.now()).await.map(drop)
}

/// The balance of an account; zero when the account does not exist.
pub(crate) async fn read_balance(
    tx: &DbConnection<'_>,
    account: LedgerAccount,
) -> Result<Credits, DbError> {
    let row = tx
        .query_first(
            "select balance from accounts where id = $1",
            &[SqlParam::id(account.account_id())],
        )
        .await?;
    Ok(Credits::from_hundredths(
        row.map_or(Ok(0), |row| row.int(0))?,
    ))
}

/// The sum of the holds for jobs that the owner pays.
pub(crate) async fn read_held_credits(
    tx: &DbConnection<'_>,
    owner: OwnerId,
) -> Result<Credits, DbError> {
    const SQL: &str =
        "select cast(coalesce(sum(balance), 0) as bigint) from accounts where held_by = $1";
    let row = tx.query_first(SQL, &[SqlParam::id(owner)]).await?;
    Ok(Credits::from_hundredths(
        row.map_or(Ok(0), |row| row.int(0))?,
    ))
}

/// A transfer that was applied before, and its reply.
#[derive(Debug)]
pub(crate) struct TransferRecord {
    pub fingerprint: Vec<u8>,
    pub reply: String,
}

macro_rules! transfer_columns {
    () => {
        "fingerprint, reply"
    };
}

/// Reads `transfer_columns!`.
impl FromRow for TransferRecord {
    fn from_columns(columns: &mut ColumnReader) -> Result<Self, DbError> {
        Ok(TransferRecord {
            fingerprint: columns.maybe_bytes()?.unwrap_or_default(),
            reply: columns.text()?,
        })
    }
}

pub(crate) async fn find_transfer(
    tx: &DbConnection<'_>,
    payer: OwnerId,
    transfer_id: &str,
) -> Result<Option<TransferRecord>, DbError> {
    const SQL: &str = concat!(
        "select ",
        transfer_columns!(),
        " from transfers where payer = $1 and transfer_id = $2"
    );
    tx.query_first(SQL, &[SqlParam::id(payer), SqlParam::Text(transfer_id)])
        .await?
        .map(TransferRecord::from_row)
        .transpose()
}

/// Whether the payer has made a transfer to the payee that names this job.
pub(crate) async fn has_transfer_for_job(
    tx: &DbConnection<'_>,
    payer: OwnerId,
    payee: OwnerId,
    job_id: &str,
) -> Result<bool, DbError> {
    const SQL: &str = "select 1 from postings where kind = 'transfer' and payer = $1 and job_id = $3 and payee = $2 limit 1";
    let params = [
        SqlParam::id(payer),
        SqlParam::id(payee),
        SqlParam::Text(job_id),
    ];
    Ok(tx.query_first(SQL, &params).await?.is_some())
}

pub(crate) async fn insert_transfer(
    tx: &DbConnection<'_>,
    payer: OwnerId,
    transfer_id: &str,
    fingerprint: &[u8; 32],
    reply: &str,
) -> Result<(), DbError> {
    const SQL: &str =
        "insert into transfers (payer, transfer_id, fingerprint, reply) values ($1, $2, $3, $4)";
    let params = [
        SqlParam::id(payer),
        SqlParam::Text(transfer_id),
        SqlParam::Bytes(fingerprint),
        SqlParam::Text(reply),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

/// A posting as it is stored, with the names of its owners.
#[derive(Debug)]
pub(crate) struct PostingRow {
    pub id: PostingId,
    pub kind: String,
    pub debit: AccountId,
    pub credit: AccountId,
    pub amount: Credits,
    pub payer: Option<String>,
    pub payee: Option<String>,
    pub job_id: Option<String>,
    pub note: Option<String>,
    pub at: UnixMicros,
}

/// Reads the columns of `select_postings!`.
impl FromRow for PostingRow {
    fn from_columns(columns: &mut ColumnReader) -> Result<Self, DbError> {
        Ok(PostingRow {
            id: columns.id()?,
            kind: columns.text()?,
            debit: columns.id()?,
            credit: columns.id()?,
            amount: Credits::from_hundredths(columns.int()?),
            payer: columns.maybe_text()?,
            payee: columns.maybe_text()?,
            job_id: columns.maybe_text()?,
            note: columns.maybe_text()?,
            at: UnixMicros(columns.int()?),
        })
    }
}

/// Which postings to list; `None` matches all.
#[derive(Clone, Debug, Default)]
pub(crate) struct PostingFilter {
    pub owner: Option<OwnerId>,
    pub job_id: Option<String>,
    /// Only postings with a lower id.
    pub before: Option<PostingId>,
}

macro_rules! select_postings {
    ($rest:literal) => {
        concat!(
            "select p.id, p.kind, p.debit, p.credit, p.amount, o.name, r.name, p.job_id, p.note, p.at
             from postings p left join owners o on o.id = p.payer left join owners r on r.id = p.payee ",
            $rest
        )
    };
}

/// The newest postings first.
pub(crate) async fn list_postings(
    tx: &DbConnection<'_>,
    filter: &PostingFilter,
    limit: usize,
) -> Result<Vec<PostingRow>, DbError> {
    const ALL: &str = select_postings!("where p.id < $1 order by p.id desc limit $2");
    const OF_JOB: &str =
        select_postings!("where p.job_id = $3 and p.id < $1 order by p.id desc limit $2");
    // Two index ranges; `union` returns a posting from an owner to itself once.
    const OF_OWNER: &str = select_postings!(
        "where p.id in (
             select id from (select id from postings where payer = $3 and id < $1 order by id desc limit $2) a
             union select id from (select id from postings where payee = $3 and id < $1 order by id desc limit $2) b)
         order by p.id desc limit $2"
    );
    const OF_BOTH: &str = select_postings!(
        "where p.job_id = $3 and (p.payer = $4 or p.payee = $4) and p.id < $1 order by p.id desc limit $2"
    );
    let before = SqlParam::id(filter.before.unwrap_or(PostingId::AFTER_ALL));
    let limit = SqlParam::Int(limit as i64);
    let rows = match (&filter.job_id, filter.owner) {
        (None, None) => tx.query(ALL, &[before, limit]).await?,
        (Some(job), None) => {
            tx.query(OF_JOB, &[before, limit, SqlParam::Text(job)])
                .await?
        }
        (None, Some(owner)) => {
            tx.query(OF_OWNER, &[before, limit, SqlParam::id(owner)])
                .await?
        }
        (Some(job), Some(owner)) => {
            tx.query(
                OF_BOTH,
                &[before, limit, SqlParam::Text(job), SqlParam::id(owner)],
            )
            .await?
        }
    };
    rows.into_iter().map(PostingRow::from_row).collect()
}
