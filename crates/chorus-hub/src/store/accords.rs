//! The `accords` table: agreements of two organisations about who may address whom.

use super::orgs::{parse_stored_handle, parse_stored_role};
use super::{DbConnection, DbError, OrgId, SqlParam, SqlRow};
use crate::clock_watch::ExpiryClock;
use chorus_wire::frame::organisation::{Accord, AccordReach, AccordStatus};
use chorus_wire::identity::Handle;
use chorus_wire::time::UnixMicros;

macro_rules! select_accords {
    ($rest:literal) => {
        concat!(
            "select a.id, g.handle, h.handle, a.scope, a.reaches, a.proposed_at, a.accepted_at, a.expires_at
             from accords a join orgs g on g.id = a.grantor join orgs h on h.id = a.grantee ",
            $rest
        )
    };
}

/// Reads the columns of `select_accords!`. The status depends on `now`: an accord expires.
fn read_accord_row(row: SqlRow, now: UnixMicros) -> Result<Accord, DbError> {
    let mut columns = row.columns();
    let id = columns.text()?;
    let grantor = parse_stored_handle(&columns.text()?)?;
    let grantee = parse_stored_handle(&columns.text()?)?;
    let grant = parse_stored_role(&columns.text()?)?;
    let reaches = columns.text()?;
    let proposed_at = UnixMicros(columns.int()?);
    let accepted_at = columns.maybe_int()?.map(UnixMicros);
    let expires_at = columns.maybe_int()?.map(UnixMicros);
    columns.finish();
    let status = match (accepted_at, expires_at) {
        (_, Some(at)) if at <= now => AccordStatus::Expired,
        (Some(_), _) => AccordStatus::Accepted,
        (None, _) => AccordStatus::Proposed,
    };
    Ok(Accord {
        id,
        status,
        grantor,
        grantee,
        grant,
        reaches: AccordReach::parse(&reaches)
            .ok_or_else(|| DbError::Other(format!("{reaches} is stored as a reach")))?,
        expires_at,
        proposed_at,
        accepted_at,
    })
}

pub(crate) async fn insert_accord(
    tx: &DbConnection<'_>,
    grantor: OrgId,
    grantee: OrgId,
    accord: &Accord,
) -> Result<(), DbError> {
    const SQL: &str =
        "insert into accords (id, grantor, grantee, scope, reaches, proposed_at, expires_at)
                       values ($1, $2, $3, $4, $5, $6, $7)";
    let reaches = accord.reaches.to_string();
    let params = [
        SqlParam::Text(&accord.id),
        SqlParam::id(grantor),
        SqlParam::id(grantee),
        SqlParam::Text(accord.grant.as_str()),
        SqlParam::Text(&reaches),
        SqlParam::Int(accord.proposed_at.0),
        SqlParam::optional_int(accord.expires_at.map(|at| at.0)),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

/// The accord of this id, if the organisation is its grantor or grantee.
pub(crate) async fn find_accord(
    tx: &DbConnection<'_>,
    org: OrgId,
    id: &str,
    now: UnixMicros,
) -> Result<Option<Accord>, DbError> {
    // PostgreSQL rejects a text with a NUL character; no stored id contains one.
    if id.contains('\0') {
        return Ok(None);
    }
    const SQL: &str = select_accords!("where a.id = $2 and (a.grantor = $1 or a.grantee = $1)");
    let row = tx
        .query_first(SQL, &[SqlParam::id(org), SqlParam::Text(id)])
        .await?;
    row.map(|row| read_accord_row(row, now)).transpose()
}

/// The accords of which the organisation is grantor or grantee, oldest first.
pub(crate) async fn list_accords(
    tx: &DbConnection<'_>,
    org: OrgId,
    now: UnixMicros,
    limit: usize,
) -> Result<Vec<Accord>, DbError> {
    const SQL: &str = select_accords!(
        "where a.grantor = $1 or a.grantee = $1 order by a.proposed_at, a.id limit $2"
    );
    let rows = tx
        .query(SQL, &[SqlParam::id(org), SqlParam::Int(limit as i64)])
        .await?;
    rows.into_iter()
        .map(|row| read_accord_row(row, now))
        .collect()
}

/// The accords that the organisation granted and the grantee accepted, expired ones included.
pub(crate) async fn list_granted_accords(
    tx: &DbConnection<'_>,
    org: OrgId,
    now: UnixMicros,
) -> Result<Vec<Accord>, DbError> {
    const SQL: &str = select_accords!("where a.grantor = $1 and a.accepted_at is not null");
    tx.query(SQL, &[SqlParam::id(org)])
        .await?
        .into_iter()
        .map(|row| read_accord_row(row, now))
        .collect()
}

/// Counts proposed and accepted accords of the grantor, without expired ones.
pub(crate) async fn count_accords_by_grantor(
    tx: &DbConnection<'_>,
    org: OrgId,
    now: UnixMicros,
) -> Result<usize, DbError> {
    const SQL: &str = "select count(*) from accords where grantor = $1 and (expires_at is null or expires_at > $2)";
    let params = [SqlParam::id(org), SqlParam::Int(now.0)];
    let row = tx.query_first(SQL, &params).await?;
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

/// Deletes the grantor's expired accords, so that their number is bounded. Those that only seem expired after a leap of the clock
/// stay: they are in force again when the clock is set right (D-123).
pub(crate) async fn delete_expired_accords(
    tx: &DbConnection<'_>,
    grantor: OrgId,
    clock: ExpiryClock,
) -> Result<(), DbError> {
    const SQL: &str = "delete from accords where grantor = $1 and expires_at <= $2
        and (expires_at <= $3 or proposed_at >= $4)";
    let params = [
        SqlParam::id(grantor),
        SqlParam::Int(clock.now().0),
        SqlParam::Int(clock.now_before_leap().0),
        SqlParam::Int(clock.leaped_at().0),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

/// Deletes the accords of an organisation that ends. Returns the organisations that had granted it one.
pub(crate) async fn delete_org_accords(
    tx: &DbConnection<'_>,
    org: OrgId,
) -> Result<Vec<Handle>, DbError> {
    const GRANTORS: &str = "select distinct o.handle from accords a join orgs o on o.id = a.grantor where a.grantee = $1";
    let rows = tx.query(GRANTORS, &[SqlParam::id(org)]).await?;
    let grantors = rows
        .into_iter()
        .map(|mut row| parse_stored_handle(&row.text(0)?))
        .collect();
    tx.execute(
        "delete from accords where grantor = $1 or grantee = $1",
        &[SqlParam::id(org)],
    )
    .await?;
    grantors
}
