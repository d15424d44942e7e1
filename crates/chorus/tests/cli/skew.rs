//! Hubs on machines whose clocks are a minute off, or jump by a minute while the hub runs. Hubs use the clock of the database,
//! so no client sees a difference (D-03, D-83).

use crate::actors::{Hub, OPERATOR, TIMEOUT};
use crate::crash::{envelope, register_client, register_with_key};
use crate::faults::{Load, eventually};
use crate::skewed_hubs::{NEAR, SkewedHubs, libfaketime, shift_clock, unix_now, write_offset};
use chorus_client::HubClient;
use chorus_client::http::ApiCall;
use chorus_client::identity::RegistrationRequest;
use chorus_client::market::JobRequest;
use chorus_wire::credits::Credits;
use chorus_wire::cursor::Cursor;
use chorus_wire::market::job::JobStatus;
use chorus_wire::market::skill::SkillOffer;
use chorus_wire::message::HistoryRow;
use chorus_wire::secret::Secret;
use chorus_wire::time::UnixMicros;
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, watch};

const MINUTE: i64 = 60;

#[track_caller]
fn assert_current(at: UnixMicros) {
    let offset = at.0 / 1_000_000 - unix_now();
    assert!(offset.abs() < NEAR, "{offset} s off");
}

/// Checks that the times of a history grow and are between `started_at` and now.
#[track_caller]
fn assert_in_order(rows: &[HistoryRow], started_at: i64) {
    assert!(
        rows.is_sorted_by(|row, next| row.id < next.id && row.timestamp < next.timestamp),
        "ids and times grow together"
    );
    for row in rows {
        let at = row.timestamp.0 / 1_000_000;
        assert!(
            (started_at - 1..=unix_now() + 1).contains(&at),
            "{} s off",
            at - started_at
        );
    }
}

