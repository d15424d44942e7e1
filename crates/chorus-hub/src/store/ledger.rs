//! The ledger: accounts, the postings that move credits between them, and what each transfer was answered with (law 7).

use super::{DbError, Param, Row, Tx, Txn};
use chorus_wire::market::credits::Credits;
use chorus_wire::time::Micros;

/// Where credits are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Account {
    /// Where they come from; it is below zero by what was issued.
    Issue,
    Owner(i64),
    /// What `payer` may have to pay for a job.
    Hold {
        job: i64,
        payer: i64,
    },
}

impl Account {
    /// Its number in the table.
    const fn id(self) -> i64 {
        match self {
            Account::Issue => 0,
            Account::Owner(owner) => owner * 2,
            Account::Hold { job, .. } => job * 2 + 1,
        }
    }

    /// Whose credits they are, wherever they lie.
    const fn owner(self) -> Option<i64> {
        match self {
            Account::Issue => None,
            Account::Owner(owner) => Some(owner),
            Account::Hold { payer, .. } => Some(payer),
        }
    }

    const fn held_by(self) -> Option<i64> {
        match self {
            Account::Issue | Account::Owner(_) => None,
            Account::Hold { payer, .. } => Some(payer),
        }
    }

    /// What the account of this number is called in the audit.
    pub const fn name(id: i64) -> &'static str {
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
    pub from: Account,
    pub to: Account,
    pub amount: Credits,
    pub job_id: Option<&'a str>,
    pub note: Option<&'a str>,
}

/// Moves the amount and writes both entries down; `None`, and nothing is moved, when `from` has not got it.
pub(crate) async fn post(
    tx: &Tx<'_>,
    new: &NewPosting<'_>,
    now: Micros,
) -> Result<Option<Balances>, DbError> {
    let amount = Param::Int(new.amount.in_hundredths());
    // The condition is in the statement, so of two who race for the last credit one finds it gone.
    const TAKE: &str = "update accounts set balance = balance - $2 where id = $1 and (id = 0 or balance >= $2) returning balance";
    let Some(from) = tx.one(TAKE, &[Param::Int(new.from.id()), amount]).await? else {
        return Ok(None);
    };
    const GIVE: &str = "insert into accounts (id, held_by, balance) values ($1, $2, $3)
                        on conflict (id) do update set balance = accounts.balance + excluded.balance returning balance";
    let to = [
        Param::Int(new.to.id()),
        Param::int(new.to.held_by()),
        amount,
    ];
    let to = tx
        .one(GIVE, &to)
        .await?
        .ok_or_else(|| DbError::Other("an account took nothing".into()))?;
    const WRITE: &str = "insert into postings (id, kind, debit, credit, amount, payer, payee, job_id, note, at)
                         values ((select coalesce(max(id), 0) + 1 from postings), $1, $2, $3, $4, $5, $6, $7, $8, $9)";
    let params = [
        Param::Text(new.kind),
        Param::Int(new.from.id()),
        Param::Int(new.to.id()),
        amount,
        Param::int(new.from.owner()),
        Param::int(new.to.owner()),
        Param::text(new.job_id),
        Param::text(new.note),
        Param::Int(now.0),
    ];
    tx.execute(WRITE, &params).await?;
    Ok(Some(Balances {
        from: Credits::hundredths(from.int(0)?),
        to: Credits::hundredths(to.int(0)?),
    }))
}

/// What both accounts have after a posting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Balances {
    pub from: Credits,
    pub to: Credits,
}

/// The opening grant of a new owner; an owner that has an account has had it.
pub(crate) async fn grant_opening(
    txn: &mut Txn<'_>,
    owner: i64,
    amount: Credits,
) -> Result<(), DbError> {
    const OPEN: &str = "insert into accounts (id, held_by, balance) values ($1, null, 0) on conflict (id) do nothing";
    let to = Account::Owner(owner);
    let new = txn.tx.execute(OPEN, &[Param::Int(to.id())]).await? == 1;
    if !new || amount.is_zero() {
        return Ok(());
    }
    let grant = NewPosting {
        kind: "grant",
        from: Account::Issue,
        to,
        amount,
        job_id: None,
        note: None,
    };
    post(&txn.tx, &grant, txn.now()).await.map(drop)
}

