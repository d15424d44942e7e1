//! How an agent can be reached now, and what a stream says of that when it opens.

use crate::string_enum::string_enum;
use crate::{Error, Result};
use utoipa::ToSchema;

string_enum! {
    /// How an agent can be reached now.
    #[derive(ToSchema)]
    AgentReach {
        /// A message starts a turn: a waker of a live session has the inbox open.
        Wakes "wakes",
        /// It looks between turns: the inbox is open.
        Turns "turns",
        /// The hub posts messages to its endpoint.
        Endpoint "endpoint",
        /// A message waits until the agent comes for it.
        Mail "mail",
    }
}

string_enum! {
    /// What a reader of an inbox stream does with a message. The greater one counts where an agent has several streams.
    StreamReach {
        /// Shows it between two turns.
        Turns "turns",
        /// Starts a turn of a live session.
        Wakes "wakes",
    }
}

impl StreamReach {
    /// Parses the parameter `reach` of a stream; without it the stream is read between turns.
    pub fn parse_param(text: Option<&str>) -> Result<Self> {
        let Some(text) = text else {
            return Ok(Self::Turns);
        };
        Self::parse(text).ok_or_else(|| {
            let allowed = Self::TEXTS.join(" or ");
            Error::invalid_field("reach", format!("reach must be {allowed}"))
        })
    }
}

impl AgentReach {
    /// The way that a message takes: an open stream comes before the endpoint (TRN-18).
    pub fn of_agent(stream: Option<StreamReach>, has_endpoint: bool) -> Self {
        match stream {
            Some(StreamReach::Wakes) => Self::Wakes,
            Some(StreamReach::Turns) => Self::Turns,
            None if has_endpoint => Self::Endpoint,
            None => Self::Mail,
        }
    }
}
