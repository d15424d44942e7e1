//! Calls that wait for others: limits how many of them this process has open at once.

use chorus_wire::limits;
use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of waiting calls.
#[derive(Default)]
pub struct OpenWaits(AtomicUsize);

/// One waiting call; dropping it makes room for the next.
pub struct OpenWait<'a>(&'a AtomicUsize);

/// What a call asks for.
pub enum RequestedWait<'a> {
    None,
    Open(OpenWait<'a>),
    /// As many calls wait as may: this one goes without its wait.
    TooMany,
}

impl OpenWaits {
    /// Counts the wait of a call, or takes it out of the arguments. The hub has the same limit for all processes of an agent; this
    /// one keeps a host with a hub of others from opening connections without end.
    pub fn begin(&self, arguments: &mut Value) -> RequestedWait<'_> {
        if !asks_to_wait(arguments) {
            return RequestedWait::None;
        }
        let has_room = |open: usize| (open < limits::TOOL_WAITS_PER_AGENT).then_some(open + 1);
        let counted = self
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, has_room);
        if counted.is_ok() {
            return RequestedWait::Open(OpenWait(&self.0));
        }
        if let Value::Object(fields) = arguments {
            fields.remove("wait");
            fields.remove("timeout_ms");
        }
        RequestedWait::TooMany
    }
}

/// `chorus_send` names what it waits for, `agent_query` says yes or no.
fn asks_to_wait(arguments: &Value) -> bool {
    match &arguments["wait"] {
        Value::Null | Value::Bool(false) => false,
        Value::Bool(true)
        | Value::String(_)
        | Value::Number(_)
        | Value::Array(_)
        | Value::Object(_) => true,
    }
}

impl Drop for OpenWait<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
