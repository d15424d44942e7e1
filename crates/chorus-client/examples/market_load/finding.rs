//! Finding one skill among many agents: a rare one, one that everybody offers, and one with conditions.

use crate::Times;
use crate::line::{Failure, Line, register};
use serde_json::json;
use std::time::Instant;

/// Connections that register at once.
const REGISTRARS: usize = 64;

pub async fn run(hub: &str, agents: usize, skills: usize, asks: usize) -> Result<(), Failure> {
    let began = Instant::now();
    let mut registering = Vec::new();
    for first in 0..REGISTRARS {
        let mut line = Line::open(hub, "").await?;
        registering.push(tokio::spawn(async move {
            for number in (first..agents).step_by(REGISTRARS) {
                // Prices differ, so that a bound on them has something to choose.
                let cost = (number % 100 + 1) as f64 / 100.0;
                let offered = json!([{"skill_name": format!("rare-{}", number % skills), "cost_per_call": cost},
                    {"skill_name": "popular", "cost_per_call": cost}]);
                register(&mut line, &format!("agent-{number}"), &offered).await.map_err(|e| e.to_string())?;
            }
            Ok::<_, String>(())
        }));
    }
    for registrar in registering {
        registrar.await??;
    }
    let registered = began.elapsed().as_secs_f64();
    let mut line = Line::open(hub, "").await?;
    let mut parts = Vec::new();
    for what in ["rare", "popular", "chosen"] {
        let mut times = Times(Vec::with_capacity(asks));
        for ask in 0..asks {
            let path = match what {
                "rare" => format!("/discover?skill=rare-{}", ask * 7 % skills),
                "popular" => "/discover?skill=popular".to_owned(),
                _ => format!(
                    "/discover?skill=popular&min_reputation=40&max_cost=0.{:02}",
                    10 + ask % 90
                ),
            };
            let asked = Instant::now();
            let found = line.asked("GET", &path, "").await?;
            times.0.push(asked.elapsed());
            if found["agents"].as_array().is_none_or(Vec::is_empty) {
                return Err(format!("{path} found nobody").into());
            }
        }
        parts.push(format!(r#""{what}_ms":{}"#, times.summary()));
    }
    println!(
        r#"{{"agents":{agents},"skills":{skills},"registered_in_s":{registered:.1},{}}}"#,
        parts.join(",")
    );
    Ok(())
}
