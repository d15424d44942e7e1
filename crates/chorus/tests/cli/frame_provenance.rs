//! What the commands say of where a frame was made, and what they leave out of it (FRM-15, FRM-107).

use crate::actors::{Scene, on_terminal, run};
use crate::frame::text;
use serde_json::json;

// FRM-15, R-104: the words of a program are most likely those of a model, which may run on a server
#[test]
fn only_a_command_at_a_terminal_says_by_itself_that_nothing_left_the_device() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    alice.run_in_session("s1", &["advise", "by a program"]).ok();
    let by_local_model = ["advise", "by a local model", "--compute", "local-only"];
    alice.run_in_session("s1", &by_local_model).ok();
    let mut typed = alice.command(&["advise", "typed by a person"]);
    typed.env("CHORUS_SESSION", "s1");
    run(on_terminal(&typed), "").ok();
    let frames = alice.kept_frames(3);
    let said: Vec<_> = frames
        .iter()
        .map(|frame| {
            let words = &frame["payload"]["advisory_text"];
            (
                words.as_str(),
                frame["provenance_compute_location"].as_str(),
            )
        })
        .collect();
    assert_eq!(
        said,
        [
            (Some("by a program"), Some("server-active")),
            (Some("by a local model"), Some("local-only")),
            (Some("typed by a person"), Some("local-only")),
        ]
    );
}

// FRM-107: a symptom is often pasted from a log, and every session in the scope reads it
#[test]
fn a_secret_in_a_symptom_or_a_finding_is_not_sent() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let secret = "0123456789abcdef0123456789abcdef";
    let symptom = format!("401 with ca_{secret}");
    let log = format!("https://logs.example/sk_{secret}");
    let asked = ["diagnose", &symptom, "--severity", "info", "--ref", &log];
    let asked = alice.run_in_session("s1", &asked).ok().json();
    let id = text(&asked[0]["diagnostic_id"]);
    let finding = format!("ca_{secret} has ended");
    let remedy = format!("use ca_{secret}");
    let answer = [
        "diagnose",
        "--answer",
        &id,
        &finding,
        "--remediation",
        &remedy,
    ];
    alice.run_in_session("s2", &answer).ok();
    let frames = alice.kept_frames(2);
    assert_eq!(frames[0]["payload"]["symptom"], "401 with [redacted]");
    assert_eq!(
        frames[0]["payload"]["substrate_refs"],
        json!(["https://logs.example/[redacted]"])
    );
    assert_eq!(
        frames[1]["payload"],
        json!({"diagnostic_id": id, "finding": "[redacted] has ended", "remediation": "use [redacted]"})
    );
}

// FRM-107: also when the whole payload is given
#[test]
fn a_secret_in_the_payload_of_a_diagnostic_is_not_sent() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let secret = "ca_0123456789abcdef0123456789abcdef";
    let id = "00000000-0000-4000-8000-000000000001";
    let request = json!({"diagnostic_id": id, "symptom": format!("401 with {secret}"), "severity": "info",
        "substrate_refs": [format!("https://logs.example/?key={secret}")]});
    let response = json!({"diagnostic_id": id, "finding": format!("{secret} has ended"),
        "remediation": format!("replace {secret}")});
    let advisory = json!({"advisory_text": "moving ca_settings_of_the_hub_to_a_file"});
    for (kind, payload) in [
        ("peer_diagnostic_request", &request),
        ("peer_diagnostic_response", &response),
        ("agent_advisory", &advisory),
    ] {
        let mut frame = alice.command(&["frame", kind]);
        frame.env("CHORUS_SESSION", "s1");
        run(frame, &payload.to_string()).ok();
    }
    let frames = alice.kept_frames(3);
    let sent: Vec<_> = frames.iter().map(|frame| &frame["payload"]).collect();
    let redacted_request = json!({"diagnostic_id": id, "symptom": "401 with [redacted]", "severity": "info",
        "substrate_refs": ["https://logs.example/?key=[redacted]"]});
    let redacted_response = json!({"diagnostic_id": id, "finding": "[redacted] has ended",
        "remediation": "replace [redacted]"});
    assert_eq!(sent, [&redacted_request, &redacted_response, &advisory]);
}
