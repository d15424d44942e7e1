//! What belongs to no protocol: the page, the contract, operators' routes, and every route asked in ways that it does not take.

use super::contract::{Route, routes};
use super::tale::{Tale, ask};
use crate::hub::OPERATOR_KEY;
use serde_json::json;

pub async fn tell(tale: &mut Tale) {
    page(tale).await;
    operators(tale).await;
    let routes = routes(tale).await;
    every_route(tale, &routes).await;
    nowhere(tale).await;
}

async fn page(tale: &mut Tale) {
    for path in [
        "/",
        "/console",
        "/docs",
        "/console/app.js",
        "/console/none.js",
        "/console/%00",
        "/openapi.json",
        "/skill",
    ] {
        let told = tale.get("", path).await;
        for method in ["HEAD", "OPTIONS", "POST"] {
            tale.tell(ask(method, path)).await;
        }
        tale.tell(ask("GET", path).header("if-none-match", "\"none\""))
            .await;
        tale.tell(ask("GET", path).header("if-none-match", "*"))
            .await;
        tale.tell(ask("GET", path).header("accept-encoding", "gzip, br"))
            .await;
        for line in told
            .head
            .lines()
            .filter_map(|line| line.strip_prefix("etag: "))
        {
            tale.tell(ask("GET", path).header("if-none-match", line))
                .await
                .is(304);
        }
    }
}

async fn operators(tale: &mut Tale) {
    let ned = super::envelope::agent(tale, "ned@chorus").await;
    for key in ["", &ned, OPERATOR_KEY] {
        for path in [
            "/activity",
            "/activity?limit=3",
            "/activity?since=2&limit=3",
            "/activity?since=x",
        ] {
            tale.get(key, path).await;
        }
    }
    tale.get("", "/events").await.is(401);
    tale.get(&ned, "/events").await.is(403);
    let mut events = tale.opens(ask("GET", "/events").key(OPERATOR_KEY)).await;
    tale.post(
        &ned,
        "/messages",
        &super::envelope::message("ned@chorus", "ned@chorus", "to myself"),
    )
    .await;
    tale.hears(&mut events, 1).await;
    tale.get("", "/ready").await.is(200);
    tale.until("", "/health", |body| body["data"]["inbox_connections"] == 0)
        .await;
    tale.get("", "/metrics?x=%zz").await.is(400);
    // What it counts is its process's own; that it answers, and how, is everybody's.
    tale.heads(ask("GET", "/metrics")).await.is(200);
}

/// Every route with what it does not take, a NUL among it, which PostgreSQL keeps in no text.
async fn every_route(tale: &mut Tale, routes: &[Route]) {
    let olga = super::envelope::agent(tale, "olga@chorus").await;
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
                tale.tell(ask(&route.method, &path).key(key).json(&json!({})))
                    .await;
            }
        }
        for method in ["OPTIONS", "TRACE", "BREW"] {
            tale.tell(ask(method, &plain)).await;
        }
        let preflight = ask("OPTIONS", &plain).header("origin", "https://page.test");
        tale.tell(preflight.header("access-control-request-method", &route.method))
            .await
            .is(204);
        if route.method != "GET" {
            tale.tell(
                ask(&route.method, &plain)
                    .key(&olga)
                    .header("content-type", "application/xml")
                    .bytes("<a/>"),
            )
            .await;
            tale.tell(
                ask(&route.method, &plain)
                    .key(&olga)
                    .header("content-type", "application/json")
                    .bytes(vec![0xff, 0xfe]),
            )
            .await;
            tale.tell(
                ask(&route.method, &plain)
                    .key(&olga)
                    .json(&json!({"x": "y".repeat(3 << 20)})),
            )
            .await;
        }
    }
}

async fn nowhere(tale: &mut Tale) {
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
            tale.tell(ask(method, path)).await;
        }
    }
    tale.tell(ask("GET", "/agents").header("origin", "https://page.test"))
        .await
        .is(200);
    tale.tell(ask("GET", "/agents").header("x-request-id", "a b"))
        .await
        .is(200);
    tale.tell(ask("GET", "/agents").header("x-large", &"x".repeat(20_000)))
        .await;
    tale.tell(ask("GET", &format!("/{}", "n".repeat(20_000))))
        .await;
}
