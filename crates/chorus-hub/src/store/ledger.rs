//! The ledger: accounts, the postings that move credits between them, and what each transfer was answered with (law 7).

use super::{DbConnection, DbError, SqlParam, SqlRow, WriteTxn};
use chorus_wire::market::credits::Credits;
use chorus_wire::time::UnixMicros;

/// Where credits are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LedgerAccount {
    /// Where they come from; it is below zero by what was issued.
    Issue,
    Owner(i64),
    /// What `payer` may have to pay for a job.
    Hold {
        job: i64,
        payer: i64,
    },
}

impl LedgerAccount {
    /// Its number in the table.
    const fn account_id(self) -> i64 {
        match self {
            LedgerAccount::Issue => 0,
            LedgerAccount::Owner(owner) => owner * 2,
            LedgerAccount::Hold { job, .. } => job * 2 + 1,
        }
    }

    /// Whose credits they are, wherever they lie.
    const fn owner_id(self) -> Option<i64> {
        match self {
            LedgerAccount::Issue => None,
            LedgerAccount::Owner(owner) => Some(owner),
            LedgerAccount::Hold { payer, .. } => Some(payer),
        }
    }

    const fn hold_payer(self) -> Option<i64> {
        match self {
            LedgerAccount::Issue | LedgerAccount::Owner(_) => None,
            LedgerAccount::Hold { payer, .. } => Some(payer),
        }
    }

    /// What the account of this number is called in the audit.
    pub const fn kind_name(id: i64) -> &'static str {
        match (id, id % 2) {
            (0, _) => "issue",
            (_, 0) => "owner",
            (_, _) => "hold",
        }
    }
}

/// A movement that is to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewPosting<'a> {
    pub kind: &'static str,
    pub from: LedgerAccount,
    pub to: LedgerAccount,
    pub amount: Credits,
    pub job_id: Option<&'a str>,
    pub note: Option<&'a str>,
}

/// Moves the amount and writes both entries down; `None`, and nothing is moved, when `from` has not got it.
pub(crate) async fn apply_posting(
    tx: &DbConnection<'_>,
    new: &NewPosting<'_>,
    now: UnixMicros,
) -> Result<Option<PostingBalances>, DbError> {
    let amount = SqlParam::Int(new.amount.to_hundredths());
    // The condition is in the statement, so of two who race for the last credit one finds it gone.
    const DEBIT: &str = "update accounts set balance = balance - $2 where id = $1 and (id = 0 or balance >= $2) returning balance";
    let Some(from) = tx
        .query_first(DEBIT, &[SqlParam::Int(new.from.account_id()), amount])
        .await?
    else {
        return Ok(None);
    };
    const CREDIT: &str = "insert into accounts (id, held_by, balance) values ($1, $2, $3)
                        on conflict (id) do update set balance = accounts.balance + excluded.balance returning balance";
    let to = [
        SqlParam::Int(new.to.account_id()),
        SqlParam::optional_int(new.to.hold_payer()),
        amount,
    ];
    let to = tx
        .query_first(CREDIT, &to)
        .await?
        .ok_or_else(|| DbError::Other("an account took nothing".into()))?;
    const INSERT: &str = "insert into postings (id, kind, debit, credit, amount, payer, payee, job_id, note, at)
                         values ((select coalesce(max(id), 0) + 1 from postings), $1, $2, $3, $4, $5, $6, $7, $8, $9)";
    let params = [
        SqlParam::Text(new.kind),
        SqlParam::Int(new.from.account_id()),
        SqlParam::Int(new.to.account_id()),
        amount,
        SqlParam::optional_int(new.from.owner_id()),
        SqlParam::optional_int(new.to.owner_id()),
        SqlParam::optional_text(new.job_id),
        SqlParam::optional_text(new.note),
        SqlParam::Int(now.0),
    ];
    tx.execute(INSERT, &params).await?;
    Ok(Some(PostingBalances {
        from: Credits::from_hundredths(from.int(0)?),
        to: Credits::from_hundredths(to.int(0)?),
    }))
}

/// What both accounts have after a posting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PostingBalances {
    pub from: Credits,
    pub to: Credits,
}

