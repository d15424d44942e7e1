//! Skills on offer, and how many offer each.

use super::{DbConnection, DbError, SqlParam, SqlRow};
use chorus_wire::market::credits::Credits;
use chorus_wire::market::skill::{SkillOffer, SkillRow};
use serde_json::Value;

/// The setting that counts the agents with at least one skill.
const OFFERING_AGENTS: &str = "offering";

/// A place in the ranking of one search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RankedOffer {
    pub agent: i64,
    pub name: String,
    pub score: i64,
    pub cost: Credits,
}

/// Which offers are asked for.
#[derive(Clone, Debug)]
pub(crate) struct OfferFilter {
    pub name: Option<String>,
    pub min_score: i64,
    pub max_cost: i64,
}

/// From here on the agent offers these and nothing else.
pub(crate) async fn replace_skills(
    tx: &DbConnection<'_>,
    agent: i64,
    score: i64,
    skills: &[SkillOffer],
) -> Result<(), DbError> {
    let before = tx
        .query(
            "delete from skills where agent = $1 returning name",
            &[SqlParam::Int(agent)],
        )
        .await?;
    let offered = i64::from(!before.is_empty());
    for mut row in before {
        adjust_skill_count(tx, &row.text(0)?, -1).await?;
    }
    for skill in skills {
        insert_skill_row(tx, agent, score, skill).await?;
        adjust_skill_count(tx, &skill.skill_name, 1).await?;
    }
    adjust_offering_agents(tx, i64::from(!skills.is_empty()) - offered).await
}

/// Offers one skill more, or the same one otherwise; true when it is new.
pub(crate) async fn upsert_skill(
    tx: &DbConnection<'_>,
    agent: i64,
    score: i64,
    skill: &SkillOffer,
) -> Result<bool, DbError> {
    let offered_count = count_skills(tx, agent).await?;
    let was_offered = delete_skill_row(tx, agent, &skill.skill_name).await?;
    insert_skill_row(tx, agent, score, skill).await?;
    if !was_offered {
        adjust_skill_count(tx, &skill.skill_name, 1).await?;
    }
    adjust_offering_agents(tx, i64::from(offered_count == 0)).await?;
    Ok(!was_offered)
}

/// Withdraws one skill; false when it was not offered.
pub(crate) async fn withdraw_skill(
    tx: &DbConnection<'_>,
    agent: i64,
    name: &str,
) -> Result<bool, DbError> {
    if !delete_skill_row(tx, agent, name).await? {
        return Ok(false);
    }
    adjust_skill_count(tx, name, -1).await?;
    let left = count_skills(tx, agent).await?;
    adjust_offering_agents(tx, -i64::from(left == 0)).await?;
    Ok(true)
}

async fn delete_skill_row(tx: &DbConnection<'_>, agent: i64, name: &str) -> Result<bool, DbError> {
    const SQL: &str = "delete from skills where agent = $1 and name = $2";
    Ok(tx
        .execute(SQL, &[SqlParam::Int(agent), SqlParam::Text(name)])
        .await?
        > 0)
}

