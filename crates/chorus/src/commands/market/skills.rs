//! `chorus skills`: lists the skills for hire, or the agents that offer one.

use super::read_input;
use crate::{cli::CommonArgs, fail::Fail, output, session};
use chorus_wire::credits::Credits;
use chorus_wire::limits;
use chorus_wire::market::discover::{FoundAgent, PresenceStatus, SkillSearch};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// List the agents that offer this skill, best first; without it, all skills
    skill: Option<String>,
    /// Only agents whose price is at most this
    #[arg(long, value_name = "CREDITS", value_parser = read_input::parse_amount)]
    max_cost: Option<Credits>,
    /// Only agents with at least this reputation, 0 to 100
    #[arg(long, value_name = "SCORE")]
    min_reputation: Option<f64>,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let hub = session::open_client(common, None)?;
    if args.skill.is_none() && args.max_cost.is_none() && args.min_reputation.is_none() {
        for row in hub.list_skills().await?.skills {
            output::print_result(common.json, &row, || {
                let agents = if row.agents == 1 {
                    "1 agent".to_owned()
                } else {
                    format!("{} agents", row.agents)
                };
                format!(
                    "{}  from {}  {agents}",
                    output::escape_controls(&row.skill_name),
                    row.min_cost
                )
            });
        }
        return Ok(());
    }
    let min_reputation = args.min_reputation.unwrap_or(0.0);
    let search = SkillSearch {
        skill: args.skill,
        min_reputation,
        max_cost: args.max_cost,
        limit: limits::DISCOVERY_PAGE,
    };
    for agent in hub.search_offers(&search).await?.agents {
        output::print_result(common.json, &agent, || format_agent(&agent));
    }
    Ok(())
}

fn format_agent(agent: &FoundAgent) -> String {
    let status = match agent.status {
        PresenceStatus::Online => output::paint_text(output::GOOD_STYLE, "online "),
        PresenceStatus::Offline => output::paint_text(output::FAINT_STYLE, "offline"),
    };
    let name = output::escape_controls(&agent.agent_id);
    let skill = output::escape_controls(&agent.skill.skill_name);
    format!(
        "{name}  {status}  {skill}  {}  {:.1}",
        agent.skill.cost_per_call, agent.reputation_score
    )
}
