//! Load on the market of a running hub, over HTTP as agents use it: brokered jobs per second, and finding one skill among many.
//!
//!     cargo run --release -p chorus-client --example market_load -- jobs http://127.0.0.1:3000 [hirers] [workers] [seconds]
//!     cargo run --release -p chorus-client --example market_load -- discover http://127.0.0.1:3000 [agents] [skills] [asks]
//!
//! Each prints one line of JSON. The hub must run without a rate limit.

mod finding;
mod jobs;
mod line;

use std::time::Duration;

/// How often something was done, and how long it took.
struct Times(Vec<Duration>);

impl Times {
    /// In milliseconds.
    fn at(&mut self, part: f64) -> f64 {
        self.0.sort_unstable();
        let place = ((self.0.len() as f64 * part) as usize).min(self.0.len().saturating_sub(1));
        self.0
            .get(place)
            .map_or(0.0, |time| time.as_secs_f64() * 1e3)
    }

    fn summary(&mut self) -> String {
        let [p50, p99, most] = [0.5, 0.99, 1.0].map(|part| self.at(part));
        format!(r#"{{"p50":{p50:.2},"p99":{p99:.2},"max":{most:.2}}}"#)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, otherwise: usize| match words.get(place) {
        Some(word) => word.parse::<usize>(),
        None => Ok(otherwise),
    };
    let [what, url] = [0, 1].map(|place| words.get(place).map_or("", String::as_str));
    let hub = url
        .strip_prefix("http://")
        .ok_or("market_load (jobs|discover) http://HOST:PORT [NUMBER]…")?;
    match what {
        "jobs" => jobs::run(hub, number(2, 100)?, number(3, 16)?, number(4, 8)?).await,
        "discover" => {
            finding::run(
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
