//! Adding a hub changes no byte that a client sees: one long script, told to one hub on a file, to one on PostgreSQL and to two
//! that share it, and the three transcripts compared.

mod channel;
mod contract;
mod edges;
mod envelope;
mod frame;
mod market;
mod mcp;
mod names;
mod tale;

use crate::hub::Hub;
use tale::{Entry, Tale};

/// How many differences are shown: the first ones explain the others.
const SHOWN: usize = 20;

/// Everything, to this hub. Whether numbers of the log are names is in `in_the_log`.
async fn told(hub: Hub, in_the_log: bool) -> Tale {
    let mut tale = Tale::at(hub);
    tale.names.in_the_log = in_the_log;
    envelope::tell(&mut tale).await;
    frame::tell(&mut tale).await;
    channel::tell(&mut tale).await;
    market::tell(&mut tale).await;
    mcp::tell(&mut tale).await;
    edges::tell(&mut tale).await;
    tale
}

/// What may differ, each with its reason.
fn permitted(entry: &Entry) -> String {
    let text = entry.text.clone();
    // It says whether the hub has others: that is the question.
    text.replace("\"bus\":\"ok\"", "\"bus\":\"local\"")
}

/// The first place where two texts part, with what stands around it.
fn parting(one: &str, other: &str) -> String {
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

fn differences(one: &Tale, other: &Tale) -> Vec<String> {
    let mut found = Vec::new();
    for (number, (here, there)) in one.entries.iter().zip(&other.entries).enumerate() {
        let (said, says) = (permitted(here), permitted(there));
        if here.title != there.title || said != says {
            found.push(format!(
                "{number} {}\n{}",
                here.title,
                parting(&said, &says)
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

fn alike(one: &Tale, other: &Tale, what: &str) {
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
    let mut tale = told(Hub::sqlite(|_| ()).await, false).await;
    let routes = contract::routes(&mut tale).await;
    let missing = contract::left_out(&routes, &tale.asked);
    assert!(missing.is_empty(), "not in the script: {missing:#?}");
    let failed: Vec<_> = tale
        .asked
        .iter()
        .filter(|(_, _, status)| *status >= 500)
        .collect();
    assert!(failed.is_empty(), "the hub failed: {failed:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_hub_twice_says_the_same() {
    let (one, other) = (
        told(Hub::sqlite(|_| ()).await, false).await,
        told(Hub::sqlite(|_| ()).await, false).await,
    );
    alike(&one, &other, "itself");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_byte_differs_between_a_file_and_postgresql() {
    let Some(hub) = Hub::postgres(|_| ()).await else {
        return;
    };
    let (one, other) = (
        told(Hub::sqlite(|_| ()).await, false).await,
        told(hub, false).await,
    );
    alike(&one, &other, "PostgreSQL");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_byte_differs_between_one_hub_and_two() {
    let Some(hub) = Hub::cluster(|_| ()).await else {
        return;
    };
    let (one, other) = (
        told(Hub::sqlite(|_| ()).await, true).await,
        told(hub, true).await,
    );
    alike(&one, &other, "two hubs");
}

/// What a caller is told of its budget, until there is none left and after it has come back.
async fn limited(hub: Hub) -> Tale {
    let mut tale = Tale::at(hub);
    let pat = envelope::agent(&mut tale, "pat@chorus").await;
    for key in [pat.as_str(), ""] {
        for _ in 0..9 {
            tale.get(key, "/agents/pat@chorus").await;
        }
    }
    tale.hub.advance(std::time::Duration::from_secs(60));
    tale.get(&pat, "/agents/pat@chorus").await.is(200);
    tale
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_is_told_by_two_hubs_as_by_one() {
    let few = |set: &mut chorus_server::Settings| set.rate_limit = 6;
    let Some(hub) = Hub::cluster(few).await else {
        return;
    };
    let (one, other) = (limited(Hub::sqlite(few).await).await, limited(hub).await);
    assert!(one.asked.iter().any(|(_, _, status)| *status == 429));
    alike(&one, &other, "two hubs");
}
