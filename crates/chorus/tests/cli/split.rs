//! A hub that is cut off from the others, the bus and the database: it promises nothing, and when the line is whole again
//! nothing is missing anywhere (law 4, D-80).

use crate::crash::{envelope, join, join_with_key};
use crate::faults::{Inbox, eventually};
use crate::front::Front;
use crate::servers::Servers;
use chorus_client::http::Call;
use serde_json::json;
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_was_cut_off_misses_nothing_when_the_line_is_whole_again() {
    let Some(servers) = Servers::start() else { return };
    let (postgres, nats) = (Front::before(vec![servers.postgres_at]).await, Front::before(vec![servers.nats_at]).await);
    let near = servers.hub("near", "127.0.0.1:0");
    let far = servers.hub_by("far", "127.0.0.1:0", postgres.addr, nats.addr);
    let alice = join(&near.url, "alice").await;
    let (bob, key) = join_with_key(&far.url, "bob").await;
    let mut inbox = Inbox::open(&far, &key);
    let sent = alice.send("bob@chorus", &envelope("alice", "before"), 0).await.unwrap();
    assert_eq!(sent.sent.delivery, "delivered_sse");
    inbox.until("before");
    postgres.cut(true);
    nats.cut(true);
    // Until the near hub has noticed, a send waits its bounded time for an answer; then nobody is there.
    let began = Instant::now();
    eventually("the far hub counts as gone", async || {
        let sent = alice.send("bob@chorus", &envelope("alice", "while"), 0).await.unwrap();
        assert!(began.elapsed() < Duration::from_secs(30));
        sent.sent.delivery == "queued"
    })
    .await;
    assert_eq!(alice.ask(Call::get("/ready")).await.unwrap().status, 200, "the near hub goes on");
    let refused = bob.ask(Call::post(
        "/messages",
        json!({"receiver_id": "alice@chorus",
        "envelope": serde_json::from_str::<serde_json::Value>(&envelope("bob", "cut off").to_json()).unwrap()})
        .to_string(),
    ));
    let refused = refused.await;
    assert!(refused.as_ref().map_or(true, |answer| answer.status == 503), "{refused:?}");
    postgres.cut(false);
    nats.cut(false);
    inbox.until("while");
    eventually("a send is a delivery again", async || {
        alice.send("bob@chorus", &envelope("alice", "after"), 0).await.unwrap().sent.delivery == "delivered_sse"
    })
    .await;
    inbox.until("after");
}
