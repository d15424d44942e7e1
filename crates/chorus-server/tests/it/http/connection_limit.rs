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
