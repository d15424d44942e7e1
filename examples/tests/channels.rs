//! The examples, run as processes against real hubs.
#![allow(
    clippy::unwrap_used,
    reason = "a step that cannot be taken is a failure"
)]

use chorus_client::HubClient;
use chorus_client::channel::{ChannelClient, NewMember};
use chorus_client::event_stream::EventStream;
use chorus_client::identity::RegistrationRequest;
use chorus_server::{RunningServer, ServerSettings, start_server};
use chorus_wire::channel::history_row::{ChannelRow, ChannelRowKind};
use chorus_wire::cursor::Cursor;
use chorus_wire::secret::Secret;
use std::future::Future;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// Max time of any step.
const TIMEOUT: Duration = Duration::from_secs(60);

async fn with_timeout<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(TIMEOUT, work).await.expect("in time")
}

/// A hub that keeps its port over restarts.
struct Hub {
    running: Option<RunningServer>,
    settings: ServerSettings,
    dir: tempfile::TempDir,
}

impl Hub {
    async fn open() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut settings = ServerSettings::with_data_dir(dir.path().join("data"));
        settings.listen = ([127, 0, 0, 1], 0).into();
        settings.rate_limit = 0;
        settings.hub.allow_private_endpoints = true;
        let running = start_server(settings.clone()).await.unwrap();
        settings.listen = running.addr();
        Self {
            running: Some(running),
            settings,
            dir,
        }
    }

    async fn restart(&mut self) {
        with_timeout(self.running.take().unwrap().stop()).await;
        self.running = Some(start_server(self.settings.clone()).await.unwrap());
    }

    fn url(&self) -> String {
        format!("http://{}", self.settings.listen)
    }

    async fn agent(&self, name: &str) -> (HubClient, Secret) {
        let request = RegistrationRequest {
            agent_id: format!("{name}@chorus"),
            culture: "en".into(),
            languages: vec!["en".into()],
            endpoint: None,
            endpoint_secret: None,
            invite_code: None,
            owner_id: None,
            api_endpoint: None,
        };
        let key = HubClient::new(&self.url(), None)
            .unwrap()
            .register_agent(&request)
            .await
            .unwrap()
            .api_key
            .unwrap();
        (HubClient::new(&self.url(), Some(key.clone())).unwrap(), key)
    }
}

/// A running example, killed when dropped.
struct Example {
    _child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Example {
    fn start(binary: &str, argument: &Path) -> Self {
        let mut command = Command::new(binary);
        command
            .arg(argument)
            .env_clear()
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            _child: child,
            lines,
        }
    }

    async fn line(&mut self) -> String {
        with_timeout(self.lines.next_line())
            .await
            .unwrap()
            .expect("a line")
    }
}

/// The next `count` messages of a channel, as `sender> content`.
async fn next_messages(stream: &mut EventStream, count: usize) -> Vec<String> {
    let mut messages = Vec::new();
    while messages.len() < count {
        let event = with_timeout(stream.next()).await.unwrap();
        if event.name == ChannelRowKind::Message.as_str() {
            let row: ChannelRow = serde_json::from_str(&event.data).unwrap();
            messages.push(format!(
                "{}> {}",
                row.sender,
                row.content.unwrap_or_default()
            ));
        }
    }
    messages
}

async fn create_channel(owner: &HubClient, name: &str) -> ChannelClient {
    owner.channel(&owner.create_channel(name, None, None).await.unwrap().id)
}