async fn insert_skill_row(
    tx: &DbConnection<'_>,
    agent: i64,
    score: i64,
    skill: &SkillOffer,
) -> Result<(), DbError> {
    const SQL: &str =
        "insert into skills (agent, name, description, cost, input_schema, output_schema, score)
                       values ($1, $2, $3, $4, $5, $6, $7)";
    let input = skill.input_schema.as_ref().map(Value::to_string);
    let output = skill.output_schema.as_ref().map(Value::to_string);
    let params = [
        SqlParam::Int(agent),
        SqlParam::Text(&skill.skill_name),
        SqlParam::optional_text(skill.description.as_deref()),
        SqlParam::Int(skill.cost_per_call.to_hundredths()),
        SqlParam::optional_text(input.as_deref()),
        SqlParam::optional_text(output.as_deref()),
        SqlParam::Int(score),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

async fn adjust_skill_count(tx: &DbConnection<'_>, name: &str, change: i64) -> Result<(), DbError> {
    const SQL: &str = "insert into skill_names (name, agents) values ($1, $2)
                       on conflict (name) do update set agents = skill_names.agents + excluded.agents";
    tx.execute(SQL, &[SqlParam::Text(name), SqlParam::Int(change)])
        .await?;
    if change < 0 {
        tx.execute(DELETE_UNOFFERED_NAME, &[SqlParam::Text(name)])
            .await?;
    }
    Ok(())
}

/// By its name: to look through all of them would be felt by everybody with each agent that leaves.
const DELETE_UNOFFERED_NAME: &str = "delete from skill_names where name = $1 and agents = 0";

async fn adjust_offering_agents(tx: &DbConnection<'_>, change: i64) -> Result<(), DbError> {
    const SQL: &str = "insert into settings (name, value) values ($1, $2)
                       on conflict (name) do update set value = settings.value + excluded.value";
    if change == 0 {
        Ok(())
    } else {
        tx.execute(
            SQL,
            &[SqlParam::Text(OFFERING_AGENTS), SqlParam::Int(change)],
        )
        .await
        .map(drop)
    }
}

/// How many skills an agent offers.
pub(crate) async fn count_skills(tx: &DbConnection<'_>, agent: i64) -> Result<usize, DbError> {
    let row = tx
        .query_first(
            "select count(*) from skills where agent = $1",
            &[SqlParam::Int(agent)],
        )
        .await?;
    Ok(row.map_or(Ok(0), |row| row.int(0))? as usize)
}

/// The agent's reputation changed, and with it its place in every ranking.
pub(crate) async fn update_skill_scores(
    tx: &DbConnection<'_>,
    agent: i64,
    score: i64,
) -> Result<(), DbError> {
    tx.execute(
        "update skills set score = $2 where agent = $1",
        &[SqlParam::Int(agent), SqlParam::Int(score)],
    )
    .await
    .map(drop)
}

pub(crate) async fn find_skill(
    tx: &DbConnection<'_>,
    agent: i64,
    name: &str,
) -> Result<Option<SkillOffer>, DbError> {
    const SQL: &str = "select name, description, cost, input_schema, output_schema from skills
                       where agent = $1 and name = $2";
    let row = tx
        .query_first(SQL, &[SqlParam::Int(agent), SqlParam::Text(name)])
        .await?;
    row.map(read_skill_row).transpose()
}

fn read_skill_row(mut row: SqlRow) -> Result<SkillOffer, DbError> {
    Ok(SkillOffer {
        skill_name: row.text(0)?,
        description: row.maybe_text(1)?,
        cost_per_call: Credits::from_hundredths(row.int(2)?),
        input_schema: parse_schema(row.maybe_text(3)?)?,
        output_schema: parse_schema(row.maybe_text(4)?)?,
    })
}

fn parse_schema(text: Option<String>) -> Result<Option<Value>, DbError> {
    let read = |text: String| {
        serde_json::from_str(&text).map_err(|e| DbError::Other(format!("a schema: {e}")))
    };
    text.map(read).transpose()
}

const RANKED_OF_ONE: &str = "select agent, name, score, cost from skills
                             where name = $4 and score >= $1 and cost <= $2 order by score desc, cost, agent limit $3";
const RANKED_OF_ANY: &str = "select agent, name, score, cost from skills
                             where score >= $1 and cost <= $2 order by score desc, cost, agent, name limit $3";
const CHEAPEST: &str =
    "select cost from skills where name = $1 and agent <> $2 order by cost limit 1";

/// The best offers: by reputation, then by cost, then the older agent.
pub(crate) async fn list_ranked_offers(
    tx: &DbConnection<'_>,
    filter: &OfferFilter,
    limit: usize,
) -> Result<Vec<RankedOffer>, DbError> {
    let bounds = [
        SqlParam::Int(filter.min_score),
        SqlParam::Int(filter.max_cost),
        SqlParam::Int(limit as i64),
    ];
    let rows = match &filter.name {
        Some(name) => {
            tx.query(
                RANKED_OF_ONE,
                &[bounds[0], bounds[1], bounds[2], SqlParam::Text(name)],
            )
            .await?
        }
        None => tx.query(RANKED_OF_ANY, &bounds).await?,
    };
    let read_offer_row = |mut row: SqlRow| {
        let (agent, score, cost) = (
            row.int(0)?,
            row.int(2)?,
            Credits::from_hundredths(row.int(3)?),
        );
        Ok(RankedOffer {
            agent,
            name: row.text(1)?,
            score,
            cost,
        })
    };
    rows.into_iter().map(read_offer_row).collect()
}

/// How many offers there are of what is wanted: known for a skill as a whole, otherwise counted, and not beyond `most`.
pub(crate) async fn count_offers(
    tx: &DbConnection<'_>,
    filter: &OfferFilter,
    max_count: usize,
) -> Result<i64, DbError> {
    const ALL: &str = "select agents from skill_names where name = $1";
    const OF_ONE: &str = "select count(*) from (select agent from skills where name = $4 and score >= $1 and cost <= $2
                          limit $3) found";
    const OF_ANY: &str = "select count(*) from (select agent from skills where score >= $1 and cost <= $2 limit $3) found";
    let bounds = [
        SqlParam::Int(filter.min_score),
        SqlParam::Int(filter.max_cost),
        SqlParam::Int(max_count as i64),
    ];
    let row = match &filter.name {
        Some(name) if filter.min_score <= 0 && filter.max_cost == i64::MAX => {
            tx.query_first(ALL, &[SqlParam::Text(name)]).await?
        }
        Some(name) => {
            tx.query_first(
                OF_ONE,
                &[bounds[0], bounds[1], bounds[2], SqlParam::Text(name)],
            )
            .await?
        }
        None => tx.query_first(OF_ANY, &bounds).await?,
    };
    row.map_or(Ok(0), |row| row.int(0))
}

/// The least that anybody but `not` asks for a skill.
pub(crate) async fn find_lowest_cost(
    tx: &DbConnection<'_>,
    name: &str,
    excluded_agent: i64,
) -> Result<Option<Credits>, DbError> {
    let row = tx
        .query_first(
            CHEAPEST,
            &[SqlParam::Text(name), SqlParam::Int(excluded_agent)],
        )
        .await?;
    row.map(|row| row.int(0).map(Credits::from_hundredths))
        .transpose()
}

/// Every skill on offer, in the order of names.
pub(crate) async fn list_skill_names(
    tx: &DbConnection<'_>,
    after: &str,
    limit: usize,
) -> Result<Vec<SkillRow>, DbError> {
    const SQL: &str =
        "select n.name, n.agents, (select min(s.cost) from skills s where s.name = n.name)
                       from skill_names n where n.name > $1 order by n.name limit $2";
    let rows = tx
        .query(SQL, &[SqlParam::Text(after), SqlParam::Int(limit as i64)])
        .await?;
    let row = |mut row: SqlRow| {
        let (agents, min_cost) = (
            row.int(1)?.max(0) as u64,
            Credits::from_hundredths(row.int(2)?),
        );
        Ok(SkillRow {
            skill_name: row.text(0)?,
            agents,
            min_cost,
        })
    };
    rows.into_iter().map(row).collect()
}

/// How many agents offer something.
pub(crate) async fn count_offering_agents(tx: &DbConnection<'_>) -> Result<u64, DbError> {
    Ok(super::counters::read_setting(tx, OFFERING_AGENTS)
        .await?
        .unwrap_or(0)
        .max(0) as u64)
}

#[cfg(test)]
mod tests;
