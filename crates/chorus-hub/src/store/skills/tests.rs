//! A search reads as much of the table as it shows, however many offer a skill.

use super::*;
use crate::Clock;
use crate::store::{EntryPublisher, LogEntry, Store};
use std::sync::Arc;

struct Nobody;

impl EntryPublisher for Nobody {
    fn has_draining_stream(&self, _: i64) -> bool {
        false
    }

    fn publish_entry(&self, _: &LogEntry) -> bool {
        false
    }

    fn resync_streams(&self) {}
}

fn skill(name: &str, cost: i64) -> SkillOffer {
    SkillOffer {
        skill_name: name.to_owned(),
        description: None,
        cost_per_call: Credits::from_hundredths(cost),
        input_schema: None,
        output_schema: None,
    }
}

async fn store() -> (Store, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), None, Clock::system(), Arc::new(Nobody))
        .await
        .unwrap();
    (store, dir)
}

/// How the database goes about it.
fn plan(tx: &DbConnection<'_>, sql: &str) -> String {
    let DbConnection::Sqlite(connection) = tx else {
        unreachable!("opened without a URL")
    };
    let explained = connection
        .prepare(&format!("explain query plan {sql}"))
        .and_then(|mut statement| {
            // Without its parameters: the plan does not depend on them.
            let (mut rows, mut steps) = (statement.raw_query(), Vec::new());
            while let Some(row) = rows.next()? {
                steps.push(row.get::<_, String>(3)?);
            }
            Ok(steps)
        });
    explained.unwrap().join("; ")
}

/// D-31: no sort and no scan, whatever is asked for.
#[tokio::test]
async fn every_search_walks_an_index_in_its_order() {
    let (store, _dir) = store().await;
    for (sql, index) in [
        (RANKED_OF_ONE, "skills_best"),
        (RANKED_OF_ANY, "skills_any"),
        (CHEAPEST, "skills_cheapest"),
    ] {
        let plan = store.read(async move |tx| Ok(plan(tx, sql))).await.unwrap();
        assert!(
            plan.contains(index) && !plan.contains("TEMP B-TREE"),
            "{plan}"
        );
    }
}

/// What an agent that leaves takes with it is found without a look at what others offer.
#[tokio::test]
async fn a_name_that_nobody_offers_any_more_is_found_by_its_name() {
    let (store, _dir) = store().await;
    let plan = store
        .read(async |tx| Ok(plan(tx, DELETE_UNOFFERED_NAME)))
        .await
        .unwrap();
    assert!(
        plan.starts_with("SEARCH") && !plan.contains("SCAN"),
        "{plan}"
    );
}

/// The counts beside the table are what counting would give, whatever is offered and withdrawn.
#[tokio::test]
async fn counts_follow_every_change() {
    let (store, _dir) = store().await;
    let counted = store
        .write(async |txn| {
            let tx = &txn.tx;
            replace_skills(tx, 1, 0, &[skill("a", 5), skill("b", 7)]).await?;
            replace_skills(tx, 2, 0, &[skill("a", 3)]).await?;
            assert!(
                upsert_skill(tx, 3, 0, &skill("c", 1)).await?
                    && !upsert_skill(tx, 3, 0, &skill("c", 2)).await?
            );
            replace_skills(tx, 1, 0, &[skill("b", 9)]).await?;
            assert!(withdraw_skill(tx, 3, "c").await? && !withdraw_skill(tx, 3, "c").await?);
            replace_skills(tx, 4, 0, &[skill("a", 1)]).await?;
            replace_skills(tx, 4, 0, &[]).await?;
            Ok((
                list_skill_names(tx, "", 10).await?,
                count_offering_agents(tx).await?,
            ))
        })
        .await
        .unwrap();
    let rows: Vec<_> = counted
        .0
        .iter()
        .map(|row| (&*row.skill_name, row.agents, row.min_cost.to_hundredths()))
        .collect();
    assert_eq!((rows, counted.1), (vec![("a", 1, 3), ("b", 1, 9)], 2));
}
