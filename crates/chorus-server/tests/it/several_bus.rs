//! What hubs say to one another, when one of them is late, newer, deaf or only just there: nothing is claimed that is not so
//! (D-82, D-93, D-94, D-95).

use crate::actors::{Agent, market, said};
use crate::hub::{Hub, eventually};
use crate::nats::Own;
use async_nats::jetstream;
use chorus_wire::{limits, secret::Secret};
use futures_util::StreamExt;
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Two hubs with a bus of their own, and an agent that registered with them.
async fn two() -> Option<(Own, Hub, Agent)> {
    let own = tokio::task::spawn_blocking(crate::nats::own)
        .await
        .unwrap()?;
    let hub = Hub::cluster(|settings| settings.hub.bus = Some(Secret::new(&own.url))).await?;
    let alice = hub.agent("alice").await;
    Some((own, hub, alice))
}

/// Another hub, as far as it is heard: it says that it is there, and answers what the story lets it answer.
struct Third {
    bus: async_nats::Client,
    root: String,
    /// The others that it has heard.
    hubs: HashSet<u64>,
    tasks: tokio::task::JoinSet<()>,
}

const ID: u64 = 7;

impl Third {
    async fn join(
        own: &Own,
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
            let said: Value = serde_json::from_slice(&message.payload).unwrap();
            hubs.extend(said["Here"]["hub"].as_u64());
        }
        let mut tasks = tokio::task::JoinSet::new();
        let mut asked = bus
            .subscribe(format!("{root}.hub.{ID:016x}"))
            .await
            .unwrap();
        let answering = bus.clone();
        tasks.spawn(async move {
            while let Some(message) = asked.next().await {
                let ask: Value = serde_json::from_slice(&message.payload).unwrap();
                let (name, with) = ask.as_object().unwrap().iter().next().unwrap();
                let said = answer(name, with);
                if let (Some(said), Some(reply)) = (said, message.reply) {
                    answering.publish(reply, said.into()).await.unwrap();
                }
            }
        });
        let (saying, all) = (bus.clone(), format!("{root}.all"));
        tasks.spawn(async move {
            let mut beat = tokio::time::interval(Duration::from_millis(200));
            loop {
                beat.tick().await;
                // A newer one: it says more of itself than others know.
                let here = json!({"Here": {"hub": ID, "subjects": 0, "sum": 0, "news": 0, "mood": "good"}});
                saying.publish(all.clone(), here.to_string().into()).await.unwrap();
            }
        });
        eventually("it is known", async || {
            hub.known().iter().all(|others| *others == 2)
        })
        .await;
        Self {
            bus,
            root,
            hubs,
            tasks,
        }
    }

    async fn leaves(mut self) {
        self.tasks.shutdown().await;
        self.bus
            .publish(
                format!("{}.all", self.root),
                json!({"Gone": ID}).to_string().into(),
            )
            .await
            .unwrap();
        self.bus.flush().await.unwrap();
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
    let third = Third::join(&own, &hub, move |name, _| match name {
        "Room" => (times.fetch_add(1, Ordering::SeqCst) > 0).then(|| "[1,null]".into()),
        other => dutiful(other),
    })
    .await;
    let mut session = hub.at(1, &alice).opens("vim", "s1").await;
    let frame = alice.advisory("hello");
    let counted = async |at| {
        let answer = hub.at(at, &alice).submit("~alice", &frame).await;
        answer.counted(frame["frame_id"].as_str().unwrap())
    };
    assert_eq!(counted(0).await, 2);
    third.leaves().await;
    // who asks again is told the same, also by another hub, and whoever is gone since.
    assert_eq!([counted(0).await, counted(1).await], [2, 2]);
    assert_eq!(session.hears(1).await, ["hello"]);
}

/// D-93
#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_is_there_and_does_not_answer_is_left_out_of_no_count_and_no_roster() {
    let Some((own, hub, alice)) = two().await else {
        return;
    };
    let third = Third::join(&own, &hub, |name, _| dutiful(name)).await;
    let mut session = hub.at(1, &alice).opens("vim", "s1").await;
    let (here, frame) = (hub.at(0, &alice), alice.advisory("hello"));
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
            hub.at(at, &alice)
                .submit("~alice", &frame)
                .await
                .counted(id),
            1
        );
    }
    assert_eq!(here.roster().await.len(), 1);
    here.tells("~alice", "goodbye").await;
    assert_eq!(
        session.hears(2).await,
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
    let third = Third::join(&own, &hub, |name, _| dutiful(name)).await;
    for hub in &third.hubs {
        for question in [
            json!({"Newer": {"than": "you"}}),
            json!({"Room": {"Newer": 1}}),
            json!(["odd"]),
        ] {
            let name = format!("{}.hub.{hub:016x}", third.root);
            let answer = third
                .bus
                .request(name, question.to_string().into())
                .await
                .expect("an answer");
            assert!(answer.payload.is_empty(), "{question}");
        }
    }
    third
        .bus
        .publish(
            format!("{}.all", third.root),
            json!({"Newer": 1}).to_string().into(),
        )
        .await
        .unwrap();
    assert_eq!(hub.known(), [2, 2]);
}

