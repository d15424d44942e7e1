//! Machines whose clocks are a minute off, or jump by one while the hub runs, in real processes: hubs go by the database's
//! clock, so nobody can tell (D-03, D-83).

use crate::actors::{Hub, OPERATOR, PATIENCE};
use crate::crash::{envelope, join, join_with_key};
use crate::faults::{Load, eventually};
use crate::servers::{Servers, address, await_so, there};
use chorus_client::Client;
use chorus_client::http::Call;
use chorus_client::identity::Newcomer;
use chorus_client::market::Hire;
use chorus_wire::cursor::Cursor;
use chorus_wire::market::credits::Credits;
use chorus_wire::market::job::Status;
use chorus_wire::market::skill::Skill;
use chorus_wire::message::HistoryRow;
use chorus_wire::secret::Secret;
use chorus_wire::time::Micros;
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, watch};

const MINUTE: i64 = 60;
/// What a busy machine may be late by: far less than a clock is off.
const NEAR: i64 = 15;

/// What lies to a process about the time; `None`, said aloud, where it is not installed.
fn libfaketime() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let found = folders
        .chain(["/usr/lib64".into()])
        .map(|folder| folder.join("faketime/libfaketime.so.1"));
    let found = found.into_iter().find(|path| path.exists());
    there("libfaketime", found.is_some())
        .then_some(found)
        .flatten()
}

/// Hubs whose machines lie, each as it is told in a file that may change.
pub struct Liars {
    hubs: Vec<Hub>,
    servers: Servers,
}

impl Liars {
    /// One hub for each number of seconds that a machine is off by.
    fn start(off: &[i64]) -> Option<Self> {
        let library = libfaketime()?;
        let mut liars = Self {
            hubs: Vec::new(),
            servers: Servers::start()?,
        };
        for (number, seconds) in off.iter().enumerate() {
            let name = format!("hub{number}");
            let mut command = liars
                .servers
                .hub_command(&name, "127.0.0.1:0", &liars.servers.nats);
            command.args(["--operator-key", OPERATOR, "--allow-private-endpoints"]);
            command
                .env("LD_PRELOAD", &library)
                .env("FAKETIME_TIMESTAMP_FILE", liars.file(number));
            command.env("FAKETIME_NO_CACHE", "1");
            // How long something takes is nothing that machines disagree about.
            command
                .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
                .env("DONT_FAKE_MONOTONIC", "1");
            liars.tell(number, *seconds);
            liars.hubs.push(Hub::begin(command));
            liars.believes(number, *seconds);
        }
        Some(liars)
    }

    fn file(&self, number: usize) -> PathBuf {
        self.servers.folder.path().join(format!("hub{number}.time"))
    }

    fn tell(&self, number: usize, seconds: i64) {
        let (file, new) = (
            self.file(number),
            self.servers.folder.path().join("new.time"),
        );
        std::fs::write(&new, format!("{seconds:+}\n")).unwrap();
        std::fs::rename(new, file).unwrap();
    }

    /// Waits until the machine of a hub is off by this much, as the head of its answers shows it.
    fn believes(&self, number: usize, seconds: i64) {
        await_so("the machine's clock is off", || {
            (machine(&self.hubs[number]) - now() - seconds).abs() < NEAR
        });
    }

    fn jumps(&self, number: usize, seconds: i64) {
        self.tell(number, seconds);
        self.believes(number, seconds);
    }

    /// The head of an answer never shows an earlier time than before: it stands still until the machine's clock is there again.
    fn falls_back(&self, number: usize, seconds: i64) {
        self.tell(number, seconds);
        let still = || (machine(&self.hubs[number]), now());
        let mut since = still();
        await_so("the date stands still", || {
            let (shown, at) = still();
            if shown != since.0 {
                since = (shown, at);
            }
            at - since.1 >= 3
        });
    }

    fn at(&self, number: usize, key: &str) -> Client {
        Client::new(&self.hubs[number].url, Some(Secret::new(key.to_owned()))).unwrap()
    }
}

fn now() -> i64 {
    chorus_hub::Clock::system().now().0 / 1_000_000
}

