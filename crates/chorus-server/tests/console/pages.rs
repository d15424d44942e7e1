//! The invitation page and the contract page, in the console's style.

use crate::stage::Stage;
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_to_tell_ones_agent_is_copied_with_a_click() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let alice = stage.hub.agent("alice").await;
    let _inbox = alice.inbox().await;
    stage.goto("/invite/alice").await;
    stage.browser.shows("is online now").await;
    let granted = json!({"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"], "origin": stage.hub.url});
    stage
        .browser
        .devtools("Browser.grantPermissions", &granted)
        .await;
    stage.browser.click(".snippet button").await;
    stage.browser.shows("Copied").await;
    let copied = stage
        .browser
        .run_async("navigator.clipboard.readText().then(arguments[0], arguments[0])")
        .await;
    let copied = copied.as_str().unwrap();
    assert!(
        copied.contains("alice@chorus") && copied.contains(&format!("{}/skill", stage.hub.url)),
        "{copied}"
    );
    // One snippet for each kind of host, with this hub and this agent in it.
    let snippets = stage
        .browser
        .run("return [...document.querySelectorAll('details pre')].map((one) => one.textContent)")
        .await;
    let snippets: Vec<&str> = snippets
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one.as_str().unwrap())
        .collect();
    assert!(
        snippets.len() >= 4 && snippets.iter().all(|one| one.contains(&stage.hub.url)),
        "{snippets:#?}"
    );
    assert!(
        snippets[0].contains("chorus send 'alice@chorus'"),
        "{snippets:#?}"
    );
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_route_of_the_contract_can_be_found_and_opened() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let contract = stage.hub.anonymous().get("/openapi.json").await.json();
    let methods = ["get", "post", "put", "patch", "delete"];
    let routes = contract["paths"].as_object().unwrap().values();
    let routes: usize = routes
        .map(|item| {
            methods
                .iter()
                .filter(|method| item.get(**method).is_some())
                .count()
        })
        .sum();
    stage.goto("/docs").await;
    stage
        .browser
        .eventually(&format!(
            "document.querySelectorAll('.operation').length === {routes}"
        ))
        .await;
    stage
        .browser
        .click("[data-op='post /messages'] summary")
        .await;
    stage.browser.shows("Idempotency-Key").await;
    stage.browser.shows("original_text").await;
    stage.browser.press("/").await;
    stage.browser.press("heartbeat").await;
    stage
        .browser
        .eventually("document.querySelectorAll('.operation').length === 1")
        .await;
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_page_carries_the_headers_that_keep_it_to_itself() {
    let hub = crate::support::hub::Hub::fresh().await;
    hub.agent("alice").await;
    for path in ["/", "/console", "/docs", "/console/app.js", "/invite/alice"] {
        let page = hub.anonymous().get_as("text/html", path).await;
        assert_eq!(page.status, 200, "{path}");
        let policy = page.header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'none'") && !policy.contains("unsafe"),
            "{path}: {policy}"
        );
        for part in [
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "require-trusted-types-for 'script'",
        ] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert_eq!(page.header("referrer-policy"), "no-referrer", "R-74");
        assert_eq!(page.header("x-content-type-options"), "nosniff");
        assert_eq!(page.header("x-frame-options"), "DENY");
    }
    let missing = hub.anonymous().get("/console/..%2fCargo.toml").await;
    missing.refused(404, "ERR_NOT_FOUND");
    hub.anonymous()
        .get("/console/nothing.js")
        .await
        .refused(404, "ERR_NOT_FOUND");
}
