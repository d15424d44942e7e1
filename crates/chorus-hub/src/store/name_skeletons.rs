//! Confusable skeletons of agent names: two agents of one host may not have names that look alike.

use super::{AgentId, DbConnection, DbError, SqlParam};

/// Whether a registered agent has this skeleton.
pub(crate) async fn is_skeleton_taken(
    tx: &DbConnection<'_>,
    skeleton: &str,
) -> Result<bool, DbError> {
    const SQL: &str = "select 1 from principals where skeleton = $1 and deleted_at is null limit 1";
    Ok(tx
        .query_first(SQL, &[SqlParam::Text(skeleton)])
        .await?
        .is_some())
}

pub(crate) async fn set_skeleton(
    tx: &DbConnection<'_>,
    agent: AgentId,
    skeleton: &str,
) -> Result<(), DbError> {
    tx.execute(
        "update principals set skeleton = $2 where id = $1",
        &[SqlParam::id(agent), SqlParam::Text(skeleton)],
    )
    .await
    .map(drop)
}

/// Registered agents without a skeleton, from before there were any: their ids and names.
pub(crate) async fn list_agents_without_skeleton(
    tx: &DbConnection<'_>,
    limit: usize,
) -> Result<Vec<(AgentId, String)>, DbError> {
    const SQL: &str =
        "select id, agent_id from principals where skeleton is null and deleted_at is null
                       order by id limit $1";
    tx.query(SQL, &[SqlParam::Int(limit as i64)])
        .await?
        .into_iter()
        .map(|mut row| Ok((row.id(0)?, row.text(1)?)))
        .collect()
}