/// D-95
#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_does_not_answer_holds_nobody_up_twice() {
    let Some((own, hub, alice)) = two().await else {
        return;
    };
    let third = Third::join(&own, &hub, |name, _| {
        dutiful(name).filter(|_| name != "News")
    })
    .await;
    let (began, mut sessions) = (Instant::now(), Vec::new());
    for number in 0..8 {
        sessions.push(hub.at(0, &alice).opens("vim", &format!("s{number}")).await);
    }
    assert!(
        began.elapsed() < 5 * limits::BUS_WAIT,
        "{:?}",
        began.elapsed()
    );
    third.leaves().await;
    assert_eq!(hub.at(1, &alice).roster().await.len(), 8);
}

/// D-93: half a roster would be taken for a whole one.
#[tokio::test(flavor = "multi_thread")]
async fn without_the_bus_a_roster_is_refused_and_not_halved() {
    let Some((own, hub, alice)) = two().await else {
        return;
    };
    let (here, there) = (hub.at(0, &alice), hub.at(1, &alice));
    let _sessions = (
        here.opens("vim", "s1").await,
        there.opens("vim", "s2").await,
    );
    assert_eq!(here.roster().await.len(), 2);
    drop(own);
    let began = Instant::now();
    while began.elapsed() < limits::PEER_SILENT * 2 {
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

/// Where hubs keep their frames.
async fn memory(own: &Own) -> (async_nats::Client, jetstream::stream::Stream, String) {
    let bus = async_nats::connect(&own.url).await.unwrap();
    let context = jetstream::new(bus.clone());
    let name = context.stream_names().next().await.unwrap().unwrap();
    let stream = context.get_stream(name).await.unwrap();
    let subject = stream.cached_info().config.subjects[0].clone();
    (bus, stream, subject)
}

/// D-82, R-52: an operator may delete it, and of several servers the one that has it may be lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_memory_of_frames_that_is_deleted_is_begun_anew_and_told_as_one_gap() {
    let Some((own, hub, alice)) = two().await else {
        return;
    };
    let (here, there) = (hub.at(0, &alice), hub.at(1, &alice));
    let mut sessions = [
        here.opens("vim", "s1").await,
        there.opens("vim", "s2").await,
    ];
    for n in 0..5 {
        assert_eq!(here.tells("~alice", &n.to_string()).await, 2);
    }
    for session in &mut sessions {
        session.hears(5).await;
    }
    let (bus, stream, _) = memory(&own).await;
    jetstream::new(bus)
        .delete_stream(&stream.cached_info().config.name)
        .await
        .unwrap();
    let frame = alice.advisory("after");
    eventually("frames are taken again", async || {
        here.submit("~alice", &frame).await.status == 200
    })
    .await;
    let id = frame["frame_id"].as_str().unwrap();
    assert_eq!(there.submit("~alice", &frame).await.counted(id), 2);
    assert_eq!(there.tells("~alice", "and on").await, 2);
    for session in &mut sessions {
        session.next("resume-gap").await;
        assert_eq!(session.hears(2).await, ["after", "and on"]);
    }
}

/// D-82: a cluster of servers is for losing one of them.
#[tokio::test(flavor = "multi_thread")]
async fn of_three_servers_one_is_lost_and_no_frame_with_it() {
    let Some(mut servers) = tokio::task::spawn_blocking(crate::nats::three)
        .await
        .unwrap()
    else {
        return;
    };
    let bus = async_nats::connect(&servers[0].url).await.unwrap();
    let context = jetstream::new(bus.clone());
    // They choose among themselves who decides, and only then make anything.
    let one = async || {
        let answer = bus.request("$JS.API.INFO", "".into()).await;
        answer.is_ok_and(|answer| !String::from_utf8_lossy(&answer.payload).contains("\"error\""))
    };
    eventually("the three are one", one).await;
    let urls = servers
        .iter()
        .map(|server| server.url.as_str())
        .collect::<Vec<_>>()
        .join(",");
    let Some(hub) = Hub::cluster(|settings| settings.hub.bus = Some(Secret::new(&urls))).await
    else {
        return;
    };
    let alice = hub.agent("alice").await;
    let (here, there) = (hub.at(0, &alice), hub.at(1, &alice));
    let mut sessions = [
        here.opens("vim", "s1").await,
        there.opens("vim", "s2").await,
    ];
    assert_eq!(here.tells("~alice", "before").await, 2);
    let name = context.stream_names().next().await.unwrap().unwrap();
    let info = context
        .get_stream(name)
        .await
        .unwrap()
        .get_info()
        .await
        .unwrap();
    let leader = info.cluster.and_then(|cluster| cluster.leader).unwrap();
    drop(servers.remove(leader.strip_prefix('n').unwrap().parse().unwrap()));
    let frame = alice.advisory("after");
    eventually("frames are taken again", async || {
        there.submit("~alice", &frame).await.status == 200
    })
    .await;
    assert_eq!(
        here.submit("~alice", &frame)
            .await
            .counted(frame["frame_id"].as_str().unwrap()),
        2
    );
    for session in &mut sessions {
        assert_eq!(session.hears(2).await, ["before", "after"]);
    }
}

/// a hub that reads too slowly finds that some of it was let go.
#[tokio::test(flavor = "multi_thread")]
async fn frames_that_were_let_go_before_a_hub_read_them_are_told_as_one_gap() {
    let Some((own, hub, alice)) = two().await else {
        return;
    };
    let mut session = hub.at(1, &alice).opens("vim", "s1").await;
    let (bus, stream, subject) = memory(&own).await;
    // Far more than a hub takes at once; what is on them is a newer hub's, and nobody's here.
    for _ in 0..30_000 {
        bus.publish(subject.clone(), "{}".into()).await.unwrap();
    }
    stream.purge().await.unwrap();
    hub.at(0, &alice).tells("~alice", "after").await;
    session.next("resume-gap").await;
    assert_eq!(session.hears(1).await, ["after"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_at_a_hub_that_has_just_started_hears_nothing_from_before() {
    let Some((_own, hub, alice)) = two().await else {
        return;
    };
    for _ in 0..40 {
        let tell = |n: usize| {
            let alice = hub.at(n % 2, &alice);
            async move { alice.tells("~alice", "before").await }
        };
        join_all((0..100).map(tell)).await;
    }
    let third = hub.second_elsewhere().await.unwrap();
    let mut session = hub.there(&third, &alice).opens("vim", "s1").await;
    assert_eq!(hub.at(0, &alice).tells("~alice", "now").await, 1);
    assert_eq!(said(&session.advisory().await), "now");
    third.stop().await;
}

///
#[tokio::test(flavor = "multi_thread")]
async fn whoever_fell_silent_is_away_at_a_hub_that_has_just_started_too() {
    let Some((_own, hub, _)) = two().await else {
        return;
    };
    let (boss, worker) = (
        market::boss(&hub).await,
        market::worker(&hub, "worker-1").await,
    );
    assert_eq!(
        worker
            .post("/heartbeat", &json!({"agent_id": "worker-1"}))
            .await
            .status,
        200
    );
    hub.advance(limits::HEARTBEAT_MISSED + Duration::from_secs(1));
    let third = hub.second_elsewhere().await.unwrap();
    market::refused(
        &hub.there(&third, &boss)
            .post("/jobs", &market::job("job-1"))
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
    market::hired(&hub.there(&third, &boss), &market::job("job-1")).await;
    third.stop().await;
}

/// A stream that nobody reads, without a connection.
async fn feed(
    hub: &chorus_hub::Hub,
    agent: &Agent,
    filter: &str,
    number: usize,
) -> chorus_hub::delivery::Feed {
    let who = chorus_hub::identity::authenticate(hub, Some(&agent.key))
        .await
        .unwrap();
    let opening = chorus_hub::frame::Opening {
        handle: agent.handle(),
        filter: Some(filter.into()),
        session: Some(format!("s{number}")),
        ..Default::default()
    };
    chorus_hub::frame::open(&who, hub, opening).await.unwrap()
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
        let opening = (0..100).map(|m| feed(hub.inside(m % 2), &alice, &filter, n * 100 + m));
        feeds.extend(join_all(opening).await);
    }
    for at in 0..2 {
        hub.at(at, &alice)
            .opening("")
            .await
            .frame_refused(429, "too-many-streams", None);
        assert_eq!(
            hub.at(at, &alice).roster().await.len(),
            limits::STREAMS_PER_HANDLE
        );
    }
    feeds.truncate(limits::STREAMS_PER_HANDLE - 1);
    eventually("there is a place", async || {
        hub.at(1, &alice).roster().await.len() < limits::STREAMS_PER_HANDLE
    })
    .await;
    assert_eq!(
        hub.at(0, &alice).tells("~alice", "hello").await,
        limits::STREAMS_PER_HANDLE as u64 - 1
    );
}
