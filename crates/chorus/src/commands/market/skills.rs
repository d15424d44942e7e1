//! `chorus skills`: lists the skills for hire, or the agents that offer one.

use super::read_input;
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
        let header = "SKILL  LOWEST PRICE  AGENTS";
        output::print_list(common.json, &rows, header, empty, format_skill);
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
    let header = "AGENT  PRESENCE  SKILL  PRICE  REPUTATION";
    let empty = "no agent offers that; chorus skills lists what is offered";
    output::print_list(common.json, &agents, header, empty, format_agent);
    Ok(())
}

fn format_skill(row: &SkillRow) -> String {
    let agents = match row.agents {
        1 => "1 agent".to_owned(),
        count => format!("{count} agents"),
    };
    let line = format!(
        "{}  from {}  {agents}",
        output::escape_controls(&row.skill_name),
        row.min_cost
    );
    let schemas = (&row.input_schema, &row.output_schema);
    line + &format_description(row.description.as_deref(), schemas)
}

fn format_agent(agent: &FoundAgent) -> String {
    let status = match agent.status {
        PresenceStatus::Online => output::paint_text(output::GOOD_STYLE, "online "),
        PresenceStatus::Offline => output::paint_text(output::FAINT_STYLE, "offline"),
    };
    let name = output::escape_controls(&agent.agent_id);
    let skill = output::escape_controls(&agent.skill.skill_name);
    let line = format!(
        "{name}  {status}  {skill}  {}  {:.1}\n    {} done, {} failed for {} owners, {} earned",
        agent.skill.cost_per_call,
        agent.reputation_score,
        agent.success_count,
        agent.failure_count,
        agent.distinct_hirers,
        agent.earned
    );
    let schemas = (&agent.skill.input_schema, &agent.skill.output_schema);
    line + &format_description(agent.skill.description.as_deref(), schemas)
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
