//! Machines whose clocks are a minute off, or jump by one while the hub runs, in real processes: hubs use the clock of the
//! database, so no client sees a difference (D-03, D-83).

use crate::actors::{OPERATOR, PATIENCE};
use crate::crash::{envelope, join, join_with_key};
use crate::faults::{Load, eventually};
use crate::skewed_hubs::{NEAR, SkewedHubs, unix_now};
use chorus_client::HubClient;
use chorus_client::http::ApiCall;
use chorus_client::identity::RegistrationRequest;
use chorus_client::market::JobRequest;
use chorus_wire::cursor::Cursor;
use chorus_wire::market::credits::Credits;
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
fn is_near(at: UnixMicros) {
    let off = at.0 / 1_000_000 - unix_now();
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
            (began - 1..=unix_now() + 1).contains(&at),
            "{} s off",
            at - began
        );
    }
}

async fn rows(client: &HubClient) -> Vec<HistoryRow> {
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
async fn hubs_a_minute_ahead_and_behind_have_one_time_and_one_order() {
    let Some(skewed) = SkewedHubs::start(&[MINUTE, -MINUTE, 0]) else {
        return;
    };
    let (_, alice) = join_with_key(&skewed.hubs[0].url, "alice").await;
    let (bob, key) = join_with_key(&skewed.hubs[1].url, "bob").await;
    let began = unix_now();
    let texts: Vec<String> = (0..20).map(|number| format!("{number:02}")).collect();
    for (number, text) in texts.iter().enumerate() {
        let sent = skewed
            .client_at(number % 3, &alice)
            .send_message("bob@chorus", &envelope("alice", text), 0)
            .await
            .unwrap();
        is_near(UnixMicros::parse(&sent.at).unwrap());
    }
    in_order(&rows(&bob).await, began);
    // A stream that goes from hub to hub by the cursor of the last one.
    let (mut since, mut heard) = (Cursor::START, Vec::new());
    for turn in 0..4 {
        let mut stream = skewed
            .client_at(turn % 3, &key)
            .open_inbox(Some(since))
            .await;
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
        since = stream.last_cursor().unwrap();
    }
    assert_eq!(heard, texts[..heard.len()], "no gap and no repeat");
    // the same request at the other hub is the same message.
    let mut traces = Vec::new();
    for turn in 0..4 {
        let answer = crate::split::once(
            &skewed.client_at(turn % 3, &alice),
            "alice",
            "bob",
            "once",
            "one-key",
        )
        .await
        .unwrap();
        let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        is_near(UnixMicros::parse(body["metadata"]["timestamp"].as_str().unwrap()).unwrap());
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

fn hire(within: Duration) -> JobRequest {
    JobRequest::new("echo", json!({}), Credits::from_hundredths(20)).with_deadline(Some(within))
}

/// Long enough to see it before, short enough to wait for.
const LASTS: Duration = Duration::from_secs(12);

/// Until each of them says so.
async fn until_all(what: &str, clients: &[HubClient; 2], so: impl AsyncFn(&HubClient) -> bool) {
    for client in clients {
        eventually(what, async || so(client).await).await;
    }
}

/// neither a minute too early nor a minute too late.
#[tokio::test(flavor = "multi_thread")]
async fn what_ends_at_a_time_ends_then_at_either_hub() {
    let Some(skewed) = SkewedHubs::start(&[MINUTE, -MINUTE]) else {
        return;
    };
    let (_, alice) = join_with_key(&skewed.hubs[0].url, "alice").await;
    let bob = join(&skewed.hubs[1].url, "bob").await;
    bob.publish_skill(&skill()).await.unwrap();
    let (hers, operator) = (
        [0, 1].map(|hub| skewed.client_at(hub, &alice)),
        [0, 1].map(|hub| skewed.client_at(hub, OPERATOR)),
    );
    let jobs = [hire(LASTS), hire(LASTS)];
    let ends = unix_now() + LASTS.as_secs() as i64;
    let mut codes = Vec::new();
    for number in 0..2 {
        hers[number].request_job(&jobs[number]).await.unwrap();
        let ends = Some(UnixMicros(ends * 1_000_000));
        codes.push(
            operator[number]
                .create_invite("few", None, ends)
                .await
                .unwrap()
                .code
                .unwrap(),
        );
    }
    let newcomer = |name: String, code: &Secret| RegistrationRequest {
        agent_id: format!("{name}@chorus"),
        culture: "en".into(),
        languages: vec!["en".into()],
        endpoint: None,
        invite_code: Some(code.clone()),
    };
    for (made, code) in codes.iter().enumerate() {
        for (used, hub) in skewed.hubs.iter().enumerate() {
            let anyone = HubClient::new(&hub.url, None).unwrap();
            anyone
                .register_agent(&newcomer(format!("guest{made}{used}"), code))
                .await
                .unwrap();
            assert_eq!(
                hers[used]
                    .fetch_job(&jobs[made].job_id)
                    .await
                    .unwrap()
                    .status,
                JobStatus::Pending
            );
        }
    }
    assert!(
        unix_now() < ends,
        "the machine is too busy to see it before its end"
    );
    for (made, code) in codes.iter().enumerate() {
        until_all("the code has expired", &hers, async |at| {
            let anyone = HubClient::new(at.base_url(), None).unwrap();
            let late = anyone
                .register_agent(&newcomer(
                    format!("late{}", chorus_hub::clock::new_id().simple()),
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
        assert!(unix_now() >= ends, "not before");
        until_all("the job has expired", &hers, async |at| {
            at.fetch_job(&jobs[made].job_id).await.unwrap().status == JobStatus::Failure
        })
        .await;
    }
    assert!(unix_now() < ends + NEAR, "nor long after");
    let ended = hers[0].fetch_job(&jobs[0].job_id).await.unwrap();
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
        is_near(UnixMicros(at * 1_000_000));
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
    let Some(skewed) = SkewedHubs::start(&[MINUTE, -MINUTE]) else {
        return;
    };
    let (_, key) = join_with_key(&skewed.hubs[0].url, "alice").await;
    let [ahead, behind] = [0, 1].map(|hub| skewed.client_at(hub, &key));
    let room = json!({"name": "ops", "service": "Chorus", "context": "Where the team talks."});
    let room: serde_json::Value = ahead
        .fetch_data(ApiCall::post("/channels", room.to_string()))
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
            .fetch_data::<serde_json::Value>(ApiCall::post(format!("{room}/members"), member))
            .await
            .unwrap();
    }
    let say = async |client: &HubClient, text: &str| {
        let said = ApiCall::post(
            format!("{room}/messages"),
            json!({"content": text}).to_string(),
        );
        client.fetch_data::<serde_json::Value>(said).await.unwrap();
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
    let Some(skewed) = SkewedHubs::start(&[0, -MINUTE]) else {
        return;
    };
    // The other hub writes nothing, so this one sees no time of another clock.
    let [right, url] = [0, 1].map(|hub| skewed.hubs[hub].url.clone());
    let bob = join(&right, "worker").await;
    bob.publish_skill(&skill()).await.unwrap();
    let alice = join(&right, "alice").await;
    // Less than the clock is to jump by.
    let lasts = Duration::from_secs(100);
    let job = hire(lasts);
    alice.request_job(&job).await.unwrap();
    let began = unix_now();
    let mut load = Load::start(&url).await;
    load.goes_on().await;
    skewed.jump(1, MINUTE);
    load.goes_on().await;
    skewed.fall_back(1, -MINUTE);
    load.goes_on().await;
    let status = alice.fetch_job(&job.job_id).await.unwrap().status;
    assert!(
        unix_now() - began < lasts.as_secs() as i64,
        "the machine is too busy to see the job before its end"
    );
    assert_eq!(status, JobStatus::Pending, "nothing ends before its time");
    in_order(&rows(&load.bob).await, began);
    load.ends_well().await;
}
