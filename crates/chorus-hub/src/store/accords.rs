//! What organisations let one another address.

use super::orgs::{handle, role};
use super::{DbError, Param, Row, Tx};
use chorus_wire::frame::org::{Accord, AccordStatus, Reaches};
use chorus_wire::identity::Handle;
use chorus_wire::time::Micros;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "select a.id, g.handle, h.handle, a.scope, a.reaches, a.proposed_at, a.accepted_at, a.expires_at
             from accords a join orgs g on g.id = a.grantor join orgs h on h.id = a.grantee ",
            $rest
        )
    };
}

/// As it stands at `now`.
fn accord(mut row: Row, now: Micros) -> Result<Accord, DbError> {
    let (accepted_at, expires_at) = (row.maybe_int(6)?.map(Micros), row.maybe_int(7)?.map(Micros));
    let status = match (accepted_at, expires_at) {
        (_, Some(at)) if at <= now => AccordStatus::Expired,
        (Some(_), _) => AccordStatus::Accepted,
        (None, _) => AccordStatus::Proposed,
    };
    let reaches = row.text(4)?;
    Ok(Accord {
        id: row.text(0)?,
        status,
        grantor: handle(&row.text(1)?)?,
        grantee: handle(&row.text(2)?)?,
        grant: role(&row.text(3)?)?,
        reaches: Reaches::parse(&reaches)
            .ok_or_else(|| DbError::Other(format!("{reaches} is stored as a reach")))?,
        expires_at,
        proposed_at: Micros(row.int(5)?),
        accepted_at,
    })
}

pub(crate) async fn insert(
    tx: &Tx<'_>,
    grantor: i64,
    grantee: i64,
    accord: &Accord,
) -> Result<(), DbError> {
    const SQL: &str =
        "insert into accords (id, grantor, grantee, scope, reaches, proposed_at, expires_at)
                       values ($1, $2, $3, $4, $5, $6, $7)";
    let reaches = accord.reaches.to_string();
    let params = [
        Param::Text(&accord.id),
        Param::Int(grantor),
        Param::Int(grantee),
        Param::Text(accord.grant.as_str()),
        Param::Text(&reaches),
        Param::Int(accord.proposed_at.0),
        Param::int(accord.expires_at.map(|at| at.0)),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

/// An accord to which the organisation is a party.
pub(crate) async fn of(
    tx: &Tx<'_>,
    org: i64,
    id: &str,
    now: Micros,
) -> Result<Option<Accord>, DbError> {
    // PostgreSQL has no text with this in it, and would fail where nothing is found.
    if id.contains('\0') {
        return Ok(None);
    }
    const SQL: &str = select!("where a.id = $2 and (a.grantor = $1 or a.grantee = $1)");
    let row = tx.one(SQL, &[Param::Int(org), Param::Text(id)]).await?;
    row.map(|row| accord(row, now)).transpose()
}

/// All to which the organisation is a party, oldest first, at most `most`.
pub(crate) async fn list(
    tx: &Tx<'_>,
    org: i64,
    now: Micros,
    most: usize,
) -> Result<Vec<Accord>, DbError> {
    const SQL: &str =
        select!("where a.grantor = $1 or a.grantee = $1 order by a.proposed_at, a.id limit $2");
    let rows = tx
        .query(SQL, &[Param::Int(org), Param::Int(most as i64)])
        .await?;
    rows.into_iter().map(|row| accord(row, now)).collect()
}

/// What the organisation has granted and the other side accepted, whether or not its time is over.
pub(crate) async fn granted(tx: &Tx<'_>, org: i64, now: Micros) -> Result<Vec<Accord>, DbError> {
    const SQL: &str = select!("where a.grantor = $1 and a.accepted_at is not null");
    tx.query(SQL, &[Param::Int(org)])
        .await?
        .into_iter()
        .map(|row| accord(row, now))
        .collect()
}

/// Proposed or granted.
pub(crate) async fn count(tx: &Tx<'_>, org: i64) -> Result<usize, DbError> {
    let row = tx
        .one(
            "select count(*) from accords where grantor = $1",
            &[Param::Int(org)],
        )
        .await?;
    Ok(row.map_or(Ok(0), |row| row.int(0))? as usize)
}

pub(crate) async fn accept(tx: &Tx<'_>, id: &str, now: Micros) -> Result<(), DbError> {
    const SQL: &str = "update accords set accepted_at = $2 where id = $1 and accepted_at is null";
    tx.execute(SQL, &[Param::Text(id), Param::Int(now.0)])
        .await
        .map(drop)
}

pub(crate) async fn delete(tx: &Tx<'_>, id: &str) -> Result<(), DbError> {
    tx.execute("delete from accords where id = $1", &[Param::Text(id)])
        .await
        .map(drop)
}

/// Those of a grantor whose time is over make room for new ones.
pub(crate) async fn trim(tx: &Tx<'_>, grantor: i64, now: Micros) -> Result<(), DbError> {
    const SQL: &str = "delete from accords where grantor = $1 and expires_at <= $2";
    tx.execute(SQL, &[Param::Int(grantor), Param::Int(now.0)])
        .await
        .map(drop)
}

/// The organisation ends, and so do its accords; answers with who had granted it one.
pub(crate) async fn forget(tx: &Tx<'_>, org: i64) -> Result<Vec<Handle>, DbError> {
    const GRANTORS: &str = "select distinct o.handle from accords a join orgs o on o.id = a.grantor where a.grantee = $1";
    let rows = tx.query(GRANTORS, &[Param::Int(org)]).await?;
    let grantors = rows
        .into_iter()
        .map(|mut row| handle(&row.text(0)?))
        .collect();
    tx.execute(
        "delete from accords where grantor = $1 or grantee = $1",
        &[Param::Int(org)],
    )
    .await?;
    grantors
}
