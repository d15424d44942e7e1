//! Messages on the bus that no hub of the cluster has sent: none is trusted (D-106). In each story the same message with the right
//! tag has its effect, so that the forged one is known to be well formed.

use super::bus::two;
use super::frame_stream::memory;
use crate::support::actors::{Agent, frame};
use crate::support::hub::{Hub, eventually};
use crate::support::nats::NatsServer;
use crate::support::peer_messages::{PeerSigner, message_body};
use chorus_wire::secret::Secret;
use futures_util::StreamExt;
use serde_json::{Value, json};
use std::collections::HashSet;

const FORGED_HUB: u64 = 9;
/// The rows of all agents of a story are among these.
const ROWS: std::ops::Range<i64> = 1..50;

fn other_key() -> PeerSigner {
    PeerSigner::with_seal_key(FORGED_HUB, [0x66; 32])
}

/// A client of the bus that sees everything there.
struct Eavesdropper {
    bus: async_nats::Client,
    /// The subject of announcements.
    all: String,
    /// The hubs that announced themselves.
    hubs: HashSet<u64>,
}

impl Eavesdropper {
    async fn listen(own: &NatsServer, hub_count: usize) -> Self {
        let bus = async_nats::connect(&own.url).await.unwrap();
        let mut heard = bus.subscribe("chorus.*.all").await.unwrap();
        let (mut hubs, mut all) = (HashSet::new(), String::new());
        while hubs.len() < hub_count {
            let message = heard.next().await.unwrap();
            all = message.subject.to_string();
            let said: Value = serde_json::from_slice(message_body(&message.payload)).unwrap();
            hubs.extend(said["Here"]["hub"].as_u64());
        }
        Self { bus, all, hubs }
    }

    async fn send(&self, subject: &str, message: impl Into<Vec<u8>>) {
        let message: Vec<u8> = message.into();
        self.bus
            .publish(subject.to_owned(), message.into())
            .await
            .unwrap();
        self.bus.flush().await.unwrap();
    }

    /// As a client without the key can: as it is, with another key, and with the tag of another kind of message.
    async fn forge_announcement(&self, said: &Value) {
        let text = said.to_string();
        self.send(&self.all, text.clone()).await;
        self.send(&self.all, other_key().announcement(&self.all, &text))
            .await;
        let request = PeerSigner::new(FORGED_HUB).request(&self.all, &text);
        self.send(&self.all, request).await;
    }
}

/// A frame of `~mallory` to every agent, as hubs write it into the frame stream.
fn frame_message(text: &str, id: &Value, from: &str) -> String {
    json!({"id": id, "sender": 1, "targets": ROWS.collect::<Vec<_>>(), "kind": "agent_advisory", "from": from,
        "tool": null, "org": null, "only": [], "except": null, "text": text})
    .to_string()
}

fn advisory_of_mallory(said: &str) -> Value {
    let payload = json!({"advisory_text": said});
    frame("~mallory", "~alice", "agent_advisory", &payload)
}

/// R-46, D-106: only `~alice` and those that she granted it reach her sessions.
#[tokio::test(flavor = "multi_thread")]
async fn a_forged_frame_reaches_no_session() {
    let Some((own, hub, alice)) = two().await else {
        return;
    };
    let mut sessions = [
        hub.agent_at_hub(0, &alice).open_session("vim", "s1").await,
        hub.agent_at_hub(1, &alice).open_session("vim", "s2").await,
    ];
    let (_, _, subject) = memory(&own).await;
    let outside = Eavesdropper::listen(&own, 2).await;
    let signer = PeerSigner::new(FORGED_HUB);
    let forged = advisory_of_mallory("forged");
    let (id, text) = (&forged["frame_id"], forged.to_string());
    let message = frame_message(&text, id, "~mallory");
    let elsewhere = signer.frame("chorus.000000.frames", &message);
    // D-106: a frame is parsed again, so that a hub with a fault does not pass on what is no frame.
    let injected = format!("{{}}\n\nevent: agent_advisory\ndata: {text}");
    let two_lines = format!("{text}\nid: 1-1");
    for sent in [
        message.clone().into_bytes(),
        other_key().frame(&subject, &message),
        signer.announcement(&subject, &message),
        elsewhere,
        signer.frame(&subject, &frame_message(&injected, id, "~mallory")),
        signer.frame(&subject, &frame_message(&two_lines, id, "~mallory")),
        signer.frame(&subject, &frame_message(&text, id, "~alice")),
        signer.frame(&subject, &frame_message("{}", id, "~mallory")),
    ] {
        outside.send(&subject, sent).await;
    }
    // The control: the same from a hub. Line breaks between the fields of a frame do not reach a stream.
    let genuine = advisory_of_mallory("genuine");
    let text = genuine.to_string().replacen('{', "{\n\n", 1);
    let genuine = signer.frame(
        &subject,
        &frame_message(&text, &genuine["frame_id"], "~mallory"),
    );
    outside.send(&subject, genuine.clone()).await;
    for session in &mut sessions {
        assert_eq!(session.advisory_texts(1).await, ["genuine"]);
    }
    // Longer after than an id is remembered, a replay would be emitted again.
    hub.advance(chorus_wire::limits::RING_RETENTION * 2);
    outside.send(&subject, genuine).await;
    alice.send_advisory("~alice", "after").await;
    for session in &mut sessions {
        assert_eq!(session.advisory_texts(1).await, ["after"]);
    }
}

