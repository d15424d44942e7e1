//! Deletes what unregistered agents leave behind, if nothing refers to it: their rows, and owners without agents and credits.

use super::{AgentId, DbConnection, DbError, OwnerId, SqlParam, counters};
use chorus_wire::time::UnixMicros;

/// The setting with the time of departure up to which agents have been looked at. Each is looked at once.
const LOOKED_AT: &str = "departed";

/// Looks at about `limit` agents that unregistered before `gone_before`, and returns how many. The row of an agent that a message
/// or a job names stays, because those show the name.
pub(super) async fn trim_departed_agents(
    tx: &DbConnection<'_>,
    gone_before: UnixMicros,
    limit: i64,
) -> Result<u64, DbError> {
    // All that unregistered at one time are looked at together: one write group has one time.
    const SQL: &str = "select id, owner, deleted_at from principals where deleted_at > $1 and deleted_at <=
                           (select max(d.deleted_at) from (select deleted_at from principals
                            where deleted_at > $1 and deleted_at < $2 order by deleted_at limit $3) d)
                       order by deleted_at";
    let looked_at = counters::read_setting(tx, LOOKED_AT).await?.unwrap_or(0);
    let params = [
        SqlParam::Int(looked_at),
        SqlParam::Int(gone_before.0),
        SqlParam::Int(limit),
    ];
    let rows = tx.query(SQL, &params).await?;
    let count = rows.len() as u64;
    for row in rows {
        let mut columns = row.columns();
        let agent: AgentId = columns.id()?;
        let owner: OwnerId = columns.id()?;
        let departed_at = columns.int()?;
        if delete_agent(tx, agent).await? {
            delete_owner(tx, owner).await?;
        }
        counters::write_setting(tx, LOOKED_AT, departed_at).await?;
    }
    Ok(count)
}

async fn delete_agent(tx: &DbConnection<'_>, agent: AgentId) -> Result<bool, DbError> {
    const SQL: &str = "delete from principals where id = $1
        and not exists (select 1 from parts where who = $1)
        and not exists (select 1 from jobs where orchestrator = $1)
        and not exists (select 1 from jobs where worker = $1)
        and not exists (select 1 from judgements where worker = $1)
        and not exists (select 1 from stored_bytes where writer = $1 and octets > 0)";
    if tx.execute(SQL, &[SqlParam::id(agent)]).await? == 0 {
        return Ok(false);
    }
    for sql in [
        "delete from reputations where agent = $1",
        "delete from hirer_days where agent = $1",
        "delete from trimmed where subject = $1",
    ] {
        tx.execute(sql, &[SqlParam::id(agent)]).await?;
    }
    Ok(true)
}

/// Deletes an owner that has no agents, no name that can be claimed, and an account that is empty and has no postings. The newest
/// owner stays, because the next id is counted from it.
async fn delete_owner(tx: &DbConnection<'_>, owner: OwnerId) -> Result<(), DbError> {
    // The name of an owner that is gone begins with a character that no owner_id has.
    const OWNER: &str =
        "delete from owners where id = $1 and name like $2 and id < (select max(id) from owners)
        and not exists (select 1 from principals where owner = $1)
        and not exists (select 1 from accounts where id = $3 and balance <> 0)
        and not exists (select 1 from postings where payer = $1)
        and not exists (select 1 from postings where payee = $1)";
    let account = SqlParam::Int(owner.0 * 2);
    let params = [SqlParam::id(owner), SqlParam::Text("\u{1}%"), account];
    if tx.execute(OWNER, &params).await? == 1 {
        tx.execute("delete from accounts where id = $1", &[account])
            .await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::identity::{OperatorCaller, Principal};
    use crate::{Clock, Hub, HubOptions, lifecycle};
    use chorus_wire::registration::RegistrationRequest;
    use chorus_wire::time::UnixMicros;
    use std::time::Duration;

    async fn register(hub: &Hub, name: &str) {
        let body = format!(r#"{{"agent_id": "{name}", "agent_card": {{}}}}"#);
        let request = RegistrationRequest::parse(body.as_bytes()).unwrap();
        lifecycle::register_agent(&Principal::Anonymous, hub, hub.frames(), request, None)
            .await
            .unwrap();
    }

    async fn count_rows(hub: &Hub, sql: &'static str) -> i64 {
        let row = hub
            .store()
            .read(async move |tx| Ok(tx.query_first(sql, &[]).await?))
            .await;
        row.unwrap().unwrap().int(0).unwrap()
    }

    /// R-64, R-95: only the first of many registrations of a name leaves something, its grant.
    #[tokio::test]
    async fn agents_that_leave_without_a_trace_leave_no_rows() {
        let dir = tempfile::tempdir().unwrap();
        let clock = Clock::manual_at(UnixMicros(1_774_000_000_000_000));
        let options = HubOptions {
            clock: clock.clone(),
            ..HubOptions::for_data_dir(dir.path())
        };
        let hub = Hub::open(options).await.unwrap();
        let operator = Principal::Operator(OperatorCaller {
            fingerprint: 0,
            label: None,
            address: None,
            console_session: None,
        });
        for _ in 0..20 {
            register(&hub, "guest@chorus").await;
            clock.advance(Duration::from_secs(1));
            lifecycle::unregister_agent(&operator, &hub, hub.frames(), "guest@chorus")
                .await
                .unwrap();
        }
        register(&hub, "stays@chorus").await;
        hub.run_maintenance().await.unwrap();
        assert_eq!(
            count_rows(&hub, "select count(*) from principals").await,
            21
        );
        clock.advance(Duration::from_secs(2 * 86_400));
        hub.run_maintenance().await.unwrap();
        let agents = count_rows(&hub, "select count(*) from principals").await;
        let owners = count_rows(&hub, "select count(*) from owners").await;
        let accounts = count_rows(&hub, "select count(*) from accounts").await;
        let postings = count_rows(&hub, "select count(*) from postings").await;
        assert_eq!(agents, 1);
        assert_eq!(owners, 2, "the first has its grant");
        assert_eq!(
            (accounts, postings),
            (3, 2),
            "and the source of all credits"
        );
        hub.close().await;
    }
}
