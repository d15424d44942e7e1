//! The HTTP part of the script: pages, the contract, operator routes, and every route with input that it refuses.

use super::route_coverage::{Route, routes};
use super::transcript::{Transcript, raw_request};
use crate::support::hub::OPERATOR_KEY;
use serde_json::json;

pub async fn run(transcript: &mut Transcript) {
    public_pages(transcript).await;
    operator_routes(transcript).await;
    agent_keys(transcript).await;
    let routes = routes(transcript).await;
    every_route(transcript, &routes).await;
    unknown_paths(transcript).await;
}

async fn public_pages(transcript: &mut Transcript) {
    for path in [
        "/",
        "/console",
        "/docs",
        "/console/app.js",
        "/console/none.js",
        "/console/%00",
        "/openapi.json",
        "/schemas/envelope.json",
        "/skill",
    ] {
        let response = transcript.get("", path).await;
        for method in ["HEAD", "OPTIONS", "POST"] {
            transcript.record(raw_request(method, path)).await;
        }
        transcript
            .record(raw_request("GET", path).header("if-none-match", "\"none\""))
            .await;
        transcript
            .record(raw_request("GET", path).header("if-none-match", "*"))
            .await;
        transcript
            .record(raw_request("GET", path).header("accept-encoding", "gzip, br"))
            .await;
        for line in response
            .head
            .lines()
            .filter_map(|line| line.strip_prefix("etag: "))
        {
            transcript
                .record(raw_request("GET", path).header("if-none-match", line))
                .await
                .expect_status(304);
        }
    }
}

async fn operator_routes(transcript: &mut Transcript) {
    let ned = super::envelope::agent(transcript, "ned@chorus").await;
    for key in ["", &ned, OPERATOR_KEY] {
        for path in [
            "/activity",
            "/activity?limit=3",
            "/activity?since=2&limit=3",
            "/activity?since=x",
            "/conversations",
            "/conversations?before=3",
            "/conversations?before=x",
            "/agent/messages?before=3",
            "/agent/messages?text=",
            "/agent/messages?since=0&peer=ned",
        ] {
            transcript.get(key, path).await;
        }
    }
    transcript.get("", "/events").await.expect_status(401);
    transcript.get(&ned, "/events").await.expect_status(403);
    let mut events = transcript
        .open_stream(raw_request("GET", "/events").key(OPERATOR_KEY))
        .await;
    transcript
        .post(
            &ned,
            "/messages",
            &super::envelope::message("ned@chorus", "ned@chorus", "to myself"),
        )
        .await;
    transcript.record_events(&mut events, 1).await;
    transcript.get("", "/ready").await.expect_status(200);
    transcript
        .until("", "/health", |body| body["data"]["inbox_connections"] == 0)
        .await;
    transcript
        .get("", "/metrics?x=%zz")
        .await
        .expect_status(400);
    // The counts belong to each process; only the response head must be the same.
    transcript
        .record_head(raw_request("GET", "/metrics"))
        .await
        .expect_status(200);
}

/// Further keys, and a rotation whose answer is asked for again.
async fn agent_keys(transcript: &mut Transcript) {
    let pia = super::envelope::agent(transcript, "pia@chorus").await;
    let new = json!({"label": "build", "scopes": ["send"], "expires_in_s": 60});
    let made = transcript.post(&pia, "/agent/keys", &new).await;
    let made = made.expect_status(201);
    let (id, key) = (made.text_at("/data/id"), made.text_at("/data/key"));
    transcript.get(&key, "/agent/keys").await.expect_status(403);
    transcript
        .get(&key, "/handles/~pia/roster")
        .await
        .expect_status(403);
    transcript.get(&key, "/jobs").await.expect_status(403);
    transcript.get(&pia, "/agent/keys").await.expect_status(200);
    for status in [200, 404] {
        let ended = raw_request("DELETE", &format!("/agent/keys/{id}")).key(&pia);
        transcript.record(ended).await.expect_status(status);
    }
    for overlap in [json!({"overlap_s": 60}), json!({})] {
        let rotate = raw_request("POST", "/agent/keys/rotate").key(&pia);
        let rotate = rotate.header("idempotency-key", "once").json(&overlap);
        transcript.record(rotate).await;
    }
}

/// Every route with invalid input, including NUL, which PostgreSQL stores in no text.
async fn every_route(transcript: &mut Transcript, routes: &[Route]) {
    let olga = super::envelope::agent(transcript, "olga@chorus").await;
    for route in routes {
        let path = |with: &str| {
            route
                .path
                .split('/')
                .map(|part| if part.starts_with('{') { with } else { part })
                .collect::<Vec<_>>()
                .join("/")
        };
        let plain = path("x");
        for key in ["", &olga, OPERATOR_KEY, "ca_wrong"] {
            for path in [
                path("%00"),
                path("a%00b"),
                path("%20"),
                path(&"n".repeat(700)),
                format!("{plain}?x=%zz"),
                format!(
                    "{plain}?limit=%00&since=%00&before=%00&after=%00&session=%00&skill=%00&owner_id=%00"
                ),
            ] {
                if route.method == "GET"
                    && ["/agent/inbox", "/events", "/metrics"]
                        .iter()
                        .any(|one| path.starts_with(one))
                {
                    continue;
                }
                // A rotation that succeeds would end the key of the requests that follow.
                let body = match route.path.ends_with("/rotate") {
                    true => json!({"overlap_s": "x"}),
                    false => json!({}),
                };
                transcript
                    .record(raw_request(&route.method, &path).key(key).json(&body))
                    .await;
            }
        }
        for method in ["OPTIONS", "TRACE", "BREW"] {
            transcript.record(raw_request(method, &plain)).await;
        }
        let preflight = raw_request("OPTIONS", &plain).header("origin", "https://page.test");
        transcript
            .record(preflight.header("access-control-request-method", &route.method))
            .await
            .expect_status(403);
        if route.method != "GET" {
            bad_bodies(transcript, &route.method, &plain, &olga).await;
        }
    }
}

async fn bad_bodies(transcript: &mut Transcript, method: &str, path: &str, key: &str) {
    let request = || raw_request(method, path).key(key);
    for bad in [
        request()
            .header("content-type", "application/xml")
            .bytes("<a/>"),
        request()
            .header("content-type", "application/json")
            .bytes(vec![0xff, 0xfe]),
        request().json(&json!({"x": "y".repeat(3 << 20)})),
    ] {
        transcript.record(bad).await;
    }
}

async fn unknown_paths(transcript: &mut Transcript) {
    for path in [
        "/none",
        "/agents/a/b",
        "//",
        "/agents/",
        "/handles/~x/none",
        "/jobs/x/none",
        "/orgs",
        "/inbox",
    ] {
        for method in ["GET", "PUT", "HEAD"] {
            transcript.record(raw_request(method, path)).await;
        }
    }
    transcript
        .record(raw_request("GET", "/agents").header("origin", "https://page.test"))
        .await
        .expect_status(403);
    transcript
        .record(raw_request("GET", "/agents").header("x-request-id", "a b"))
        .await
        .expect_status(200);
    transcript
        .record(raw_request("GET", "/agents").header("x-large", &"x".repeat(20_000)))
        .await;
    transcript
        .record(raw_request("GET", &format!("/{}", "n".repeat(20_000))))
        .await;
}
