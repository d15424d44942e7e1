//! Rate limits across hubs: one budget per caller, also when a hub or the bus fails (D-85).

use crate::support::actors::Agent;
use crate::support::hub::{Hub, eventually};
use chorus_wire::secret::Secret;
use futures_util::future::join_all;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// How many requests pass of so many at each of these places, all places at once, and how many waited for another hub in vain.
async fn asked(places: &[Agent], each: usize) -> (usize, usize) {
    let asking = places.iter().map(async |agent| {
        let (mut passed, mut waited) = (0, 0);
        for _ in 0..each {
            let began = Instant::now();
            let answer = agent.get("/agent/messages").await;
            assert!(matches!(answer.status, 200 | 429), "{answer:?}");
            passed += usize::from(answer.status == 200);
            waited += usize::from(began.elapsed() >= chorus_hub::limits::BUDGET_SYNC_WAIT);
        }
        (passed, waited)
    });
    let all = join_all(asking).await;
    (
        all.iter().map(|(passed, _)| passed).sum(),
        all.iter().map(|(_, waited)| waited).sum(),
    )
}

async fn passed(places: &[Agent], each: usize) -> usize {
    asked(places, each).await.0
}

/// Several, so that each of a few hubs may decide about one of them. Together they stay within what their address may spend,
/// four times the budget of one.
async fn several(hub: &Hub) -> Vec<Agent> {
    let mut agents = Vec::new();
    for name in ["ann", "bea", "cat"] {
        agents.push(hub.agent(name).await);
    }
    agents
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_budget_is_given_out_once_by_all_hubs_together() {
    let Some(hub) = Hub::cluster(|set| set.rate_limit = 600).await else {
        return;
    };
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    for agent in [&alice, &bob] {
        let places = [0, 1, 0, 1].map(|number| hub.agent_at_hub(number, agent));
        let passed = passed(&places, 250).await;
        // An eighth may be given out before they hear of one another; what is counted twice would be missing. Less than all
        // only where the machine stands still for longer than hubs wait.
        assert!((570..=675).contains(&passed), "{passed} of 600");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_hub_that_decides_dies_callers_go_on_with_what_they_had_left() {
    let Some(hub) = Hub::cluster(|set| set.rate_limit = 20).await else {
        return;
    };
    // Its own runtime, which ends at once: the hub does not announce that it leaves.
    let (life, dir) = (
        tokio::runtime::Runtime::new().unwrap(),
        tempfile::tempdir().unwrap(),
    );
    let mut settings = hub.settings.clone();
    settings.hub.data_dir = dir.path().into();
    let third = life
        .spawn(chorus_server::start_server(settings))
        .await
        .unwrap()
        .unwrap();
    hub.await_peers(2).await;
    eventually("it knows the others", async || {
        third.hub().peer_count() == 2
    })
    .await;
    let agents = several(&hub).await;
    for agent in &agents {
        assert_eq!(passed(std::slice::from_ref(agent), 10).await, 10);
    }
    life.shutdown_background();
    for agent in &agents {
        let more = passed(std::slice::from_ref(agent), 20).await;
        assert!((10..=11).contains(&more), "{more} after ten of twenty");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_hub_that_decided_is_gone_what_was_spent_stays_spent_and_the_rest_is_there() {
    let Some(mut hub) = Hub::cluster(|set| set.rate_limit = 20).await else {
        return;
    };
    let agents = several(&hub).await;
    for agent in &agents {
        assert_eq!(passed(std::slice::from_ref(agent), 10).await, 10);
    }
    hub.stop_one(1).await;
    for agent in &agents {
        let more = passed(std::slice::from_ref(agent), 20).await;
        assert!(
            (10..=11).contains(&more),
            "{more} after ten of twenty; the last word may have been lost"
        );
    }
}

/// A proxy to the bus: while it is paused nothing passes, and no connection is closed.
struct BusProxy {
    addr: SocketAddr,
    held: watch::Sender<bool>,
}

impl BusProxy {
    async fn to(bus: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (addr, held) = (listener.local_addr().unwrap(), watch::Sender::new(false));
        let holding = held.clone();
        tokio::spawn(async move {
            while let Ok((hub, _)) = listener.accept().await {
                let (here, there) = (
                    hub.into_split(),
                    TcpStream::connect(bus).await.unwrap().into_split(),
                );
                tokio::spawn(pass_on(here.0, there.1, holding.subscribe()));
                tokio::spawn(pass_on(there.0, here.1, holding.subscribe()));
            }
        });
        Self { addr, held }
    }
}

async fn pass_on(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut held: watch::Receiver<bool>) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        if held.wait_for(|held| !held).await.is_err()
            || to.write_all(&buffer[..count]).await.is_err()
        {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_bus_each_hub_counts_by_itself_and_waits_for_no_other() {
    let Some(bus) = tokio::task::spawn_blocking(crate::support::nats::shared_server_url)
        .await
        .unwrap()
    else {
        return;
    };
    let line = BusProxy::to(bus.strip_prefix("nats://").unwrap().parse().unwrap()).await;
    let by_line = format!("nats://{}", line.addr);
    let cluster = Hub::cluster(|set| {
        set.rate_limit = 20;
        set.hub.bus_url = Some(Secret::new(&by_line));
    });
    let Some(hub) = cluster.await else { return };
    let alice = hub.agent("alice").await;
    let places = [0, 1].map(|number| hub.agent_at_hub(number, &alice));
    line.held.send_replace(true);
    let (passed_alone, waited) = asked(&places, 30).await;
    assert_eq!(passed_alone, 40, "twenty at each");
    assert!(
        waited <= 4,
        "{waited} of thirty waited for a hub that is not heard"
    );
    line.held.send_replace(false);
    eventually("it is one budget again", async || {
        hub.await_peers(1).await;
        hub.advance(Duration::from_secs(120));
        passed(&places, 20).await == 20
    })
    .await;
}
