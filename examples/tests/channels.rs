//! The examples as processes of their own, between real hubs.
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

/// What takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("in time")
}

/// A hub on a port that stays its own over restarts.
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
        in_time(self.running.take().unwrap().stop()).await;
        self.running = Some(start_server(self.settings.clone()).await.unwrap());
    }

    fn url(&self) -> String {
        format!("http://{}", self.settings.listen)
    }

    async fn agent(&self, name: &str) -> (HubClient, Secret) {
        let newcomer = RegistrationRequest {
            agent_id: format!("{name}@chorus"),
            culture: "en".into(),
            languages: vec!["en".into()],
            endpoint: None,
            invite_code: None,
        };
        let key = HubClient::new(&self.url(), None)
            .unwrap()
            .register_agent(&newcomer)
            .await
            .unwrap()
            .api_key
            .unwrap();
        (HubClient::new(&self.url(), Some(key.clone())).unwrap(), key)
    }
}

/// An example that runs until it is dropped.
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
        in_time(self.lines.next_line())
            .await
            .unwrap()
            .expect("a line")
    }
}

/// The next `count` messages of a room, by who said what.
async fn said(stream: &mut EventStream, count: usize) -> Vec<String> {
    let mut said = Vec::new();
    while said.len() < count {
        let event = in_time(stream.next()).await.unwrap();
        if event.name == ChannelRowKind::Message.as_str() {
            let row: ChannelRow = serde_json::from_str(&event.data).unwrap();
            said.push(format!(
                "{}> {}",
                row.sender,
                row.content.unwrap_or_default()
            ));
        }
    }
    said
}

async fn room(owner: &HubClient, name: &str) -> ChannelClient {
    owner.channel(&owner.create_channel(name, None, None).await.unwrap().id)
}

// Deliver 7: also over its own restart and its hub's
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_echo_agent_answers_what_it_hears_also_after_restarts() {
    let mut hub = Hub::open().await;
    let ((alice, _), (_, key)) = (hub.agent("alice").await, hub.agent("echo").await);
    let file = hub.dir.path().join("echo.json");
    let credentials =
        serde_json::json!({"agent_id": "echo@chorus", "api_key": key, "hub_url": hub.url()});
    std::fs::write(&file, credentials.to_string()).unwrap();
    let room = room(&alice, "ops").await;
    room.add_member(
        &NewMember::Agent {
            agent_id: "echo@chorus".into(),
            name: None,
        },
        "all",
    )
    .await
    .unwrap();
    let mut stream = room.open_stream(Some(Cursor::from_log_seq(0)));
    let mut agent = Example::start(env!("CARGO_BIN_EXE_echo-agent"), &file);
    assert_eq!(agent.line().await, "echo@chorus is listening");
    room.post_message("hello @echo").await.unwrap();
    assert_eq!(
        said(&mut stream, 2).await,
        ["alice> hello @echo", "echo> alice said: hello echo"]
    );
    hub.restart().await;
    assert_eq!(
        agent.line().await,
        "echo@chorus is listening",
        "it outlives its hub"
    );
    room.post_message("and now?").await.unwrap();
    assert_eq!(
        said(&mut stream, 2).await,
        ["alice> and now?", "echo> alice said: and now?"]
    );
    drop(agent);
    room.post_message("are you there?").await.unwrap();
    let mut agent = Example::start(env!("CARGO_BIN_EXE_echo-agent"), &file);
    assert_eq!(agent.line().await, "echo@chorus is listening");
    let heard = said(&mut stream, 2).await;
    assert_eq!(heard[0], "alice> are you there?");
    assert!(heard[1].starts_with("echo> alice said: "), "{heard:?}");
}

// Deliver 7: two hubs, and between them only connection strings and callbacks
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_room_relay_mirrors_two_rooms_and_echoes_nothing() {
    let (one, two) = (Hub::open().await, Hub::open().await);
    let ((alice, _), (bob, _)) = (one.agent("alice").await, two.agent("bob").await);
    let (here, there) = (room(&alice, "here").await, room(&bob, "there").await);
    let mut relay = Example::start(env!("CARGO_BIN_EXE_room-relay"), Path::new("127.0.0.1:0"));
    for room in [&here, &there] {
        let url = Secret::new(relay.line().await);
        room.add_member(
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
    let (mut at_here, mut at_there) = (here.open_stream(beginning), there.open_stream(beginning));
    // The first word waits until the other side has spoken, and is not lost.
    here.post_message("first").await.unwrap();
    there.post_message("second").await.unwrap();
    assert_eq!(
        sorted(said(&mut at_here, 2).await),
        ["alice> first", "relay> bob: second"]
    );
    assert_eq!(
        sorted(said(&mut at_there, 2).await),
        ["bob> second", "relay> alice: first"]
    );
    here.post_message("third @relay").await.unwrap();
    here.post_message("fourth").await.unwrap();
    let mirrored = ["relay> alice: third @relay", "relay> alice: fourth"];
    assert_eq!(said(&mut at_there, 2).await, mirrored, "in order");
    there.post_message("fifth").await.unwrap();
    assert_eq!(
        said(&mut at_here, 3).await,
        ["alice> third @relay", "alice> fourth", "relay> bob: fifth"]
    );
    // Nothing came back: each room has what was said in it and what was mirrored, once.
    for room in [&here, &there] {
        let all = room.fetch_history(beginning, 100).await.unwrap();
        let messages = all
            .iter()
            .filter(|row| row.kind == ChannelRowKind::Message)
            .count();
        assert_eq!(messages, 5, "{all:?}");
    }
}

fn sorted(mut said: Vec<String>) -> Vec<String> {
    said.sort();
    said
}
