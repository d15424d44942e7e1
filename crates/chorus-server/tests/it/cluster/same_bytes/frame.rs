//! The frame part of the script: grants, organisations, accords, sessions and submissions.

use super::envelope::agent;
use super::transcript::{RawRequest, RawStream, Transcript, raw_request};
use crate::support::actors::{frame, scope_recipient};
use crate::support::hub::OPERATOR_KEY;
use serde_json::{Value, json};

pub async fn run(transcript: &mut Transcript) {
    let (gina, hugo) = (
        agent(transcript, "gina@chorus").await,
        agent(transcript, "hugo@chorus").await,
    );
    grants(transcript, &gina, &hugo).await;
    organisations(transcript, &gina, &hugo).await;
    let accord = agree_on_accord(transcript, &gina, &hugo).await;
    sessions(transcript, &gina, &hugo).await;
    open_items(transcript, &gina, &hugo).await;
    submissions(transcript, &gina).await;
    endings(transcript, &gina, &hugo, &accord).await;
}

fn advisory(from: &str, scope: &str, text: &str) -> Value {
    json!({"scope": scope, "frame": frame(from, &scope_recipient(scope), "agent_advisory", &json!({"advisory_text": text}))})
}

async fn grants(transcript: &mut Transcript, gina: &str, hugo: &str) {
    for handle in ["~gina", "~absent", "gina", "%00", "~%00"] {
        for key in [gina, hugo, "", OPERATOR_KEY] {
            transcript
                .get(key, &format!("/handles/{handle}/grants"))
                .await;
            transcript
                .get(key, &format!("/handles/{handle}/roster"))
                .await;
        }
    }
    for other in ["~hugo", "~gina", "~absent", "~Bad", "~%00"] {
        transcript
            .put(gina, &format!("/handles/~gina/grants/{other}"), &json!({}))
            .await;
    }
    transcript
        .put(hugo, "/handles/~gina/grants/~hugo", &json!({}))
        .await
        .expect_status(403);
    transcript
        .get(hugo, "/handles/~gina/roster")
        .await
        .expect_status(200);
    transcript
        .get(gina, "/handles/~gina/grants")
        .await
        .expect_status(200);
    transcript
        .delete(gina, "/handles/~gina/grants/~hugo")
        .await
        .expect_status(200);
    transcript.delete(gina, "/handles/~gina/grants/~hugo").await;
    transcript
        .delete(hugo, "/handles/~gina/grants/~hugo")
        .await
        .expect_status(403);
    transcript
        .get(hugo, "/handles/~gina/roster")
        .await
        .expect_status(403);
    transcript
        .put(gina, "/handles/~gina/grants/~hugo", &json!({}))
        .await
        .expect_status(200);
}

async fn organisations(transcript: &mut Transcript, gina: &str, hugo: &str) {
    for body in [
        json!({"handle": "~acme"}),
        json!({"handle": "~acme"}),
        json!({}),
        json!({"handle": "~Bad"}),
        json!([]),
    ] {
        transcript.post(gina, "/orgs", &body).await;
    }
    transcript
        .post(hugo, "/orgs", &json!({"handle": "~peer"}))
        .await
        .expect_status(201);
    transcript
        .post("", "/orgs", &json!({"handle": "~none"}))
        .await
        .expect_status(401);
    transcript.get(gina, "/orgs").await.expect_status(200);
    transcript.get("", "/orgs").await.expect_status(401);
    for (key, org, who, body) in [
        (gina, "~acme", "~hugo", json!({"roles": ["ops"]})),
        (gina, "~acme", "~hugo", json!({"roles": "ops"})),
        (gina, "~acme", "~absent", json!({"roles": []})),
        (gina, "~none", "~hugo", json!({"roles": []})),
        (hugo, "~acme", "~hugo", json!({"roles": ["owner"]})),
        (gina, "~%00", "~%00", json!({"roles": []})),
    ] {
        transcript
            .put(key, &format!("/orgs/{org}/members/{who}"), &body)
            .await;
    }
    transcript.get(hugo, "/orgs/~acme/members").await;
    transcript
        .post(gina, "/orgs/~acme/members/~hugo/accept", &json!({}))
        .await
        .expect_status(403);
    transcript
        .post(hugo, "/orgs/~acme/members/~hugo/accept", &json!({}))
        .await
        .expect_status(200);
    transcript
        .post(hugo, "/orgs/~acme/members/~hugo/accept", &json!({}))
        .await;
    for key in [gina, hugo, ""] {
        transcript.get(key, "/orgs/~acme/members").await;
        transcript.get(key, "/orgs/~acme/accords").await;
    }
}

