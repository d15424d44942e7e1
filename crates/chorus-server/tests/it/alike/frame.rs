//! Handles, those who may address them, organisations and accords, and what live sessions hear.

use super::envelope::agent;
use super::tale::{Tale, ask};
use crate::actors::{frame, named_by};
use crate::hub::OPERATOR_KEY;
use serde_json::{Value, json};

pub async fn tell(tale: &mut Tale) {
    let (gina, hugo) = (
        agent(tale, "gina@chorus").await,
        agent(tale, "hugo@chorus").await,
    );
    grants(tale, &gina, &hugo).await;
    let accord = organisations(tale, &gina, &hugo).await;
    sessions(tale, &gina, &hugo).await;
    submissions(tale, &gina).await;
    partings(tale, &gina, &hugo, &accord).await;
}

fn advisory(from: &str, scope: &str, text: &str) -> Value {
    json!({"scope": scope, "frame": frame(from, &named_by(scope), "agent_advisory", &json!({"advisory_text": text}))})
}

async fn grants(tale: &mut Tale, gina: &str, hugo: &str) {
    for handle in ["~gina", "~nobody", "gina", "%00", "~%00"] {
        for key in [gina, hugo, "", OPERATOR_KEY] {
            tale.get(key, &format!("/handles/{handle}/grants")).await;
            tale.get(key, &format!("/handles/{handle}/roster")).await;
        }
    }
    for other in ["~hugo", "~gina", "~nobody", "~Bad", "~%00"] {
        tale.put(gina, &format!("/handles/~gina/grants/{other}"), &json!({}))
            .await;
    }
    tale.put(hugo, "/handles/~gina/grants/~hugo", &json!({}))
        .await
        .is(403);
    tale.get(hugo, "/handles/~gina/roster").await.is(200);
    tale.get(gina, "/handles/~gina/grants").await.is(200);
    tale.delete(gina, "/handles/~gina/grants/~hugo")
        .await
        .is(200);
    tale.delete(gina, "/handles/~gina/grants/~hugo").await;
    tale.delete(hugo, "/handles/~gina/grants/~hugo")
        .await
        .is(403);
    tale.get(hugo, "/handles/~gina/roster").await.is(403);
    tale.put(gina, "/handles/~gina/grants/~hugo", &json!({}))
        .await
        .is(200);
}

async fn organisations(tale: &mut Tale, gina: &str, hugo: &str) -> String {
    for body in [
        json!({"handle": "~acme"}),
        json!({"handle": "~acme"}),
        json!({}),
        json!({"handle": "~Bad"}),
        json!([]),
    ] {
        tale.post(gina, "/orgs", &body).await;
    }
    tale.post(hugo, "/orgs", &json!({"handle": "~peer"}))
        .await
        .is(201);
    tale.post("", "/orgs", &json!({"handle": "~none"}))
        .await
        .is(401);
    for (key, org, who, body) in [
        (gina, "~acme", "~hugo", json!({"roles": ["ops"]})),
        (gina, "~acme", "~hugo", json!({"roles": "ops"})),
        (gina, "~acme", "~nobody", json!({"roles": []})),
        (gina, "~none", "~hugo", json!({"roles": []})),
        (hugo, "~acme", "~hugo", json!({"roles": ["owner"]})),
        (gina, "~%00", "~%00", json!({"roles": []})),
    ] {
        tale.put(key, &format!("/orgs/{org}/members/{who}"), &body)
            .await;
    }
    tale.get(hugo, "/orgs/~acme/members").await;
    tale.post(gina, "/orgs/~acme/members/~hugo/accept", &json!({}))
        .await
        .is(403);
    tale.post(hugo, "/orgs/~acme/members/~hugo/accept", &json!({}))
        .await
        .is(200);
    tale.post(hugo, "/orgs/~acme/members/~hugo/accept", &json!({}))
        .await;
    for key in [gina, hugo, ""] {
        tale.get(key, "/orgs/~acme/members").await;
        tale.get(key, "/orgs/~acme/accords").await;
    }
    let offer = json!({"grantee": "~peer", "grant": "ops", "reaches": "*", "expires_at": "2026-03-21T10:00:00Z"});
    let accord = tale
        .post(gina, "/orgs/~acme/accords", &offer)
        .await
        .is(201)
        .at("/id");
    tale.post(hugo, "/orgs/~acme/accords", &offer).await;
    tale.post(gina, "/orgs/~acme/accords", &json!({"grantee": "~peer"}))
        .await
        .is(400);
    tale.post(
        gina,
        &format!("/orgs/~acme/accords/{accord}/accept"),
        &json!({}),
    )
    .await;
    tale.post(
        hugo,
        &format!("/orgs/~peer/accords/{accord}/accept"),
        &json!({}),
    )
    .await
    .is(200);
    tale.post(hugo, "/orgs/~peer/accords/none/accept", &json!({}))
        .await;
    tale.post(hugo, "/orgs/~peer/accords/%00/accept", &json!({}))
        .await;
    tale.get(gina, "/orgs/~acme/accords").await.is(200);
    tale.get(hugo, "/orgs/~peer/accords").await.is(200);
    accord
}

