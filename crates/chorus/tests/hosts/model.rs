//! A scripted model: it calls the given tools one after another, then answers "done". It supports the two model APIs that
//! hosts use, Messages and Responses.

use crate::http::{Request, serve};
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// A tool and its arguments.
pub type Call = (&'static str, Value);

#[derive(Clone)]
pub struct Model {
    pub url: String,
    requests: Requests,
}

type Requests = Arc<Mutex<Vec<ModelRequest>>>;

struct ModelRequest {
    body: Value,
    /// `None` for titles and similar texts, which hosts request without tools.
    turn: Option<ModelTurn>,
}

/// One request of a host for its model's next words.
#[derive(Clone)]
pub struct ModelTurn {
    pub at: Instant,
    /// Everything that was said in the session so far. Rendered once: tests look at all turns many times a second, and must
    /// not keep the next request waiting.
    pub conversation: Arc<str>,
}

impl Model {
    pub fn with_script(script: Vec<Call>) -> Self {
        let requests = Requests::default();
        let recorded = requests.clone();
        let address = serve(move |request, client| answer(&request, client, &script, &recorded));
        Self {
            url: format!("http://{address}"),
            requests,
        }
    }

    /// All received requests, as one text.
    pub fn requests_text(&self) -> String {
        let requests = self.requests.lock().unwrap();
        requests
            .iter()
            .map(|request| format!("{}\n", request.body))
            .collect()
    }

    /// The tool results that the host returned, in order.
    pub fn tool_results(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        requests
            .iter()
            .map(|request| results_in(&request.body))
            .max_by_key(Vec::len)
            .unwrap_or_default()
    }

    /// The requests of the session itself.
    pub fn turns(&self) -> Vec<ModelTurn> {
        let requests = self.requests.lock().unwrap();
        requests
            .iter()
            .filter_map(|request| request.turn.clone())
            .collect()
    }
}

fn has_tools(request: &Value) -> bool {
    let tools = request["tools"].as_array();
    tools.is_some_and(|tools| !tools.is_empty())
}

/// The tool results in a request, in either API.
fn results_in(request: &Value) -> Vec<String> {
    let of = |list: &Value, kind: &str, field: &str| -> Vec<String> {
        let items = list.as_array().into_iter().flatten();
        items
            .filter(|item| item["type"] == kind)
            .map(|item| item[field].to_string())
            .collect()
    };
    let messages = request["messages"].as_array().into_iter().flatten();
    let mut results: Vec<String> = messages
        .flat_map(|m| of(&m["content"], "tool_result", "content"))
        .collect();
    results.extend(of(&request["input"], "function_call_output", "output"));
    results
}

fn answer(request: &Request, client: &mut TcpStream, script: &[Call], recorded: &Requests) {
    let at = Instant::now();
    let body_json: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let path = request.path().to_owned();
    let done = results_in(&body_json).len();
    let next = script.get(done).filter(|_| has_tools(&body_json));
    let events = if path.starts_with("/v1/messages") && !path.contains("count_tokens") {
        messages_events(next, done)
    } else if path.ends_with("/responses") {
        responses_events(next, done)
    } else {
        let _ = client.write_all(
            b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
        );
        return;
    };
    let conversation = format!("{}{}", body_json["messages"], body_json["input"]);
    let turn = has_tools(&body_json).then(|| ModelTurn {
        at,
        conversation: conversation.into(),
    });
    let request = ModelRequest {
        body: body_json,
        turn,
    };
    recorded.lock().unwrap().push(request);
    let line = |event: &Value| {
        format!(
            "event: {}\ndata: {event}\n\n",
            event["type"].as_str().unwrap()
        )
    };
    let body: String = events.iter().map(line).collect();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\nContent-Length:";
    let _ = client.write_all(format!("{head} {}\r\n\r\n{body}", body.len()).as_bytes());
}

/// The events of the Messages API.
fn messages_events(next: Option<&Call>, turn: usize) -> Vec<Value> {
    let (block, delta, stop) = match next {
        Some((name, input)) => (
            json!({ "type": "tool_use", "id": format!("toolu_{turn}"), "name": name, "input": {} }),
            json!({ "type": "input_json_delta", "partial_json": input.to_string() }),
            "tool_use",
        ),
        None => (
            json!({ "type": "text", "text": "" }),
            json!({ "type": "text_delta", "text": "done" }),
            "end_turn",
        ),
    };
    let message = json!({ "id": format!("msg_{turn}"), "type": "message", "role": "assistant", "model": "scripted",
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": 1, "output_tokens": 1 } });
    vec![
        json!({ "type": "message_start", "message": message }),
        json!({ "type": "content_block_start", "index": 0, "content_block": block }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": stop, "stop_sequence": null },
            "usage": { "output_tokens": 1 } }),
        json!({ "type": "message_stop" }),
    ]
}

/// The events of the Responses API. Tools of a server are in a namespace with the server's name.
fn responses_events(next: Option<&Call>, turn: usize) -> Vec<Value> {
    let item = match next {
        Some((name, arguments)) => {
            let (namespace, name) = name.rsplit_once("__").unwrap();
            json!({ "type": "function_call", "id": format!("fc_{turn}"), "call_id": format!("call_{turn}"),
                "namespace": namespace, "name": name, "arguments": arguments.to_string() })
        }
        None => json!({ "type": "message", "id": format!("m_{turn}"), "role": "assistant",
            "content": [{ "type": "output_text", "text": "done" }] }),
    };
    let usage = json!({ "input_tokens": 1, "input_tokens_details": null, "output_tokens": 1,
        "output_tokens_details": null, "total_tokens": 2 });
    vec![
        json!({ "type": "response.created", "response": { "id": format!("r_{turn}") } }),
        json!({ "type": "response.output_item.done", "item": item }),
        json!({ "type": "response.completed", "response": { "id": format!("r_{turn}"), "usage": usage } }),
    ]
}
