//! The begin and the commit of a write group, on a real database or on that of a simulation.

use super::commit_meters;
use super::counters::CounterDeltas;
use super::log::{self, LogHead};
use super::write_group::{CommitFailure, GroupError};
use super::{DbConnection, DbError, sql_dialect};
use crate::simulation::{PlannedCommit, SimulatedDatabase};

/// Begins a group and returns the head of the log. On PostgreSQL it is read again, because peers write too and a failed commit may
/// have taken effect. On SQLite only this writer writes, so the known head is current.
pub(super) async fn begin_group(
    tx: &DbConnection<'_>,
    known_head: LogHead,
    simulated: Option<&dyn SimulatedDatabase>,
) -> Result<LogHead, DbError> {
    tx.control_transaction(sql_dialect::begin_group_sql(tx))
        .await?;
    let is_shared = match tx {
        DbConnection::Sqlite(_) => simulated.is_some_and(SimulatedDatabase::is_shared),
        DbConnection::Postgres(_) => true,
    };
    if !is_shared {
        return Ok(known_head);
    }
    Ok(LogHead {
        indexed_at: known_head.indexed_at,
        ..log::read_head(tx).await?
    })
}

/// Sends the commit of a group.
pub(super) async fn send_commit(
    tx: &DbConnection<'_>,
    deltas: &CounterDeltas,
    simulated: Option<&dyn SimulatedDatabase>,
) -> Result<(), GroupError> {
    if let Some(database) = simulated {
        let planned = database.next_commit();
        apply_planned_commit(tx, planned).await?;
        if planned == PlannedCommit::Forget {
            return Ok(());
        }
    }
    commit_meters::commit_group(tx, deltas)
        .await
        .map_err(|error| GroupError::classify_failure(tx, true, error))
}

async fn commit(tx: &DbConnection<'_>) -> Result<(), GroupError> {
    tx.control_transaction("commit")
        .await
        .map_err(|error| GroupError::classify_failure(tx, true, error))
}

/// Does to a commit what the simulation decided (D-110). Returns when the commit is to be sent.
async fn apply_planned_commit(
    tx: &DbConnection<'_>,
    planned: PlannedCommit,
) -> Result<(), GroupError> {
    let fail = |failure| {
        Err(GroupError {
            failure,
            cause: DbError::Unavailable("a fault of the simulation".into()),
        })
    };
    match planned {
        PlannedCommit::Commit => Ok(()),
        PlannedCommit::Delay(pause) => {
            tokio::time::sleep(pause).await;
            Ok(())
        }
        PlannedCommit::Forget => tx
            .control_transaction("rollback")
            .await
            .map_err(|error| GroupError::classify_failure(tx, true, error)),
        PlannedCommit::RollBack => fail(CommitFailure::RolledBack),
        PlannedCommit::LoseConnection => fail(CommitFailure::ConnectionLost),
        PlannedCommit::LoseAnswer { applied } => {
            if applied {
                commit(tx).await?;
            }
            fail(CommitFailure::OutcomeUnknown)
        }
        PlannedCommit::Die { applied } => {
            if applied {
                commit(tx).await?;
            }
            // The simulation drops the hub before anything else happens.
            std::future::pending().await
        }
    }
}
