//! POSTs that are owed to others: written in the transaction that owes them, taken by lease, kept until they are done.

use super::{DbError, Param, Row, Tx};
use chorus_wire::{limits, time::Micros};

/// A POST that is to be made.
#[derive(Clone, Debug)]
pub(crate) struct Owed<'a> {
    pub purpose: &'static str,
    /// What shares a lane goes out in order.
    pub lane: &'a str,
    pub url: &'a str,
    /// A JSON object of header names and values.
    pub headers: &'a str,
    pub body: &'a str,
}

/// One that was taken: nobody else has it until its lease ends.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub id: i64,
    pub purpose: String,
    pub lane: String,
    pub url: String,
    pub headers: String,
    pub body: String,
    pub created_at: Micros,
    /// Failures so far.
    pub tries: i64,
    /// Names this taking: whoever comes back with an older one is too late.
    pub lease: i64,
}

pub(crate) async fn put(tx: &Tx<'_>, owed: &Owed<'_>, now: Micros) -> Result<(), DbError> {
    // Never a number that was used before: a late answer must not find another row under its own.
    const NUMBER: &str = "insert into settings (name, value) values ('outbox', 1)
                          on conflict (name) do update set value = settings.value + 1 returning value";
    let id = tx.one(NUMBER, &[]).await?.ok_or_else(|| DbError::Other("no number was given".into()))?.int(0)?;
    const SQL: &str = "insert into outbox (id, purpose, lane, url, headers, body, created_at, due_at, tries, leased)
                       values ($1, $2, $3, $4, $5, $6, $7, $7, 0, 0)";
    let params = [
        Param::Int(id),
        Param::Text(owed.purpose),
        Param::Text(owed.lane),
        Param::Text(owed.url),
        Param::Text(owed.headers),
        Param::Text(owed.body),
        Param::Int(now.0),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

macro_rules! due {
    ($what:literal) => {
        concat!(
            "select ",
            $what,
            " from outbox o where o.due_at <= $1 and o.leased <= $1
              and not exists (select 1 from outbox p where p.lane = o.lane and p.id < o.id)
              order by o.due_at, o.id limit $2"
        )
    };
}

/// Whether anything is due: asked of a reader, so that nothing is written when nothing is.
pub(crate) async fn is_due(tx: &Tx<'_>, now: Micros) -> Result<bool, DbError> {
    Ok(tx.one(due!("1"), &[Param::Int(now.0), Param::Int(1)]).await?.is_some())
}

/// Takes what is due, of each lane only its first.
pub(crate) async fn take(tx: &Tx<'_>, now: Micros, most: usize) -> Result<Vec<Taken>, DbError> {
    const DUE: &str = due!("o.id, o.purpose, o.lane, o.url, o.headers, o.body, o.created_at, o.tries");
    let rows = tx.query(DUE, &[Param::Int(now.0), Param::Int(most as i64)]).await?;
    let lease = now.plus(limits::OUTBOX_LEASE).0;
    let mut taken = Vec::with_capacity(rows.len());
    for row in rows {
        let one = read(row, lease)?;
        tx.execute("update outbox set leased = $2 where id = $1", &[Param::Int(one.id), Param::Int(lease)]).await?;
        taken.push(one);
    }
    Ok(taken)
}

fn read(mut row: Row, lease: i64) -> Result<Taken, DbError> {
    Ok(Taken {
        id: row.int(0)?,
        purpose: row.text(1)?,
        lane: row.text(2)?,
        url: row.text(3)?,
        headers: row.text(4)?,
        body: row.text(5)?,
        created_at: Micros(row.int(6)?),
        tries: row.int(7)?,
        lease,
    })
}

/// It is done, or given up; false when somebody else has it by now.
pub(crate) async fn done(tx: &Tx<'_>, one: &Taken) -> Result<bool, DbError> {
    const SQL: &str = "delete from outbox where id = $1 and leased = $2";
    Ok(tx.execute(SQL, &[Param::Int(one.id), Param::Int(one.lease)]).await? == 1)
}

/// It failed and is due again later.
pub(crate) async fn later(tx: &Tx<'_>, one: &Taken, due: Micros) -> Result<(), DbError> {
    const SQL: &str = "update outbox set due_at = $3, tries = tries + 1, leased = 0 where id = $1 and leased = $2";
    tx.execute(SQL, &[Param::Int(one.id), Param::Int(one.lease), Param::Int(due.0)]).await.map(drop)
}
