//! The memory of frames: a payload is stored once, and a busy handle does not cost others their frames (R-99, invariant 6).

use super::organisations::{good, takes_in};
use crate::support::actors::Agent;
use serde_json::json;

/// Frames of this size fill the memory of a story soon.
const LARGE: usize = 60 * 1024;
/// The memory that a hub of these stories gives to frames: about 68 large ones.
const MEMORY: usize = 4 * 1024 * 1024;

/// An advisory of about [`LARGE`] bytes; blanks are part of a frame.
async fn send_large(from: &Agent, scope: &str, text: &str) {
    let frame = from.advisory_to(scope, text).to_string();
    let padding = " ".repeat(LARGE - frame.len());
    let frame = format!("{}{padding}}}", frame.strip_suffix('}').unwrap());
    let body = format!(r#"{{"scope":"{scope}","frame":{frame}}}"#);
    let answer = from.post_text("/frames", body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// A session that was open for a moment, and the id from which it resumes.
async fn open_and_leave(agent: &Agent) -> String {
    let mut session = agent.open_session("vim", "s1").await;
    agent.send_advisory(&agent.handle(), "first").await;
    session.advisory().await.id.unwrap()
}

memory_story!(
    others_that_fill_the_rings_cost_a_handle_none_of_its_frames,
    with(|settings| settings.hub.memory.frame_rings = MEMORY),
    |hub| async {
        // R-99, R-52: eviction takes from the largest rings
        let innocent = hub.agent("innocent").await;
        let first = open_and_leave(&innocent).await;
        for n in 0..20 {
            innocent.send_advisory("~innocent", &n.to_string()).await;
        }
        for name in ["ann", "bea", "cat"] {
            let busy = hub.agent(name).await;
            for n in 0..50 {
                send_large(&busy, &busy.handle(), &n.to_string()).await;
            }
        }
        // One that publishes while the rings are full is not the one that pays.
        innocent.send_advisory("~innocent", "last").await;
        let mut back = innocent.resume_session("", &first).await;
        let mut expected: Vec<String> = (0..20).map(|n| n.to_string()).collect();
        expected.push("last".to_owned());
        assert_eq!(back.advisory_texts(21).await, expected, "without a gap");
    }
);

memory_story!(
    a_frame_to_an_organisation_takes_the_memory_of_one_frame,
    with(|settings| settings.hub.memory.frame_rings = MEMORY),
    |hub| async {
        // R-99: 20 frames for 31 members are 38 MB if each ring has its own copy, and 1.2 MB if they share it
        let alice = hub.agent("alice").await;
        let founded = alice.post("/orgs", &json!({"handle": "acme"})).await;
        good(&founded, 201);
        let mut resumed = Vec::new();
        for n in 0..30 {
            let member = hub.agent(&format!("member-{n}")).await;
            takes_in(&alice, "~acme", &member, &[]).await;
            if n % 10 == 0 {
                let first = open_and_leave(&member).await;
                resumed.push((member, first));
            }
        }
        let mut listening = resumed[0].0.open_session("vim", "s2").await;
        let texts: Vec<String> = (0..20).map(|n| n.to_string()).collect();
        for text in &texts {
            send_large(&alice, "org:~acme/members/*", text).await;
        }
        assert_eq!(listening.advisory_texts(20).await, texts);
        for (member, first) in &resumed {
            let mut back = member.resume_session("", first).await;
            assert_eq!(back.advisory_texts(20).await, texts, "without a gap");
        }
    }
);