/// Proposes and accepts an accord, and returns its id.
async fn agree_on_accord(transcript: &mut Transcript, gina: &str, hugo: &str) -> String {
    let offer = json!({"grantee": "~peer", "grant": "ops", "reaches": "*", "expires_at": "2026-03-21T10:00:00Z"});
    let accord = transcript
        .post(gina, "/orgs/~acme/accords", &offer)
        .await
        .expect_status(201)
        .text_at("/id");
    transcript.post(hugo, "/orgs/~acme/accords", &offer).await;
    transcript
        .post(gina, "/orgs/~acme/accords", &json!({"grantee": "~peer"}))
        .await
        .expect_status(400);
    transcript
        .post(
            gina,
            &format!("/orgs/~acme/accords/{accord}/accept"),
            &json!({}),
        )
        .await;
    transcript
        .post(
            hugo,
            &format!("/orgs/~peer/accords/{accord}/accept"),
            &json!({}),
        )
        .await
        .expect_status(200);
    transcript
        .post(hugo, "/orgs/~peer/accords/none/accept", &json!({}))
        .await;
    transcript
        .post(hugo, "/orgs/~peer/accords/%00/accept", &json!({}))
        .await;
    transcript
        .get(gina, "/orgs/~acme/accords")
        .await
        .expect_status(200);
    transcript
        .get(hugo, "/orgs/~peer/accords")
        .await
        .expect_status(200);
    accord
}

/// What is kept until it ends: listed, taken up, withdrawn.
async fn open_items(transcript: &mut Transcript, gina: &str, hugo: &str) {
    let work = json!({"previous_session_id": "s1", "handover_body": "the rest"});
    let mut ids = Vec::new();
    for _ in 0..2 {
        let offer = frame("~gina", "~gina", "agent_handover", &work);
        let said = transcript
            .post(gina, "/frames", &json!({"frame": offer}))
            .await
            .expect_status(200);
        ids.push(said.text_at("/frame_id"));
    }
    for key in [gina, hugo, "", OPERATOR_KEY] {
        transcript.get(key, "/handles/~gina/open").await;
        transcript.get(key, "/handles/~acme/open").await;
    }
    transcript
        .get(gina, "/handles/~gina/open?after=x")
        .await
        .expect_status(400);
    let take = format!("/handles/~gina/open/{}/take", ids[0]);
    for (key, session) in [(hugo, "s1"), (gina, "s2"), (gina, "s2"), (gina, "s3")] {
        let request = raw_request("POST", &take).key(key);
        transcript
            .record(request.header("x-chorus-session", session))
            .await;
    }
    let withdraw = format!("/handles/~gina/open/{}", ids[1]);
    for key in [hugo, gina, gina] {
        transcript
            .record(raw_request("DELETE", &withdraw).key(key))
            .await;
    }
}

/// Asks for a stream of frames; the path begins with the handle.
fn stream_request(key: &str, path: &str) -> RawRequest {
    raw_request("GET", &format!("/handles/{path}")).key(key)
}

async fn sessions(transcript: &mut Transcript, gina: &str, hugo: &str) {
    let mut first = transcript
        .open_stream(stream_request(
            gina,
            "~gina/stream?instrument=vim&session=s1",
        ))
        .await;
    let mut second = transcript
        .open_stream(stream_request(
            gina,
            "~gina/stream?instrument=cc-editor&session=s2&filter=kind:agent_advisory",
        ))
        .await;
    let mut his = transcript
        .open_stream(stream_request(
            hugo,
            "~hugo/stream?instrument=vim&session=h1",
        ))
        .await;
    for key in [gina, hugo] {
        transcript
            .get(key, "/handles/~gina/roster")
            .await
            .expect_status(200);
    }
    send_announcements(transcript, gina, hugo, [&mut first, &mut second, &mut his]).await;
    let last = second.last.clone();
    drop(second);
    transcript
        .until(gina, "/handles/~gina/roster", |body| {
            body["sessions"]
                .as_array()
                .is_some_and(|all| all.len() == 1)
        })
        .await;
    transcript
        .post(gina, "/frames", &advisory("~gina", "~gina", "missed"))
        .await
        .expect_status(200);
    let again = stream_request(
        gina,
        "~gina/stream?instrument=cc-editor&session=s2&filter=kind:agent_advisory",
    );
    let mut again = transcript
        .open_stream(again.header("last-event-id", &last))
        .await;
    transcript.record_events(&mut again, 1).await;
    let unknown = stream_request(gina, "~gina/stream?instrument=cc-editor&session=s3");
    drop(
        transcript
            .open_stream(unknown.header("last-event-id", "7-7"))
            .await,
    );
    open_refused_streams(transcript, gina).await;
    use_session_token(transcript, gina).await;
}

