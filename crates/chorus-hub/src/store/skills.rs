//! Skills on offer, and how many offer each.

use super::{DbError, Param, Row, Tx};
use chorus_wire::market::credits::Credits;
use chorus_wire::market::skill::{Skill, SkillRow};
use serde_json::Value;

/// The setting that counts the agents with at least one skill.
const OFFERING: &str = "offering";

/// A place in the ranking of one search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ranked {
    pub agent: i64,
    pub name: String,
    pub score: i64,
    pub cost: Credits,
}

/// Which offers are asked for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub name: Option<String>,
    pub min_score: i64,
    pub max_cost: i64,
}

/// From here on the agent offers these and nothing else.
pub(crate) async fn replace(
    tx: &Tx<'_>,
    agent: i64,
    score: i64,
    skills: &[Skill],
) -> Result<(), DbError> {
    let before = tx
        .query(
            "delete from skills where agent = $1 returning name",
            &[Param::Int(agent)],
        )
        .await?;
    let offered = i64::from(!before.is_empty());
    for mut row in before {
        count(tx, &row.text(0)?, -1).await?;
    }
    for skill in skills {
        insert(tx, agent, score, skill).await?;
        count(tx, &skill.skill_name, 1).await?;
    }
    offering(tx, i64::from(!skills.is_empty()) - offered).await
}

/// Offers one skill more, or the same one otherwise; true when it is new.
pub(crate) async fn put(
    tx: &Tx<'_>,
    agent: i64,
    score: i64,
    skill: &Skill,
) -> Result<bool, DbError> {
    let offered = how_many(tx, agent).await?;
    let before = delete(tx, agent, &skill.skill_name).await?;
    insert(tx, agent, score, skill).await?;
    if !before {
        count(tx, &skill.skill_name, 1).await?;
    }
    offering(tx, i64::from(offered == 0)).await?;
    Ok(!before)
}

/// Withdraws one skill; false when it was not offered.
pub(crate) async fn withdraw(tx: &Tx<'_>, agent: i64, name: &str) -> Result<bool, DbError> {
    if !delete(tx, agent, name).await? {
        return Ok(false);
    }
    count(tx, name, -1).await?;
    let left = how_many(tx, agent).await?;
    offering(tx, -i64::from(left == 0)).await?;
    Ok(true)
}

async fn delete(tx: &Tx<'_>, agent: i64, name: &str) -> Result<bool, DbError> {
    const SQL: &str = "delete from skills where agent = $1 and name = $2";
    Ok(tx
        .execute(SQL, &[Param::Int(agent), Param::Text(name)])
        .await?
        > 0)
}

