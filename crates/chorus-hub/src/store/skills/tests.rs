//! Skill searches read index ranges only, however many agents offer a skill, and the stored counts stay correct.

use super::*;
use crate::store::{AgentId, DatabaseUrl, EntryPublisher, LogEntry, Store, SubjectId};
use crate::{Clock, PageCaches};
use std::sync::Arc;

/// A publisher without streams.
struct NullPublisher;

impl EntryPublisher for NullPublisher {
    fn has_draining_stream(&self, _: SubjectId) -> bool {
        false
    }

    fn publish_entry(&self, _: &LogEntry) -> bool {
        false
    }

    fn resync_streams(&self) {}
}

fn offer(name: &str, cost: i64) -> SkillOffer {
    SkillOffer {
        skill_name: name.to_owned(),
        description: None,
        cost_per_call: Credits::from_hundredths(cost),
        input_schema: None,
        output_schema: None,
    }
}

fn offering(agent: AgentId) -> OfferingAgent {
    OfferingAgent {
        agent,
        score: 0,
        at_endpoint: false,
    }
}

async fn open_store() -> (Store, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(
        dir.path(),
        DatabaseUrl::in_data_dir(dir.path(), PageCaches::MAX),
        false,
        Clock::system(),
        Arc::new(NullPublisher),
    )
    .await
    .unwrap();
    (store, dir)
}

/// SQLite's query plan for a statement.
fn query_plan(tx: &DbConnection<'_>, sql: &str) -> String {
    let DbConnection::Sqlite(connection) = tx else {
        unreachable!("opened without a URL")
    };
    let explained = connection
        .prepare(&format!("explain query plan {sql}"))
        .and_then(|mut statement| {
            // Without parameters: the plan does not depend on them.
            let mut rows = statement.raw_query();
            let mut steps = Vec::new();
            while let Some(row) = rows.next()? {
                steps.push(row.get::<_, String>(3)?);
            }
            Ok(steps)
        });
    explained.unwrap().join("; ")
}

/// D-31: no search sorts or scans the table.
#[tokio::test]
async fn every_search_reads_an_index_in_order() {
    let (store, _dir) = open_store().await;
    for (sql, index) in [
        (RANKED_OF_ONE, "skills_best"),
        (RANKED_OF_ANY, "skills_any"),
        (CHEAPEST, "skills_cheapest"),
    ] {
        let plan = store
            .read(async move |tx| Ok(query_plan(tx, sql)))
            .await
            .unwrap();
        assert!(
            plan.contains(index) && !plan.contains("TEMP B-TREE"),
            "{plan}"
        );
    }
}

/// An agent that unregisters does not make the hub scan the skills of other agents.
#[tokio::test]
async fn a_skill_without_offers_is_deleted_by_its_name() {
    let (store, _dir) = open_store().await;
    let plan = store
        .read(async |tx| Ok(query_plan(tx, DELETE_UNOFFERED_NAME)))
        .await
        .unwrap();
    assert!(
        plan.starts_with("SEARCH") && !plan.contains("SCAN"),
        "{plan}"
    );
}

/// The stored counts equal what counting the rows would give.
#[tokio::test]
async fn stored_counts_follow_every_change() {
    let (store, _dir) = open_store().await;
    let counted = store
        .write(async |txn| {
            let tx = &txn.tx;
            replace_skills(tx, offering(AgentId(1)), &[offer("a", 5), offer("b", 7)]).await?;
            replace_skills(tx, offering(AgentId(2)), &[offer("a", 3)]).await?;
            assert!(
                upsert_skill(tx, offering(AgentId(3)), &offer("c", 1)).await?
                    && !upsert_skill(tx, offering(AgentId(3)), &offer("c", 2)).await?
            );
            replace_skills(tx, offering(AgentId(1)), &[offer("b", 9)]).await?;
            assert!(
                withdraw_skill(tx, AgentId(3), "c").await?
                    && !withdraw_skill(tx, AgentId(3), "c").await?
            );
            replace_skills(tx, offering(AgentId(4)), &[offer("a", 1)]).await?;
            replace_skills(tx, offering(AgentId(4)), &[]).await?;
            Ok((
                list_skill_names(tx, "", 10).await?,
                count_offering_agents(tx).await?,
            ))
        })
        .await
        .unwrap();
    let rows: Vec<_> = counted
        .0
        .0
        .iter()
        .map(|row| (&*row.skill_name, row.agents, row.min_cost.to_hundredths()))
        .collect();
    assert_eq!((rows, counted.1), (vec![("a", 1, 3), ("b", 1, 9)], 2));
}
