//! A backup of a running hub opens as a complete hub.

use crate::support::actors::texts;
use crate::support::hub::Hub;
use std::sync::atomic::{AtomicBool, Ordering};

/// Online backup: what was acknowledged before it began is in it; what is in it is whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_made_under_load_opens_with_everything_acknowledged_before_it() {
    static OVER: AtomicBool = AtomicBool::new(false);
    let hub = Hub::fresh().await;
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    for number in 0..50 {
        alice
            .send_expecting(&bob.id, &number.to_string(), "queued")
            .await;
    }
    let load = {
        let (alice, to) = (alice.clone(), bob.id.clone());
        tokio::spawn(async move {
            for number in 50.. {
                if OVER.load(Ordering::Relaxed) {
                    break;
                }
                alice
                    .send_expecting(&to, &number.to_string(), "queued")
                    .await;
            }
        })
    };
    let to = tempfile::tempdir().unwrap();
    let (from, copy) = (hub.dir.path().to_owned(), to.path().join("copy"));
    let target = copy.clone();
    tokio::task::spawn_blocking(move || chorus_hub::ops::backup_data_dir(&from, &target))
        .await
        .unwrap()
        .expect("a copy");
    OVER.store(true, Ordering::Relaxed);
    load.await.unwrap();
    let twin = Hub::sqlite(|set| set.hub.data_dir = copy).await;
    let kept = texts(&twin.reconnect(&bob).history("").await);
    assert!(kept.len() >= 50, "{} messages", kept.len());
    assert_eq!(
        kept,
        (0..kept.len()).map(|n| n.to_string()).collect::<Vec<_>>()
    );
    twin.reconnect(&alice)
        .send_expecting(&bob.id, "and it goes on", "queued")
        .await;
}
