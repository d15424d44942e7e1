//! Who calls a tool, and from which session: told by the request itself every time, never remembered.

use crate::doors::Doors;
use chorus_hub::Principal;
use chorus_hub::identity::Agent;
use chorus_wire::Error;
use http::HeaderMap;
use std::sync::Arc;

/// One call to the hub's own tools.
#[derive(Clone)]
pub struct Call {
    pub doors: Doors,
    pub who: Principal,
    pub from: From,
}

/// The session that calls, as far as its headers say.
#[derive(Clone, Debug, Default)]
pub struct From {
    pub instrument: Option<String>,
    pub session: Option<String>,
    pub tool: Option<String>,
}

impl From {
    pub fn of(headers: &HeaderMap) -> Self {
        let said = |name: &str| {
            headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .map(str::to_owned)
        };
        Self {
            instrument: said("x-chorus-instrument"),
            session: said("x-chorus-session"),
            tool: said("x-chorus-tool"),
        }
    }
}

impl Call {
    pub fn me(&self) -> Result<&Arc<Agent>, Error> {
        self.who.agent()
    }
}