/// Frames of each scope reach the sessions that they are for.
async fn send_announcements(
    transcript: &mut Transcript,
    gina: &str,
    hugo: &str,
    [first, second, his]: [&mut RawStream; 3],
) {
    for (key, from, scope) in [
        (gina, "~gina", "~gina"),
        (hugo, "~hugo", "~gina"),
        (gina, "~gina", "~gina/vim@s1"),
        (gina, "~gina", "~gina/cc-*"),
    ] {
        let response = transcript
            .post(key, "/frames", &advisory(from, scope, scope))
            .await
            .expect_status(200);
        let count = response.json()["recipient_count"].as_u64().unwrap();
        if scope != "~gina/cc-*" {
            transcript.record_events(first, 1).await;
        }
        if count == 2 || scope == "~gina/cc-*" {
            transcript.record_events(second, 1).await;
        }
    }
    transcript
        .post(
            gina,
            "/frames",
            &advisory("~gina", "org:~acme/members/*", "to all of us"),
        )
        .await
        .expect_status(200);
    for one in [first, second, his] {
        transcript.record_events(one, 1).await;
    }
    transcript
        .post(
            hugo,
            "/frames",
            &advisory("~hugo", "accord:~acme/grant:ops", "by accord"),
        )
        .await;
}

async fn open_refused_streams(transcript: &mut Transcript, gina: &str) {
    for query in [
        "~gina/stream?filter=nonsense",
        "~gina/stream?session=a%00b",
        "~hugo/stream",
        "~absent/stream",
        "~%00/stream",
    ] {
        transcript.record(stream_request(gina, query)).await;
    }
    transcript
        .get("", "/handles/~gina/stream")
        .await
        .expect_status(401);
    transcript.get(OPERATOR_KEY, "/handles/~gina/stream").await;
}

/// A session token opens a stream without a key.
async fn use_session_token(transcript: &mut Transcript, gina: &str) {
    let ticket = transcript
        .post(gina, "/agent/session", &json!({}))
        .await
        .text_at("/data/session_token");
    drop(
        transcript
            .open_stream(stream_request(
                "",
                &format!("~gina/stream?session_token={ticket}&session=s4"),
            ))
            .await,
    );
}

async fn submissions(transcript: &mut Transcript, gina: &str) {
    let good = advisory("~gina", "~gina", "x");
    for (place, value) in [
        ("kind", json!("agent_dance")),
        ("created_at", json!("yesterday")),
        ("created_at", json!("2020-01-01T00:00:00Z")),
        ("payload", json!({})),
        ("payload", json!({"advisory_text": "x".repeat(70_000)})),
        ("sender_handle", json!("~hugo")),
        ("recipient_handle", json!("~absent")),
        ("frame_id", json!("not-an-id")),
        ("colour", json!("red")),
    ] {
        let mut bad = good.clone();
        bad["frame"][place] = value;
        transcript.post(gina, "/frames", &bad).await;
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
        transcript
            .post(
                gina,
                "/frames",
                &json!({"scope": scope, "frame": good["frame"]}),
            )
            .await;
    }
    transcript
        .post("", "/frames", &good)
        .await
        .expect_status(401);
    transcript.post(OPERATOR_KEY, "/frames", &good).await;
    transcript
        .record(
            raw_request("POST", "/frames")
                .key(gina)
                .header("content-type", "application/json")
                .bytes("{"),
        )
        .await
        .expect_status(400);
}

async fn endings(transcript: &mut Transcript, gina: &str, hugo: &str, accord: &str) {
    transcript
        .delete("", &format!("/orgs/~acme/accords/{accord}"))
        .await
        .expect_status(401);
    transcript
        .delete(hugo, &format!("/orgs/~peer/accords/{accord}"))
        .await
        .expect_status(200);
    transcript.delete(hugo, "/orgs/~peer/accords/%00").await;
    transcript
        .delete(gina, &format!("/orgs/~acme/accords/{accord}"))
        .await;
    transcript.delete(hugo, "/orgs/~acme/members/~gina").await;
    transcript
        .delete(hugo, "/orgs/~acme/members/~hugo")
        .await
        .expect_status(200);
    transcript.delete(gina, "/orgs/~acme/members/~gina").await;
    transcript
        .get(hugo, "/orgs/~acme/members")
        .await
        .expect_status(403);
}
