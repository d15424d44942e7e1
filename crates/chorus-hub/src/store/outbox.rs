//! POSTs that are owed to others: written in the transaction that owes them, taken by lease, kept until they are done.

use super::{DbError, Param, Row, Tx};
use chorus_wire::time::Micros;
use std::collections::HashSet;
use std::time::Duration;

/// A POST that is to be made.
#[derive(Clone, Debug)]
pub(crate) struct Owed<'a> {
    pub purpose: &'static str,
    /// What shares a lane goes out in order.
    pub lane: &'a str,
    pub url: &'a str,
    pub body: &'a str,
    /// With whom it waits.
    pub sort: Sort,
}

/// One that was taken: nobody else has it until its lease ends.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub id: i64,
    pub purpose: String,
    pub lane: String,
    pub url: String,
    pub body: String,
    pub created_at: Micros,
    /// Failures so far.
    pub tries: i64,
    /// Names this taking: whoever comes back with an older one is too late.
    pub lease: i64,
}

impl Taken {
    /// Its time is over: somebody else may have it by now.
    pub fn is_over(&self, now: Micros) -> bool {
        now.0 >= self.lease
    }
}

pub(crate) async fn put(tx: &Tx<'_>, owed: &Owed<'_>, now: Micros) -> Result<(), DbError> {
    // Never a number that was used before: a late answer must not find another row under its own.
    const NUMBER: &str = "insert into settings (name, value) values ('outbox', 1)
                          on conflict (name) do update set value = settings.value + 1 returning value";
    let id = tx
        .one(NUMBER, &[])
        .await?
        .ok_or_else(|| DbError::Other("no number was given".into()))?
        .int(0)?;
    const SQL: &str = "insert into outbox (id, purpose, lane, url, headers, body, created_at, due_at, tries, leased)
                       values ($1, $2, $3, $4, '{}', $5, $6, $6, $7, 0)";
    let [tries, _] = owed.sort.tries();
    let params = [
        Param::Int(id),
        Param::Text(owed.purpose),
        Param::Text(owed.lane),
        Param::Text(owed.url),
        Param::Text(owed.body),
        Param::Int(now.0),
        tries,
    ];
    tx.execute(SQL, &params).await.map(drop)
}

/// Whether something waits in this lane.
pub(crate) async fn has(tx: &Tx<'_>, lane: &str) -> Result<bool, DbError> {
    Ok(tx
        .one(
            "select 1 from outbox where lane = $1 limit 1",
            &[Param::Text(lane)],
        )
        .await?
        .is_some())
}

/// Of each lane its first, due and not taken, with a number of failures from $3 to $4.
macro_rules! due {
    ($what:literal) => {
        concat!(
            "select ",
            $what,
            " from outbox o where o.due_at <= $1 and o.leased <= $1 and o.tries >= $3 and o.tries <= $4
              and not exists (select 1 from outbox p where p.lane = o.lane and p.id < o.id)
              order by o.due_at, o.id limit $2"
        )
    };
}

/// Which rows may be taken: the new ones, or those that have failed before.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sort {
    New,
    Failed,
}

impl Sort {
    fn tries(self) -> [Param<'static>; 2] {
        match self {
            Self::New => [Param::Int(0), Param::Int(0)],
            Self::Failed => [Param::Int(1), Param::Int(i64::MAX)],
        }
    }
}

/// What can be had, at least `most` of it if there is as much: asked of a reader, so that nothing is written when nothing is due.
pub(crate) async fn due(
    tx: &Tx<'_>,
    now: Micros,
    sort: Sort,
    most: usize,
) -> Result<Vec<i64>, DbError> {
    let [least, greatest] = sort.tries();
    let rows = tx
        .query(
            due!("o.id"),
            &[Param::Int(now.0), Param::Int(most as i64), least, greatest],
        )
        .await?;
    rows.iter().map(|row| row.int(0)).collect()
}

/// Takes what is due but for those that this hub is at already, whatever its clock says of their lease.
pub(crate) async fn take(
    tx: &Tx<'_>,
    now: Micros,
    lease: Duration,
    sort: Sort,
    most: usize,
    busy: &HashSet<i64>,
) -> Result<Vec<Taken>, DbError> {
    const DUE: &str = due!("o.id, o.purpose, o.lane, o.url, o.body, o.created_at, o.tries");
    let [least, greatest] = sort.tries();
    let looked = Param::Int((most + busy.len()) as i64);
    let rows = tx
        .query(DUE, &[Param::Int(now.0), looked, least, greatest])
        .await?;
    let lease = now.plus(lease).0;
    let mut taken = Vec::with_capacity(rows.len());
    for row in rows {
        let one = read(row, lease)?;
        if busy.contains(&one.id) || taken.len() == most {
            continue;
        }
        tx.execute(
            "update outbox set leased = $2 where id = $1",
            &[Param::Int(one.id), Param::Int(lease)],
        )
        .await?;
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
        body: row.text(4)?,
        created_at: Micros(row.int(5)?),
        tries: row.int(6)?,
        lease,
    })
}

/// Nobody is at any of them: for a hub that starts alone, and knows that whoever took them is gone.
pub(crate) async fn free(tx: &Tx<'_>) -> Result<(), DbError> {
    tx.execute("update outbox set leased = 0 where leased > 0", &[])
        .await
        .map(drop)
}

/// Whether it is still this taking's.
pub(crate) async fn held(tx: &Tx<'_>, one: &Taken) -> Result<bool, DbError> {
    const SQL: &str = "select 1 from outbox where id = $1 and leased = $2";
    Ok(tx
        .one(SQL, &[Param::Int(one.id), Param::Int(one.lease)])
        .await?
        .is_some())
}

/// It is done, or given up; false when somebody else has it by now.
pub(crate) async fn done(tx: &Tx<'_>, one: &Taken) -> Result<bool, DbError> {
    const SQL: &str = "delete from outbox where id = $1 and leased = $2";
    Ok(tx
        .execute(SQL, &[Param::Int(one.id), Param::Int(one.lease)])
        .await?
        == 1)
}

/// It failed and is due again later.
pub(crate) async fn later(tx: &Tx<'_>, one: &Taken, due: Micros) -> Result<(), DbError> {
    const SQL: &str = "update outbox set due_at = $3, tries = tries + 1, leased = 0 where id = $1 and leased = $2";
    tx.execute(
        SQL,
        &[Param::Int(one.id), Param::Int(one.lease), Param::Int(due.0)],
    )
    .await
    .map(drop)
}