async fn insert(tx: &Tx<'_>, agent: i64, score: i64, skill: &Skill) -> Result<(), DbError> {
    const SQL: &str =
        "insert into skills (agent, name, description, cost, input_schema, output_schema, score)
                       values ($1, $2, $3, $4, $5, $6, $7)";
    let input = skill.input_schema.as_ref().map(Value::to_string);
    let output = skill.output_schema.as_ref().map(Value::to_string);
    let params = [
        Param::Int(agent),
        Param::Text(&skill.skill_name),
        Param::text(skill.description.as_deref()),
        Param::Int(skill.cost_per_call.in_hundredths()),
        Param::text(input.as_deref()),
        Param::text(output.as_deref()),
        Param::Int(score),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

async fn count(tx: &Tx<'_>, name: &str, by: i64) -> Result<(), DbError> {
    const SQL: &str = "insert into skill_names (name, agents) values ($1, $2)
                       on conflict (name) do update set agents = skill_names.agents + excluded.agents";
    tx.execute(SQL, &[Param::Text(name), Param::Int(by)])
        .await?;
    if by < 0 {
        tx.execute(EMPTIED, &[Param::Text(name)]).await?;
    }
    Ok(())
}

/// By its name: to look through all of them would be felt by everybody with each agent that leaves.
const EMPTIED: &str = "delete from skill_names where name = $1 and agents = 0";

async fn offering(tx: &Tx<'_>, by: i64) -> Result<(), DbError> {
    const SQL: &str = "insert into settings (name, value) values ($1, $2)
                       on conflict (name) do update set value = settings.value + excluded.value";
    if by == 0 {
        Ok(())
    } else {
        tx.execute(SQL, &[Param::Text(OFFERING), Param::Int(by)])
            .await
            .map(drop)
    }
}

/// How many skills an agent offers.
pub(crate) async fn how_many(tx: &Tx<'_>, agent: i64) -> Result<usize, DbError> {
    let row = tx
        .one(
            "select count(*) from skills where agent = $1",
            &[Param::Int(agent)],
        )
        .await?;
    Ok(row.map_or(Ok(0), |row| row.int(0))? as usize)
}

/// The agent's reputation changed, and with it its place in every ranking.
pub(crate) async fn rescore(tx: &Tx<'_>, agent: i64, score: i64) -> Result<(), DbError> {
    tx.execute(
        "update skills set score = $2 where agent = $1",
        &[Param::Int(agent), Param::Int(score)],
    )
    .await
    .map(drop)
}

pub(crate) async fn one(tx: &Tx<'_>, agent: i64, name: &str) -> Result<Option<Skill>, DbError> {
    const SQL: &str = "select name, description, cost, input_schema, output_schema from skills
                       where agent = $1 and name = $2";
    let row = tx.one(SQL, &[Param::Int(agent), Param::Text(name)]).await?;
    row.map(skill).transpose()
}

fn skill(mut row: Row) -> Result<Skill, DbError> {
    Ok(Skill {
        skill_name: row.text(0)?,
        description: row.maybe_text(1)?,
        cost_per_call: Credits::hundredths(row.int(2)?),
        input_schema: schema(row.maybe_text(3)?)?,
        output_schema: schema(row.maybe_text(4)?)?,
    })
}

fn schema(text: Option<String>) -> Result<Option<Value>, DbError> {
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
pub(crate) async fn ranked(
    tx: &Tx<'_>,
    wanted: &Wanted,
    limit: usize,
) -> Result<Vec<Ranked>, DbError> {
    let bounds = [
        Param::Int(wanted.min_score),
        Param::Int(wanted.max_cost),
        Param::Int(limit as i64),
    ];
    let rows = match &wanted.name {
        Some(name) => {
            tx.query(
                RANKED_OF_ONE,
                &[bounds[0], bounds[1], bounds[2], Param::Text(name)],
            )
            .await?
        }
        None => tx.query(RANKED_OF_ANY, &bounds).await?,
    };
    let ranked = |mut row: Row| {
        let (agent, score, cost) = (row.int(0)?, row.int(2)?, Credits::hundredths(row.int(3)?));
        Ok(Ranked {
            agent,
            name: row.text(1)?,
            score,
            cost,
        })
    };
    rows.into_iter().map(ranked).collect()
}

/// How many offers there are of what is wanted: known for a skill as a whole, otherwise counted, and not beyond `most`.
pub(crate) async fn total(tx: &Tx<'_>, wanted: &Wanted, most: usize) -> Result<i64, DbError> {
    const ALL: &str = "select agents from skill_names where name = $1";
    const OF_ONE: &str = "select count(*) from (select agent from skills where name = $4 and score >= $1 and cost <= $2
                          limit $3) found";
    const OF_ANY: &str = "select count(*) from (select agent from skills where score >= $1 and cost <= $2 limit $3) found";
    let bounds = [
        Param::Int(wanted.min_score),
        Param::Int(wanted.max_cost),
        Param::Int(most as i64),
    ];
    let row = match &wanted.name {
        Some(name) if wanted.min_score <= 0 && wanted.max_cost == i64::MAX => {
            tx.one(ALL, &[Param::Text(name)]).await?
        }
        Some(name) => {
            tx.one(
                OF_ONE,
                &[bounds[0], bounds[1], bounds[2], Param::Text(name)],
            )
            .await?
        }
        None => tx.one(OF_ANY, &bounds).await?,
    };
    row.map_or(Ok(0), |row| row.int(0))
}

/// The least that anybody but `not` asks for a skill.
pub(crate) async fn cheapest(
    tx: &Tx<'_>,
    name: &str,
    not: i64,
) -> Result<Option<Credits>, DbError> {
    let row = tx
        .one(CHEAPEST, &[Param::Text(name), Param::Int(not)])
        .await?;
    row.map(|row| row.int(0).map(Credits::hundredths))
        .transpose()
}

/// Every skill on offer, in the order of names.
pub(crate) async fn names(
    tx: &Tx<'_>,
    after: &str,
    limit: usize,
) -> Result<Vec<SkillRow>, DbError> {
    const SQL: &str =
        "select n.name, n.agents, (select min(s.cost) from skills s where s.name = n.name)
                       from skill_names n where n.name > $1 order by n.name limit $2";
    let rows = tx
        .query(SQL, &[Param::Text(after), Param::Int(limit as i64)])
        .await?;
    let row = |mut row: Row| {
        let (agents, min_cost) = (row.int(1)?.max(0) as u64, Credits::hundredths(row.int(2)?));
        Ok(SkillRow {
            skill_name: row.text(0)?,
            agents,
            min_cost,
        })
    };
    rows.into_iter().map(row).collect()
}

/// How many agents offer something.
pub(crate) async fn agents(tx: &Tx<'_>) -> Result<u64, DbError> {
    Ok(super::counters::setting(tx, OFFERING)
        .await?
        .unwrap_or(0)
        .max(0) as u64)
}

#[cfg(test)]
mod tests;
