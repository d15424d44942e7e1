//! One MCP call: a JSON-RPC message to the hub's `/mcp`, with the key and the session in its headers.

use crate::http::ApiCall;
use crate::{Error, HubClient, Result};
use chorus_wire::limits;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The MCP revision. With it in a header, a request needs no `initialize` before it.
const MCP_REVISION: &str = "2025-11-25";

/// The outcome of a call: its result, or a JSON-RPC error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RpcOutcome {
    Result(Value),
    Fault { code: i64, message: String },
}

/// Received messages without a receipt, by id.
#[derive(Clone, Debug, Default)]
pub struct UnansweredMessages {
    pub ids: BTreeSet<u64>,
    /// There are more after the last of them.
    pub more: bool,
}

#[derive(Deserialize)]
struct RpcReply {
    result: Option<Value>,
    error: Option<RpcError>,
}

#[derive(Deserialize)]
struct RpcError {
    code: i64,
    message: String,
}

/// A header of calls that count what waits and show it to no one, so that nothing is marked as shown.
const COUNTING: (&str, &str) = ("X-Chorus-Purpose", "count");

impl HubClient {
    /// The received messages without a receipt, the oldest first: where a client without a cursor begins.
    pub async fn list_unanswered(&self) -> Result<UnansweredMessages> {
        let arguments = json!({ "limit": limits::HISTORY_PAGE });
        let params = json!({ "name": "chorus_inbox", "arguments": arguments });
        let headers = [(COUNTING.0, COUNTING.1.to_owned())];
        match self.call_mcp("tools/call", params, &headers).await? {
            RpcOutcome::Result(result) => {
                let found = &result["structuredContent"];
                let events = found["events"].as_array().into_iter().flatten();
                Ok(UnansweredMessages {
                    ids: events.filter_map(|event| event["id"].as_u64()).collect(),
                    more: found["more"].as_bool().unwrap_or_default(),
                })
            }
            RpcOutcome::Fault { message, .. } => Err(Error::Answer(message)),
        }
    }

    /// Calls `method`. `headers` name the calling session. Never retried: after a broken connection the tool may
    /// have run.
    pub async fn call_mcp(
        &self,
        method: &str,
        params: Value,
        headers: &[(&'static str, String)],
    ) -> Result<RpcOutcome> {
        let body =
            json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let mut call = ApiCall::post(self.fetch_paths().await?.mcp.clone(), body);
        call.headers
            .push(("Accept", "application/json, text/event-stream".into()));
        call.headers
            .push(("MCP-Protocol-Version", MCP_REVISION.into()));
        call.headers.extend_from_slice(headers);
        let answer = self.send_call(call).await?;
        // A JSON-RPC error has another status and the same body format.
        match serde_json::from_slice::<RpcReply>(&answer.body) {
            Ok(RpcReply {
                result: Some(result),
                ..
            }) if answer.status == 200 => Ok(RpcOutcome::Result(result)),
            Ok(RpcReply {
                error: Some(fault), ..
            }) => Ok(RpcOutcome::Fault {
                code: fault.code,
                message: fault.message,
            }),
            Ok(_) | Err(_) => {
                let answer = answer.require_success()?;
                Err(Error::Answer(format!(
                    "status {} without a result",
                    answer.status
                )))
            }
        }
    }
}