/// What is in an account; nothing when nobody ever put anything there.
pub(crate) async fn balance(tx: &Tx<'_>, account: Account) -> Result<Credits, DbError> {
    let row = tx
        .one(
            "select balance from accounts where id = $1",
            &[Param::Int(account.id())],
        )
        .await?;
    Ok(Credits::hundredths(row.map_or(Ok(0), |row| row.int(0))?))
}

/// What is held for the owner's jobs.
pub(crate) async fn held(tx: &Tx<'_>, owner: i64) -> Result<Credits, DbError> {
    const SQL: &str =
        "select cast(coalesce(sum(balance), 0) as bigint) from accounts where held_by = $1";
    let row = tx.one(SQL, &[Param::Int(owner)]).await?;
    Ok(Credits::hundredths(row.map_or(Ok(0), |row| row.int(0))?))
}

/// A hold that has come to nothing is gone; what went through it stays in the postings.
pub(crate) async fn close_hold(tx: &Tx<'_>, job: i64, payer: i64) -> Result<(), DbError> {
    let id = Account::Hold { job, payer }.id();
    tx.execute(
        "delete from accounts where id = $1 and balance = 0",
        &[Param::Int(id)],
    )
    .await
    .map(drop)
}

/// A transfer that was made before.
#[derive(Debug)]
pub(crate) struct Made {
    pub fingerprint: Vec<u8>,
    pub reply: String,
}

pub(crate) async fn made(
    tx: &Tx<'_>,
    payer: i64,
    transfer_id: &str,
) -> Result<Option<Made>, DbError> {
    const SQL: &str =
        "select fingerprint, reply from transfers where payer = $1 and transfer_id = $2";
    let Some(mut row) = tx
        .one(SQL, &[Param::Int(payer), Param::Text(transfer_id)])
        .await?
    else {
        return Ok(None);
    };
    Ok(Some(Made {
        fingerprint: row.maybe_bytes(0)?.unwrap_or_default(),
        reply: row.text(1)?,
    }))
}

pub(crate) async fn keep(
    tx: &Tx<'_>,
    payer: i64,
    transfer_id: &str,
    fingerprint: &[u8; 32],
    reply: &str,
) -> Result<(), DbError> {
    const SQL: &str =
        "insert into transfers (payer, transfer_id, fingerprint, reply) values ($1, $2, $3, $4)";
    let params = [
        Param::Int(payer),
        Param::Text(transfer_id),
        Param::Bytes(fingerprint),
        Param::Text(reply),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

/// A posting as it was written down, with the names of those it concerns.
#[derive(Debug)]
pub(crate) struct Written {
    pub id: i64,
    pub kind: String,
    pub debit: i64,
    pub credit: i64,
    pub amount: Credits,
    pub payer: Option<String>,
    pub payee: Option<String>,
    pub job_id: Option<String>,
    pub note: Option<String>,
    pub at: Micros,
}

fn written(mut row: Row) -> Result<Written, DbError> {
    Ok(Written {
        id: row.int(0)?,
        kind: row.text(1)?,
        debit: row.int(2)?,
        credit: row.int(3)?,
        amount: Credits::hundredths(row.int(4)?),
        payer: row.maybe_text(5)?,
        payee: row.maybe_text(6)?,
        job_id: row.maybe_text(7)?,
        note: row.maybe_text(8)?,
        at: Micros(row.int(9)?),
    })
}

/// Which postings are asked for; `None` is any.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
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
pub(crate) async fn audit(
    tx: &Tx<'_>,
    asked: &Asked,
    limit: usize,
) -> Result<Vec<Written>, DbError> {
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
        Param::Int(asked.before.unwrap_or(i64::MAX)),
        Param::Int(limit as i64),
    );
    let rows = match (&asked.job_id, asked.owner) {
        (None, None) => tx.query(ALL, &[before, limit]).await?,
        (Some(job), None) => tx.query(OF_JOB, &[before, limit, Param::Text(job)]).await?,
        (None, Some(owner)) => {
            tx.query(OF_OWNER, &[before, limit, Param::Int(owner)])
                .await?
        }
        (Some(job), Some(owner)) => {
            tx.query(
                OF_BOTH,
                &[before, limit, Param::Text(job), Param::Int(owner)],
            )
            .await?
        }
    };
    rows.into_iter().map(written).collect()
}
