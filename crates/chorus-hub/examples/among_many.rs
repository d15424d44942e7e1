//! Measures one frame to one session, alone and among fifty thousand sessions of other handles: the cost must be the same.

use chorus_hub::frame::{FrameStreamRequest, FrameSubmitter, open_stream, submit_frame};
use chorus_hub::{Hub, HubOptions, Principal, identity, lifecycle};
use chorus_wire::cursor::ResumePoint;
use chorus_wire::registration::RegistrationRequest;
use std::time::{Duration, Instant};

const HANDLES: usize = 5;
const SESSIONS: usize = 10_000;
const FRAMES: usize = 20_000;

async fn agent(hub: &Hub, name: &str) -> Principal {
    let body = format!(r#"{{"agent_id":"{name}@chorus","agent_card":{{"card_version":"0.3"}}}}"#);
    let request = RegistrationRequest::parse(body.as_bytes()).expect("a registration");
    let (_, registered) =
        lifecycle::register_agent(&Principal::Anonymous, hub, hub.frames(), request, None)
            .await
            .expect("a name that is free");
    let key = registered.api_key.expect("a new agent has a key");
    identity::authenticate(hub.identity(), Some(key.expose()), None)
        .await
        .expect("its key")
}

fn opening(name: &str) -> FrameStreamRequest {
    let handle = format!("~{name}");
    FrameStreamRequest {
        handle,
        filter: None,
        instrument: None,
        session: None,
        tool: None,
        resume: ResumePoint::Now,
        resume_token: None,
    }
}

/// The median time of a submission; `first` keeps the ids of two measurements apart, since a repeated one is not emitted.
async fn measure(who: &Principal, hub: &Hub, first: usize) -> Duration {
    let mut times = Vec::with_capacity(FRAMES);
    for number in first..first + FRAMES {
        let frame = format!(
            r#"{{"frame":{{"envelope_version":"1.0","frame_id":"00000000-0000-4000-8000-{:012x}","kind":"agent_advisory","sender_handle":"~one","recipient_handle":"~one","created_at":"{}","acted_by":"~one","drafted_with":"~cc-bench","provenance_compute_location":"local-only","provenance_method":["bench"],"provenance_context_check":"skipped","provenance_basis":"bench","payload":{{"advisory_text":"{}"}}}}}}"#,
            number,
            hub.clock().now(),
            "x".repeat(64),
        );
        let from = FrameSubmitter {
            instrument: None,
            session: None,
            tool: None,
            exclude_self: false,
        };
        let began = Instant::now();
        submit_frame(who, hub.frames(), frame.as_bytes(), from)
            .await
            .expect("a good frame");
        times.push(began.elapsed());
    }
    times.sort();
    times[FRAMES / 2]
}

#[tokio::main]
async fn main() {
    let dir = tempfile::tempdir().expect("a folder");
    let hub = Hub::open(HubOptions::for_data_dir(dir.path()))
        .await
        .expect("a hub");
    let one = agent(&hub, "one").await;
    let _listening = open_stream(&one, hub.frames(), opening("one"))
        .await
        .expect("a stream");
    let alone = measure(&one, &hub, 0).await;
    let mut others = Vec::with_capacity(HANDLES * SESSIONS);
    for number in 0..HANDLES {
        let name = format!("other-{number}");
        let other = agent(&hub, &name).await;
        for _ in 0..SESSIONS {
            others.push(
                open_stream(&other, hub.frames(), opening(&name))
                    .await
                    .expect("a stream"),
            );
        }
    }
    let among = measure(&one, &hub, FRAMES).await;
    println!(
        "alone {alone:?}, among {} sessions of other handles {among:?}",
        others.len()
    );
}
