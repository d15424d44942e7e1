//! Measures `/discover` with many agents: a rare skill, a skill that all agents offer, and a search with filters.

use crate::Times;
use crate::connection::{BoxError, HubConnection, register_agent};
use serde_json::json;
use std::time::Instant;

/// Connections that register_agent agents in parallel.
const REGISTRARS: usize = 64;

pub async fn run(hub: &str, agents: usize, skills: usize, searches: usize) -> Result<(), BoxError> {
    let started_at = Instant::now();
    let mut registering = Vec::new();
    for first in 0..REGISTRARS {
        let mut connection = HubConnection::open(hub, "").await?;
        registering.push(tokio::spawn(async move {
            for number in (first..agents).step_by(REGISTRARS) {
                // Prices differ, so that a maximum price filters some offers.
                let cost = (number % 100 + 1) as f64 / 100.0;
                let offered = json!([{"skill_name": format!("rare-{}", number % skills), "cost_per_call": cost},
                    {"skill_name": "popular", "cost_per_call": cost}]);
                register_agent(&mut connection, &format!("agent-{number}"), &offered).await.map_err(|e| e.to_string())?;
            }
            Ok::<_, String>(())
        }));
    }
    for registrar in registering {
        registrar.await??;
    }
    let registered = started_at.elapsed().as_secs_f64();
    let mut connection = HubConnection::open(hub, "").await?;
    let mut parts = Vec::new();
    for search_kind in ["rare", "popular", "chosen"] {
        let mut times = Times(Vec::with_capacity(searches));
        for number in 0..searches {
            let path = match search_kind {
                "rare" => format!("/discover?skill=rare-{}", number * 7 % skills),
                "popular" => "/discover?skill=popular".to_owned(),
                _ => format!(
                    "/discover?skill=popular&min_reputation=40&max_cost=0.{:02}",
                    10 + number % 90
                ),
            };
            let asked_at = Instant::now();
            let found = connection.request_json("GET", &path, "").await?;
            times.0.push(asked_at.elapsed());
            if found["agents"].as_array().is_none_or(Vec::is_empty) {
                return Err(format!("{path} found no agent").into());
            }
        }
        parts.push(format!(r#""{search_kind}_ms":{}"#, times.summary()));
    }
    println!(
        r#"{{"agents":{agents},"skills":{skills},"registered_in_s":{registered:.1},{}}}"#,
        parts.join(",")
    );
    Ok(())
}
