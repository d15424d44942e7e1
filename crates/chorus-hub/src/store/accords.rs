//! What organisations let one another address.

use super::orgs::{parse_stored_handle, parse_stored_role};
use super::{DbConnection, DbError, SqlParam, SqlRow};
use chorus_wire::frame::organisation::{Accord, AccordReach, AccordStatus};
use chorus_wire::identity::Handle;
use chorus_wire::time::UnixMicros;

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
fn read_accord_row(mut row: SqlRow, now: UnixMicros) -> Result<Accord, DbError> {
    let (accepted_at, expires_at) = (
        row.maybe_int(6)?.map(UnixMicros),
        row.maybe_int(7)?.map(UnixMicros),
    );
    let status = match (accepted_at, expires_at) {
        (_, Some(at)) if at <= now => AccordStatus::Expired,
        (Some(_), _) => AccordStatus::Accepted,
        (None, _) => AccordStatus::Proposed,
    };
    let reaches = row.text(4)?;
    Ok(Accord {
        id: row.text(0)?,
        status,
        grantor: parse_stored_handle(&row.text(1)?)?,
        grantee: parse_stored_handle(&row.text(2)?)?,
        grant: parse_stored_role(&row.text(3)?)?,
        reaches: AccordReach::parse(&reaches)
            .ok_or_else(|| DbError::Other(format!("{reaches} is stored as a reach")))?,
        expires_at,
        proposed_at: UnixMicros(row.int(5)?),
        accepted_at,
    })
}

pub(crate) async fn insert_accord(
    tx: &DbConnection<'_>,
    grantor: i64,
    grantee: i64,
    accord: &Accord,
) -> Result<(), DbError> {
    const SQL: &str =
        "insert into accords (id, grantor, grantee, scope, reaches, proposed_at, expires_at)
                       values ($1, $2, $3, $4, $5, $6, $7)";
    let reaches = accord.reaches.to_string();
    let params = [
        SqlParam::Text(&accord.id),
        SqlParam::Int(grantor),
        SqlParam::Int(grantee),
        SqlParam::Text(accord.grant.as_str()),
        SqlParam::Text(&reaches),
        SqlParam::Int(accord.proposed_at.0),
        SqlParam::optional_int(accord.expires_at.map(|at| at.0)),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

/// An accord to which the organisation is a party.
pub(crate) async fn find_accord(
    tx: &DbConnection<'_>,
    org: i64,
    id: &str,
    now: UnixMicros,
) -> Result<Option<Accord>, DbError> {
    // PostgreSQL has no text with this in it, and would fail where nothing is found.
    if id.contains('\0') {
        return Ok(None);
    }
    const SQL: &str = select!("where a.id = $2 and (a.grantor = $1 or a.grantee = $1)");
    let row = tx
        .query_first(SQL, &[SqlParam::Int(org), SqlParam::Text(id)])
        .await?;
    row.map(|row| read_accord_row(row, now)).transpose()
}

/// All to which the organisation is a party, oldest first, at most `most`.
pub(crate) async fn list_accords(
    tx: &DbConnection<'_>,
    org: i64,
    now: UnixMicros,
    limit: usize,
) -> Result<Vec<Accord>, DbError> {
    const SQL: &str =
        select!("where a.grantor = $1 or a.grantee = $1 order by a.proposed_at, a.id limit $2");
    let rows = tx
        .query(SQL, &[SqlParam::Int(org), SqlParam::Int(limit as i64)])
        .await?;
    rows.into_iter()
        .map(|row| read_accord_row(row, now))
        .collect()
}

/// What the organisation has granted and the other side accepted, whether or not its time is over.
pub(crate) async fn list_granted_accords(
    tx: &DbConnection<'_>,
    org: i64,
    now: UnixMicros,
) -> Result<Vec<Accord>, DbError> {
    const SQL: &str = select!("where a.grantor = $1 and a.accepted_at is not null");
    tx.query(SQL, &[SqlParam::Int(org)])
        .await?
        .into_iter()
        .map(|row| read_accord_row(row, now))
        .collect()
}

/// Proposed or granted.
pub(crate) async fn count_accords_by_grantor(
    tx: &DbConnection<'_>,
    org: i64,
) -> Result<usize, DbError> {
    let row = tx
        .query_first(
            "select count(*) from accords where grantor = $1",
            &[SqlParam::Int(org)],
        )
        .await?;
    Ok(row.map_or(Ok(0), |row| row.int(0))? as usize)
}

pub(crate) async fn accept_accord(
    tx: &DbConnection<'_>,
    id: &str,
    now: UnixMicros,
) -> Result<(), DbError> {
    const SQL: &str = "update accords set accepted_at = $2 where id = $1 and accepted_at is null";
    tx.execute(SQL, &[SqlParam::Text(id), SqlParam::Int(now.0)])
        .await
        .map(drop)
}

pub(crate) async fn delete_accord(tx: &DbConnection<'_>, id: &str) -> Result<(), DbError> {
    tx.execute("delete from accords where id = $1", &[SqlParam::Text(id)])
        .await
        .map(drop)
}

/// Those of a grantor whose time is over make room for new ones.
pub(crate) async fn delete_expired_accords(
    tx: &DbConnection<'_>,
    grantor: i64,
    now: UnixMicros,
) -> Result<(), DbError> {
    const SQL: &str = "delete from accords where grantor = $1 and expires_at <= $2";
    tx.execute(SQL, &[SqlParam::Int(grantor), SqlParam::Int(now.0)])
        .await
        .map(drop)
}

/// The organisation ends, and so do its accords; answers with who had granted it one.
pub(crate) async fn delete_org_accords(
    tx: &DbConnection<'_>,
    org: i64,
) -> Result<Vec<Handle>, DbError> {
    const GRANTORS: &str = "select distinct o.handle from accords a join orgs o on o.id = a.grantor where a.grantee = $1";
    let rows = tx.query(GRANTORS, &[SqlParam::Int(org)]).await?;
    let grantors = rows
        .into_iter()
        .map(|mut row| parse_stored_handle(&row.text(0)?))
        .collect();
    tx.execute(
        "delete from accords where grantor = $1 or grantee = $1",
        &[SqlParam::Int(org)],
    )
    .await?;
    grantors
}
