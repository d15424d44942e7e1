//! Skill offers of agents, and how many agents offer each skill.

use super::{AgentId, ColumnReader, DbConnection, DbError, FromRow, SqlParam};
use chorus_wire::credits::Credits;
use chorus_wire::limits;
use chorus_wire::market::skill::{SkillOffer, SkillRow};
use serde_json::Value;

/// The setting that counts the agents with at least one skill.
const OFFERING_AGENTS: &str = "offering";

/// One offer in the ranking of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RankedOffer {
    pub agent: AgentId,
    pub name: String,
    pub score: i64,
    pub cost: Credits,
    /// The agent takes its jobs at an endpoint.
    pub at_endpoint: bool,
}

/// Which offers to search for.
#[derive(Clone, Debug)]
pub(crate) struct OfferFilter {
    pub name: Option<String>,
    pub min_score: i64,
    pub max_cost: i64,
    /// Only agents that at least this many owners have hired.
    pub min_hirers: i64,
    /// Only agents that have earned at least this much, in hundredths of a credit.
    pub min_earned: i64,
}

impl OfferFilter {
    fn needs_record(&self) -> bool {
        self.min_hirers > 0 || self.min_earned > 0
    }
}

/// What every offer of an agent repeats about it, because searches rank by it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfferingAgent {
    pub agent: AgentId,
    /// The bits of its reputation score.
    pub score: i64,
    pub at_endpoint: bool,
}

/// Replaces all skill offers of the agent.
pub(crate) async fn replace_skills(
    tx: &DbConnection<'_>,
    offering: OfferingAgent,
    skills: &[SkillOffer],
) -> Result<(), DbError> {
    let deleted_rows = tx
        .query(
            "delete from skills where agent = $1 returning name",
            &[SqlParam::id(offering.agent)],
        )
        .await?;
    let was_offering = i64::from(!deleted_rows.is_empty());
    for mut row in deleted_rows {
        adjust_skill_count(tx, &row.text(0)?, -1).await?;
    }
    for skill in skills {
        insert_skill_row(tx, offering, skill).await?;
        adjust_skill_count(tx, &skill.skill_name, 1).await?;
    }
    let is_offering = i64::from(!skills.is_empty());
    adjust_offering_agents(tx, is_offering - was_offering).await
}

/// Inserts or replaces one skill offer; true when it is new.
pub(crate) async fn upsert_skill(
    tx: &DbConnection<'_>,
    offering: OfferingAgent,
    skill: &SkillOffer,
) -> Result<bool, DbError> {
    let agent = offering.agent;
    let offered_count = count_skills(tx, agent).await?;
    let was_offered = delete_skill_row(tx, agent, &skill.skill_name).await?;
    insert_skill_row(tx, offering, skill).await?;
    if !was_offered {
        adjust_skill_count(tx, &skill.skill_name, 1).await?;
    }
    adjust_offering_agents(tx, i64::from(offered_count == 0)).await?;
    Ok(!was_offered)
}

/// Withdraws one skill offer; false when there was none.
pub(crate) async fn withdraw_skill(
    tx: &DbConnection<'_>,
    agent: AgentId,
    name: &str,
) -> Result<bool, DbError> {
    if !delete_skill_row(tx, agent, name).await? {
        return Ok(false);
    }
    adjust_skill_count(tx, name, -1).await?;
    let remaining_count = count_skills(tx, agent).await?;
    adjust_offering_agents(tx, -i64::from(remaining_count == 0)).await?;
    Ok(true)
}

async fn delete_skill_row(
    tx: &DbConnection<'_>,
    agent: AgentId,
    name: &str,
) -> Result<bool, DbError> {
    const SQL: &str = "delete from skills where agent = $1 and name = $2";
    Ok(tx
        .execute(SQL, &[SqlParam::id(agent), SqlParam::Text(name)])
        .await?
        > 0)
}

