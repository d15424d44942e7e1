//! Quotas of owners: what is beyond one is refused by name, and what is deleted makes room.

use crate::support::actors::channel::{add_agent, create_channel, post_message};
use crate::support::actors::market::{
    assert_market_refused, job_request, register_requester, register_worker, request_job,
    success_result,
};
use crate::support::actors::{Agent, Answer, registration};
use serde_json::{Value, json};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// After this time every hub sums up again what an owner stores (D-107).
const REREAD: Duration = Duration::from_secs(11);

async fn usage(of: &Agent) -> Value {
    of.get("/agent/usage").await.data(200)
}

#[track_caller]
fn assert_beyond(answer: &Answer, quota: &str) {
    let said = answer.refused(403, "ERR_QUOTA");
    assert!(said.contains(quota), "{said}");
}

story!(
    an_owner_that_stores_too_much_is_refused_until_retention_makes_room,
    with(|set| {
        set.hub.quotas.stored_bytes = 20_000;
        set.hub.retain = Some(30 * DAY);
    }),
    |hub| async {
        //
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let long = "x".repeat(4_000);
        let mut accepted = 0;
        let refused = loop {
            let answer = alice.send(&bob.id, &long).await;
            if answer.status == 403 {
                break answer;
            }
            accepted += 1;
            assert!(accepted < 10, "{answer:?}");
            hub.advance(REREAD);
        };
        assert_beyond(&refused, "stored_bytes");
        assert_eq!(accepted, 4, "four messages of 4 000 octets fit");
        let used = usage(&alice).await["stored_bytes"].clone();
        assert_eq!(used["bound"], 20_000);
        assert!(
            (16_000..20_000).contains(&used["used"].as_u64().unwrap()),
            "{used}"
        );
        // An owner's quota is not its neighbour's, and a receiver pays for nothing.
        assert_eq!(bob.send(&alice.id, &long).await.status, 202);
        // What an agent of the same owner stores counts together.
        let mut twin = registration("twin@chorus");
        twin["owner_id"] = json!(alice.id);
        let data = alice.post("/register", &twin).await.data(201);
        let twin = Agent::new(&alice, "twin@chorus", data["api_key"].as_str().unwrap());
        assert_beyond(&twin.send(&bob.id, &long).await, "stored_bytes");
        // Nothing of what was refused is stored.
        assert_eq!(bob.history("").await.len(), accepted + 1);
        hub.advance(31 * DAY);
        hub.maintain().await;
        assert_eq!(alice.send(&bob.id, &long).await.status, 202);
        let used = usage(&alice).await["stored_bytes"]["used"]
            .as_u64()
            .unwrap();
        assert!((4_000..6_000).contains(&used), "{used}");
        assert_eq!(usage(&twin).await["stored_bytes"]["used"], used);
        hub.restart().await;
        let alice = hub.reconnect(&alice);
        assert_eq!(usage(&alice).await["stored_bytes"]["used"], used);
    }
);

story!(
    channels_and_members_of_an_owner_are_counted_together,
    with(|set| {
        set.hub.quotas.channels = 2;
        set.hub.quotas.members = 4;
    }),
    |hub| async {
        //
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let carol = hub.agent("carol").await;
        let first = create_channel(&alice, "one").await;
        let second = create_channel(&alice, "two").await;
        let third = alice.post("/channels", &json!({"name": "three"})).await;
        assert_beyond(&third, "channels");
        create_channel(&bob, "his own").await;
        // Each channel has its owner as a member.
        add_agent(&alice, &first, &bob).await;
        add_agent(&alice, &second, &bob).await;
        let body = json!({"agent_id": carol.id});
        assert_beyond(
            &alice.post(&format!("{first}/members"), &body).await,
            "members",
        );
        let used = usage(&alice).await;
        assert_eq!(used["channels"], json!({"used": 2, "bound": 2}));
        assert_eq!(used["members"], json!({"used": 4, "bound": 4}));
        alice.delete(&second).await.data(200);
        add_agent(&alice, &first, &carol).await;
        create_channel(&alice, "three").await;
        // A channel of an operator has no owner, and no quota.
        for name in ["a", "b", "c"] {
            create_channel(&hub.operator(), name).await;
        }
    }
);

story!(
    what_a_member_says_counts_for_its_own_owner,
    with(|set| set.hub.quotas.stored_bytes = 30_000),
    |hub| async {
        // R-95, D-108: a message counts once, each delivery its own part
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let carol = hub.agent("carol").await;
        let path = create_channel(&alice, "ops").await;
        add_agent(&alice, &path, &bob).await;
        add_agent(&alice, &path, &carol).await;
        let mut inbox = bob.inbox().await;
        let before = usage(&alice).await["stored_bytes"]["used"]
            .as_u64()
            .unwrap();
        post_message(&alice, &path, &"y".repeat(9_000)).await;
        let used = usage(&alice).await["stored_bytes"]["used"]
            .as_u64()
            .unwrap()
            - before;
        assert!((9_000..12_000).contains(&used), "{used}");
        let delivery = inbox.next("channel").await.data;
        let callback = delivery["callback"].as_str().unwrap();
        let path = &callback[callback.find("/channels/").unwrap()..];
        let said = json!({"type": "message", "content": "z".repeat(14_000)});
        let mut statuses = Vec::new();
        for _ in 0..3 {
            statuses.push(hub.anonymous().post(path, &said).await.status);
            hub.advance(REREAD);
        }
        assert_eq!(statuses, [200, 200, 403], "{}", usage(&bob).await);
        assert_eq!(alice.send(&bob.id, "mine is not full").await.status, 200);
    }
);

story!(
    open_jobs_are_bounded_and_an_end_makes_room,
    with(|set| set.hub.quotas.open_jobs = 2),
    |hub| async {
        //
        let boss = register_requester(&hub).await;
        let worker = register_worker(&hub, "worker-1").await;
        request_job(&boss, &job_request("job-1")).await;
        request_job(&boss, &job_request("job-2")).await;
        let third = boss.post("/jobs", &job_request("job-3")).await;
        assert_market_refused(&third, 403, "ERR_QUOTA");
        assert!(third.text.contains("open_jobs"), "{third:?}");
        // The same request again is no further job.
        request_job(&boss, &job_request("job-1")).await;
        assert_eq!(usage(&boss).await["open_jobs"]["used"], 2);
        let done = worker
            .post("/jobs/job-1/result", &success_result(0.10))
            .await;
        assert_eq!(done.status, 200, "{done:?}");
        request_job(&boss, &job_request("job-3")).await;
    }
);

story!(usage_belongs_to_an_agent, |hub| async {
    //
    hub.anonymous()
        .get("/agent/usage")
        .await
        .refused(401, "ERR_UNAUTHORIZED");
    hub.operator()
        .get("/agent/usage")
        .await
        .refused(403, "ERR_FORBIDDEN");
    let alice = hub.agent("alice").await;
    let used = usage(&alice).await;
    assert_eq!(used["owner_id"], "alice@chorus");
    assert_eq!(
        used["stored_bytes"],
        json!({"used": 0, "bound": 1_073_741_824})
    );
});
