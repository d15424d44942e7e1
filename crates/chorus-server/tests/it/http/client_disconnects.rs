//! Clients that disconnect in the middle of a request: committed work takes full effect.

use crate::support::actors::{Agent, Reply, Webhook, rows};
use crate::support::hub::{Hub, eventually};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// Sends a whole request and closes the connection without waiting for its answer, each time a little later than the last.
async fn ask_and_leave(
    hub: &Hub,
    agent: &Agent,
    (method, path): (&str, &str),
    body: &str,
    later: usize,
) {
    let mut socket = TcpStream::connect(hub.addr()).await.unwrap();
    let (key, length) = (&agent.key, body.len());
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    socket
        .write_all(format!("{head}{body}").as_bytes())
        .await
        .unwrap();
    for _ in 0..later * 100 {
        tokio::task::yield_now().await;
    }
    drop(socket);
}

/// How often the hangers-up try: whether the hub reads a request before it sees that its client is gone is chance.
const TRIES: usize = 30;

story!(a_deletion_whose_client_is_gone_is_whole, |hub| async {
    // the key is revoked with the row, also when no client waits for the answer
    let mut leavers = Vec::new();
    for number in 0..TRIES {
        let agent = hub.agent(&format!("leaver-{number}")).await;
        // It is remembered now, and must be forgotten.
        assert_eq!(agent.get("/agent/messages").await.status, 200);
        ask_and_leave(
            &hub,
            &agent,
            ("DELETE", &format!("/agents/{}", agent.id)),
            "",
            number,
        )
        .await;
        leavers.push(agent);
    }
    let removed = || async {
        let rows = hub.operator().activity(0).await;
        let removed = rows
            .into_iter()
            .filter(|row| row["type"] == "agent_removed");
        removed
            .map(|row| row["data"]["agent_id"].clone())
            .collect::<Vec<_>>()
    };
    eventually("a deletion was read", || async {
        !removed().await.is_empty()
    })
    .await;
    let removed = removed().await;
    for agent in leavers
        .iter()
        .filter(|agent| removed.contains(&json!(agent.id)))
    {
        eventually("its key is dead", || async {
            agent.get("/agent/messages").await.status == 401
        })
        .await;
    }
});

story!(
    a_rotation_whose_client_is_gone_kills_the_old_key,
    |hub| async {
        // of two keys for one agent, the one in the hub's memory is the one in its database
        let mut turners = Vec::new();
        for number in 0..TRIES {
            let agent = hub.agent(&format!("turner-{number}")).await;
            let body = crate::support::actors::registration(&agent.id).to_string();
            ask_and_leave(&hub, &agent, ("POST", "/register"), &body, number).await;
            turners.push(agent);
        }
        let turned = || async {
            let rows = hub.operator().activity(0).await;
            let turned = rows
                .into_iter()
                .filter(|row| row["data"]["updated"] == true);
            turned
                .map(|row| row["data"]["agent_id"].clone())
                .collect::<Vec<_>>()
        };
        eventually("a rotation was read", || async {
            !turned().await.is_empty()
        })
        .await;
        let turned = turned().await;
        for agent in turners
            .iter()
            .filter(|agent| turned.contains(&json!(agent.id)))
        {
            eventually("the old key is dead", || async {
                agent.get("/agent/messages").await.status == 401
            })
            .await;
        }
    }
);

story!(
    a_message_whose_sender_is_gone_is_still_forwarded,
    |hub| async {
        // failure 14: an outcome is stored whether or not a client waits for it
        let webhook = Webhook::replying(Reply::ok()).await;
        let alice = hub.agent("alice").await;
        let carol = hub.agent_with_webhook("carol", &webhook.url()).await;
        for number in 0..TRIES {
            let body = alice.message(&carol.id, &number.to_string()).to_string();
            ask_and_leave(&hub, &alice, ("POST", "/messages"), &body, number).await;
        }
        alice
            .send_expecting(&carol.id, "the last one", "delivered")
            .await;
        let settled = || async {
            carol
                .history("")
                .await
                .iter()
                .all(|row| row["delivered_via"] == "webhook")
        };
        eventually("each that was stored has its outcome", settled).await;
        assert!(
            carol.history("").await.len() > 1,
            "no message was ever read"
        );
    }
);

story!(
    an_owner_that_is_an_address_cannot_be_taken_by_a_stranger,
    |hub| async {
        // without owner_id an agent owns itself
        let squat = |owner: &str, id: &str| json!({"agent_id": id, "agent_name": "squatter", "owner_id": owner});
        let id = "5f1d3c1e-0d0c-4f0e-9f59-1f6f3a0f3b01";
        let answer = hub
            .anonymous()
            .post("/register", &squat("bob@chorus", id))
            .await;
        assert_eq!(
            (answer.status, answer.json()["error_code"].as_str()),
            (403, Some("ERR_OWNER_TAKEN"))
        );
        hub.anonymous().register("bob@chorus").await.data(201);
        // A claim on the owner's name does not keep the agent from leaving.
        let alice = hub.agent("alice").await;
        for number in 1..8 {
            let id = format!("squatter-{number}");
            let answer = hub
                .anonymous()
                .post("/register", &squat(&format!("alice#{number}"), &id))
                .await;
            assert_eq!(answer.status, 201);
        }
        assert_eq!(
            alice.delete("/agents/alice@chorus").await.data(200)["deleted"],
            true
        );
        hub.anonymous().register("alice@chorus").await.data(201);
    }
);

story!(
    what_waited_for_one_who_left_waits_no_more,
    with(|settings| settings.hub.retain = Some(std::time::Duration::from_secs(60))),
    |hub| async {
        // messages_queued is how many wait now, also after the messages themselves are trimmed
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        for number in 0..5 {
            alice
                .send_expecting(&bob.id, &number.to_string(), "queued")
                .await;
        }
        let queued =
            || async { hub.anonymous().get("/health").await.data(200)["messages_queued"].as_u64() };
        assert_eq!(queued().await, Some(5));
        bob.delete("/agents/bob@chorus").await.data(200);
        assert_eq!(queued().await, Some(0));
        let standing: Vec<_> = alice
            .history("")
            .await
            .iter()
            .map(|row| row["delivered_via"].clone())
            .collect();
        assert_eq!(standing, vec![json!("failed"); 5]);
        hub.advance(std::time::Duration::from_secs(120));
        hub.maintain().await;
        let carol = hub.agent("carol").await;
        alice.send_expecting(&carol.id, "one", "queued").await;
        assert_eq!(queued().await, Some(1));
    }
);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_hub_on_one_postgresql_database_refuses() {
    // Without a shared bus its streams would miss what the other commits
    let Some(hub) = Hub::postgres(|_| ()).await else {
        return;
    };
    let refusal = hub
        .start_second_in_other_dir()
        .await
        .err()
        .expect("it must not start");
    assert!(refusal.contains("another hub"), "{refusal}");
    assert!(rows(hub.anonymous().get("/agents").await.data(200)).is_empty());
}
