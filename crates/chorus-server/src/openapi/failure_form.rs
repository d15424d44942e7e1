//! In which JSON form a route answers an error: the schema that the OpenAPI document gives for it.

use crate::http::api_error::ErrorFormat;
use serde_json::{Value, json};

/// The form of the error body of one response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureForm {
    Wrapped,
    Market,
    Frame,
    /// The form follows the form of the request.
    WrappedOrMarket,
    /// Wrapped before the message is read, a JSON-RPC error after.
    WrappedOrRpc,
}

/// Statuses that `/register` and `/discover` answer after they know the form of the request. The others are raised before,
/// and then the form is always the wrapped one.
const FORM_KNOWN_STATUSES: [&str; 7] = ["400", "401", "403", "409", "429", "500", "503"];
/// Statuses that `/mcp` may answer after the JSON-RPC message was read.
const RPC_STATUSES: [&str; 5] = ["400", "403", "404", "406", "500"];

impl FailureForm {
    pub fn for_response(path: &str, status: &str) -> Self {
        match path {
            // Refused by the HTTP parser, before the path is known.
            _ if status == "414" => Self::Wrapped,
            "/register" | "/discover" if FORM_KNOWN_STATUSES.contains(&status) => {
                Self::WrappedOrMarket
            }
            "/mcp" | "/mcp/{channel}" if RPC_STATUSES.contains(&status) => Self::WrappedOrRpc,
            path => match ErrorFormat::for_path(path) {
                ErrorFormat::Wrapped => Self::Wrapped,
                ErrorFormat::Market => Self::Market,
                ErrorFormat::Frame => Self::Frame,
            },
        }
    }

    /// What the names of its shared responses begin with.
    pub const fn name_prefix(self) -> &'static str {
        match self {
            Self::Wrapped => "",
            Self::Market => "Market",
            Self::Frame => "Frame",
            Self::WrappedOrMarket => "WrappedOrMarket",
            Self::WrappedOrRpc => "WrappedOrRpc",
        }
    }

    /// The content of a response in this form.
    pub fn content(self) -> Value {
        let reference = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
        let schema = match self {
            Self::Wrapped => reference("FailureReply"),
            Self::Market => reference("MarketFailure"),
            Self::Frame => reference("FrameFailure"),
            Self::WrappedOrMarket => {
                json!({"oneOf": [reference("FailureReply"), reference("MarketFailure")]})
            }
            Self::WrappedOrRpc => {
                json!({"oneOf": [reference("FailureReply"), reference("JsonRpcFailure")]})
            }
        };
        json!({"application/json": {"schema": schema}})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    ///
    #[test]
    fn the_form_follows_the_path_and_where_the_error_is_raised() {
        for (path, status, form) in [
            ("/messages", "400", FailureForm::Wrapped),
            ("/jobs/{id}", "404", FailureForm::Market),
            ("/handles/{handle}/stream", "429", FailureForm::Frame),
            ("/handles/{handle}/stream", "414", FailureForm::Wrapped),
            ("/register", "409", FailureForm::WrappedOrMarket),
            ("/register", "413", FailureForm::Wrapped),
            ("/mcp", "406", FailureForm::WrappedOrRpc),
            ("/mcp", "401", FailureForm::Wrapped),
            ("/.well-known/mcp.json", "400", FailureForm::Wrapped),
        ] {
            assert_eq!(FailureForm::for_response(path, status), form, "{path}");
        }
    }
}
