//! One call to the hub's tools for models: a JSON-RPC message to `/mcp`, with the key and the session in its headers.

use crate::http::Call;
use crate::{Client, Error, Result};
use serde::Deserialize;
use serde_json::{Value, json};

/// A revision whose requests stand alone as soon as a header names it.
const REVISION: &str = "2025-11-25";

/// What came of a call: its result, or the protocol's own error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Result(Value),
    Fault { code: i64, message: String },
}

#[derive(Deserialize)]
struct Reply {
    result: Option<Value>,
    error: Option<Fault>,
}

#[derive(Deserialize)]
struct Fault {
    code: i64,
    message: String,
}

impl Client {
    /// Calls `method`. `from` says which session calls. Not repeated on a broken connection: a tool may have run.
    pub async fn tools(
        &self,
        method: &str,
        params: Value,
        from: &[(&'static str, String)],
    ) -> Result<Outcome> {
        let body =
            json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let mut call = Call::post(self.paths().await?.mcp.clone(), body);
        call.headers
            .push(("Accept", "application/json, text/event-stream".into()));
        call.headers.push(("MCP-Protocol-Version", REVISION.into()));
        call.headers.extend_from_slice(from);
        let answer = self.ask(call).await?;
        // A fault of the protocol comes with a status of its own and the same body.
        match serde_json::from_slice::<Reply>(&answer.body) {
            Ok(Reply {
                result: Some(result),
                ..
            }) if answer.status == 200 => Ok(Outcome::Result(result)),
            Ok(Reply {
                error: Some(fault), ..
            }) => Ok(Outcome::Fault {
                code: fault.code,
                message: fault.message,
            }),
            Ok(_) | Err(_) => {
                let answer = answer.accepted()?;
                Err(Error::Answer(format!(
                    "status {} without a result",
                    answer.status
                )))
            }
        }
    }
}
