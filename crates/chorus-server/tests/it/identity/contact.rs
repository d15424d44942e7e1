//! Contact: the receiver decides which agents may contact it.

use crate::support::actors::channel::{add_agent, create_channel};
use crate::support::actors::database::run_sql;
use crate::support::actors::market::{
    assert_market_refused, job_request, register_requester, register_trader, register_worker,
    skill_offer,
};
use crate::support::actors::{Agent, Answer, registration, rows};
use serde_json::{Value, json};

async fn put(who: &Agent, path: &str) -> Value {
    Answer::of(who.request("PUT", path).json(&json!({})))
        .await
        .data(200)
}

async fn accept_from(who: &Agent, accepted: &str) -> Value {
    let request = who.request("PATCH", "/agent/settings");
    Answer::of(request.json(&json!({"accept_from": accepted})))
        .await
        .data(200)
}

async fn names(who: &Agent, path: &str) -> Vec<Value> {
    let listed = rows(who.get(path).await.data(200));
    listed.iter().map(|row| row["name"].clone()).collect()
}

story!(
    a_blocked_sender_is_refused_everywhere_until_the_block_ends,
    |hub| async {
        //
        let (alice, eve) = (hub.agent("alice").await, hub.agent("eve").await);
        let bob = hub.agent("bob").await;
        alice.grant(&eve).await;
        let mut session = alice.open_session("vim", "s1").await;
        let room = create_channel(&eve, "ops").await;
        let invitation = json!({"agent_id": alice.id});
        eve.found_organisation("~acme").await;
        for _ in 0..2 {
            eve.send_expecting(&alice.id, "before", "queued").await;
            assert_eq!(eve.send_advisory("~alice", "before").await, 1);
            assert_eq!(session.advisory_texts(1).await, ["before"]);
            let blocked = put(&alice, "/agent/blocks/~eve").await;
            assert_eq!(
                blocked,
                json!({"name": "eve@chorus", "blocked_at": "2026-03-20T10:00:00.000000Z"})
            );
            assert_eq!(put(&alice, "/agent/blocks/eve").await, blocked, "again");
            assert_eq!(names(&alice, "/agent/blocks").await, ["eve@chorus"]);
            eve.send(&alice.id, "x").await.refused(403, "ERR_BLOCKED");
            eve.post(&format!("{room}/members"), &invitation)
                .await
                .refused(403, "ERR_BLOCKED");
            let frame = eve.advisory_to("~alice", "x");
            eve.submit("~alice", &frame)
                .await
                .frame_refused(403, "blocked", None);
            let invited = eve.request("PUT", "/orgs/~acme/members/~alice");
            Answer::of(invited.json(&json!({"roles": []})))
                .await
                .frame_refused(403, "blocked", None);
            bob.send_expecting(&alice.id, "another", "queued").await;
            alice
                .send_expecting(&eve.id, "the other way", "queued")
                .await;
            let ended = alice.delete("/agent/blocks/eve@chorus").await.data(200);
            assert_eq!(ended, json!({"name": "eve@chorus", "removed": true}));
        }
        assert_eq!(
            alice.delete("/agent/blocks/~eve").await.data(200)["removed"],
            false
        );
        eve.send_expecting(&alice.id, "after", "queued").await;
    }
);

story!(
    a_block_holds_for_a_host_after_a_restart_and_for_the_next_agent_of_the_name,
    |hub| async {
        //
        let alice = hub.agent("alice").await;
        let mallory = hub.agent_with("mallory@Evil.example", &json!({})).await;
        let eve = hub.agent("eve").await;
        put(&alice, "/agent/blocks/@evil.example").await;
        put(&alice, "/agent/blocks/eve").await;
        assert_eq!(
            names(&alice, "/agent/blocks").await,
            ["@evil.example", "eve@chorus"]
        );
        mallory
            .send(&alice.id, "x")
            .await
            .refused(403, "ERR_BLOCKED");
        hub.restart().await;
        let (alice, mallory, eve) = (
            hub.reconnect(&alice),
            hub.reconnect(&mallory),
            hub.reconnect(&eve),
        );
        mallory
            .send(&alice.id, "x")
            .await
            .refused(403, "ERR_BLOCKED");
        eve.delete("/agents/eve").await.data(200);
        let eve = hub.agent("eve").await;
        eve.send(&alice.id, "x").await.refused(403, "ERR_BLOCKED");
        // What an agent has set ends with it.
        alice.delete("/agents/alice").await.data(200);
        let alice = hub.agent("alice").await;
        assert_eq!(names(&alice, "/agent/blocks").await, Vec::<Value>::new());
        mallory
            .send_expecting(&alice.id, "to another", "queued")
            .await;
    }
);

