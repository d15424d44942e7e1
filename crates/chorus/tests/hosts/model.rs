//! A model that follows a script: it calls the tools it was told to, one after another, and then says that it is done. It
//! speaks the two dialects that hosts speak to models.

use crate::http::{Request, serve};
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

/// One tool and what it is called with.
pub type Call = (&'static str, Value);

#[derive(Clone)]
pub struct Model {
    pub url: String,
    heard: Arc<Mutex<Vec<Value>>>,
}

impl Model {
    pub fn with_script(script: Vec<Call>) -> Self {
        let heard: Arc<Mutex<Vec<Value>>> = Arc::default();
        let kept = heard.clone();
        let address = serve(move |request, back| answer(&request, back, &script, &kept));
        Self {
            url: format!("http://{address}"),
            heard,
        }
    }

    /// Every request that was made of it, as one text.
    pub fn heard(&self) -> String {
        let heard = self.heard.lock().unwrap();
        heard.iter().map(|request| format!("{request}\n")).collect()
    }

    /// The results of tools that the host handed back, in order.
    pub fn results(&self) -> Vec<String> {
        let heard = self.heard.lock().unwrap();
        heard
            .iter()
            .map(results_of)
            .max_by_key(Vec::len)
            .unwrap_or_default()
    }
}

/// What the tools returned so far, in either dialect.
fn results_of(request: &Value) -> Vec<String> {
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

fn answer(request: &Request, back: &mut TcpStream, script: &[Call], heard: &Mutex<Vec<Value>>) {
    let asked: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let (path, done) = (request.path().to_owned(), results_of(&asked).len());
    // Hosts also ask for titles and the like, without any tools.
    let next = script.get(done).filter(|_| {
        asked["tools"]
            .as_array()
            .is_some_and(|tools| !tools.is_empty())
    });
    let events = if path.starts_with("/v1/messages") && !path.contains("count_tokens") {
        messages(next, done)
    } else if path.ends_with("/responses") {
        responses(next, done)
    } else {
        let _ = back.write_all(
            b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
        );
        return;
    };
    heard.lock().unwrap().push(asked);
    let line = |event: &Value| {
        format!(
            "event: {}\ndata: {event}\n\n",
            event["type"].as_str().unwrap()
        )
    };
    let body: String = events.iter().map(line).collect();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\nContent-Length:";
    let _ = back.write_all(format!("{head} {}\r\n\r\n{body}", body.len()).as_bytes());
}

/// The Messages dialect.
fn messages(next: Option<&Call>, turn: usize) -> Vec<Value> {
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

/// The Responses dialect. Tools of servers are in a namespace of the server's name.
fn responses(next: Option<&Call>, turn: usize) -> Vec<Value> {
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
