//! Requests between hubs when a peer is late, newer, silent or only just started: counts and rosters stay right (D-82, D-93, D-94, D-95).

use crate::support::actors::{Agent, market};
use crate::support::hub::{Hub, eventually};
use crate::support::nats::NatsServer;
use crate::support::peer_messages::{PeerSigner, message_body};
use chorus_wire::{limits, secret::Secret};
use futures_util::StreamExt;
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Two hubs with a bus of their own, and an agent that registered with them.
pub(super) async fn two() -> Option<(NatsServer, Hub, Agent)> {
    let own = tokio::task::spawn_blocking(crate::support::nats::start_server)
        .await
        .unwrap()?;
    let hub = Hub::cluster(|settings| settings.hub.bus_url = Some(Secret::new(&own.url))).await?;
    let alice = hub.agent("alice").await;
    Some((own, hub, alice))
}

/// Another hub, as far as it is heard: it says that it is there, and answers what the story lets it answer.
struct FakePeer {
    bus: async_nats::Client,
    signer: Arc<PeerSigner>,
    root: String,
    /// The others that it has heard.
    hubs: HashSet<u64>,
    tasks: tokio::task::JoinSet<()>,
}

const ID: u64 = 7;

impl FakePeer {
    async fn join(
        own: &NatsServer,
        hub: &Hub,
        answer: impl Fn(&str, &Value) -> Option<String> + Send + 'static,
    ) -> Self {
        let bus = async_nats::connect(&own.url).await.unwrap();
        let (mut heard, mut hubs, mut root) = (
            bus.subscribe("chorus.*.all").await.unwrap(),
            HashSet::new(),
            String::new(),
        );
        while hubs.len() < 2 {
            let message = heard.next().await.unwrap();
            root = message.subject.strip_suffix(".all").unwrap().to_owned();
            let said: Value = serde_json::from_slice(message_body(&message.payload)).unwrap();
            hubs.extend(said["Here"]["hub"].as_u64());
        }
        let mut tasks = tokio::task::JoinSet::new();
        let mut asked = bus
            .subscribe(format!("{root}.hub.{ID:016x}"))
            .await
            .unwrap();
        let signer = Arc::new(PeerSigner::new(ID));
        let (answering, answer_signer) = (bus.clone(), signer.clone());
        tasks.spawn(async move {
            while let Some(message) = asked.next().await {
                let ask: Value = serde_json::from_slice(message_body(&message.payload)).unwrap();
                let (name, with) = ask.as_object().unwrap().iter().next().unwrap();
                let said = answer(name, with);
                if let (Some(said), Some(reply)) = (said, message.reply) {
                    let said = answer_signer.reply(&reply, &message.payload, &said);
                    answering.publish(reply, said.into()).await.unwrap();
                }
            }
        });
        let (saying, all) = (bus.clone(), format!("{root}.all"));
        let beat_signer = signer.clone();
        tasks.spawn(async move {
            let mut beat = tokio::time::interval(Duration::from_millis(200));
            loop {
                beat.tick().await;
                // A newer one: it says more of itself than others know.
                let here = json!({"Here": {"hub": ID, "subjects": 0, "sum": 0, "news": 0, "mood": "good"}});
                let here = beat_signer.announcement(&all, &here.to_string());
                saying.publish(all.clone(), here.into()).await.unwrap();
            }
        });
        eventually("it is known", async || {
            hub.peer_counts().iter().all(|others| *others == 2)
        })
        .await;
        Self {
            bus,
            signer,
            root,
            hubs,
            tasks,
        }
    }

    async fn announces(&self, said: &Value) {
        let all = format!("{}.all", self.root);
        let message = self.signer.announcement(&all, &said.to_string());
        self.bus.publish(all, message.into()).await.unwrap();
        self.bus.flush().await.unwrap();
    }

    async fn leaves(mut self) {
        self.tasks.shutdown().await;
        self.announces(&json!({"Gone": ID})).await;
    }
}

/// What every hub answers, but for the questions of rooms.
fn dutiful(name: &str) -> Option<String> {
    match name {
        "Places" => Some(json!({"news": 0, "places": []}).to_string()),
        "Heard" | "Took" => Some("[]".into()),
        "Room" => None,
        _ => Some(String::new()),
    }
}

