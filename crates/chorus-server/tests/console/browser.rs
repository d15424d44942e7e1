//! A headless Chromium per test, driven over WebDriver with plain JSON calls instead of a library.

use crate::support::hub::within;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Long enough for a busy machine; what takes longer hangs.
pub const BROWSER_TIMEOUT: Duration = Duration::from_secs(60);

const CHROMIUMS: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];
/// What a browser needs to run without a screen, as root and alone.
const FLAGS: [&str; 11] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,800",
];

pub struct Browser {
    driver: Child,
    port: u16,
    session: String,
    http: reqwest::Client,
    _profile: tempfile::TempDir,
}

fn on_path(name: &str) -> Option<String> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file());
    found.map(|file| file.to_string_lossy().into_owned())
}

/// The process and its port; `None` when it ended without one.
fn start_driver(program: &str) -> Option<(Child, u16)> {
    let mut driver = Command::new(program)
        .arg("--port=0")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(driver.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let port = lines.find_map(|line| {
        line.rsplit_once("successfully on port ")?
            .1
            .trim_end_matches('.')
            .parse()
            .ok()
    });
    // Whatever else it prints has to go somewhere, or it stops.
    std::thread::spawn(move || lines.for_each(drop));
    match port {
        Some(port) => Some((driver, port)),
        None => {
            let _ = driver.wait();
            None
        }
    }
}

impl Browser {
    /// `None` where there is no browser to be had; with `CI` set that is a failure.
    pub async fn open(http: &reqwest::Client) -> Option<Self> {
        let chromium = CHROMIUMS.into_iter().find_map(on_path);
        let (Some(driver), Some(chromium)) = (on_path("chromedriver"), chromium) else {
            assert!(
                std::env::var_os("CI").is_none(),
                "chromium and chromedriver are needed"
            );
            println!("skipped: chromium or chromedriver is missing");
            return None;
        };
        // It takes a free port for IPv4 and wants the same one for IPv6, which another process may have: then it ends.
        let started = (0..5).find_map(|_| start_driver(&driver));
        let (driver, port) = started.expect("chromedriver says its port");
        let profile = tempfile::tempdir().unwrap();
        let mut args: Vec<String> = FLAGS.iter().map(|&flag| flag.to_owned()).collect();
        args.push(format!("--user-data-dir={}", profile.path().display()));
        let wanted = json!({"goog:chromeOptions": {"args": args, "binary": chromium},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}});
        let mut browser = Self {
            driver,
            port,
            session: String::new(),
            http: http.clone(),
            _profile: profile,
        };
        let session = browser
            .ask(
                "POST",
                "/session",
                &json!({"capabilities": {"alwaysMatch": wanted}}),
            )
            .await;
        browser.session = session["sessionId"]
            .as_str()
            .unwrap_or_else(|| panic!("{session}"))
            .to_owned();
        Some(browser)
    }

    /// Asks the driver, and returns its `value`: an object with `error` when it refused.
    async fn request_value(&self, method: &str, path: &str, body: &Value) -> Value {
        let url = format!("http://127.0.0.1:{}{path}", self.port);
        let request = self.http.request(method.parse().unwrap(), url);
        let request = if method == "POST" {
            request.body(body.to_string())
        } else {
            request
        };
        let answer = within(BROWSER_TIMEOUT, request.send())
            .await
            .expect("the driver answers in time")
            .unwrap();
        let text = answer.text().await.unwrap();
        let mut answer: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"));
        answer["value"].take()
    }

    async fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let value = self.request_value(method, path, body).await;
        assert!(
            value.get("error").is_none(),
            "{path}: {} {}",
            value["error"],
            value["message"]
        );
        value
    }

    async fn tell(&self, path: &str, body: &Value) -> Value {
        self.ask("POST", &format!("/session/{}{path}", self.session), body)
            .await
    }

    pub async fn goto(&self, url: &str) {
        self.tell("/url", &json!({ "url": url })).await;
    }

    /// Runs `script` in the page, as the body of a function.
    pub async fn run(&self, script: &str) -> Value {
        self.tell("/execute/sync", &json!({"script": script, "args": []}))
            .await
    }

    /// The same for a script that ends by calling `arguments[0]`.
    pub async fn run_async(&self, script: &str) -> Value {
        self.tell("/execute/async", &json!({"script": script, "args": []}))
            .await
    }

    /// A command of the browser's own protocol.
    pub async fn devtools(&self, command: &str, params: &Value) -> Value {
        self.tell(
            "/goog/cdp/execute",
            &json!({"cmd": command, "params": params}),
        )
        .await
    }

    /// Waits until the expression is true.
    pub async fn eventually(&self, expression: &str) {
        let script = format!("return Boolean({expression})");
        let asking = async {
            while self.run(&script).await != true {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        if within(BROWSER_TIMEOUT, asking).await.is_none() {
            let shown = self.run("return document.body.innerText").await;
            panic!(
                "never: {expression}\non the page: {shown}\nsaid: {:?}",
                self.complaints().await
            );
        }
    }

    /// Waits until the text is in sight.
    pub async fn shows(&self, text: &str) {
        self.eventually(&format!(
            "document.body.innerText.includes({})",
            json!(text)
        ))
        .await;
    }

    /// Finds the element of `css`, or `None` when the page has taken it away again.
    async fn find_element(&self, css: &str) -> Option<String> {
        self.eventually(&format!("document.querySelector({})", json!(css)))
            .await;
        let path = format!("/session/{}/element", self.session);
        let wanted = json!({"using": "css selector", "value": css});
        let found = self.request_value("POST", &path, &wanted).await;
        if found["error"] == "no such element" {
            return None;
        }
        assert!(found.get("error").is_none(), "{css}: {found}");
        let element = found.as_object().unwrap().values().next().unwrap();
        Some(element.as_str().unwrap().to_owned())
    }

    /// Acts on the element that `css` finds. The page may draw that part anew between the look-up
    /// and the act; a person would then act on the new element, and so does this.
    async fn act_on(&self, css: &str, act: &str, body: &Value) {
        let acting = async {
            loop {
                let Some(element) = self.find_element(css).await else {
                    continue;
                };
                let path = format!("/session/{}/element/{element}/{act}", self.session);
                let value = self.request_value("POST", &path, body).await;
                if value["error"] == "stale element reference" {
                    continue;
                }
                assert!(value.get("error").is_none(), "{act} {css}: {value}");
                break;
            }
        };
        assert!(
            within(BROWSER_TIMEOUT, acting).await.is_some(),
            "{act} {css}: the element was replaced each time"
        );
    }

    /// A real click, where a person could click.
    pub async fn click(&self, css: &str) {
        self.act_on(css, "click", &json!({})).await;
    }

    pub async fn write(&self, css: &str, text: &str) {
        self.act_on(css, "value", &json!({ "text": text })).await;
    }

    /// Keys pressed wherever the focus is.
    pub async fn press(&self, keys: &str) {
        let actions = keys
            .chars()
            .flat_map(|key| ["keyDown", "keyUp"].map(|act| json!({"type": act, "value": key})));
        let actions: Vec<Value> = actions.collect();
        self.tell(
            "/actions",
            &json!({"actions": [{"type": "key", "id": "keys", "actions": actions}]}),
        )
        .await;
    }

    async fn log(&self, kind: &str) -> Vec<Value> {
        let entries = self.tell("/se/log", &json!({ "type": kind })).await;
        entries.as_array().cloned().unwrap_or_default()
    }

    /// What the browser complained of since it was last asked.
    pub async fn complaints(&self) -> Vec<String> {
        let entries = self.log("browser").await;
        let bad = entries
            .iter()
            .filter(|entry| matches!(entry["level"].as_str(), Some("SEVERE" | "WARNING")));
        bad.map(|entry| entry["message"].to_string()).collect()
    }

    /// Every address that was asked for since it was last asked.
    pub async fn requests(&self) -> Vec<String> {
        let mut urls = Vec::new();
        for entry in self.log("performance").await {
            let event: Value = serde_json::from_str(entry["message"].as_str().unwrap()).unwrap();
            let event = &event["message"];
            // The browser's own first page is not ours to answer for.
            let ours = !event["params"]["documentURL"]
                .as_str()
                .is_some_and(|url| url.starts_with("chrome:"));
            if event["method"] == "Network.requestWillBeSent" && ours {
                urls.push(
                    event["params"]["request"]["url"]
                        .as_str()
                        .unwrap()
                        .to_owned(),
                );
            }
        }
        urls
    }
}

impl Drop for Browser {
    /// The driver ends its browser when it is asked to; killed, it would leave it behind.
    fn drop(&mut self) {
        if let Ok(mut socket) = TcpStream::connect(("127.0.0.1", self.port)) {
            let _ = socket.set_read_timeout(Some(Duration::from_secs(5)));
            let ask = format!(
                "DELETE /session/{} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
                self.session
            );
            let _ = socket
                .write_all(ask.as_bytes())
                .and_then(|()| socket.read_to_end(&mut Vec::new()));
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
