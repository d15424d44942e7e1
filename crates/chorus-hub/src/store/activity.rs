//! Activity: log entries about the hub itself, which only operators read.

use super::{EntryKind, NewLogEntry, WriteTxn, log};
use serde_json::{Value, json};

/// Appends an activity entry in the transaction that causes it.
pub(crate) fn record_activity(txn: &mut WriteTxn<'_>, kind: &str, data: &Value) {
    txn.append_entry(NewLogEntry {
        subject: log::HUB_SUBJECT,
        subject_name: "".into(),
        kind: EntryKind::Activity,
        actor: log::HUB_SUBJECT,
        actor_name: "".into(),
        body: json!({"type": kind, "data": data}).to_string().into(),
        fallback: None,
    });
}
