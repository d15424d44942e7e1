//! `chorus skills`: what can be hired, and from whom.

use super::read;
use crate::{cli::Common, fail::Fail, out, session};
use chorus_wire::limits;
use chorus_wire::market::credits::Credits;
use chorus_wire::market::discover::{FoundAgent, Presence, Search};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Who offers this skill, the best first; without it, every skill
    skill: Option<String>,
    /// Only those that ask for at most this much
    #[arg(long, value_name = "CREDITS", value_parser = read::amount)]
    max_cost: Option<Credits>,
    /// Only those with at least this reputation, 0 to 100
    #[arg(long, value_name = "SCORE")]
    min_reputation: Option<f64>,
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let hub = session::hub(common, None)?;
    if args.skill.is_none() && args.max_cost.is_none() && args.min_reputation.is_none() {
        for row in hub.skills().await?.skills {
            out::say(common.json, &row, || {
                let agents = if row.agents == 1 {
                    "1 agent".to_owned()
                } else {
                    format!("{} agents", row.agents)
                };
                format!(
                    "{}  from {}  {agents}",
                    out::harmless(&row.skill_name),
                    row.min_cost
                )
            });
        }
        return Ok(());
    }
    let min_reputation = args.min_reputation.unwrap_or(0.0);
    let search = Search {
        skill: args.skill,
        min_reputation,
        max_cost: args.max_cost,
        limit: limits::FOUND_PAGE,
    };
    for agent in hub.search(&search).await?.agents {
        out::say(common.json, &agent, || human(&agent));
    }
    Ok(())
}

fn human(agent: &FoundAgent) -> String {
    let status = match agent.status {
        Presence::Online => out::painted(out::GOOD, "online "),
        Presence::Offline => out::painted(out::FAINT, "offline"),
    };
    let (name, skill) = (
        out::harmless(&agent.agent_id),
        out::harmless(&agent.skill.skill_name),
    );
    format!(
        "{name}  {status}  {skill}  {}  {:.1}",
        agent.skill.cost_per_call, agent.reputation_score
    )
}