// Also after its own restart and its hub's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_echo_agent_answers_every_delivery_also_after_restarts() {
    let mut hub = Hub::open().await;
    let (alice, _) = hub.agent("alice").await;
    let (echo, key) = hub.agent("echo").await;
    let file = hub.dir.path().join("echo.json");
    let credentials =
        serde_json::json!({"agent_id": "echo@chorus", "api_key": key, "hub_url": hub.url()});
    std::fs::write(&file, credentials.to_string()).unwrap();
    let channel_id = alice.create_channel("ops", None, None).await.unwrap().id;
    let channel = alice.channel(&channel_id);
    channel
        .add_member(
            &NewMember::Agent {
                agent_id: "echo@chorus".into(),
                name: None,
            },
            "all",
        )
        .await
        .unwrap();
    // an agent of another owner joins by its own decision.
    echo.channel(&channel_id)
        .accept_invitation("echo")
        .await
        .unwrap();
    let mut stream = channel.open_stream(Some(Cursor::from_log_seq(0)));
    let mut agent = Example::start(env!("CARGO_BIN_EXE_echo-agent"), &file);
    assert_eq!(agent.line().await, "echo@chorus is listening");
    channel.post_message("hello @echo").await.unwrap();
    assert_eq!(
        next_messages(&mut stream, 2).await,
        ["alice> hello @echo", "echo> alice said: hello echo"]
    );
    hub.restart().await;
    assert_eq!(
        agent.line().await,
        "echo@chorus is listening",
        "it reconnects after a restart of its hub"
    );
    channel.post_message("and now?").await.unwrap();
    assert_eq!(
        next_messages(&mut stream, 2).await,
        ["alice> and now?", "echo> alice said: and now?"]
    );
    drop(agent);
    channel.post_message("are you there?").await.unwrap();
    let mut agent = Example::start(env!("CARGO_BIN_EXE_echo-agent"), &file);
    assert_eq!(agent.line().await, "echo@chorus is listening");
    let messages = next_messages(&mut stream, 2).await;
    assert_eq!(messages[0], "alice> are you there?");
    assert!(
        messages[1].starts_with("echo> alice said: "),
        "{messages:?}"
    );
}

// Two hubs, connected only by connection strings and callbacks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_channel_relay_mirrors_two_channels_without_echoes() {
    let first_hub = Hub::open().await;
    let second_hub = Hub::open().await;
    let (alice, _) = first_hub.agent("alice").await;
    let (bob, _) = second_hub.agent("bob").await;
    let first = create_channel(&alice, "here").await;
    let second = create_channel(&bob, "there").await;
    let mut relay = Example::start(
        env!("CARGO_BIN_EXE_channel-relay"),
        Path::new("127.0.0.1:0"),
    );
    for channel in [&first, &second] {
        let url = Secret::new(relay.line().await);
        channel
            .add_member(
                &NewMember::Connection {
                    url,
                    name: "relay".into(),
                    signing_secret: None,
                },
                "all",
            )
            .await
            .unwrap();
    }
    let beginning = Some(Cursor::from_log_seq(0));
    let mut first_stream = first.open_stream(beginning);
    let mut second_stream = second.open_stream(beginning);
    // The first message waits until the relay has a callback of the other side.
    first.post_message("first").await.unwrap();
    second.post_message("second").await.unwrap();
    assert_eq!(
        sorted(next_messages(&mut first_stream, 2).await),
        ["alice> first", "relay> bob: second"]
    );
    assert_eq!(
        sorted(next_messages(&mut second_stream, 2).await),
        ["bob> second", "relay> alice: first"]
    );
    first.post_message("third @relay").await.unwrap();
    first.post_message("fourth").await.unwrap();
    let mirrored = ["relay> alice: third @relay", "relay> alice: fourth"];
    assert_eq!(
        next_messages(&mut second_stream, 2).await,
        mirrored,
        "in order"
    );
    second.post_message("fifth").await.unwrap();
    assert_eq!(
        next_messages(&mut first_stream, 3).await,
        ["alice> third @relay", "alice> fourth", "relay> bob: fifth"]
    );
    // No echo: each channel has its own messages and the mirrored ones, once.
    for channel in [&first, &second] {
        let all = channel.fetch_history(beginning, 100).await.unwrap();
        let messages = all
            .iter()
            .filter(|row| row.kind == ChannelRowKind::Message)
            .count();
        assert_eq!(messages, 5, "{all:?}");
    }
}

fn sorted(mut messages: Vec<String>) -> Vec<String> {
    messages.sort();
    messages
}
