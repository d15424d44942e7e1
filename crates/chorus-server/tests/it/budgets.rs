//! A caller's budget is one, however many hubs it speaks to, and whatever becomes of them (D-85).

use crate::actors::Agent;
use crate::front::Front;
use crate::hub::{Hub, eventually};
use chorus_wire::{limits, secret::Secret};
use futures_util::future::join_all;
use std::time::{Duration, Instant};

/// How many requests pass of so many at each of these places, all places at once.
async fn passed(places: &[Agent], each: usize) -> usize {
    let asking = places.iter().map(async |agent| {
        let mut passed = 0;
        for _ in 0..each {
            let answer = agent.get("/agent/messages").await;
            assert!(matches!(answer.status, 200 | 429), "{answer:?}");
            passed += usize::from(answer.status == 200);
        }
        passed
    });
    join_all(asking).await.into_iter().sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_budget_is_given_out_once_by_all_hubs_together() {
    let Some(hub) = Hub::cluster(|set| set.rate_limit = 600).await else { return };
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    for agent in [&alice, &bob] {
        let places = [0, 1, 0, 1].map(|number| hub.at(number, agent));
        let passed = passed(&places, 250).await;
        // An eighth may be given out before they hear of one another; what is counted twice would be missing. Less than all
        // only where the machine stands still for longer than hubs wait.
        assert!((570..=675).contains(&passed), "{passed} of 600");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_hub_that_decided_is_gone_what_was_spent_stays_spent_and_the_rest_is_there() {
    let Some(mut hub) = Hub::cluster(|set| set.rate_limit = 20).await else { return };
    let mut agents = Vec::new();
    for name in ["ann", "bea", "cat", "dan", "eve", "fay"] {
        agents.push(hub.agent(name).await);
    }
    // About half of them are decided about by either hub.
    for agent in &agents {
        assert_eq!(passed(std::slice::from_ref(agent), 10).await, 10);
    }
    hub.stop_one(1).await;
    for agent in &agents {
        let more = passed(std::slice::from_ref(agent), 20).await;
        assert!((10..=11).contains(&more), "{more} after ten of twenty; the last word may have been lost");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_bus_each_hub_counts_by_itself_and_waits_for_nobody() {
    let Some(bus) = tokio::task::spawn_blocking(crate::nats::url).await.unwrap() else { return };
    let line = Front::before(vec![bus.strip_prefix("nats://").unwrap().parse().unwrap()]).await;
    let by_line = format!("nats://{}", line.addr);
    let cluster = Hub::cluster(|set| {
        set.rate_limit = 20;
        set.hub.bus = Some(Secret::new(&by_line));
    });
    let Some(hub) = cluster.await else { return };
    let alice = hub.agent("alice").await;
    let places = [0, 1].map(|number| hub.at(number, &alice));
    line.cut(true);
    let began = Instant::now();
    assert_eq!(passed(&places, 30).await, 40, "twenty at each");
    assert!(began.elapsed() < 15 * limits::BUDGET_WAIT, "not every request waits for a hub that is not heard");
    line.cut(false);
    eventually("it is one budget again", async || {
        hub.know_one_another().await;
        hub.advance(Duration::from_secs(120));
        passed(&places, 20).await == 20
    })
    .await;
}