async fn fetch_rows(client: &HubClient) -> Vec<HistoryRow> {
    let mut all: Vec<HistoryRow> = Vec::new();
    loop {
        let since = all
            .last()
            .map_or_else(|| "0".to_owned(), |row| row.id.to_string());
        let page = client.fetch_history(Some(&since)).await.unwrap();
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hubs_with_clocks_ahead_and_behind_have_one_time_and_one_order() {
    let Some(skewed) = SkewedHubs::start(&[MINUTE, -MINUTE, 0]) else {
        return;
    };
    let (_, alice) = register_with_key(&skewed.hubs[0].url, "alice").await;
    let (bob, key) = register_with_key(&skewed.hubs[1].url, "bob").await;
    let started_at = unix_now();
    let texts: Vec<String> = (0..20).map(|number| format!("{number:02}")).collect();
    for (number, text) in texts.iter().enumerate() {
        let sent = skewed
            .client_at(number % 3, &alice)
            .send_message("bob@chorus", &envelope("alice", text), 0)
            .await
            .unwrap();
        assert_current(UnixMicros::parse(&sent.at).unwrap());
    }
    assert_in_order(&fetch_rows(&bob).await, started_at);
    // A stream that moves from hub to hub with its last cursor.
    let mut since = Cursor::START;
    let mut received = Vec::new();
    for turn in 0..4 {
        let mut stream = skewed
            .client_at(turn % 3, &key)
            .open_inbox(Some(since))
            .await;
        for _ in 0..5 {
            let event = tokio::time::timeout(TIMEOUT, stream.next())
                .await
                .expect("an event")
                .unwrap();
            let message: serde_json::Value = serde_json::from_str(&event.data).unwrap();
            received.extend(
                message["envelope"]["original_text"]
                    .as_str()
                    .map(str::to_owned),
            );
        }
        since = stream.last_cursor().unwrap();
    }
    assert_eq!(received, texts[..received.len()], "no gap and no repeat");
    // the same request at another hub is the same message.
    let mut traces = Vec::new();
    for turn in 0..4 {
        let answer = crate::split::send_with_key(
            &skewed.client_at(turn % 3, &alice),
            "alice",
            "bob",
            "once",
            "one-key",
        )
        .await
        .unwrap();
        let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        assert_current(UnixMicros::parse(body["metadata"]["timestamp"].as_str().unwrap()).unwrap());
        traces.push(body["data"]["trace_id"].clone());
    }
    assert!(
        traces
            .iter()
            .all(|trace| trace.is_string() && *trace == traces[0]),
        "{traces:?}"
    );
}

fn skill() -> SkillOffer {
    SkillOffer {
        skill_name: "echo".into(),
        description: None,
        cost_per_call: Credits::from_hundredths(10),
        input_schema: None,
        output_schema: None,
    }
}

fn job_request(deadline: Duration) -> JobRequest {
    JobRequest::new("echo", json!({}), Credits::from_hundredths(20)).with_deadline(Some(deadline))
}

/// Long enough to check the state before the end, short enough to wait for it.
const LIFETIME: Duration = Duration::from_secs(12);

/// Waits until `condition` is true at each hub.
async fn wait_at_all(
    description: &str,
    clients: &[HubClient; 2],
    condition: impl AsyncFn(&HubClient) -> bool,
) {
    for client in clients {
        eventually(description, async || condition(client).await).await;
    }
}

async fn create_invite(operator: &HubClient, ends_at: i64) -> Secret {
    let ends_at = Some(UnixMicros(ends_at * 1_000_000));
    let invite = operator.create_invite("few", None, ends_at).await;
    invite.unwrap().code.unwrap()
}

/// neither a minute early nor a minute late.
#[tokio::test(flavor = "multi_thread")]
async fn invites_and_jobs_expire_on_time_at_either_hub() {
    let Some(skewed) = SkewedHubs::start(&[MINUTE, -MINUTE]) else {
        return;
    };
    let (_, alice) = register_with_key(&skewed.hubs[0].url, "alice").await;
    let bob = register_client(&skewed.hubs[1].url, "bob").await;
    bob.publish_skill(&skill()).await.unwrap();
    let alice_clients = [0, 1].map(|hub| skewed.client_at(hub, &alice));
    let operator_clients = [0, 1].map(|hub| skewed.client_at(hub, OPERATOR));
    let jobs = [job_request(LIFETIME), job_request(LIFETIME)];
    let ends_at = unix_now() + LIFETIME.as_secs() as i64;
    let mut codes = Vec::new();
    for number in 0..2 {
        let requested = alice_clients[number].request_job(&jobs[number]).await;
        requested.unwrap();
        codes.push(create_invite(&operator_clients[number], ends_at).await);
    }
    let registration = |name: String, code: &Secret| RegistrationRequest {
        agent_id: format!("{name}@chorus"),
        culture: "en".into(),
        languages: vec!["en".into()],
        endpoint_secret: None,
        endpoint: None,
        invite_code: Some(code.clone()),
        owner_id: None,
        api_endpoint: None,
    };
    for (creator, code) in codes.iter().enumerate() {
        for (user, hub) in skewed.hubs.iter().enumerate() {
            let client = HubClient::new(&hub.url, None).unwrap();
            client
                .register_agent(&registration(format!("guest{creator}{user}"), code))
                .await
                .unwrap();
            assert_eq!(
                alice_clients[user]
                    .fetch_job(&jobs[creator].job_id)
                    .await
                    .unwrap()
                    .status,
                JobStatus::Pending
            );
        }
    }
    assert!(unix_now() < ends_at, "the machine is too busy");
    for (creator, code) in codes.iter().enumerate() {
        wait_at_all("the code has expired", &alice_clients, async |at| {
            let client = HubClient::new(at.base_url(), None).unwrap();
            let late = client
                .register_agent(&registration(
                    format!("late{}", chorus_hub::random::new_id().simple()),
                    code,
                ))
                .await;
            late.is_err_and(|error| {
                error
                    .error_response()
                    .is_some_and(|refusal| refusal.code == "ERR_INVITE_EXPIRED")
            })
        })
        .await;
        assert!(unix_now() >= ends_at, "expired too early");
        wait_at_all("the job has expired", &alice_clients, async |at| {
            at.fetch_job(&jobs[creator].job_id).await.unwrap().status == JobStatus::Failure
        })
        .await;
    }
    assert!(unix_now() < ends_at + NEAR, "expired too late");
    let ended = alice_clients[0].fetch_job(&jobs[0].job_id).await.unwrap();
    assert!(ended.timestamp_utc >= ended.deadline_utc, "{ended:?}");
}

/// A slow webhook receiver; it records the path, message id and signed time of each post.
struct SlowReceiver {
    url: String,
    posts: mpsc::UnboundedReceiver<(String, String, i64)>,
    may_answer: watch::Sender<bool>,
}

impl SlowReceiver {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (post_sender, posts) = mpsc::unbounded_channel();
        let may_answer = watch::Sender::new(false);
        let permission = may_answer.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(answer(socket, post_sender.clone(), permission.subscribe()));
            }
        });
        Self {
            url,
            posts,
            may_answer,
        }
    }

    /// The next post: its path and its message id.
    async fn next_post(&mut self) -> (String, String) {
        let (path, id, at) = tokio::time::timeout(TIMEOUT, self.posts.recv())
            .await
            .expect("a post")
            .unwrap();
        assert_current(UnixMicros(at * 1_000_000));
        (path, id)
    }
}

