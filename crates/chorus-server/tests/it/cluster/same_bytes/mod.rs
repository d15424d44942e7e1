//! Adding a hub changes no byte that a client sees: one script runs on SQLite, on PostgreSQL and on two hubs, and the
//! transcripts are compared.

mod channel;
mod contact;
mod envelope;
mod frame;
mod http;
mod market;
mod mcp;
mod placeholders;
mod route_coverage;
mod transcript;
mod webhook;

use crate::support::hub::Hub;
use transcript::{Entry, Transcript};

/// How many differences are shown: the first ones explain the others.
const SHOWN: usize = 20;

/// Runs the whole script on this hub.
async fn run_script(hub: Hub, mask_log_positions: bool) -> Transcript {
    let mut transcript = Transcript::new(hub);
    transcript.placeholders.mask_log_positions = mask_log_positions;
    envelope::run(&mut transcript).await;
    frame::run(&mut transcript).await;
    channel::run(&mut transcript).await;
    market::run(&mut transcript).await;
    mcp::run(&mut transcript).await;
    http::run(&mut transcript).await;
    transcript
}

/// The text without what may differ, each with its reason.
fn without_permitted_differences(entry: &Entry) -> String {
    let text = entry.text.clone();
    // It says whether the hub is part of a cluster, which differs by design.
    text.replace("\"bus\":\"ok\"", "\"bus\":\"local\"")
}

/// The first place where two texts differ, with its surroundings.
fn first_difference(one: &str, other: &str) -> String {
    let at = one
        .bytes()
        .zip(other.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let around = |text: &str| {
        let bytes = text.as_bytes();
        let (from, to) = (
            at.saturating_sub(120).min(bytes.len()),
            (at + 120).min(bytes.len()),
        );
        String::from_utf8_lossy(&bytes[from..to]).replace('\n', "\n      ")
    };
    format!("    - {}\n    + {}", around(one), around(other))
}

fn differences(one: &Transcript, other: &Transcript) -> Vec<String> {
    let mut found = Vec::new();
    for (number, (here, there)) in one.entries.iter().zip(&other.entries).enumerate() {
        let (said, says) = (
            without_permitted_differences(here),
            without_permitted_differences(there),
        );
        if here.title != there.title || said != says {
            found.push(format!(
                "{number} {}\n{}",
                here.title,
                first_difference(&said, &says)
            ));
        }
    }
    if one.entries.len() != other.entries.len() {
        found.push(format!(
            "{} entries and {}",
            one.entries.len(),
            other.entries.len()
        ));
    }
    found
}

fn assert_same(one: &Transcript, other: &Transcript, what: &str) {
    let found = differences(one, other);
    let shown = found
        .iter()
        .take(SHOWN)
        .cloned()
        .collect::<Vec<_>>()
        .join("\n");
    assert!(
        found.is_empty(),
        "{} differences of {} entries with {what}:\n{shown}",
        found.len(),
        one.entries.len()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_script_goes_to_every_route_with_success_and_with_an_error() {
    let mut transcript = run_script(Hub::sqlite(|_| ()).await, false).await;
    let routes = route_coverage::routes(&mut transcript).await;
    let missing = route_coverage::missing_outcomes(&routes, &transcript.requests);
    assert!(missing.is_empty(), "not in the script: {missing:#?}");
    let failed: Vec<_> = transcript
        .requests
        .iter()
        .filter(|(_, _, status)| *status >= 500)
        .collect();
    assert!(failed.is_empty(), "the hub failed: {failed:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_hub_twice_says_the_same() {
    let (one, other) = (
        run_script(Hub::sqlite(|_| ()).await, false).await,
        run_script(Hub::sqlite(|_| ()).await, false).await,
    );
    assert_same(&one, &other, "itself");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_byte_differs_between_a_file_and_postgresql() {
    let Some(hub) = Hub::postgres(|_| ()).await else {
        return;
    };
    let (one, other) = (
        run_script(Hub::sqlite(|_| ()).await, false).await,
        run_script(hub, false).await,
    );
    assert_same(&one, &other, "PostgreSQL");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_byte_differs_between_one_hub_and_two() {
    let Some(hub) = Hub::cluster(|_| ()).await else {
        return;
    };
    let (one, other) = (
        run_script(Hub::sqlite(|_| ()).await, true).await,
        run_script(hub, true).await,
    );
    assert_same(&one, &other, "two hubs");
}

/// Requests until the rate limit refuses, then once more after a minute.
async fn exhaust_budget(hub: Hub) -> Transcript {
    let mut transcript = Transcript::new(hub);
    let pat = envelope::agent(&mut transcript, "pat@chorus").await;
    for key in [pat.as_str(), ""] {
        for _ in 0..9 {
            transcript.get(key, "/agents/pat@chorus").await;
        }
    }
    transcript.hub.advance(std::time::Duration::from_secs(60));
    transcript
        .get(&pat, "/agents/pat@chorus")
        .await
        .expect_status(200);
    transcript
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_is_told_by_two_hubs_as_by_one() {
    let few = |set: &mut chorus_server::ServerSettings| set.rate_limit = 6;
    let Some(hub) = Hub::cluster(few).await else {
        return;
    };
    let (one, other) = (
        exhaust_budget(Hub::sqlite(few).await).await,
        exhaust_budget(hub).await,
    );
    assert!(one.requests.iter().any(|(_, _, status)| *status == 429));
    assert_same(&one, &other, "two hubs");
}
