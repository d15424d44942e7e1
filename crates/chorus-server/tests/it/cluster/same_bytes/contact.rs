//! The part of the script about who may contact an agent.

use super::envelope::message;
use super::transcript::{Transcript, raw_request};
use crate::support::hub::OPERATOR_KEY;
use serde_json::json;

/// Blocks, contacts and settings, and what they refuse.
pub async fn run(transcript: &mut Transcript, alice: &str, bob: &str) {
    for key in ["", OPERATOR_KEY, alice] {
        for (method, path) in [
            ("PUT", "/agent/blocks/bob"),
            ("PUT", "/agent/blocks/@elsewhere.example"),
            ("GET", "/agent/blocks"),
            ("PUT", "/agent/contacts/~bob"),
            ("PUT", "/agent/contacts/absent"),
            ("GET", "/agent/contacts"),
            ("GET", "/agent/settings"),
        ] {
            transcript.record(raw_request(method, path).key(key)).await;
        }
        for accepted in ["contacts", "anyone", "friends"] {
            let change = raw_request("PATCH", "/agent/settings").key(key);
            transcript
                .record(change.json(&json!({ "accept_from": accepted })))
                .await;
        }
    }
    transcript
        .post(bob, "/messages", &message("bob@chorus", "alice", "hello"))
        .await
        .expect_status(403);
    for key in ["", alice, alice] {
        for path in ["/agent/blocks/bob", "/agent/contacts/bob"] {
            transcript
                .record(raw_request("DELETE", path).key(key))
                .await;
        }
    }
}
