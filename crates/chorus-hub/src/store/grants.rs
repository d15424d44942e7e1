//! The `grants` table: permission of one handle for another to address it.

use super::orgs::parse_stored_handle;
use super::{AgentId, ColumnReader, DbConnection, DbError, FromRow, SqlParam};
use chorus_wire::{frame::organisation::HandleGrant, time::UnixMicros};

/// Inserts a grant and returns its time; an existing grant keeps its time.
pub(crate) async fn insert_grant(
    tx: &DbConnection<'_>,
    grantor: AgentId,
    grantee: AgentId,
    now: UnixMicros,
) -> Result<UnixMicros, DbError> {
    const SQL: &str = "insert into grants (grantor, grantee, at) values ($1, $2, $3)
                       on conflict (grantor, grantee) do update set at = grants.at returning at";
    let row = tx
        .query_first(
            SQL,
            &[
                SqlParam::id(grantor),
                SqlParam::id(grantee),
                SqlParam::Int(now.0),
            ],
        )
        .await?;
    row.ok_or_else(|| DbError::Other("no grant was written".into()))?
        .int(0)
        .map(UnixMicros)
}

/// Deletes a grant; false when there was none.
pub(crate) async fn delete_grant(
    tx: &DbConnection<'_>,
    grantor: AgentId,
    grantee: AgentId,
) -> Result<bool, DbError> {
    const SQL: &str = "delete from grants where grantor = $1 and grantee = $2";
    Ok(tx
        .execute(SQL, &[SqlParam::id(grantor), SqlParam::id(grantee)])
        .await?
        > 0)
}

pub(crate) async fn has_grant(
    tx: &DbConnection<'_>,
    grantor: AgentId,
    grantee: AgentId,
) -> Result<bool, DbError> {
    const SQL: &str = "select at from grants where grantor = $1 and grantee = $2";
    Ok(tx
        .query_first(SQL, &[SqlParam::id(grantor), SqlParam::id(grantee)])
        .await?
        .is_some())
}

pub(crate) async fn count_grants(
    tx: &DbConnection<'_>,
    grantor: AgentId,
) -> Result<usize, DbError> {
    let row = tx
        .query_first(
            "select count(*) from grants where grantor = $1",
            &[SqlParam::id(grantor)],
        )
        .await?;
    Ok(row.map_or(Ok(0), |row| row.int(0))? as usize)
}

macro_rules! grant_columns {
    () => {
        "p.handle, g.at"
    };
}

/// Reads `grant_columns!`.
impl FromRow for HandleGrant {
    fn from_columns(columns: &mut ColumnReader) -> Result<Self, DbError> {
        Ok(HandleGrant {
            grantee: parse_stored_handle(&columns.text()?)?,
            granted_at: UnixMicros(columns.int()?),
        })
    }
}

/// The grants of the grantor, ordered by the grantee's handle.
pub(crate) async fn list_grants(
    tx: &DbConnection<'_>,
    grantor: AgentId,
) -> Result<Vec<HandleGrant>, DbError> {
    const SQL: &str = concat!(
        "select ",
        grant_columns!(),
        " from grants g join principals p on p.id = g.grantee
          where g.grantor = $1 and p.handle is not null and p.deleted_at is null order by p.handle"
    );
    let rows = tx.query(SQL, &[SqlParam::id(grantor)]).await?;
    rows.into_iter().map(HandleGrant::from_row).collect()
}

/// Deletes the grants by and for an agent that unregistered.
pub(crate) async fn delete_agent_grants(
    tx: &DbConnection<'_>,
    agent: AgentId,
) -> Result<(), DbError> {
    tx.execute(
        "delete from grants where grantor = $1",
        &[SqlParam::id(agent)],
    )
    .await?;
    tx.execute(
        "delete from grants where grantee = $1",
        &[SqlParam::id(agent)],
    )
    .await
    .map(drop)
}