story!(
    a_frame_to_an_organisation_leaves_out_the_members_that_block_its_sender,
    |hub| async {
        // it is not refused for the sake of one
        let (alice, bob, eve) = (
            hub.agent("alice").await,
            hub.agent("bob").await,
            hub.agent("eve").await,
        );
        eve.found_organisation("~acme").await;
        for member in [&alice, &bob] {
            let path = format!("/orgs/~acme/members/{}", member.handle());
            let invited = eve.request("PUT", &path).json(&json!({"roles": []}));
            assert_eq!(Answer::of(invited).await.status, 200);
            let accepted = member.post(&format!("{path}/accept"), &json!({})).await;
            assert_eq!(accepted.status, 200);
        }
        let mut to_alice = alice.open_session("vim", "s1").await;
        let mut to_bob = bob.open_session("vim", "s2").await;
        assert_eq!(eve.send_advisory("org:~acme/members/*", "one").await, 2);
        put(&alice, "/agent/blocks/~eve").await;
        assert_eq!(eve.send_advisory("org:~acme/members/*", "two").await, 1);
        alice.delete("/agent/blocks/~eve").await.data(200);
        assert_eq!(eve.send_advisory("org:~acme/members/*", "three").await, 2);
        assert_eq!(to_alice.advisory_texts(2).await, ["one", "three"]);
        assert_eq!(to_bob.advisory_texts(3).await, ["one", "two", "three"]);
    }
);

story!(
    an_agent_that_accepts_contacts_only_hears_from_no_other,
    |hub| async {
        //
        let (alice, bob, eve) = (
            hub.agent("alice").await,
            hub.agent("bob").await,
            hub.agent("eve").await,
        );
        let (carol, dave) = (hub.agent("carol").await, hub.agent("dave").await);
        assert_eq!(
            alice.get("/agent/settings").await.data(200),
            json!({"accept_from": "anyone"})
        );
        alice
            .send_expecting(&bob.id, "written before", "queued")
            .await;
        assert_eq!(
            accept_from(&alice, "contacts").await,
            json!({"accept_from": "contacts"})
        );
        assert_eq!(
            alice.get("/agent/settings").await.data(200)["accept_from"],
            "contacts"
        );
        bob.send_expecting(&alice.id, "an answer", "queued").await;
        for stranger in [&eve, &carol, &dave] {
            stranger
                .send(&alice.id, "x")
                .await
                .refused(403, "ERR_NOT_A_CONTACT");
        }
        // Written to, also with an Idempotency-Key; added; and in one channel.
        alice
            .send_once("key-1", &alice.message(&eve.id, "hello"))
            .await
            .data(202);
        eve.send_expecting(&alice.id, "an answer", "queued").await;
        let added = put(&alice, "/agent/contacts/~carol").await;
        assert_eq!(added["name"], "carol@chorus");
        assert_eq!(put(&alice, "/agent/contacts/carol").await, added, "again");
        assert_eq!(names(&alice, "/agent/contacts").await, ["carol@chorus"]);
        carol.send_expecting(&alice.id, "hello", "queued").await;
        let room = create_channel(&alice, "ops").await;
        add_agent(&alice, &room, &dave).await;
        dave.send_expecting(&alice.id, "hello", "queued").await;
        dave.delete(&format!("{room}/members/dave")).await.data(200);
        dave.send(&alice.id, "x")
            .await
            .refused(403, "ERR_NOT_A_CONTACT");
        // A grant alone makes no contact.
        alice.grant(&dave).await;
        let frame = dave.advisory_to("~alice", "x");
        dave.submit("~alice", &frame)
            .await
            .frame_refused(403, "not-a-contact", None);
        alice.delete("/agent/contacts/carol").await.data(200);
        carol
            .send(&alice.id, "x")
            .await
            .refused(403, "ERR_NOT_A_CONTACT");
        assert_eq!(
            alice.delete("/agent/contacts/carol").await.data(200)["removed"],
            false
        );
        // A block holds against a contact.
        put(&alice, "/agent/blocks/~bob").await;
        bob.send(&alice.id, "x").await.refused(403, "ERR_BLOCKED");
        accept_from(&alice, "anyone").await;
        bob.send(&alice.id, "x").await.refused(403, "ERR_BLOCKED");
        dave.send_expecting(&alice.id, "hello", "queued").await;
    }
);

story!(
    agents_of_one_owner_or_organisation_are_contacts,
    |hub| async {
        //
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let mut twin = registration("twin@chorus");
        twin["owner_id"] = json!(alice.id);
        let data = alice.post("/register", &twin).await.data(201);
        let twin = Agent::new(&alice, "twin@chorus", data["api_key"].as_str().unwrap());
        accept_from(&alice, "contacts").await;
        twin.send_expecting(&alice.id, "of one owner", "queued")
            .await;
        let assert_stranger = async || {
            bob.send(&alice.id, "x")
                .await
                .refused(403, "ERR_NOT_A_CONTACT");
        };
        assert_stranger().await;
        alice.found_organisation("~acme").await;
        let membership = "/orgs/~acme/members/~bob";
        let invited = alice.request("PUT", membership).json(&json!({"roles": []}));
        assert_eq!(Answer::of(invited).await.status, 200);
        // An invitation alone makes no contact: anyone may found an organisation and invite.
        assert_stranger().await;
        let joined = bob.post(&format!("{membership}/accept"), &json!({})).await;
        assert_eq!(joined.status, 200, "{joined:?}");
        bob.send_expecting(&alice.id, "of one organisation", "queued")
            .await;
        assert_eq!(alice.delete(membership).await.status, 200);
        assert_stranger().await;
    }
);

