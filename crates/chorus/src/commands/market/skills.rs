//! `chorus skills`: lists the skills for hire, or the agents that offer one.

use super::{read_input, reputation::format_owners};
use crate::table::{self, TableCell, TableRow};
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
    let hub = command_client::open_directory_client(common)?;
    let has_filter = args.skill.is_some()
        || args.max_cost.is_some()
        || args.min_reputation.is_some()
        || args.min_hirers.is_some()
        || args.min_earned.is_some();
    if !has_filter {
        let rows = hub.list_skills().await?.skills;
        let empty = "no skill is offered; chorus offer SKILL --cost CREDITS -- CMD offers one";
        let titles = ["SKILL", "PRICE", "AGENTS"];
        table::print_table(common.json, &rows, titles, empty, skill_row);
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
    let empty = "no agent offers that; chorus skills lists what is offered";
    let titles = ["AGENT", "ONLINE", "SKILL", "PRICE", "REPUTATION"];
    table::print_table(common.json, &agents, titles, empty, offer_row);
    Ok(())
}

fn skill_row(skill: &SkillRow) -> TableRow<3> {
    let agents = match skill.agents {
        1 => "1 agent".to_owned(),
        count => format!("{count} agents"),
    };
    let mut row = TableRow::of_cells([
        TableCell::from(&skill.skill_name),
        TableCell::from(format!("from {}", skill.min_cost)),
        TableCell::from(agents),
    ]);
    let schemas = (&skill.input_schema, &skill.output_schema);
    add_description(&mut row, skill.description.as_deref(), schemas);
    row
}

fn offer_row(agent: &FoundAgent) -> TableRow<5> {
    let status = match agent.status {
        PresenceStatus::Online => TableCell::styled(output::GOOD_STYLE, "online"),
        PresenceStatus::Offline => TableCell::styled(output::FAINT_STYLE, "offline"),
    };
    let skill = &agent.skill;
    let mut row = TableRow::of_cells([
        TableCell::from(&agent.agent_id),
        status,
        TableCell::from(&skill.skill_name),
        TableCell::from(skill.cost_per_call.to_string()),
        TableCell::from(format!("{:.1}", agent.reputation_score)),
    ]);
    row.add_line(&format!(
        "{} done, {} failed for {}, {} earned",
        agent.success_count,
        agent.failure_count,
        format_owners(agent.distinct_hirers),
        agent.earned
    ));
    let schemas = (&skill.input_schema, &skill.output_schema);
    add_description(&mut row, skill.description.as_deref(), schemas);
    row
}

/// What the skill does, and what it takes and gives, each on a line of its own.
fn add_description<const N: usize>(
    row: &mut TableRow<N>,
    description: Option<&str>,
    (takes, gives): (&Option<Value>, &Option<Value>),
) {
    if let Some(description) = description {
        row.add_line(description);
    }
    for (label, schema) in [("input: ", takes), ("output:", gives)] {
        if let Some(schema) = schema {
            row.add_line(&format!("{label} {schema}"));
        }
    }
}
