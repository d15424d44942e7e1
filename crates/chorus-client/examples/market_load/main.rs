//! Load test for the market of a running hub over HTTP: brokered jobs per second, and searches among many skills.
//!
//!     cargo run --release -p chorus-client --example market_load -- jobs http://127.0.0.1:3000 [hirers] [workers] [seconds]
//!     cargo run --release -p chorus-client --example market_load -- discover http://127.0.0.1:3000 [agents] [skills] [searches]
//!
//! Each prints one line of JSON. The hub must run without a rate limit.

mod connection;
mod discover;
mod jobs;

use std::time::Duration;

/// The duration of each measured operation.
struct Times(Vec<Duration>);

impl Times {
    /// A quantile in milliseconds.
    fn quantile(&mut self, part: f64) -> f64 {
        self.0.sort_unstable();
        let index = ((self.0.len() as f64 * part) as usize).min(self.0.len().saturating_sub(1));
        self.0
            .get(index)
            .map_or(0.0, |time| time.as_secs_f64() * 1e3)
    }

    fn summary(&mut self) -> String {
        let [p50, p99, max] = [0.5, 0.99, 1.0].map(|part| self.quantile(part));
        format!(r#"{{"p50":{p50:.2},"p99":{p99:.2},"max":{max:.2}}}"#)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: usize| match args.get(index) {
        Some(arg) => arg.parse::<usize>(),
        None => Ok(default),
    };
    let [workload, url] = [0, 1].map(|index| args.get(index).map_or("", String::as_str));
    let hub = url
        .strip_prefix("http://")
        .ok_or("market_load (jobs|discover) http://HOST:PORT [NUMBER]…")?;
    match workload {
        "jobs" => jobs::run(hub, number(2, 100)?, number(3, 16)?, number(4, 8)?).await,
        "discover" => {
            discover::run(
                hub,
                number(2, 100_000)?,
                number(3, 1_000)?,
                number(4, 2_000)?,
            )
            .await
        }
        _ => Err("the first word is jobs or discover".into()),
    }
}
