//! Activity: log entries about the hub itself, which only operators read.

use super::{EntryKind, NewLogEntry, SubjectId, WriteTxn};
use serde_json::{Value, json};

/// Appends an activity entry in the transaction that causes it.
pub(crate) fn record_activity(txn: &mut WriteTxn<'_>, kind: &str, data: &Value) {
    txn.append_entry(NewLogEntry {
        subject: SubjectId::HUB,
        subject_name: "".into(),
        kind: EntryKind::Activity,
        actor: SubjectId::HUB,
        actor_name: "".into(),
        body: json!({"type": kind, "data": data}).to_string().into(),
        fallback: None,
    });
}
