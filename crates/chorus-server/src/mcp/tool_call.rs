//! The caller of a tool and its session, taken from each request; the server keeps no session.

use super::tool_span::CallTrace;
use crate::http::app_state::AppState;
use crate::http::client_presence::ClientPresence;
use crate::http::waiting_calls::CallLabel;
use chorus_hub::Principal;
use chorus_hub::identity::Agent;
use chorus_wire::Error;
use http::HeaderMap;
use std::sync::Arc;

/// One call to the hub's own tools.
#[derive(Clone)]
pub struct ToolCall {
    pub state: AppState,
    pub principal: Principal,
    pub session: SessionHeaders,
    /// The id of the JSON-RPC request.
    pub request_id: String,
    pub presence: ClientPresence,
    pub trace: CallTrace,
}

/// The calling session, as far as the headers name it.
#[derive(Clone, Debug, Default)]
pub struct SessionHeaders {
    pub instrument: Option<String>,
    pub session: Option<String>,
    pub tool: Option<String>,
    /// Where the model runs that calls the tool (FRM-15).
    pub compute: Option<String>,
    /// The caller only counts what it reads, so no model sees it.
    pub is_counting: bool,
}

impl SessionHeaders {
    pub fn from_headers(headers: &HeaderMap) -> Self {
        let header_text = |name: &str| {
            headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .map(str::to_owned)
        };
        Self {
            instrument: header_text("x-chorus-instrument"),
            session: header_text("x-chorus-session"),
            tool: header_text("x-chorus-tool"),
            compute: header_text("x-chorus-compute"),
            is_counting: header_text("x-chorus-purpose").as_deref() == Some("count"),
        }
    }

    pub fn label_call(&self, request_id: String) -> CallLabel {
        CallLabel {
            session: self.session.clone(),
            request_id,
        }
    }
}

/// How a wait for others ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitOutcome<T> {
    Ended(T),
    /// The client cancelled the call or left: it reads no result.
    Unwanted,
    /// As many calls of the agent wait as may.
    TooMany,
}

/// What a summary says of a wait that did not take place.
pub const NOT_WAITED: &str = "; not waited for: too many calls of yours wait already";

impl ToolCall {
    /// Waits as long as the client wants the result.
    pub async fn wait_for<T>(
        &self,
        fact: impl Future<Output = T>,
    ) -> Result<WaitOutcome<T>, Error> {
        let agent_id = self.calling_agent()?.agent_id.to_string();
        let label = self.session.label_call(self.request_id.clone());
        let Some(waiting) = self.state.waiting_calls.begin(&agent_id, label) else {
            return Ok(WaitOutcome::TooMany);
        };
        tokio::select! {
            fact = fact => Ok(WaitOutcome::Ended(fact)),
            () = self.presence.wait_left() => Ok(WaitOutcome::Unwanted),
            () = waiting.wait_cancelled() => Ok(WaitOutcome::Unwanted),
        }
    }

    pub fn calling_agent(&self) -> Result<&Arc<Agent>, Error> {
        self.principal.require_agent()
    }
}
