//! Deliveries that end without being taken are told, and agents with only an endpoint get theirs there (R-90).

use super::delivery_failures::{DAY, broken, later, taken};
use crate::support::actors::Reply;
use crate::support::actors::database::run_sql;
use crate::support::actors::remote_member::{OwnedChannel, RemoteMember};
use crate::support::hub::Hub;
use serde_json::{Value, json};

/// The activity of one type, as operators see it.
async fn activity(hub: &Hub, kind: &str) -> Vec<Value> {
    let mut found = hub.operator().activity(0).await;
    found.retain(|row| row["type"] == kind);
    found
}

async fn untaken_count(hub: &Hub, reason: &str) -> u64 {
    let metrics = hub.operator().get("/metrics").await.text;
    let label = format!(r#"chorus_channel_deliveries_untaken_total{{reason="{reason}"}} "#);
    let value = metrics.lines().find_map(|line| line.strip_prefix(&label));
    value.map_or(0, |value| value.parse().expect("a number"))
}

story!(
    a_refused_delivery_is_told_in_the_channel_on_the_roster_in_the_activity_and_by_a_metric,
    |hub| async {
        // R-90, CHN-22: final, so it is not tried again
        for (place, status) in [429_u16, 403, 307].into_iter().enumerate() {
            let room = OwnedChannel::create(&hub, &format!("alice-{place}")).await;
            let script = move |turn| match (turn, status) {
                (0, 307) => Reply::redirect("http://127.0.0.1:1/"),
                (0, _) => Reply::json(status, "{}"),
                _ => taken(),
            };
            let mut oak = RemoteMember::scripted(&hub, script).await;
            room.add_remote("oak", &oak.url()).await;
            let counted = untaken_count(&hub, "refused").await;
            let said = room.post_message("one").await;
            assert_eq!(oak.texts(1).await, ["one"]);
            later(&hub, DAY).await;
            assert!(oak.endpoint.received_nothing(), "{status} is final");

            let line = room.history().await.pop().expect("a line");
            assert_eq!(
                (&line["type"], &line["change"], &line["name"]),
                (&json!("member"), &json!("refused"), &json!("oak")),
                "{line}"
            );
            assert_eq!(line["id"], said["id"], "{line}");
            let reason = line["message"].as_str().unwrap_or_default();
            assert!(reason.contains("answered"), "{line}");
            let member = room.member("oak").await;
            assert_eq!(member["refusal"]["reason"], reason, "{member}");
            assert_eq!(member["unreachable"], false);
            let told = activity(&hub, "channel_delivery_refused").await;
            assert_eq!(told.len(), place + 1);
            assert_eq!(told[place]["data"]["message_id"], said["id"], "{told:?}");
            assert!(untaken_count(&hub, "refused").await > counted);

            room.post_message("two").await;
            assert_eq!(oak.texts(1).await, ["two"]);
            hub.maintain().await;
            assert_eq!(room.member("oak").await.get("refusal"), None, "it took one");
        }
    }
);

story!(
    a_member_that_is_given_up_on_is_in_the_activity_and_in_a_metric,
    |hub| async {
        // R-90, R-72
        let room = OwnedChannel::create(&hub, "alice").await;
        let mut oak = RemoteMember::scripted(&hub, |_| broken()).await;
        room.add_remote("oak", &oak.url()).await;
        let counted = untaken_count(&hub, "given_up").await;
        room.post_message("one").await;
        oak.next_delivery().await;
        later(&hub, DAY).await;
        let told = activity(&hub, "channel_member_unreachable").await;
        assert_eq!(told.len(), 1);
        assert_eq!(told[0]["data"]["name"], "oak");
        assert!(untaken_count(&hub, "given_up").await > counted);
    }
);

story!(
    deliveries_that_overflow_are_told_once_until_the_member_takes_one,
    |hub| async {
        // R-90
        let room = OwnedChannel::create(&hub, "alice").await;
        let script = |turn| if turn == 0 { broken() } else { taken() };
        let mut oak = RemoteMember::scripted(&hub, script).await;
        room.add_remote("oak", &oak.url()).await;
        let counted = untaken_count(&hub, "overflow").await;
        let first = room.post_message("one").await;
        assert_eq!(oak.texts(1).await, ["one"]);
        hub.maintain().await;
        // As many waiting messages as are kept; those that the story did not post have sequences far ahead.
        let fill = "insert into deliveries (member, seq)
            with recursive n(i) as (select 1 union all select i + 1 from n where i < 9999)
            select m.id, n.i + 1000000 from channel_members m, n where m.name = 'oak'";
        run_sql(&hub, fill).await;
        let waiting = room.history().await.len();
        // The message that waits first is dropped; the next one drops another, and is not told.
        room.post_message("two").await;
        let lines = room.history().await;
        assert_eq!(lines.len(), waiting + 2, "{lines:?}");
        let line = &lines[waiting..]
            .iter()
            .find(|line| line["type"] == "member")
            .unwrap();
        assert_eq!(
            (&line["change"], &line["name"], &line["id"]),
            (&json!("dropped"), &json!("oak"), &first["id"]),
            "{line}"
        );
        let reason = line["message"].as_str().unwrap();
        assert!(reason.contains("10000"), "{line}");
        assert_eq!(room.member("oak").await["refusal"]["reason"], reason);
        let told = activity(&hub, "channel_deliveries_dropped").await;
        assert_eq!(told.len(), 1);
        assert_eq!(told[0]["data"]["message_id"], first["id"], "{told:?}");
        room.post_message("three").await;
        assert_eq!(room.history().await.len(), waiting + 3);
        assert!(untaken_count(&hub, "overflow").await >= counted + 2);

        let empty = "delete from deliveries where not exists (select 1 from log l where l.seq = deliveries.seq)";
        run_sql(&hub, empty).await;
        later(&hub, std::time::Duration::from_secs(60)).await;
        assert_eq!(oak.texts(1).await, ["three"]);
        hub.maintain().await;
        assert_eq!(room.member("oak").await.get("refusal"), None, "it took one");
    }
);

story!(
    an_agent_with_only_an_endpoint_gets_its_deliveries_there,
    |hub| async {
        // R-90, CHN-06, R-96
        let room = OwnedChannel::create(&hub, "alice").await;
        let mut bob_hook =
            RemoteMember::scripted(&hub, |turn| if turn == 0 { broken() } else { taken() }).await;
        let bob = hub.agent_with_webhook("bob", &bob_hook.url()).await;
        room.add_agent(&bob).await;
        let said = room.post_message("are you there?").await;
        assert_eq!(
            bob_hook.next_delivery().await["message"]["id"],
            said["id"],
            "the form of a delivery, not of a message"
        );
        later(&hub, std::time::Duration::from_secs(60)).await;
        let again = bob_hook.next_delivery().await;
        assert_eq!(
            (&again["message"]["id"], &again["channel"]["id"]),
            (&said["id"], &json!(room.id))
        );
        bob_hook.post_answer(&again, "I am").await;
        let row = room.history().await.pop().unwrap();
        assert_eq!(
            (&row["sender"], &row["content"]),
            (&json!("bob"), &json!("I am"))
        );

        let secret = bob
            .post("/agent/endpoint-secret", &json!({}))
            .await
            .data(201);
        room.post_message("signed").await;
        let heard = bob_hook.endpoint.next_request().await;
        let signer = standardwebhooks::Webhook::new(secret["endpoint_secret"].as_str().unwrap());
        let seconds = heard.header("webhook-timestamp").unwrap().parse().unwrap();
        let id = heard.header("webhook-id").unwrap();
        assert_eq!(
            heard.header("webhook-signature").unwrap(),
            signer
                .unwrap()
                .sign(&id, seconds, heard.text.as_bytes())
                .unwrap()
        );
        hub.maintain().await;
        let mut inbox = bob.inbox_after("0").await;
        inbox.next("channel_invite").await;
        room.post_message("on the stream").await;
        let event = inbox.next("channel").await;
        assert_eq!(
            event.data["message"]["content"], "on the stream",
            "while it reads its inbox, and nothing that was posted before"
        );
        hub.maintain().await;
        assert!(bob_hook.endpoint.received_nothing());
    }
);

story!(
    an_endpoint_that_refuses_is_told_and_one_that_is_given_up_loses_nothing,
    |hub| async {
        // R-90
        let room = OwnedChannel::create(&hub, "alice").await;
        let mut hook = RemoteMember::scripted(&hub, |turn| match turn {
            0 => Reply::json(400, "{}"),
            _ => broken(),
        })
        .await;
        let bob = hub.agent_with_webhook("bob", &hook.url()).await;
        room.add_agent(&bob).await;
        room.post_message("one").await;
        hook.next_delivery().await;
        hub.maintain().await;
        assert_eq!(
            room.member_changes().await.pop().as_deref(),
            Some("bob refused")
        );
        room.post_message("two").await;
        hook.next_delivery().await;
        hub.maintain().await;
        // It reads its inbox from now on: what waits for its endpoint comes there.
        let mut inbox = bob.inbox_after("0").await;
        inbox.next("channel_invite").await;
        later(&hub, std::time::Duration::from_secs(60)).await;
        let event = inbox.next("channel").await;
        assert_eq!(event.data["message"]["content"], "two");
    }
);

story!(
    an_endpoint_that_was_given_up_on_is_caught_up_with_on_the_inbox,
    |hub| async {
        // R-90
        let room = OwnedChannel::create(&hub, "alice").await;
        let mut hook = RemoteMember::scripted(&hub, |_| Reply::json(410, "{}")).await;
        let bob = hub.agent_with_webhook("bob", &hook.url()).await;
        room.add_agent(&bob).await;
        room.post_message("one").await;
        hook.next_delivery().await;
        hub.maintain().await;
        assert_eq!(room.member("bob").await["unreachable"], true);
        let mut inbox = bob.inbox_after("0").await;
        inbox.next("channel_invite").await;
        room.post_message("two").await;
        hub.maintain().await;
        for text in ["one", "two"] {
            let event = inbox.next("channel").await;
            assert_eq!(event.data["message"]["content"], text);
        }
        assert_eq!(room.member("bob").await["unreachable"], false);
    }
);
