//! Helpers for frame stories: valid frames to start from, submissions, and checks of their answers (FRM-66, FRM-83).

use super::{Agent, Answer};
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};

/// Where the stories' clock stands.
pub const NOW: &str = "2026-03-20T10:00:00Z";

/// A new id of version 4; which one does not matter, only that it is another.
pub fn frame_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!(
        "{:08x}-feed-4000-8000-{:012x}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

/// A frame of any kind, with everything that is required and nothing else.
pub fn frame(from: &str, to: &str, kind: &str, payload: &Value) -> Value {
    json!({
        "envelope_version": "1.0",
        "frame_id": frame_id(),
        "kind": kind,
        "sender_handle": from,
        "recipient_handle": to,
        "created_at": NOW,
        "payload": payload,
        "acted_by": from,
        "drafted_with": "~cc-editor@1.2",
        "provenance_compute_location": "local-only",
        "provenance_method": ["session-context"],
        "provenance_context_check": "passed",
        "provenance_basis": "coordination",
    })
}

/// What `recipient_handle` must be for a scope (FRM-57).
pub fn scope_recipient(scope: &str) -> String {
    let head = scope.split('/').next().unwrap_or_default();
    let name = head.rsplit(':').next().unwrap_or_default();
    format!("~{}", name.trim_start_matches('~'))
}

impl Agent {
    /// `~alice` of `alice@chorus` (R-03).
    pub fn handle(&self) -> String {
        format!("~{}", self.id.split('@').next().unwrap_or_default())
    }

    /// A frame of mine to my own sessions.
    pub fn frame(&self, kind: &str, payload: &Value) -> Value {
        frame(&self.handle(), &self.handle(), kind, payload)
    }

    /// An advisory to my own sessions.
    pub fn advisory(&self, text: &str) -> Value {
        self.frame("agent_advisory", &json!({"advisory_text": text}))
    }

    /// An advisory to the sessions that the scope names.
    pub fn advisory_to(&self, scope: &str, text: &str) -> Value {
        frame(
            &self.handle(),
            &scope_recipient(scope),
            "agent_advisory",
            &json!({"advisory_text": text}),
        )
    }

    /// The request itself, for those that add to it. `""` is no scope.
    pub fn submission(&self, path: &str, scope: &str, frame: &Value) -> RequestBuilder {
        let body = match scope {
            "" => json!({"frame": frame}),
            scope => json!({"scope": scope, "frame": frame}),
        };
        self.request("POST", path).json(&body)
    }

    pub async fn submit(&self, scope: &str, frame: &Value) -> Answer {
        Answer::of(self.submission("/frames", scope, frame)).await
    }

    /// Submits an advisory and returns how many it was emitted to.
    #[track_caller]
    pub fn send_advisory(&self, scope: &str, text: &str) -> impl Future<Output = u64> {
        let place = std::panic::Location::caller();
        let frame = self.advisory_to(scope, text);
        let id = frame["frame_id"].as_str().unwrap_or_default().to_owned();
        let sending = Answer::of(self.submission("/frames", scope, &frame));
        async move {
            let answer = sending.await;
            assert_eq!(answer.status, 200, "{answer:?} at {place}");
            answer.recipient_count(&id)
        }
    }
}

impl Answer {
    /// The count of a submission, which is answered bare and with nothing else (R-13, R-41), but for what is kept (R-83).
    #[track_caller]
    pub fn recipient_count(&self, frame_id: &str) -> u64 {
        assert_eq!(self.status, 200, "{self:?}");
        let body = self.json();
        let count = body["recipient_count"]
            .as_u64()
            .unwrap_or_else(|| panic!("no count: {self:?}"));
        let kept = match (body.get("kept"), body.get("kept_until")) {
            (Some(kept), Some(until)) => format!(r#","kept":{kept},"kept_until":{until}"#),
            (Some(kept), None) => format!(r#","kept":{kept}"#),
            (None, _) => String::new(),
        };
        assert_eq!(
            self.text,
            format!(r#"{{"frame_id":"{frame_id}","recipient_count":{count}{kept}}}"#)
        );
        count
    }

    /// `{code, field?, message}` and nothing around it (FRM-83, R-13, R-45); the sentence.
    #[track_caller]
    pub fn frame_refused(&self, status: u16, code: &str, field: Option<&str>) -> String {
        let body = self.json();
        let said = (
            self.status,
            body["code"].as_str(),
            body.get("field").and_then(Value::as_str),
        );
        assert_eq!(said, (status, Some(code), field), "{self:?}");
        self.has_frame_form();
        body["message"].as_str().unwrap_or_default().to_owned()
    }

    #[track_caller]
    pub fn has_frame_form(&self) {
        let body = self.json();
        let keys: Vec<&str> = body
            .as_object()
            .expect("an object")
            .keys()
            .map(String::as_str)
            .collect();
        assert!(
            keys.iter()
                .all(|key| ["code", "field", "message"].contains(key)),
            "{self:?}"
        );
        assert!(
            body["message"]
                .as_str()
                .is_some_and(|message| !message.is_empty()),
            "{self:?}"
        );
        assert!(
            self.header("content-type").starts_with("application/json"),
            "{self:?}"
        );
        assert!(!self.header("x-request-id").is_empty(), "{self:?}");
    }
}