/// What time it is on the machine of a hub, to the second: HTTP says it with every answer.
fn machine(hub: &Hub) -> i64 {
    let mut socket = TcpStream::connect(address(hub)).unwrap();
    socket
        .write_all(b"GET /health HTTP/1.1\r\nhost: hub\r\nconnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let date = answer
        .lines()
        .find_map(|line| line.strip_prefix("date: "))
        .unwrap_or_else(|| panic!("{answer}"));
    let seconds = Command::new("date")
        .args(["-d", date, "+%s"])
        .output()
        .unwrap();
    String::from_utf8(seconds.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}

#[track_caller]
fn is_near(at: Micros) {
    let off = at.0 / 1_000_000 - now();
    assert!(off.abs() < NEAR, "{off} s off");
}

/// The times of an agent's whole history: growing, and of today.
#[track_caller]
fn in_order(rows: &[HistoryRow], began: i64) {
    assert!(
        rows.is_sorted_by(|one, next| one.id < next.id && one.timestamp < next.timestamp),
        "one order"
    );
    for row in rows {
        let at = row.timestamp.0 / 1_000_000;
        assert!(
            (began - 1..=now() + 1).contains(&at),
            "{} s off",
            at - began
        );
    }
}

async fn rows(client: &Client) -> Vec<HistoryRow> {
    let mut all: Vec<HistoryRow> = Vec::new();
    loop {
        let since = all
            .last()
            .map_or_else(|| "0".to_owned(), |row| row.id.to_string());
        let page = client.history(Some(&since)).await.unwrap();
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hubs_a_minute_ahead_and_behind_have_one_time_and_one_order() {
    let Some(liars) = Liars::start(&[MINUTE, -MINUTE, 0]) else {
        return;
    };
    let (_, alice) = join_with_key(&liars.hubs[0].url, "alice").await;
    let (bob, key) = join_with_key(&liars.hubs[1].url, "bob").await;
    let began = now();
    let texts: Vec<String> = (0..20).map(|number| format!("{number:02}")).collect();
    for (number, text) in texts.iter().enumerate() {
        let sent = liars
            .at(number % 3, &alice)
            .send("bob@chorus", &envelope("alice", text), 0)
            .await
            .unwrap();
        is_near(Micros::parse(&sent.at).unwrap());
    }
    in_order(&rows(&bob).await, began);
    // A stream that goes from hub to hub by the cursor of the last one.
    let (mut since, mut heard) = (Cursor::START, Vec::new());
    for turn in 0..4 {
        let mut stream = liars.at(turn % 3, &key).inbox(Some(since)).await;
        for _ in 0..5 {
            let event = tokio::time::timeout(PATIENCE, stream.next())
                .await
                .expect("an event")
                .unwrap();
            let message: serde_json::Value = serde_json::from_str(&event.data).unwrap();
            heard.extend(
                message["envelope"]["original_text"]
                    .as_str()
                    .map(str::to_owned),
            );
        }
        since = stream.since().unwrap();
    }
    assert_eq!(heard, texts[..heard.len()], "no gap and no repeat");
    // the same request at the other hub is the same message.
    let mut traces = Vec::new();
    for turn in 0..4 {
        let answer = crate::split::once(
            &liars.at(turn % 3, &alice),
            "alice",
            "bob",
            "once",
            "one-key",
        )
        .await
        .unwrap();
        let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        is_near(Micros::parse(body["metadata"]["timestamp"].as_str().unwrap()).unwrap());
        traces.push(body["data"]["trace_id"].clone());
    }
    assert!(
        traces
            .iter()
            .all(|trace| trace.is_string() && *trace == traces[0]),
        "{traces:?}"
    );
}

fn skill() -> Skill {
    Skill {
        skill_name: "echo".into(),
        description: None,
        cost_per_call: Credits::hundredths(10),
        input_schema: None,
        output_schema: None,
    }
}

fn hire(within: Duration) -> Hire {
    Hire::new("echo", json!({}), Credits::hundredths(20)).within(Some(within))
}

/// Long enough to see it before, short enough to wait for.
const LASTS: Duration = Duration::from_secs(12);

/// Until each of them says so.
async fn until_all(what: &str, clients: &[Client; 2], so: impl AsyncFn(&Client) -> bool) {
    for client in clients {
        eventually(what, async || so(client).await).await;
    }
}

/// neither a minute too early nor a minute too late.
#[tokio::test(flavor = "multi_thread")]
async fn what_ends_at_a_time_ends_then_at_either_hub() {
    let Some(liars) = Liars::start(&[MINUTE, -MINUTE]) else {
        return;
    };
    let (_, alice) = join_with_key(&liars.hubs[0].url, "alice").await;
    let bob = join(&liars.hubs[1].url, "bob").await;
    bob.offer(&skill()).await.unwrap();
    let (hers, operator) = (
        [0, 1].map(|hub| liars.at(hub, &alice)),
        [0, 1].map(|hub| liars.at(hub, OPERATOR)),
    );
    let jobs = [hire(LASTS), hire(LASTS)];
    let ends = now() + LASTS.as_secs() as i64;
    let mut codes = Vec::new();
    for number in 0..2 {
        hers[number].hire(&jobs[number]).await.unwrap();
        let ends = Some(Micros(ends * 1_000_000));
        codes.push(
            operator[number]
                .create_invite("few", None, ends)
                .await
                .unwrap()
                .code
                .unwrap(),
        );
    }
    let newcomer = |name: String, code: &Secret| Newcomer {
        agent_id: format!("{name}@chorus"),
        culture: "en".into(),
        languages: vec!["en".into()],
        endpoint: None,
        invite_code: Some(code.clone()),
    };
    for (made, code) in codes.iter().enumerate() {
        for (used, hub) in liars.hubs.iter().enumerate() {
            let anyone = Client::new(&hub.url, None).unwrap();
            anyone
                .register(&newcomer(format!("guest{made}{used}"), code))
                .await
                .unwrap();
            assert_eq!(
                hers[used].job(&jobs[made].job_id).await.unwrap().status,
                Status::Pending
            );
        }
    }
    assert!(
        now() < ends,
        "the machine is too busy to see it before its end"
    );
    for (made, code) in codes.iter().enumerate() {
        until_all("the code has expired", &hers, async |at| {
            let anyone = Client::new(at.base(), None).unwrap();
            let late = anyone
                .register(&newcomer(
                    format!("late{}", chorus_hub::clock::new_id().simple()),
                    code,
                ))
                .await;
            late.is_err_and(|error| {
                error
                    .refusal()
                    .is_some_and(|refusal| refusal.code == "ERR_INVITE_EXPIRED")
            })
        })
        .await;
        assert!(now() >= ends, "not before");
        until_all("the job has expired", &hers, async |at| {
            at.job(&jobs[made].job_id).await.unwrap().status == Status::Failure
        })
        .await;
    }
    assert!(now() < ends + NEAR, "nor long after");
    let ended = hers[0].job(&jobs[0].job_id).await.unwrap();
    assert!(ended.timestamp_utc >= ended.deadline_utc, "{ended:?}");
}

/// An agent elsewhere that takes its time: what was posted to it, by path, with the time that it was signed with.
struct Slow {
    url: String,
    heard: mpsc::UnboundedReceiver<(String, String, i64)>,
    go: watch::Sender<bool>,
}

impl Slow {
    async fn listen() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (tell, heard) = mpsc::unbounded_channel();
        let go = watch::Sender::new(false);
        let may = go.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(answer(socket, tell.clone(), may.subscribe()));
            }
        });
        Self { url, heard, go }
    }

    /// The next post: its path and its message.
    async fn hears(&mut self) -> (String, String) {
        let (path, id, at) = tokio::time::timeout(PATIENCE, self.heard.recv())
            .await
            .expect("a post")
            .unwrap();
        is_near(Micros(at * 1_000_000));
        (path, id)
    }
}

