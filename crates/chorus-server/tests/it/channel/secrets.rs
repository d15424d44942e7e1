//! Secrets in URLs appear in no file, log line, metric or answer.

use crate::support::actors::remote_member::{OwnedChannel, RemoteMember, callback};
use serde_json::json;
use std::fmt::{Debug, Write};
use std::sync::{Mutex, PoisonError};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Lines of this hub's log that speak of a callback, or look as if they had a secret in them.
static HEARD: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Hears what the hub logs, at every level.
struct LogCapture;

struct CapturedLine(String);

impl Visit for CapturedLine {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, "{field}={value:?} ");
    }
}

impl CapturedLine {
    fn keep(self) {
        if ["/inbox/", "tok_", "sk_", "mcp_", "whsec_"]
            .iter()
            .any(|mark| self.0.contains(mark))
        {
            HEARD
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(self.0);
        }
    }
}

impl Subscriber for LogCapture {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("chorus")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut line = CapturedLine(String::new());
        span.record(&mut line);
        line.keep();
        Id::from_u64(1)
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = CapturedLine(String::new());
        event.record(&mut line);
        line.keep();
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

memory_story!(what_opens_a_door_is_nowhere_to_be_read, |hub| async {
    // The first subscriber of the process receives the log lines of all tests.
    let _ = tracing::subscriber::set_global_default(LogCapture);
    let room = OwnedChannel::create(&hub, "alice").await;
    let mut oak = RemoteMember::accepting(&hub).await;
    let signing = "whsec_dGhpcyBpcyBub3QgYSByZWFsIHNlY3JldA==";
    room.add_member(&json!({"name": "oak", "connection": oak.url(), "signing_secret": signing}))
        .await;
    // No service listens there: the log of a failure has no URL either.
    room.add_remote("elm", "http://127.0.0.1:1/inbox/sk_99887766554433")
        .await;
    room.post_message("hello").await;
    let delivery = oak.next_delivery().await;
    oak.post_answer(&delivery, "hello").await;
    oak.post_event(&delivery, &json!({"type": "?"}))
        .await
        .refused(400, "ERR_VALIDATION");
    hub.maintain().await;
    let token = callback(&delivery).rsplit('/').next().unwrap().to_owned();
    let bearer = delivery["mcp"]["headers"]["Authorization"]
        .as_str()
        .unwrap()
        .trim_start_matches("Bearer ")
        .to_owned();
    let hidden = [
        "sk_a1b2c3d4e5f6",
        "sk_99887766554433",
        "dGhpcyBpcyBub3QgYSBy",
        &token,
        &bearer,
    ];

    for file in std::fs::read_dir(hub.dir.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap_or_default();
        for secret in hidden {
            assert!(
                !bytes
                    .windows(secret.len())
                    .any(|part| part == secret.as_bytes()),
                "{secret}"
            );
        }
    }
    let logged = HEARD
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .join("\n");
    assert!(
        logged.contains("/channels/{id}/inbox/{token}"),
        "the request was logged, by its route"
    );
    let shown = format!("{:?} {:?}", room.member("oak").await, room.history().await);
    let activity = format!("{:?}", hub.operator().activity(0).await);
    for place in [
        logged,
        shown,
        activity,
        hub.anonymous().get("/metrics").await.text,
    ] {
        assert!(
            hidden.iter().all(|secret| !place.contains(secret)),
            "{place}"
        );
    }
});
