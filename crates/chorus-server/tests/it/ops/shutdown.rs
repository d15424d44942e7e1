//! Shutdown: in time, whatever is open, and without losing an acknowledged message.

use crate::support::actors::{Reply, Webhook, texts};
use crate::support::hub::within;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

story!(
    it_stops_within_five_seconds_under_open_streams,
    |hub| async {
        // failure 18
        let mut silent = Webhook::replying(Reply::held_ok()).await;
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        hub.agent_with_webhook("carol", &silent.url()).await;
        let mut inboxes = vec![
            alice.inbox().await,
            bob.inbox().await,
            bob.inbox_after("0").await,
        ];
        let mut events = hub.operator().stream("/events").await;
        let mut half = TcpStream::connect(hub.addr()).await.unwrap();
        half.write_all(b"POST /register HTTP/1.1\r\ncontent-length: 100\r\n\r\n{")
            .await
            .unwrap();
        let _idle = TcpStream::connect(hub.addr()).await.unwrap();
        let waiting = {
            let alice = alice.clone();
            tokio::spawn(async move {
                alice
                    .request("POST", "/messages")
                    .json(&alice.message("carol", "x"))
                    .send()
                    .await
                    .is_ok()
            })
        };
        silent.next_request().await;
        within(Duration::from_secs(5), hub.stop())
            .await
            .expect("it stops in time");
        for inbox in &mut inboxes {
            assert!(
                inbox
                    .ended()
                    .await
                    .iter()
                    .all(|event| event.name != "message")
            );
        }
        events.ended().await;
        // What did not end in time is cut, not left to itself.
        within(Duration::from_secs(1), waiting)
            .await
            .expect("no connection outlives the server")
            .ok();
    }
);

story!(
    what_was_acknowledged_is_there_after_a_stop_under_load,
    |hub| async {
        // R-24, invariant 4
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let senders: Vec<_> = (0..8)
            .map(|sender| {
                let (alice, to) = (alice.clone(), bob.id.clone());
                tokio::spawn(async move {
                    let mut kept = Vec::new();
                    for number in 0.. {
                        let text = format!("{sender}-{number}");
                        let body = alice.message(&to, &text);
                        let Ok(answer) =
                            alice.request("POST", "/messages").json(&body).send().await
                        else {
                            break;
                        };
                        if answer.status() != 202 {
                            break;
                        }
                        kept.push(text);
                    }
                    kept
                })
            })
            .collect();
        crate::support::hub::eventually("the load is under way", || async {
            bob.history("").await.len() > 40
        })
        .await;
        hub.stop().await;
        let mut acknowledged = Vec::new();
        for sender in senders {
            acknowledged.extend(sender.await.unwrap());
        }
        hub.restart().await;
        let bob = hub.reconnect(&bob);
        let kept = texts(&bob.whole_history(1_000).await);
        for text in &acknowledged {
            assert_eq!(
                kept.iter().filter(|kept| *kept == text).count(),
                1,
                "{text}"
            );
        }
        assert!(acknowledged.len() > 40);
    }
);

single_hub_story!(a_stopped_hub_takes_no_more, |hub| async {
    let addr = hub.addr();
    hub.stop().await;
    assert!(TcpStream::connect(addr).await.is_err());
});

single_hub_story!(
    a_second_hub_on_the_directory_refuses_and_says_why,
    |hub| async {
        // Two writers on one database file would lose entries.
        let refusal = hub
            .start_second()
            .await
            .err()
            .expect("the directory is taken");
        assert!(
            refusal.contains(&hub.dir.path().display().to_string()),
            "{refusal}"
        );
        hub.anonymous().get("/health").await.data(200);
        hub.stop().await;
        let next = hub
            .start_second()
            .await
            .expect("the lock is gone with its holder");
        next.stop().await;
    }
);
