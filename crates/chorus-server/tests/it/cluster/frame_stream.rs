//! The frame stream that hubs share: deleted, trimmed, without one NATS server, or joined by a new hub (D-93, D-94).

use super::bus::two;
use crate::support::actors::advisory_text;
use crate::support::hub::{Hub, eventually};
use crate::support::nats::NatsServer;
use async_nats::jetstream;
use chorus_wire::secret::Secret;
use futures_util::StreamExt;
use futures_util::future::join_all;

/// Where hubs keep their frames.
pub(super) async fn memory(
    own: &NatsServer,
) -> (async_nats::Client, jetstream::stream::Stream, String) {
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
    let (here, there) = (hub.agent_at_hub(0, &alice), hub.agent_at_hub(1, &alice));
    let mut sessions = [
        here.open_session("vim", "s1").await,
        there.open_session("vim", "s2").await,
    ];
    for n in 0..5 {
        assert_eq!(here.send_advisory("~alice", &n.to_string()).await, 2);
    }
    for session in &mut sessions {
        session.advisory_texts(5).await;
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
    assert_eq!(there.submit("~alice", &frame).await.recipient_count(id), 2);
    assert_eq!(there.send_advisory("~alice", "and on").await, 2);
    for session in &mut sessions {
        session.next("resume-gap").await;
        assert_eq!(session.advisory_texts(2).await, ["after", "and on"]);
    }
}

/// D-82: a cluster of servers is for losing one of them.
#[tokio::test(flavor = "multi_thread")]
async fn of_three_servers_one_is_lost_and_no_frame_with_it() {
    let Some(mut servers) = tokio::task::spawn_blocking(crate::support::nats::start_three_servers)
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
    let Some(hub) = Hub::cluster(|settings| settings.hub.bus_url = Some(Secret::new(&urls))).await
    else {
        return;
    };
    let alice = hub.agent("alice").await;
    let (here, there) = (hub.agent_at_hub(0, &alice), hub.agent_at_hub(1, &alice));
    let mut sessions = [
        here.open_session("vim", "s1").await,
        there.open_session("vim", "s2").await,
    ];
    assert_eq!(here.send_advisory("~alice", "before").await, 2);
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
            .recipient_count(frame["frame_id"].as_str().unwrap()),
        2
    );
    for session in &mut sessions {
        assert_eq!(session.advisory_texts(2).await, ["before", "after"]);
    }
}

/// a hub that reads too slowly finds that some of it was let go.
#[tokio::test(flavor = "multi_thread")]
async fn frames_that_were_let_go_before_a_hub_read_them_are_told_as_one_gap() {
    let Some((own, hub, alice)) = two().await else {
        return;
    };
    let mut session = hub.agent_at_hub(1, &alice).open_session("vim", "s1").await;
    let (bus, stream, subject) = memory(&own).await;
    // Far more than a hub reads at once; the entries are of no hub and for no session here.
    for _ in 0..30_000 {
        bus.publish(subject.clone(), "{}".into()).await.unwrap();
    }
    stream.purge().await.unwrap();
    hub.agent_at_hub(0, &alice)
        .send_advisory("~alice", "after")
        .await;
    session.next("resume-gap").await;
    assert_eq!(session.advisory_texts(1).await, ["after"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_at_a_hub_that_has_just_started_hears_nothing_from_before() {
    let Some((_own, hub, alice)) = two().await else {
        return;
    };
    for _ in 0..40 {
        let tell = |n: usize| {
            let alice = hub.agent_at_hub(n % 2, &alice);
            async move { alice.send_advisory("~alice", "before").await }
        };
        join_all((0..100).map(tell)).await;
    }
    let third = hub.start_second_in_other_dir().await.unwrap();
    let mut session = hub
        .agent_at_running(&third, &alice)
        .open_session("vim", "s1")
        .await;
    assert_eq!(
        hub.agent_at_hub(0, &alice)
            .send_advisory("~alice", "now")
            .await,
        1
    );
    assert_eq!(advisory_text(&session.advisory().await), "now");
    third.stop().await;
}
