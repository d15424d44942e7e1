//! Web pages and the hub: foreign hosts and origins, CORS, and the type of a body.

use crate::support::actors::{Answer, Caller, registration};
use serde_json::json;

/// A request that a browser would send for a page, with these headers in addition.
async fn ask(who: &Caller, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = who.request(method, path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Answer::of(request).await
}

const PATHS: [&str; 6] = [
    "/health",
    "/ready",
    "/agents",
    "/discover",
    "/",
    "/.well-known/chorus.json",
];

memory_story!(a_foreign_page_gets_no_answer_on_any_route, |hub| async {
    //
    let alice = hub.agent("alice").await;
    for header in [
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("origin", "http://localhost:6274"),
        ("host", "rebind.evil.example"),
    ] {
        for path in PATHS {
            let answer = ask(&hub.anonymous(), "GET", path, &[header]).await;
            answer.refused(403, "ERR_ORIGIN");
            assert!(answer.header("access-control-allow-origin").is_empty());
        }
        let post = alice
            .request("POST", "/register")
            .header(header.0, header.1);
        Answer::of(post.json(&registration("page@chorus")))
            .await
            .refused(403, "ERR_ORIGIN");
        let frame = alice.request("POST", "/frames").header(header.0, header.1);
        let frame = Answer::of(frame.json(&json!({"frame": alice.advisory("x")}))).await;
        assert_eq!(
            (frame.status, &frame.json()["code"]),
            (403, &json!("forbidden"))
        );
        let preflight = [header, ("access-control-request-method", "POST")];
        ask(&alice, "OPTIONS", "/messages", &preflight)
            .await
            .refused(403, "ERR_ORIGIN");
    }
    alice
        .get("/agents/page@chorus")
        .await
        .refused(404, "ERR_AGENT_NOT_FOUND");
});

memory_story!(
    the_hubs_own_page_and_tools_without_origin_are_served,
    |hub| async {
        //
        for headers in [
            &[][..],
            &[("host", "localhost:9")],
            &[("origin", hub.url.as_str())],
        ] {
            for path in PATHS {
                let answer = ask(&hub.anonymous(), "GET", path, headers).await;
                assert_eq!(answer.status, 200, "{path}: {answer:?}");
                let allowed = answer.header("access-control-allow-origin");
                let origin = headers.iter().find(|(name, _)| *name == "origin");
                assert_eq!(allowed, origin.map_or("", |(_, value)| value), "{path}");
            }
        }
    }
);

memory_story!(
    an_allowed_origin_is_answered_with_its_name,
    with(|set| set.cors_origins = vec!["https://app.example".parse().unwrap()]),
    |hub| async {
        //
        let page = ("origin", "https://app.example");
        let answer = ask(&hub.anonymous(), "GET", "/agents", &[page]).await;
        answer.data(200);
        assert_eq!(
            (
                answer.header("access-control-allow-origin"),
                answer.header("vary"),
                answer.header("access-control-allow-credentials")
            ),
            ("https://app.example", "Origin", "")
        );
        let preflight = [page, ("access-control-request-method", "POST")];
        let answer = ask(&hub.anonymous(), "OPTIONS", "/messages", &preflight).await;
        assert_eq!(
            (answer.status, answer.header("access-control-allow-origin")),
            (204, "https://app.example")
        );
        let other = ("origin", "https://app.example:8443");
        ask(&hub.anonymous(), "GET", "/agents", &[other])
            .await
            .refused(403, "ERR_ORIGIN");
    }
);

memory_story!(
    every_origin_is_allowed_only_when_an_operator_says_so,
    with(|set| set.cors_origins = vec!["*".parse().unwrap()]),
    |hub| async {
        //
        let answer = ask(&hub.anonymous(), "GET", "/agents", &[("origin", "null")]).await;
        answer.data(200);
        assert_eq!(answer.header("access-control-allow-origin"), "*");
        // A name that a page made resolve to this machine is still not the hub's.
        ask(
            &hub.anonymous(),
            "GET",
            "/agents",
            &[("host", "evil.example")],
        )
        .await
        .refused(403, "ERR_ORIGIN");
    }
);

story!(a_body_needs_its_type, |hub| async {
    // a page sends text/plain, or no type, to any host without asking it first
    let alice = hub.agent("alice").await;
    for content_type in ["", "text/plain", "application/x-www-form-urlencoded"] {
        let typed = |path: &str| {
            let request = alice.request("POST", path);
            if content_type.is_empty() {
                request
            } else {
                request.header("content-type", content_type)
            }
        };
        let body = registration("typed@chorus").to_string();
        Answer::of(typed("/register").body(body))
            .await
            .refused(415, "ERR_UNSUPPORTED_MEDIA_TYPE");
        Answer::of(typed("/mcp").body("{}"))
            .await
            .refused(415, "ERR_UNSUPPORTED_MEDIA_TYPE");
        let transfer = Answer::of(typed("/transfer").body("{}")).await;
        assert_eq!(
            (transfer.status, &transfer.json()["error_code"]),
            (415, &json!("ERR_UNSUPPORTED_MEDIA_TYPE"))
        );
        // FRM-88: a refusal names the header as it names a field
        let frame = Answer::of(typed("/frames").body("{}")).await;
        assert_eq!(frame.status, 415);
        assert_eq!(
            (&frame.json()["code"], &frame.json()["field"]),
            (&json!("unsupported-media-type"), &json!("Content-Type"))
        );
    }
    alice
        .get("/agents/typed@chorus")
        .await
        .refused(404, "ERR_AGENT_NOT_FOUND");
    let own_type = hub
        .anonymous()
        .request("POST", "/register")
        .header("content-type", "application/vnd.chorus+json; charset=utf-8");
    Answer::of(own_type.body(registration("own-type@chorus").to_string()))
        .await
        .data(201);
});

memory_story!(
    a_hub_behind_https_tells_browsers_to_stay_there,
    with(|set| set.public_url = Some("https://hub.example.com".into())),
    |hub| async {
        let header = "strict-transport-security";
        let public = ask(
            &hub.anonymous(),
            "GET",
            "/health",
            &[("host", "hub.example.com")],
        )
        .await;
        assert_eq!(public.header(header), "max-age=31536000");
        // Other programs of a developer share the name.
        let local = ask(&hub.anonymous(), "GET", "/health", &[("host", "localhost")]).await;
        assert_eq!((local.status, local.header(header)), (200, ""));
    }
);