async fn answer(
    mut socket: tokio::net::TcpStream,
    post_sender: mpsc::UnboundedSender<(String, String, i64)>,
    mut may_answer: watch::Receiver<bool>,
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
    let is_slow = path.ends_with("slow");
    let _ = post_sender.send((
        path,
        header(head, "webhook-id"),
        header(head, "webhook-timestamp").parse().unwrap(),
    ));
    if is_slow {
        let _ = may_answer.wait_for(|may_answer| *may_answer).await;
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

/// R-72, CHN-34, D-84: a hub whose clock is two minutes ahead respects the leases of the other.
#[tokio::test(flavor = "multi_thread")]
async fn a_leased_post_is_sent_by_one_hub_and_signed_with_the_right_time() {
    let Some(skewed) = SkewedHubs::start(&[MINUTE, -MINUTE]) else {
        return;
    };
    let (_, key) = register_with_key(&skewed.hubs[0].url, "alice").await;
    let [ahead, behind] = [0, 1].map(|hub| skewed.client_at(hub, &key));
    let channel = json!({"name": "ops", "service": "Chorus", "context": "Where the team talks."});
    let channel: serde_json::Value = ahead
        .fetch_data(ApiCall::post("/channels", channel.to_string()))
        .await
        .unwrap();
    let channel = format!("/channels/{}", channel["id"].as_str().unwrap());
    let mut receiver = SlowReceiver::start().await;
    for name in ["slow", "swift"] {
        let connection = format!("{}/inbox/{name}", receiver.url);
        let secret = "whsec_dGhpcyBpcyBub3QgYSByZWFsIHNlY3JldA==";
        let member =
            json!({"name": name, "connection": connection, "signing_secret": secret}).to_string();
        ahead
            .fetch_data::<serde_json::Value>(ApiCall::post(format!("{channel}/members"), member))
            .await
            .unwrap();
    }
    let post_message = async |client: &HubClient, text: &str| {
        let call = ApiCall::post(
            format!("{channel}/messages"),
            json!({"content": text}).to_string(),
        );
        client.fetch_data::<serde_json::Value>(call).await.unwrap();
    };
    let mut posts = Vec::new();
    // While one post waits for its answer, neither hub sends it again.
    for client in [&behind, &ahead, &behind, &ahead] {
        post_message(client, "hello").await;
        let expected = if posts.is_empty() { 2 } else { 1 };
        for _ in 0..expected {
            posts.push(receiver.next_post().await);
        }
    }
    assert_eq!(
        posts
            .iter()
            .filter(|(path, _)| path.ends_with("slow"))
            .count(),
        1,
        "{posts:?}"
    );
    receiver.may_answer.send_replace(true);
    while posts.len() < 8 {
        posts.push(receiver.next_post().await);
    }
    posts.sort();
    posts.dedup();
    assert_eq!(
        posts.len(),
        8,
        "each message was posted once to each member"
    );
}

/// D-83: a change of the machine's clock after the start of the hub has no effect.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_jump_under_load_has_no_effect() {
    let Some(skewed) = SkewedHubs::start(&[0, -MINUTE]) else {
        return;
    };
    // Only one hub writes messages, so that it sees no times of another clock.
    let [right_url, url] = [0, 1].map(|hub| skewed.hubs[hub].url.clone());
    let bob = register_client(&right_url, "worker").await;
    bob.publish_skill(&skill()).await.unwrap();
    let alice = register_client(&right_url, "alice").await;
    // Less than the jump of the clock.
    let lifetime = Duration::from_secs(100);
    let job = job_request(lifetime);
    alice.request_job(&job).await.unwrap();
    let started_at = unix_now();
    let mut load = Load::start(&url).await;
    load.wait_for_progress().await;
    skewed.jump(1, MINUTE);
    load.wait_for_progress().await;
    skewed.fall_back(1, -MINUTE);
    load.wait_for_progress().await;
    let status = alice.fetch_job(&job.job_id).await.unwrap().status;
    assert!(
        unix_now() - started_at < lifetime.as_secs() as i64,
        "the machine is too busy for this test"
    );
    assert_eq!(status, JobStatus::Pending, "the job does not expire early");
    assert_in_order(&fetch_rows(&load.bob).await, started_at);
    load.stop_and_check().await;
}

/// D-123: a hub on a file has only the clock of its machine. It says that the clock was set, and repeats nothing for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_hub_on_a_file_logs_a_leap_of_the_clock_and_still_knows_a_request() {
    let Some(library) = libfaketime() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let [offset, log] = ["hub.time", "log"].map(|name| folder.path().join(name));
    write_offset(&offset, 0);
    let mut command = Hub::command(folder.path(), &["--data-dir", "data"]);
    shift_clock(&mut command, &library, &offset);
    command.stderr(std::fs::File::create(&log).unwrap());
    let hub = Hub::start_command(command);
    let alice = register_client(&hub.url, "alice").await;
    register_client(&hub.url, "bob").await;
    let send_once = async || {
        let answer = crate::split::send_with_key(&alice, "alice", "bob", "once", "one-key").await;
        let body: serde_json::Value = serde_json::from_slice(&answer.unwrap().body).unwrap();
        body["data"]["trace_id"].clone()
    };
    let first = send_once().await;
    assert!(first.is_string(), "{first}");
    write_offset(&offset, 48 * 60 * MINUTE);
    eventually("the leap is logged", async || {
        let log = std::fs::read_to_string(&log).unwrap();
        log.contains("the machine's clock leaped; nothing is deleted for a day")
    })
    .await;
    assert_eq!(send_once().await, first);
}
