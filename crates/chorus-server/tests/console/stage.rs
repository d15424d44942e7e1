//! The set-up of every console test: a hub on the system clock and a signed-in browser.

use crate::browser::Browser;
use crate::support::actors::{Agent, Answer, frame};
use crate::support::hub::{Hub, OPERATOR_KEY};
use chorus_hub::Clock;
use serde_json::{Value, json};

pub const VIEWS: [&str; 7] = [
    "overview",
    "agents",
    "conversations",
    "channels",
    "sessions",
    "market",
    "activity",
];
pub const ENTER: &str = "\u{e007}";
pub const ESCAPE: &str = "\u{e00c}";

pub struct Stage {
    pub hub: Hub,
    pub browser: Browser,
}

impl Stage {
    /// `None` where there is no browser.
    pub async fn open() -> Option<Self> {
        let hub = Hub::sqlite(|set| set.hub.clock = Clock::system()).await;
        let browser = Browser::open(&hub.http).await?;
        Some(Self { hub, browser })
    }

    pub async fn goto(&self, path: &str) {
        self.browser.goto(&format!("{}{path}", self.hub.url)).await;
    }

    /// By the form, as a person does it.
    pub async fn sign_in(&self, key: &str) {
        self.goto("/console").await;
        self.browser.write("#key", key).await;
        self.browser.click("form.signin button").await;
        self.live().await;
    }

    pub async fn as_operator(&self) {
        self.sign_in(OPERATOR_KEY).await;
    }

    /// As another principal in the same tab.
    pub async fn sign_in_again(&self, key: &str) {
        self.browser.click("[data-do=leave]").await;
        self.browser
            .eventually("document.querySelector('#key')")
            .await;
        self.sign_in(key).await;
    }

    /// Stops the hub. It comes back at the same address, because the page knows one.
    pub async fn stop_hub(&mut self) {
        self.hub.settings.listen = self.hub.addr();
        self.hub.stop().await;
    }

    /// Lets no request to these addresses through.
    pub async fn block_urls(&self, urls: &[&str]) {
        self.browser.devtools("Network.enable", &json!({})).await;
        self.browser
            .devtools("Network.setBlockedURLs", &json!({ "urls": urls }))
            .await;
    }

    /// As at a first visit: nothing is in the browser's cache.
    pub async fn disable_cache(&self) {
        self.browser.devtools("Network.enable", &json!({})).await;
        self.browser
            .devtools("Network.setCacheDisabled", &json!({"cacheDisabled": true}))
            .await;
    }

    /// A screen of this size; one that is narrow is a phone.
    pub async fn set_screen(&self, width: u32, height: u32) {
        let screen = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700});
        self.browser
            .devtools("Emulation.setDeviceMetricsOverride", &screen)
            .await;
    }

    pub async fn live(&self) {
        self.browser
            .eventually("document.querySelector('.pill')?.dataset.link === 'live'")
            .await;
    }

    /// Goes to a view and waits until it is there.
    pub async fn view(&self, hash: &str) {
        self.browser
            .run(&format!("location.hash = {}", json!(format!("#/{hash}"))))
            .await;
        let view = hash.split('/').next().unwrap();
        self.browser
            .eventually(&format!(
                "document.querySelector('main .view[data-view={view}]')?.childElementCount"
            ))
            .await;
    }

    /// The page has logged no error and has contacted no other server.
    pub async fn is_clean(&self) {
        let complaints = self.browser.complaints().await;
        assert!(complaints.is_empty(), "{complaints:#?}");
        for url in self.browser.requests().await {
            let own = url.starts_with(&format!("{}/", self.hub.url)) || url.starts_with("data:");
            assert!(own, "{url} was asked for");
            assert!(
                !url.contains(OPERATOR_KEY) && !url.contains("ca_"),
                "a key in {url}"
            );
        }
    }
}

/// A frame of `agent` to itself, said now by one of its sessions.
pub fn said(agent: &Agent, kind: &str, payload: &Value) -> Value {
    let mut frame = frame(&agent.handle(), &agent.handle(), kind, payload);
    frame["created_at"] = json!(Clock::system().now());
    frame["provenance_basis"] = json!("session:cc-tests@s2");
    frame
}

/// Offers a skill, described as `PUT /skills/{name}` takes it.
pub async fn offer_skill(agent: &Agent, name: &str, offer: &Value) {
    let request = agent.request("PUT", &format!("/skills/{name}")).json(offer);
    let answer = Answer::of(request).await;
    assert_eq!(answer.status, 201, "{answer:?}");
}

/// Something to decide, with the second option recommended.
pub fn moment() -> Value {
    json!({"synopsis": "The migration of the sessions table is ready.",
        "findings": ["It takes a lock for about four minutes."], "recommendations": ["Run it at night."],
        "offer": "I can start it now or at two o'clock.",
        "question": {"stem": "When shall the migration run?", "recommended_idx": 1,
            "options": [{"label": "Now", "reasoning": "It can be released today."},
                {"label": "At two o'clock", "reasoning": "No user notices the lock."}]}})
}