/// The opening grant of a new owner; an owner that has an account has had it.
pub(crate) async fn grant_opening_credits(
    txn: &mut WriteTxn<'_>,
    owner: i64,
    amount: Credits,
) -> Result<(), DbError> {
    const OPEN: &str = "insert into accounts (id, held_by, balance) values ($1, null, 0) on conflict (id) do nothing";
    let to = LedgerAccount::Owner(owner);
    let new = txn
        .tx
        .execute(OPEN, &[SqlParam::Int(to.account_id())])
        .await?
        == 1;
    if !new || amount.is_zero() {
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

/// What is in an account; nothing when nobody ever put anything there.
pub(crate) async fn read_balance(
    tx: &DbConnection<'_>,
    account: LedgerAccount,
) -> Result<Credits, DbError> {
    let row = tx
        .query_first(
            "select balance from accounts where id = $1",
            &[SqlParam::Int(account.account_id())],
        )
        .await?;
    Ok(Credits::from_hundredths(
        row.map_or(Ok(0), |row| row.int(0))?,
    ))
}

/// What is held for the owner's jobs.
pub(crate) async fn read_held_credits(
    tx: &DbConnection<'_>,
    owner: i64,
) -> Result<Credits, DbError> {
    const SQL: &str =
        "select cast(coalesce(sum(balance), 0) as bigint) from accounts where held_by = $1";
    let row = tx.query_first(SQL, &[SqlParam::Int(owner)]).await?;
    Ok(Credits::from_hundredths(
        row.map_or(Ok(0), |row| row.int(0))?,
    ))
}

/// A hold that has come to nothing is gone; what went through it stays in the postings.
pub(crate) async fn close_hold(tx: &DbConnection<'_>, job: i64, payer: i64) -> Result<(), DbError> {
    let id = LedgerAccount::Hold { job, payer }.account_id();
    tx.execute(
        "delete from accounts where id = $1 and balance = 0",
        &[SqlParam::Int(id)],
    )
    .await
    .map(drop)
}

/// A transfer that was made before.
#[derive(Debug)]
pub(crate) struct TransferRecord {
    pub fingerprint: Vec<u8>,
    pub reply: String,
}

pub(crate) async fn find_transfer(
    tx: &DbConnection<'_>,
    payer: i64,
    transfer_id: &str,
) -> Result<Option<TransferRecord>, DbError> {
    const SQL: &str =
        "select fingerprint, reply from transfers where payer = $1 and transfer_id = $2";
    let Some(mut row) = tx
        .query_first(SQL, &[SqlParam::Int(payer), SqlParam::Text(transfer_id)])
        .await?
    else {
        return Ok(None);
    };
    Ok(Some(TransferRecord {
        fingerprint: row.maybe_bytes(0)?.unwrap_or_default(),
        reply: row.text(1)?,
    }))
}

pub(crate) async fn insert_transfer(
    tx: &DbConnection<'_>,
    payer: i64,
    transfer_id: &str,
    fingerprint: &[u8; 32],
    reply: &str,
) -> Result<(), DbError> {
    const SQL: &str =
        "insert into transfers (payer, transfer_id, fingerprint, reply) values ($1, $2, $3, $4)";
    let params = [
        SqlParam::Int(payer),
        SqlParam::Text(transfer_id),
        SqlParam::Bytes(fingerprint),
        SqlParam::Text(reply),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

/// A posting as it was written down, with the names of those it concerns.
#[derive(Debug)]
pub(crate) struct PostingRow {
    pub id: i64,
    pub kind: String,
    pub debit: i64,
    pub credit: i64,
    pub amount: Credits,
    pub payer: Option<String>,
    pub payee: Option<String>,
    pub job_id: Option<String>,
    pub note: Option<String>,
    pub at: UnixMicros,
}

fn read_posting_row(mut row: SqlRow) -> Result<PostingRow, DbError> {
    Ok(PostingRow {
        id: row.int(0)?,
        kind: row.text(1)?,
        debit: row.int(2)?,
        credit: row.int(3)?,
        amount: Credits::from_hundredths(row.int(4)?),
        payer: row.maybe_text(5)?,
        payee: row.maybe_text(6)?,
        job_id: row.maybe_text(7)?,
        note: row.maybe_text(8)?,
        at: UnixMicros(row.int(9)?),
    })
}

/// Which postings are asked for; `None` is any.
#[derive(Clone, Debug, Default)]
pub(crate) struct PostingFilter {
    pub owner: Option<i64>,
    pub job_id: Option<String>,
    /// Only those before this one.
    pub before: Option<i64>,
}

macro_rules! postings {
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
    const ALL: &str = postings!("where p.id < $1 order by p.id desc limit $2");
    const OF_JOB: &str = postings!("where p.job_id = $3 and p.id < $1 order by p.id desc limit $2");
    // Two ranges, each read from its index; a posting within one owner is in both and is one.
    const OF_OWNER: &str = postings!(
        "where p.id in (
             select id from (select id from postings where payer = $3 and id < $1 order by id desc limit $2) a
             union select id from (select id from postings where payee = $3 and id < $1 order by id desc limit $2) b)
         order by p.id desc limit $2"
    );
    const OF_BOTH: &str = postings!(
        "where p.job_id = $3 and (p.payer = $4 or p.payee = $4) and p.id < $1 order by p.id desc limit $2"
    );
    let (before, limit) = (
        SqlParam::Int(filter.before.unwrap_or(i64::MAX)),
        SqlParam::Int(limit as i64),
    );
    let rows = match (&filter.job_id, filter.owner) {
        (None, None) => tx.query(ALL, &[before, limit]).await?,
        (Some(job), None) => {
            tx.query(OF_JOB, &[before, limit, SqlParam::Text(job)])
                .await?
        }
        (None, Some(owner)) => {
            tx.query(OF_OWNER, &[before, limit, SqlParam::Int(owner)])
                .await?
        }
        (Some(job), Some(owner)) => {
            tx.query(
                OF_BOTH,
                &[before, limit, SqlParam::Text(job), SqlParam::Int(owner)],
            )
            .await?
        }
    };
    rows.into_iter().map(read_posting_row).collect()
}
