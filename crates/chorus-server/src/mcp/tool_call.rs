//! The caller of a tool and its session, taken from each request; the server keeps no session.

use crate::http::app_state::AppState;
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
}

impl ToolCall {
    pub fn calling_agent(&self) -> Result<&Arc<Agent>, Error> {
        self.principal.require_agent()
    }
}