async fn insert_skill_row(
    tx: &DbConnection<'_>,
    offering: OfferingAgent,
    skill: &SkillOffer,
) -> Result<(), DbError> {
    const SQL: &str =
        "insert into skills (agent, name, description, cost, input_schema, output_schema, score, at_endpoint)
                       values ($1, $2, $3, $4, $5, $6, $7, $8)";
    let input = skill.input_schema.as_ref().map(Value::to_string);
    let output = skill.output_schema.as_ref().map(Value::to_string);
    let params = [
        SqlParam::id(offering.agent),
        SqlParam::Text(&skill.skill_name),
        SqlParam::optional_text(skill.description.as_deref()),
        SqlParam::Int(skill.cost_per_call.to_hundredths()),
        SqlParam::optional_text(input.as_deref()),
        SqlParam::optional_text(output.as_deref()),
        SqlParam::Int(offering.score),
        SqlParam::Int(i64::from(offering.at_endpoint)),
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

/// Looks the skill up by name: a scan of all skills would slow down every write while an agent unregisters.
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

/// Counts the skills that an agent offers.
pub(crate) async fn count_skills(tx: &DbConnection<'_>, agent: AgentId) -> Result<usize, DbError> {
    let row = tx
        .query_first(
            "select count(*) from skills where agent = $1",
            &[SqlParam::id(agent)],
        )
        .await?;
    Ok(row.map_or(Ok(0), |row| row.int(0))? as usize)
}

/// Stores the agent's new reputation score in its offers, because searches rank by it.
pub(crate) async fn update_skill_scores(
    tx: &DbConnection<'_>,
    agent: AgentId,
    score: i64,
) -> Result<(), DbError> {
    tx.execute(
        "update skills set score = $2 where agent = $1",
        &[SqlParam::id(agent), SqlParam::Int(score)],
    )
    .await
    .map(drop)
}

macro_rules! offer_columns {
    () => {
        "name, description, cost, input_schema, output_schema"
    };
}

/// Reads `offer_columns!`.
impl FromRow for SkillOffer {
    fn from_columns(columns: &mut ColumnReader) -> Result<Self, DbError> {
        Ok(SkillOffer {
            skill_name: columns.text()?,
            description: columns.maybe_text()?,
            cost_per_call: Credits::from_hundredths(columns.int()?),
            input_schema: parse_schema(columns.maybe_text()?)?,
            output_schema: parse_schema(columns.maybe_text()?)?,
        })
    }
}

pub(crate) async fn find_skill(
    tx: &DbConnection<'_>,
    agent: AgentId,
    name: &str,
) -> Result<Option<SkillOffer>, DbError> {
    const SQL: &str = concat!(
        "select ",
        offer_columns!(),
        " from skills where agent = $1 and name = $2"
    );
    let row = tx
        .query_first(SQL, &[SqlParam::id(agent), SqlParam::Text(name)])
        .await?;
    row.map(SkillOffer::from_row).transpose()
}

fn parse_schema(text: Option<String>) -> Result<Option<Value>, DbError> {
    let parse_json = |text: String| {
        serde_json::from_str(&text).map_err(|e| DbError::Other(format!("a schema: {e}")))
    };
    text.map(parse_json).transpose()
}

macro_rules! select_ranked_offers {
    ($rest:literal) => {
        concat!(
            "select agent, name, score, cost, at_endpoint from skills ",
            $rest
        )
    };
}

/// Reads the columns of `select_ranked_offers!`.
impl FromRow for RankedOffer {
    fn from_columns(columns: &mut ColumnReader) -> Result<Self, DbError> {
        Ok(RankedOffer {
            agent: columns.id()?,
            name: columns.text()?,
            score: columns.int()?,
            cost: Credits::from_hundredths(columns.int()?),
            at_endpoint: columns.int()? == 1,
        })
    }
}

const RANKED_OF_ONE: &str = select_ranked_offers!(
    "where name = $4 and score >= $1 and cost <= $2 order by score desc, cost, agent limit $3"
);
const RANKED_OF_ANY: &str = select_ranked_offers!(
    "where score >= $1 and cost <= $2 order by score desc, cost, agent, name limit $3"
);
/// The same with a filter on the record of the agent, which is looked up for each.
const PROVEN_OF_ONE: &str = select_ranked_offers!(
    "where name = $6 and score >= $1 and cost <= $2
     and exists (select 1 from reputations r where r.agent = skills.agent and r.hirers >= $4 and r.earned >= $5)
     order by score desc, cost, agent limit $3"
);
const PROVEN_OF_ANY: &str = select_ranked_offers!(
    "where score >= $1 and cost <= $2
     and exists (select 1 from reputations r where r.agent = skills.agent and r.hirers >= $4 and r.earned >= $5)
     order by score desc, cost, agent, name limit $3"
);
const CHEAPEST: &str =
    "select cost from skills where name = $1 and agent <> $2 order by cost limit 1";

/// The best offers: ordered by reputation, then by cost, then by the age of the agent.
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
    if filter.needs_record() {
        let record = [
            SqlParam::Int(filter.min_hirers),
            SqlParam::Int(filter.min_earned),
        ];
        let mut params = [&bounds[..], &record[..]].concat();
        let sql = match &filter.name {
            Some(name) => {
                params.push(SqlParam::Text(name));
                PROVEN_OF_ONE
            }
            None => PROVEN_OF_ANY,
        };
        let rows = tx.query(sql, &params).await?;
        return rows.into_iter().map(RankedOffer::from_row).collect();
    }
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
    rows.into_iter().map(RankedOffer::from_row).collect()
}

/// Counts the offers that match. All offers of one skill are a stored count; other filters count up to `max_count`.
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
    if filter.needs_record() {
        let found = list_ranked_offers(tx, filter, max_count).await?;
        return Ok(found.len() as i64);
    }
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

/// The lowest cost of a skill among all agents but `excluded_agent`.
pub(crate) async fn find_lowest_cost(
    tx: &DbConnection<'_>,
    name: &str,
    excluded_agent: AgentId,
) -> Result<Option<Credits>, DbError> {
    let row = tx
        .query_first(
            CHEAPEST,
            &[SqlParam::Text(name), SqlParam::id(excluded_agent)],
        )
        .await?;
    row.map(|row| row.int(0).map(Credits::from_hundredths))
        .transpose()
}

macro_rules! skill_columns {
    () => {
        "n.name, n.agents, (select min(s.cost) from skills s where s.name = n.name), b.description, b.input_schema, b.output_schema"
    };
}

/// The best offer of the skill, by which listings describe it.
macro_rules! join_best_offer {
    () => {
        " from skill_names n left join skills b on b.name = n.name and b.agent =
          (select s.agent from skills s where s.name = n.name order by s.score desc, s.cost, s.agent limit 1) "
    };
}

/// Reads `skill_columns!`.
impl FromRow for SkillRow {
    fn from_columns(columns: &mut ColumnReader) -> Result<Self, DbError> {
        Ok(SkillRow {
            skill_name: columns.text()?,
            agents: columns.int()?.max(0) as u64,
            min_cost: Credits::from_hundredths(columns.int()?),
            description: columns.maybe_text()?,
            input_schema: parse_schema(columns.maybe_text()?)?,
            output_schema: parse_schema(columns.maybe_text()?)?,
        })
    }
}

/// One skill on offer.
pub(crate) async fn find_skill_row(
    tx: &DbConnection<'_>,
    name: &str,
) -> Result<Option<SkillRow>, DbError> {
    const SQL: &str = concat!(
        "select ",
        skill_columns!(),
        join_best_offer!(),
        "where n.name = $1"
    );
    let row = tx.query_first(SQL, &[SqlParam::Text(name)]).await?;
    row.map(SkillRow::from_row).transpose()
}

/// The skills on offer after a name, ordered by name, and whether these are all that were asked for.
pub(crate) async fn list_skill_names(
    tx: &DbConnection<'_>,
    after: &str,
    limit: usize,
) -> Result<(Vec<SkillRow>, bool), DbError> {
    const SQL: &str = concat!(
        "select ",
        skill_columns!(),
        join_best_offer!(),
        "where n.name > $1 order by n.name limit $2"
    );
    let params = [SqlParam::Text(after), SqlParam::Int(limit as i64)];
    // Schemas are long.
    let (rows, is_complete) = tx
        .query_within_bytes(SQL, &params, limits::HISTORY_PAGE_BYTES)
        .await?;
    let rows: Result<_, _> = rows.into_iter().map(SkillRow::from_row).collect();
    Ok((rows?, is_complete))
}

/// Counts the agents that offer at least one skill.
pub(crate) async fn count_offering_agents(tx: &DbConnection<'_>) -> Result<u64, DbError> {
    Ok(super::counters::read_setting(tx, OFFERING_AGENTS)
        .await?
        .unwrap_or(0)
        .max(0) as u64)
}

#[cfg(test)]
mod tests;