story!(
    only_contacts_invite_an_agent_that_accepts_contacts_only,
    |hub| async {
        //
        let (alice, eve) = (hub.agent("alice").await, hub.agent("eve").await);
        accept_from(&alice, "contacts").await;
        let room = create_channel(&eve, "ops").await;
        let invitation = json!({"agent_id": alice.id});
        let members = format!("{room}/members");
        eve.post(&members, &invitation)
            .await
            .refused(403, "ERR_NOT_A_CONTACT");
        assert!(rows(alice.get("/channels").await.data(200)).is_empty());
        put(&alice, "/agent/contacts/eve").await;
        let invited = eve.post(&members, &invitation).await.data(201);
        assert_eq!(invited["membership"], "invited");
        assert_eq!(rows(alice.get("/channels").await.data(200)).len(), 1);
    }
);

story!(
    a_job_goes_to_no_worker_that_blocks_its_requester,
    |hub| async {
        //
        let boss = register_requester(&hub).await;
        let (first, second) = (
            register_worker(&hub, "worker-a").await,
            register_trader(&hub, "worker-b", skill_offer(0.12), None).await,
        );
        for worker in [&first, &second] {
            let beat = json!({"agent_id": worker.id, "status": "ONLINE"});
            let _ = worker.post("/heartbeat", &beat).await;
        }
        put(&first, "/agent/blocks/boss-1").await;
        let mut named = job_request("job-1");
        named["agent_id"] = json!(first.id);
        assert_market_refused(&boss.post("/jobs", &named).await, 403, "ERR_BLOCKED");
        let chosen = boss.post("/jobs", &job_request("job-2")).await;
        assert_eq!(chosen.status, 202, "{chosen:?}");
        assert_eq!(chosen.json()["agent_id"], second.id, "the next best offer");
        accept_from(&second, "contacts").await;
        assert_market_refused(
            &boss.post("/jobs", &job_request("job-3")).await,
            403,
            "ERR_NOT_A_CONTACT",
        );
    }
);

story!(
    what_is_wrong_with_a_block_or_a_contact_is_named,
    |hub| async {
        //
        let alice = hub.agent("alice").await;
        for name in ["alice", "~alice", "a%20b", "@a%20b", "@"] {
            let request = alice.request("PUT", &format!("/agent/blocks/{name}"));
            let said = Answer::of(request).await.refused(400, "ERR_VALIDATION");
            assert!(said.contains("name") || said.contains("itself"), "{said}");
        }
        Answer::of(alice.request("PUT", "/agent/contacts/absent"))
            .await
            .refused(404, "ERR_AGENT_NOT_FOUND");
        for body in [
            json!({}),
            json!({"accept_from": "friends"}),
            json!({"x": 1}),
        ] {
            let request = alice.request("PATCH", "/agent/settings").json(&body);
            Answer::of(request).await.refused(400, "ERR_VALIDATION");
        }
        for path in ["/agent/blocks", "/agent/contacts", "/agent/settings"] {
            hub.operator().get(path).await.refused(403, "ERR_FORBIDDEN");
            hub.anonymous()
                .get(path)
                .await
                .refused(401, "ERR_UNAUTHORIZED");
        }
    }
);

story!(
    one_block_or_contact_more_than_an_agent_may_have_is_beyond_its_quota,
    |hub| async {
        //
        let alice = hub.agent("alice").await;
        let bob = hub.agent("bob").await;
        let fill = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000)
             insert into blocks (agent, name, at) select p.id, 'spam' || n.i || '@chorus', 1 from principals p, n where p.agent_id = 'alice@chorus';
             with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000)
             insert into contacts (agent, contact, at) select p.id, n.i + 1000000, 1 from principals p, n where p.agent_id = 'alice@chorus'";
        run_sql(&hub, fill).await;
        for list in ["/agent/blocks", "/agent/contacts"] {
            let request = alice.request("PUT", &format!("{list}/{}", bob.id));
            let answer = Answer::of(request.json(&json!({}))).await;
            assert!(
                answer.refused(403, "ERR_QUOTA").contains("1000"),
                "{answer:?}"
            );
        }
        assert_eq!(names(&alice, "/agent/blocks").await.len(), 1_000);
    }
);
