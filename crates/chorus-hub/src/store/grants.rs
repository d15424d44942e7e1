//! Who else may address an agent.

use super::orgs::parse_stored_handle;
use super::{DbConnection, DbError, SqlParam};
use chorus_wire::{frame::organisation::HandleGrant, time::UnixMicros};

/// Writes a grant down, once; the time of the first one stands.
pub(crate) async fn insert_grant(
    tx: &DbConnection<'_>,
    grantor: i64,
    grantee: i64,
    now: UnixMicros,
) -> Result<UnixMicros, DbError> {
    const SQL: &str = "insert into grants (grantor, grantee, at) values ($1, $2, $3)
                       on conflict (grantor, grantee) do update set at = grants.at returning at";
    let row = tx
        .query_first(
            SQL,
            &[
                SqlParam::Int(grantor),
                SqlParam::Int(grantee),
                SqlParam::Int(now.0),
            ],
        )
        .await?;
    row.ok_or_else(|| DbError::Other("no grant was written".into()))?
        .int(0)
        .map(UnixMicros)
}

/// False when there was none.
pub(crate) async fn delete_grant(
    tx: &DbConnection<'_>,
    grantor: i64,
    grantee: i64,
) -> Result<bool, DbError> {
    const SQL: &str = "delete from grants where grantor = $1 and grantee = $2";
    Ok(tx
        .execute(SQL, &[SqlParam::Int(grantor), SqlParam::Int(grantee)])
        .await?
        > 0)
}

pub(crate) async fn has_grant(
    tx: &DbConnection<'_>,
    grantor: i64,
    grantee: i64,
) -> Result<bool, DbError> {
    const SQL: &str = "select at from grants where grantor = $1 and grantee = $2";
    Ok(tx
        .query_first(SQL, &[SqlParam::Int(grantor), SqlParam::Int(grantee)])
        .await?
        .is_some())
}

pub(crate) async fn count_grants(tx: &DbConnection<'_>, grantor: i64) -> Result<usize, DbError> {
    let row = tx
        .query_first(
            "select count(*) from grants where grantor = $1",
            &[SqlParam::Int(grantor)],
        )
        .await?;
    Ok(row.map_or(Ok(0), |row| row.int(0))? as usize)
}

/// Who may address the grantor, in the order of their handles.
pub(crate) async fn list_grants(
    tx: &DbConnection<'_>,
    grantor: i64,
) -> Result<Vec<HandleGrant>, DbError> {
    const SQL: &str = "select p.handle, g.at from grants g join principals p on p.id = g.grantee
                       where g.grantor = $1 and p.handle is not null and p.deleted_at is null order by p.handle";
    let rows = tx.query(SQL, &[SqlParam::Int(grantor)]).await?;
    rows.into_iter()
        .map(|mut row| {
            Ok(HandleGrant {
                grantee: parse_stored_handle(&row.text(0)?)?,
                granted_at: UnixMicros(row.int(1)?),
            })
        })
        .collect()
}

/// The agent is gone: what it granted and what it was granted goes with it.
pub(crate) async fn delete_agent_grants(tx: &DbConnection<'_>, agent: i64) -> Result<(), DbError> {
    tx.execute(
        "delete from grants where grantor = $1",
        &[SqlParam::Int(agent)],
    )
    .await?;
    tx.execute(
        "delete from grants where grantee = $1",
        &[SqlParam::Int(agent)],
    )
    .await
    .map(drop)
}