async fn answer(
    mut socket: tokio::net::TcpStream,
    tell: mpsc::UnboundedSender<(String, String, i64)>,
    mut may: watch::Receiver<bool>,
) {
    let mut text = String::new();
    let head = loop {
        let mut buffer = [0; 4096];
        let Ok(count @ 1..) = socket.read(&mut buffer).await else {
            return;
        };
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        if body.len() >= header(head, "content-length").parse().unwrap() {
            break head;
        }
    };
    let path = head.split(' ').nth(1).unwrap().to_owned();
    let slow = path.ends_with("slow");
    let _ = tell.send((
        path,
        header(head, "webhook-id"),
        header(head, "webhook-timestamp").parse().unwrap(),
    ));
    if slow {
        let _ = may.wait_for(|may| *may).await;
    }
    let _ = socket
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        .await;
}

fn header(head: &str, name: &str) -> String {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    lines
        .find(|(found, _)| found.eq_ignore_ascii_case(name))
        .map_or_else(String::new, |(_, value)| value.to_owned())
}

/// R-72, CHN-34, D-84: a hub that is two minutes ahead of another leaves it what it has taken.
#[tokio::test(flavor = "multi_thread")]
async fn what_one_hub_is_posting_no_other_posts_and_it_is_signed_with_the_right_time() {
    let Some(liars) = Liars::start(&[MINUTE, -MINUTE]) else {
        return;
    };
    let (_, key) = join_with_key(&liars.hubs[0].url, "alice").await;
    let [ahead, behind] = [0, 1].map(|hub| liars.at(hub, &key));
    let room = json!({"name": "ops", "service": "Chorus", "context": "Where the team talks."});
    let room: serde_json::Value = ahead
        .data(Call::post("/channels", room.to_string()))
        .await
        .unwrap();
    let room = format!("/channels/{}", room["id"].as_str().unwrap());
    let mut there = Slow::listen().await;
    for name in ["slow", "swift"] {
        let connection = format!("{}/inbox/{name}", there.url);
        let secret = "whsec_dGhpcyBpcyBub3QgYSByZWFsIHNlY3JldA==";
        let member =
            json!({"name": name, "connection": connection, "signing_secret": secret}).to_string();
        ahead
            .data::<serde_json::Value>(Call::post(format!("{room}/members"), member))
            .await
            .unwrap();
    }
    let say = async |client: &Client, text: &str| {
        let said = Call::post(
            format!("{room}/messages"),
            json!({"content": text}).to_string(),
        );
        client.data::<serde_json::Value>(said).await.unwrap();
    };
    let mut heard = Vec::new();
    // While one post waits for its answer, whichever hub looks for more finds that it is taken.
    for client in [&behind, &ahead, &behind, &ahead] {
        say(client, "hello").await;
        let posts = if heard.is_empty() { 2 } else { 1 };
        for _ in 0..posts {
            heard.push(there.hears().await);
        }
    }
    assert_eq!(
        heard
            .iter()
            .filter(|(path, _)| path.ends_with("slow"))
            .count(),
        1,
        "{heard:?}"
    );
    there.go.send_replace(true);
    while heard.len() < 8 {
        heard.push(there.hears().await);
    }
    heard.sort();
    heard.dedup();
    assert_eq!(heard.len(), 8, "each was posted once to each");
}

/// D-83: what a machine believes after the hub has started changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_jumps_under_load_shows_nowhere() {
    let Some(liars) = Liars::start(&[0, -MINUTE]) else {
        return;
    };
    // The other hub writes nothing: then this one has no time to look at anybody else's clock.
    let [right, url] = [0, 1].map(|hub| liars.hubs[hub].url.clone());
    let bob = join(&right, "worker").await;
    bob.offer(&skill()).await.unwrap();
    let alice = join(&right, "alice").await;
    // Less than the clock is to jump by.
    let lasts = Duration::from_secs(100);
    let job = hire(lasts);
    alice.hire(&job).await.unwrap();
    let began = now();
    let mut load = Load::start(&url).await;
    load.goes_on().await;
    liars.jumps(1, MINUTE);
    load.goes_on().await;
    liars.falls_back(1, -MINUTE);
    load.goes_on().await;
    let status = alice.job(&job.job_id).await.unwrap().status;
    assert!(
        now() - began < lasts.as_secs() as i64,
        "the machine is too busy to see the job before its end"
    );
    assert_eq!(status, Status::Pending, "nothing ends before its time");
    in_order(&rows(&load.bob).await, began);
    load.ends_well().await;
}