/// D-93
#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_answers_late_is_counted_all_the_same() {
    let Some((own, hub, alice)) = two().await else {
        return;
    };
    let times = AtomicUsize::new(0);
    let third = FakePeer::join(&own, &hub, move |name, _| match name {
        "Room" => (times.fetch_add(1, Ordering::SeqCst) > 0).then(|| "[1,null]".into()),
        other => dutiful(other),
    })
    .await;
    let mut session = hub.agent_at_hub(1, &alice).open_session("vim", "s1").await;
    let frame = alice.advisory("hello");
    let counted = async |at| {
        let answer = hub.agent_at_hub(at, &alice).submit("~alice", &frame).await;
        answer.recipient_count(frame["frame_id"].as_str().unwrap())
    };
    assert_eq!(counted(0).await, 2);
    third.leaves().await;
    // a repeated submission gets the same answer, also from another hub and after a peer has left.
    assert_eq!([counted(0).await, counted(1).await], [2, 2]);
    assert_eq!(session.advisory_texts(1).await, ["hello"]);
}

/// D-93
#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_is_there_and_does_not_answer_is_left_out_of_no_count_and_no_roster() {
    let Some((own, hub, alice)) = two().await else {
        return;
    };
    let third = FakePeer::join(&own, &hub, |name, _| dutiful(name)).await;
    let mut session = hub.agent_at_hub(1, &alice).open_session("vim", "s1").await;
    let (here, frame) = (hub.agent_at_hub(0, &alice), alice.advisory("hello"));
    let (submitted, roster) = tokio::join!(
        here.submit("~alice", &frame),
        here.get("/handles/~alice/roster")
    );
    submitted.frame_refused(503, "bus-unavailable", None);
    roster.frame_refused(503, "bus-unavailable", None);
    third.leaves().await;
    let id = frame["frame_id"].as_str().unwrap();
    for at in 0..2 {
        assert_eq!(
            hub.agent_at_hub(at, &alice)
                .submit("~alice", &frame)
                .await
                .recipient_count(id),
            1
        );
    }
    assert_eq!(here.roster().await.len(), 1);
    here.send_advisory("~alice", "goodbye").await;
    assert_eq!(
        session.advisory_texts(2).await,
        ["hello", "goodbye"],
        "who tries again is not heard twice"
    );
}

/// D-94
#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_only_newer_hubs_know_is_answered_at_once_with_nothing() {
    let Some((own, hub, _)) = two().await else {
        return;
    };
    let third = FakePeer::join(&own, &hub, |name, _| dutiful(name)).await;
    for hub in &third.hubs {
        for question in [
            json!({"Newer": {"than": "you"}}),
            json!({"Room": {"Newer": 1}}),
            json!(["odd"]),
        ] {
            let name = format!("{}.hub.{hub:016x}", third.root);
            let message = third.signer.request(&name, &question.to_string());
            let answer = third
                .bus
                .request(name, message.into())
                .await
                .expect("an answer");
            assert!(message_body(&answer.payload).is_empty(), "{question}");
        }
    }
    third.announces(&json!({"Newer": 1})).await;
    assert_eq!(hub.peer_counts(), [2, 2]);
}

/// D-95
#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_does_not_answer_delays_others_only_once() {
    let Some((own, hub, alice)) = two().await else {
        return;
    };
    let third = FakePeer::join(&own, &hub, |name, _| {
        dutiful(name).filter(|_| name != "News")
    })
    .await;
    let (began, mut sessions) = (Instant::now(), Vec::new());
    for number in 0..8 {
        sessions.push(
            hub.agent_at_hub(0, &alice)
                .open_session("vim", &format!("s{number}"))
                .await,
        );
    }
    assert!(
        began.elapsed() < 5 * chorus_hub::limits::PEER_REQUEST_TIMEOUT,
        "{:?}",
        began.elapsed()
    );
    third.leaves().await;
    assert_eq!(hub.agent_at_hub(1, &alice).roster().await.len(), 8);
}

