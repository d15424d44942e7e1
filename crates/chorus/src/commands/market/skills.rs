//! `chorus skills`: lists the skills for hire, or the agents that offer one.

use super::{read_input, reputation::format_owners};
use crate::{cli::CommonArgs, command_client, fail::Fail, output};
use chorus_wire::credits::Credits;
use chorus_wire::limits;
use chorus_wire::market::discover::{FoundAgent, PresenceStatus, SkillSearch};
use chorus_wire::market::skill::SkillRow;
use serde_json::Value;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  chorus skills                                 # what is offered
  chorus skills translate --min-hirers 3        # by agents that three owners have hired")]
pub struct Args {
    /// List the agents that offer this skill, best first; without it, all skills
    skill: Option<String>,
    /// Only agents whose price is at most this
    #[arg(long, value_name = "CREDITS", value_parser = read_input::parse_price)]
    max_cost: Option<Credits>,
    /// Only agents with at least this reputation, 0 to 100
    #[arg(long, value_name = "SCORE")]
    min_reputation: Option<f64>,
    /// Only agents that at least this many owners have hired
    #[arg(long, value_name = "N")]
    min_hirers: Option<u64>,
    /// Only agents that have earned at least this
    #[arg(long, value_name = "CREDITS", value_parser = read_input::parse_price)]
    min_earned: Option<Credits>,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let hub = command_client::open_client(common, None)?;
    let has_filter = args.skill.is_some()
        || args.max_cost.is_some()
        || args.min_reputation.is_some()
        || args.min_hirers.is_some()
        || args.min_earned.is_some();
    if !has_filter {
        let rows = hub.list_skills().await?.skills;
        let empty = "no skill is offered; chorus offer SKILL --cost CREDITS -- CMD offers one";
        let columns = SkillColumns::of_skills(&rows);
        let header = columns.format_header();
        output::print_list(common.json, &rows, &header, empty, |row| {
            columns.format_skill(row)
        });
        return Ok(());
    }
    let min_reputation = args.min_reputation.unwrap_or(0.0);
    let search = SkillSearch {
        skill: args.skill,
        min_reputation,
        max_cost: args.max_cost,
        min_hirers: args.min_hirers.unwrap_or(0),
        min_earned: args.min_earned.unwrap_or(Credits::ZERO),
        limit: limits::DISCOVERY_PAGE,
    };
    let agents = hub.search_offers(&search).await?.agents;
    let columns = OfferColumns::of_offers(&agents);
    let header = columns.format_header();
    let empty = "no agent offers that; chorus skills lists what is offered";
    output::print_list(common.json, &agents, &header, empty, |agent| {
        columns.format_offer(agent)
    });
    Ok(())
}

/// The widths of the columns of the list of skills.
struct SkillColumns {
    skill: usize,
    price: usize,
}

impl SkillColumns {
    fn of_skills(rows: &[SkillRow]) -> Self {
        let prices: Vec<String> = rows.iter().map(format_lowest_price).collect();
        Self {
            skill: output::column_width("SKILL", rows.iter().map(|row| row.skill_name.as_str())),
            price: output::column_width("PRICE", prices.iter().map(String::as_str)),
        }
    }

    fn format_header(&self) -> String {
        let Self { skill, price } = self;
        format!("{:skill$}  {:price$}  AGENTS", "SKILL", "PRICE")
    }

    fn format_skill(&self, row: &SkillRow) -> String {
        let Self { skill, price } = self;
        let agents = match row.agents {
            1 => "1 agent".to_owned(),
            count => format!("{count} agents"),
        };
        let name = output::escape_controls(&row.skill_name);
        let line = format!(
            "{name:skill$}  {:price$}  {agents}",
            format_lowest_price(row)
        );
        let schemas = (&row.input_schema, &row.output_schema);
        line + &format_description(row.description.as_deref(), schemas)
    }
}

fn format_lowest_price(row: &SkillRow) -> String {
    format!("from {}", row.min_cost)
}

/// The widths of the columns of the list of agents that offer a skill.
struct OfferColumns {
    agent: usize,
    skill: usize,
    price: usize,
}

impl OfferColumns {
    fn of_offers(agents: &[FoundAgent]) -> Self {
        let prices: Vec<String> = agents.iter().map(format_price).collect();
        let names = agents.iter().map(|agent| agent.agent_id.as_str());
        let skills = agents.iter().map(|agent| agent.skill.skill_name.as_str());
        Self {
            agent: output::column_width("AGENT", names),
            skill: output::column_width("SKILL", skills),
            price: output::column_width("PRICE", prices.iter().map(String::as_str)),
        }
    }

    fn format_header(&self) -> String {
        let Self {
            agent,
            skill,
            price,
        } = self;
        format!(
            "{:agent$}  ONLINE   {:skill$}  {:price$}  REPUTATION",
            "AGENT", "SKILL", "PRICE"
        )
    }

    fn format_offer(&self, row: &FoundAgent) -> String {
        let Self {
            agent,
            skill,
            price,
        } = self;
        let status = match row.status {
            PresenceStatus::Online => output::paint_text(output::GOOD_STYLE, "online "),
            PresenceStatus::Offline => output::paint_text(output::FAINT_STYLE, "offline"),
        };
        let name = output::escape_controls(&row.agent_id);
        let skill_name = output::escape_controls(&row.skill.skill_name);
        let line = format!(
            "{name:agent$}  {status}  {skill_name:skill$}  {:price$}  {:.1}\n    {} done, {} failed for {}, {} earned",
            format_price(row),
            row.reputation_score,
            row.success_count,
            row.failure_count,
            format_owners(row.distinct_hirers),
            row.earned
        );
        let schemas = (&row.skill.input_schema, &row.skill.output_schema);
        line + &format_description(row.skill.description.as_deref(), schemas)
    }
}

fn format_price(agent: &FoundAgent) -> String {
    agent.skill.cost_per_call.to_string()
}

/// What the skill does, and what it takes and gives, each on a line of its own.
fn format_description(
    description: Option<&str>,
    (takes, gives): (&Option<Value>, &Option<Value>),
) -> String {
    let mut text = String::new();
    if let Some(description) = description {
        text.push_str(&format!("\n    {}", output::escape_controls(description)));
    }
    for (label, schema) in [("input: ", takes), ("output:", gives)] {
        if let Some(schema) = schema {
            let schema = schema.to_string();
            text.push_str(&format!(
                "\n    {label} {}",
                output::escape_controls(&schema)
            ));
        }
    }
    text
}