async fn requests_pass(hub: &Hub, agent: &Agent) -> bool {
    let mut passed = true;
    for number in 0..2 {
        passed &= hub
            .agent_at_hub(number, agent)
            .get("/agent/messages")
            .await
            .status
            == 200;
    }
    passed
}

/// D-85, D-106
#[tokio::test(flavor = "multi_thread")]
async fn a_forged_budget_message_costs_no_agent_its_budget() {
    let own = tokio::task::spawn_blocking(crate::support::nats::start_server)
        .await
        .unwrap();
    let Some(own) = own else { return };
    let with = |settings: &mut chorus_server::ServerSettings| {
        settings.hub.bus_url = Some(Secret::new(&own.url));
        settings.rate_limit = 200;
    };
    let Some(hub) = Hub::cluster(with).await else {
        return;
    };
    let alice = hub.agent("alice").await;
    let outside = Eavesdropper::listen(&own, 2).await;
    let debts: Vec<Value> = ROWS
        .map(|row| json!([{"Agent": row}, 600_000_000_000_u64]))
        .collect();
    let spent = json!({"Spent": [FORGED_HUB, debts]});
    outside.forge_announcement(&spent).await;
    // An announcement of a hub that comes later is read later.
    let signer = PeerSigner::new(FORGED_HUB);
    let here = json!({"Here": {"hub": FORGED_HUB, "subjects": 0, "sum": 0, "news": 0}});
    outside
        .send(
            &outside.all,
            signer.announcement(&outside.all, &here.to_string()),
        )
        .await;
    let gone = json!({"Gone": FORGED_HUB}).to_string();
    outside
        .send(&outside.all, signer.announcement(&outside.all, &gone))
        .await;
    for _ in 0..5 {
        assert!(requests_pass(&hub, &alice).await);
    }
    let genuine = signer.announcement(&outside.all, &spent.to_string());
    outside.send(&outside.all, genuine).await;
    eventually("the control has its effect", async || {
        !requests_pass(&hub, &alice).await
    })
    .await;
}

/// D-95, D-106
#[tokio::test(flavor = "multi_thread")]
async fn a_forged_presence_makes_no_hub_and_no_stream_appear_or_vanish() {
    let Some((own, hub, alice)) = two().await else {
        return;
    };
    let outside = Eavesdropper::listen(&own, 2).await;
    let here = json!({"Here": {"hub": FORGED_HUB, "subjects": 0, "sum": 0, "news": 0}});
    outside.forge_announcement(&here).await;
    for hub_id in &outside.hubs {
        outside.forge_announcement(&json!({"Gone": hub_id})).await;
        // Streams of every agent, at the other hub.
        for other in outside.hubs.iter().filter(|other| *other != hub_id) {
            let places: Vec<Value> = ROWS.map(|row| json!([row, 1, 1])).collect();
            let news = json!({"News": {"hub": other, "number": 1, "places": places, "heard": []}});
            let subject = outside.all.replace(".all", &format!(".hub.{hub_id:016x}"));
            outside.send(&subject, news.to_string()).await;
            let signed = other_key().request(&subject, &news.to_string());
            outside.send(&subject, signed).await;
        }
    }
    let bob = hub.agent("bob").await;
    for number in 0..2 {
        hub.agent_at_hub(number, &bob)
            .send_expecting("alice@chorus", "hello", "queued")
            .await;
        assert_eq!(hub.agent_at_hub(number, &alice).roster().await.len(), 0);
    }
    assert_eq!(hub.peer_counts(), [1, 1]);
    let metrics = hub.operator().get("/metrics").await.text;
    assert!(
        metrics.contains("chorus_bus_messages_refused_total{reason=\"tag\"}"),
        "{metrics}"
    );
}

/// D-106: a client that may write to the bus can answer first, and is not trusted.
#[tokio::test(flavor = "multi_thread")]
async fn a_forged_answer_is_no_answer() {
    let Some((own, hub, alice)) = two().await else {
        return;
    };
    let outside = Eavesdropper::listen(&own, 2).await;
    let mut asked = outside.bus.subscribe("chorus.*.hub.*").await.unwrap();
    let answering = outside.bus.clone();
    let forging = tokio::spawn(async move {
        while let Some(message) = asked.next().await {
            let body = String::from_utf8_lossy(message_body(&message.payload)).into_owned();
            if let (true, Some(reply)) = (body.starts_with("{\"Room\":"), message.reply) {
                let forged = other_key().reply(&reply, &message.payload, "[1000,null]");
                let _ = answering.publish(reply.clone(), forged.into()).await;
                let _ = answering.publish(reply, "[1000,null]".into()).await;
            }
        }
    });
    let mut session = hub.agent_at_hub(1, &alice).open_session("vim", "s1").await;
    let frame = alice.advisory("hello");
    let answer = hub.agent_at_hub(0, &alice).submit("~alice", &frame).await;
    // Of two answers the first is taken: the count is right, or there is none.
    match answer.status {
        200 => assert_eq!(answer.json()["recipient_count"], 1, "{answer:?}"),
        _ => drop(answer.frame_refused(503, "bus-unavailable", None)),
    }
    assert_eq!(session.advisory_texts(1).await, ["hello"]);
    forging.abort();
}
