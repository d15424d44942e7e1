//! Shutdown: in time, whatever is open, and without losing an acknowledged message.

use crate::support::actors::{Agent, Answer, Reply, Webhook, texts};
use crate::support::hub::within;
use chorus_wire::limits;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

story!(
    it_stops_within_five_seconds_under_open_streams,
    |hub| async {
        // failure 18
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let mut inboxes = vec![
            alice.inbox().await,
            bob.inbox().await,
            bob.inbox_after("0").await,
        ];
        let mut events = hub.operator().stream("/events").await;
        let mut half = TcpStream::connect(hub.addr()).await.unwrap();
        half.write_all(
            b"POST /register HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{",
        )
        .await
        .unwrap();
        let _idle = TcpStream::connect(hub.addr()).await.unwrap();
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
        let mut rest = Vec::new();
        within(Duration::from_secs(1), half.read_to_end(&mut rest))
            .await
            .expect("no connection outlives the server")
            .ok();
    }
);

/// Sends to an endpoint that does not answer, and waits until it has the message.
async fn send_to_silent(
    alice: &Agent,
    to: &str,
    silent: &mut Webhook,
) -> JoinHandle<Option<Answer>> {
    let (alice, body) = (alice.clone(), alice.message(to, "x"));
    let sending = tokio::spawn(async move {
        let answer = alice.request("POST", "/messages").json(&body).send();
        let answer = answer.await.ok()?;
        Some(Answer {
            status: answer.status().as_u16(),
            headers: answer.headers().clone(),
            text: answer.text().await.ok()?,
        })
    });
    silent.next_request().await;
    sending
}

story!(
    a_stop_waits_for_webhooks_and_answers_their_senders,
    |hub| async {
        // the receiver has the message, so its answer counts
        let mut silent = Webhook::replying(Reply::held_ok()).await;
        let alice = hub.agent("alice").await;
        let carol = hub.agent_with_webhook("carol", &silent.url()).await;
        let sending = send_to_silent(&alice, &carol.id, &mut silent).await;
        let later = async {
            // Longer than connections have that wait for nothing.
            let longer = limits::SHUTDOWN_DEADLINE + Duration::from_secs(1);
            let again = within(longer, silent.next_request()).await;
            assert!(again.is_none(), "it is posted once");
            silent.release();
        };
        tokio::join!(hub.stop(), later);
        let answer = sending.await.unwrap().expect("the sender is answered");
        let sent = answer.data(200);
        assert_eq!(sent["delivery"], "delivered");
        hub.restart().await;
        let status = hub
            .reconnect(&alice)
            .delivery_status(&sent["trace_id"])
            .await;
        assert_eq!(status["status"], "acknowledged");
    }
);

story!(
    a_webhook_that_outlasts_a_stop_has_failed,
    with(|set| set.hub.webhook_timeout = Duration::from_secs(600)),
    |hub| async {
        let mut silent = Webhook::replying(Reply::held_ok()).await;
        let alice = hub.agent("alice").await;
        let carol = hub.agent_with_webhook("carol", &silent.url()).await;
        let sending = send_to_silent(&alice, &carol.id, &mut silent).await;
        // As long as deploy/chorus.service allows.
        within(Duration::from_secs(15), hub.stop())
            .await
            .expect("it stops in time");
        within(Duration::from_secs(1), sending)
            .await
            .expect("no connection outlives the server")
            .unwrap();
        hub.restart().await;
        let carol = hub.reconnect(&carol);
        assert_eq!(carol.history("").await[0]["delivered_via"], "failed");
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