async fn sessions(tale: &mut Tale, gina: &str, hugo: &str) {
    let stream = |key: &str, query: &str| ask("GET", &format!("/handles/{query}")).key(key);
    let mut first = tale
        .opens(stream(gina, "~gina/stream?instrument=vim&session=s1"))
        .await;
    let mut second = tale
        .opens(stream(
            gina,
            "~gina/stream?instrument=cc-editor&session=s2&filter=kind:agent_advisory",
        ))
        .await;
    let mut his = tale
        .opens(stream(hugo, "~hugo/stream?instrument=vim&session=h1"))
        .await;
    for key in [gina, hugo] {
        tale.get(key, "/handles/~gina/roster").await.is(200);
    }
    for (key, from, scope) in [
        (gina, "~gina", "~gina"),
        (hugo, "~hugo", "~gina"),
        (gina, "~gina", "~gina/vim@s1"),
        (gina, "~gina", "~gina/cc-*"),
    ] {
        let told = tale
            .post(key, "/frames", &advisory(from, scope, scope))
            .await
            .is(200);
        let count = told.json()["recipient_count"].as_u64().unwrap();
        if scope != "~gina/cc-*" {
            tale.hears(&mut first, 1).await;
        }
        if count == 2 || scope == "~gina/cc-*" {
            tale.hears(&mut second, 1).await;
        }
    }
    tale.post(
        gina,
        "/frames",
        &advisory("~gina", "org:~acme/members/*", "to all of us"),
    )
    .await
    .is(200);
    for one in [&mut first, &mut second, &mut his] {
        tale.hears(one, 1).await;
    }
    tale.post(
        hugo,
        "/frames",
        &advisory("~hugo", "accord:~acme/grant:ops", "by accord"),
    )
    .await;
    let last = second.last.clone();
    drop(second);
    tale.until(gina, "/handles/~gina/roster", |body| {
        body["sessions"]
            .as_array()
            .is_some_and(|all| all.len() == 1)
    })
    .await;
    tale.post(gina, "/frames", &advisory("~gina", "~gina", "missed"))
        .await
        .is(200);
    let again = stream(
        gina,
        "~gina/stream?instrument=cc-editor&session=s2&filter=kind:agent_advisory",
    );
    let mut again = tale.opens(again.header("last-event-id", &last)).await;
    tale.hears(&mut again, 1).await;
    let unknown = stream(gina, "~gina/stream?instrument=cc-editor&session=s3");
    drop(tale.opens(unknown.header("last-event-id", "7-7")).await);
    for query in [
        "~gina/stream?filter=nonsense",
        "~gina/stream?session=a%00b",
        "~hugo/stream",
        "~nobody/stream",
        "~%00/stream",
    ] {
        tale.tell(stream(gina, query)).await;
    }
    tale.get("", "/handles/~gina/stream").await.is(401);
    tale.get(OPERATOR_KEY, "/handles/~gina/stream").await;
    let ticket = tale
        .post(gina, "/agent/session", &json!({}))
        .await
        .at("/data/session_token");
    drop(
        tale.opens(stream(
            "",
            &format!("~gina/stream?session_token={ticket}&session=s4"),
        ))
        .await,
    );
}

async fn submissions(tale: &mut Tale, gina: &str) {
    let good = advisory("~gina", "~gina", "x");
    for (place, value) in [
        ("kind", json!("agent_dance")),
        ("created_at", json!("yesterday")),
        ("created_at", json!("2020-01-01T00:00:00Z")),
        ("payload", json!({})),
        ("payload", json!({"advisory_text": "x".repeat(70_000)})),
        ("sender_handle", json!("~hugo")),
        ("recipient_handle", json!("~nobody")),
        ("frame_id", json!("not-an-id")),
        ("colour", json!("red")),
    ] {
        let mut bad = good.clone();
        bad["frame"][place] = value;
        tale.post(gina, "/frames", &bad).await;
    }
    for scope in [
        "org:~acme",
        "org:~none/members/*",
        "org:~acme/members/none/*",
        "~hugo",
        "accord:~peer/grant:none",
        "nonsense",
        "",
    ] {
        tale.post(
            gina,
            "/frames",
            &json!({"scope": scope, "frame": good["frame"]}),
        )
        .await;
    }
    tale.post("", "/frames", &good).await.is(401);
    tale.post(OPERATOR_KEY, "/frames", &good).await;
    tale.tell(
        ask("POST", "/frames")
            .key(gina)
            .header("content-type", "application/json")
            .bytes("{"),
    )
    .await
    .is(400);
}

async fn partings(tale: &mut Tale, gina: &str, hugo: &str, accord: &str) {
    tale.delete("", &format!("/orgs/~acme/accords/{accord}"))
        .await
        .is(401);
    tale.delete(hugo, &format!("/orgs/~peer/accords/{accord}"))
        .await
        .is(200);
    tale.delete(hugo, "/orgs/~peer/accords/%00").await;
    tale.delete(gina, &format!("/orgs/~acme/accords/{accord}"))
        .await;
    tale.delete(hugo, "/orgs/~acme/members/~gina").await;
    tale.delete(hugo, "/orgs/~acme/members/~hugo").await.is(200);
    tale.delete(gina, "/orgs/~acme/members/~gina").await;
    tale.get(hugo, "/orgs/~acme/members").await.is(403);
}
