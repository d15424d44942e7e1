//! The connection limit, and the refusal of the connection beyond it.

use super::invalid_requests::{is_failure, raw};
use crate::support::hub::{Hub, eventually};
use tokio::net::TcpStream;

const PLACES: usize = 6;

async fn asked(hub: &Hub) -> (u16, String, String) {
    raw(
        hub,
        b"GET /agents HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
    )
    .await
}

single_hub_story!(
    one_address_has_no_more_connections_than_it_may,
    with(|set| set.max_connections_per_address = Some(PLACES)),
    |hub| async {
        //
        let mut silent = Vec::new();
        while silent.len() < PLACES {
            silent.push(TcpStream::connect(hub.addr()).await.unwrap());
        }
        let (status, head, body) = asked(&hub).await;
        assert_eq!(status, 503, "{head}");
        is_failure(&body, "ERR_UNAVAILABLE");
        assert!(body.contains("this address"), "{body}");
        drop(silent);
        eventually("a place is free again", async || asked(&hub).await.0 == 200).await;
    }
);

single_hub_story!(
    a_connection_beyond_the_limit_is_told_to_come_back,
    with(|set| set.max_connections = PLACES),
    |hub| async {
        let alice = hub.agent("alice").await;
        let mut inbox = alice.inbox().await;
        // Every open connection takes a place, also one that sends nothing.
        let mut silent = Vec::new();
        while silent.len() < PLACES {
            silent.push(TcpStream::connect(hub.addr()).await.unwrap());
        }
        let (status, head, body) = asked(&hub).await;
        assert_eq!(status, 503, "{head}");
        is_failure(&body, "ERR_UNAVAILABLE");
        assert!(head.contains("retry-after: 5"), "{head}");
        // Those who are in are not disturbed, and a place that is left is free.
        drop(silent);
        eventually("a place is free again", async || asked(&hub).await.0 == 200).await;
        alice
            .send_expecting(&alice.id, "still here", "delivered_sse")
            .await;
        assert_eq!(
            inbox.next("message").await.data["envelope"]["original_text"],
            "still here"
        );
    }
);

/// Sends a request on a new connection, with this key.
async fn ask_with_key(hub: &Hub, path: &str, key: &str) -> (u16, String, String) {
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\nconnection: close\r\n\r\n"
    );
    raw(hub, head.as_bytes()).await
}

/// Opens this many connections that send nothing.
async fn fill(hub: &Hub, count: usize) -> Vec<TcpStream> {
    let mut silent = Vec::new();
    while silent.len() < count {
        silent.push(TcpStream::connect(hub.addr()).await.unwrap());
    }
    silent
}

single_hub_story!(
    a_hub_whose_places_are_all_taken_still_answers_its_probes,
    with(|set| set.max_connections = PLACES),
    |hub| async {
        // an orchestrator must not end a hub that is only popular.
        let silent = fill(&hub, PLACES * 2).await;
        for path in ["/health", "/ready"] {
            let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
            let (status, head, _) = raw(&hub, head.as_bytes()).await;
            assert_eq!(status, 200, "{path}: {head}");
            assert!(head.contains("connection: close"), "{head}");
        }
        let (status, head, _) = asked(&hub).await;
        assert_eq!(status, 503, "{head}");
        assert!(head.contains("connection: close"), "{head}");
        drop(silent);
    }
);

single_hub_story!(
    strangers_that_take_every_place_do_not_lock_out_a_known_key,
    with(|set| set.max_connections = 8),
    |hub| async {
        // a fourth of the places is for keys that the hub knows.
        let alice = hub.agent("alice").await;
        let silent = fill(&hub, 20).await;
        let mut inbox = alice.inbox().await;
        alice
            .send_expecting(&alice.id, "still here", "delivered_sse")
            .await;
        assert_eq!(
            inbox.next("message").await.data["envelope"]["original_text"],
            "still here"
        );
        // The connections of alice have left their places to strangers.
        let more = fill(&hub, 8).await;
        let wrong_key = ask_with_key(&hub, "/agents", "ca_not_a_key").await;
        assert_eq!(wrong_key.0, 503, "{wrong_key:?}");
        assert_eq!(asked(&hub).await.0, 503);
        drop((silent, more));
        eventually("a place is free again", async || asked(&hub).await.0 == 200).await;
    }
);