/// D-93: half a roster would be taken for a whole one.
#[tokio::test(flavor = "multi_thread")]
async fn without_the_bus_a_roster_is_refused_and_not_halved() {
    let Some((own, hub, alice)) = two().await else {
        return;
    };
    let (here, there) = (hub.agent_at_hub(0, &alice), hub.agent_at_hub(1, &alice));
    let _sessions = (
        here.open_session("vim", "s1").await,
        there.open_session("vim", "s2").await,
    );
    assert_eq!(here.roster().await.len(), 2);
    drop(own);
    let began = Instant::now();
    while began.elapsed() < chorus_hub::limits::PEER_SILENT_AFTER * 2 {
        let answer = here.get("/handles/~alice/roster").await;
        match answer.status {
            200 => assert_eq!(
                answer.json()["sessions"].as_array().map(Vec::len),
                Some(2),
                "{answer:?}"
            ),
            _ => drop(answer.frame_refused(503, "bus-unavailable", None)),
        }
    }
}

///
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_agent_is_away_at_a_hub_that_has_just_started_too() {
    let Some((_own, hub, _)) = two().await else {
        return;
    };
    let (boss, worker) = (
        market::register_requester(&hub).await,
        market::register_worker(&hub, "worker-1").await,
    );
    assert_eq!(
        worker
            .post("/heartbeat", &json!({"agent_id": "worker-1"}))
            .await
            .status,
        200
    );
    hub.advance(limits::HEARTBEAT_TIMEOUT + Duration::from_secs(1));
    let third = hub.start_second_in_other_dir().await.unwrap();
    market::assert_market_refused(
        &hub.agent_at_running(&third, &boss)
            .post("/jobs", &market::job_request("job-1"))
            .await,
        409,
        "AGENT_OFFLINE",
    );
    assert_eq!(
        worker
            .post("/heartbeat", &json!({"agent_id": "worker-1"}))
            .await
            .status,
        200
    );
    market::request_job(
        &hub.agent_at_running(&third, &boss),
        &market::job_request("job-1"),
    )
    .await;
    third.stop().await;
}

/// A frame stream without a connection, which is never read.
async fn feed(
    hub: &chorus_hub::Hub,
    agent: &Agent,
    filter: &str,
    number: usize,
) -> chorus_hub::delivery::StreamFeed {
    let who = chorus_hub::identity::authenticate(hub.identity(), Some(&agent.key), None)
        .await
        .unwrap();
    let opening = chorus_hub::frame::FrameStreamRequest {
        handle: agent.handle(),
        filter: Some(filter.into()),
        session: Some(format!("s{number}")),
        ..Default::default()
    };
    chorus_hub::frame::open_stream(&who, hub.frames(), opening)
        .await
        .unwrap()
}

/// D-93: a handle is one, however many hubs there are, and a roster of megabytes is one roster.
#[tokio::test(flavor = "multi_thread")]
async fn a_handle_has_as_many_streams_at_all_hubs_together_as_at_one() {
    let Some((_own, hub, alice)) = two().await else {
        return;
    };
    let filter = vec!["kind:agent_advisory"; 40].join(",");
    let mut feeds = Vec::new();
    for n in 0..limits::STREAMS_PER_HANDLE / 100 {
        let opening = (0..100).map(|m| feed(hub.hub_at(m % 2), &alice, &filter, n * 100 + m));
        feeds.extend(join_all(opening).await);
    }
    for at in 0..2 {
        hub.agent_at_hub(at, &alice)
            .try_open_session("")
            .await
            .frame_refused(429, "too-many-streams", None);
        assert_eq!(
            hub.agent_at_hub(at, &alice).roster().await.len(),
            limits::STREAMS_PER_HANDLE
        );
    }
    feeds.truncate(limits::STREAMS_PER_HANDLE - 1);
    eventually("there is a place", async || {
        hub.agent_at_hub(1, &alice).roster().await.len() < limits::STREAMS_PER_HANDLE
    })
    .await;
    assert_eq!(
        hub.agent_at_hub(0, &alice)
            .send_advisory("~alice", "hello")
            .await,
        limits::STREAMS_PER_HANDLE as u64 - 1
    );
}
