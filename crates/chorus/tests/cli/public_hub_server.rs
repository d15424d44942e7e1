//! A hub that answers as the public TypeScript hub documents its answers: wrapped replies, no ids on its stream, no replay,
//! `since` as an instant only, and keys where the documents ask for none. It has no receipts, frames, channels or market.

use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};

#[derive(Default)]
struct HubState {
    /// Agents with their record and their key.
    agents: HashMap<String, (Value, String)>,
    messages: Vec<Value>,
    inboxes: HashMap<String, TcpStream>,
}

pub struct PublicHub {
    pub url: String,
    state: Arc<Mutex<HubState>>,
}

struct HubRequest {
    method: String,
    path: String,
    query: String,
    key: Option<String>,
    body: Value,
}

impl PublicHub {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::<Mutex<HubState>>::default();
        let shared = state.clone();
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let state = shared.clone();
                std::thread::spawn(move || serve_connection(socket, &state));
            }
        });
        Self { url, state }
    }

    fn lock(&self) -> MutexGuard<'_, HubState> {
        self.state.lock().unwrap()
    }

    pub fn is_listening(&self, agent: &str) -> bool {
        self.lock().inboxes.contains_key(agent)
    }

    /// Ends all streams, as a restart of the hub does. What is stored stays.
    pub fn end_streams(&self) {
        for (_, socket) in self.lock().inboxes.drain() {
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
    }
}

fn serve_connection(socket: TcpStream, state: &Mutex<HubState>) {
    let Some(request) = read_request(&socket) else {
        return;
    };
    let mut state = state.lock().unwrap();
    if request.path == "/agent/inbox" {
        return open_inbox(socket, &mut state, &request);
    }
    let (status, body) = answer_request(&mut state, &request);
    drop(state);
    let body = body.to_string();
    let length = body.len();
    let _ = write!(
        &socket,
        "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
}

fn read_request(socket: &TcpStream) -> Option<HubRequest> {
    let mut reader = BufReader::new(socket);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let method = words.next()?;
    let target = words.next()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let mut key = None;
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "authorization" => key = value.strip_prefix("Bearer ").map(str::to_owned),
            "content-length" => length = value.parse().ok()?,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(HubRequest {
        method,
        path: path.replace("%40", "@"),
        query: query.replace("%3A", ":"),
        key,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    })
}

fn now_text(number: usize) -> String {
    format!(
        "2026-03-20T10:00:{:02}.{:03}Z",
        number / 1000,
        number % 1000
    )
}

fn success(status: u16, data: Value) -> (u16, Value) {
    (
        status,
        json!({"success": true, "data": data, "metadata": {"timestamp": now_text(999)}}),
    )
}

fn failure(status: u16, code: &str, message: &str) -> (u16, Value) {
    (
        status,
        json!({"success": false, "error": {"code": code, "message": message}, "metadata": {"timestamp": now_text(999)}}),
    )
}

fn caller(state: &HubState, request: &HubRequest) -> Option<String> {
    let key = request.key.as_deref()?;
    let owns_key = |(_, (_, own)): &(&String, &(Value, String))| own == key;
    state.agents.iter().find(owns_key).map(|(id, _)| id.clone())
}

fn open_inbox(mut socket: TcpStream, state: &mut HubState, request: &HubRequest) {
    let Some(agent) = caller(state, request) else {
        let _ = write!(
            socket,
            "HTTP/1.1 401 X\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
        );
        return;
    };
    let hello =
        json!({"agent_id": agent, "message": "Inbox connected. Messages will be delivered here."});
    let _ = write!(
        socket,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\nevent: connected\ndata: {hello}\n\n"
    );
    state.inboxes.insert(agent, socket);
}

fn answer_request(state: &mut HubState, request: &HubRequest) -> (u16, Value) {
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/.well-known/chorus.json") => (
            200,
            json!({"chorus_version": "0.4", "server_name": "Chorus Public Alpha Hub", "server_status": "alpha",
                "endpoints": {"self_register": "/register", "register": "/agents", "get_agent": "/agents/:id",
                    "send": "/messages", "inbox": "/agent/inbox", "messages": "/agent/messages"},
                "limits": {"max_agents": 100, "max_message_bytes": 65536, "rate_limit_per_minute": 60}}),
        ),
        ("POST", "/register") => register(state, &request.body),
        (_, _) if caller(state, request).is_none() => failure(
            401,
            "ERR_UNAUTHORIZED",
            "Missing or invalid Authorization header",
        ),
        ("GET", "/discover") => {
            let rows = state.agents.keys();
            let rows = rows.map(
                |id| json!({"agent_id": id, "culture": "en", "languages": ["en"], "online": false}),
            );
            success(200, rows.collect())
        }
        ("GET", "/agent/messages") => list_messages(state, request),
        ("POST", "/messages") => send(state, &request.body),
        ("GET", path) => match path
            .strip_prefix("/agents/")
            .and_then(|id| state.agents.get(id))
        {
            Some((record, _)) => success(200, record.clone()),
            None => failure(404, "ERR_AGENT_NOT_FOUND", "Agent not found"),
        },
        (_, _) => failure(404, "ERR_NOT_FOUND", "Not found"),
    }
}

fn register(state: &mut HubState, body: &Value) -> (u16, Value) {
    let id = body["agent_id"].as_str().unwrap_or_default().to_owned();
    if state.agents.contains_key(&id) {
        return failure(409, "ERR_AGENT_ID_TAKEN", "agent_id already registered.");
    }
    let key = format!("ca_{:032x}", state.agents.len() + 1);
    let record = json!({"agent_id": id, "endpoint": null, "agent_card": body["agent_card"], "registered_at": now_text(0)});
    state
        .agents
        .insert(id.clone(), (record.clone(), key.clone()));
    success(
        201,
        json!({"agent_id": id, "api_key": key, "registration": record}),
    )
}

/// `since` is compared as text, and any text that `Date.parse` reads is taken for an instant: a number is a year.
fn list_messages(state: &HubState, request: &HubRequest) -> (u16, Value) {
    let me = caller(state, request).unwrap_or_default();
    let since = request
        .query
        .split('&')
        .find_map(|pair| pair.strip_prefix("since="));
    let mine = |row: &&Value| {
        (row["receiver_id"] == *me || row["sender_id"] == *me)
            && since.is_none_or(|since| row["timestamp"].as_str().unwrap_or_default() >= since)
    };
    success(200, state.messages.iter().filter(mine).cloned().collect())
}

fn send(state: &mut HubState, body: &Value) -> (u16, Value) {
    let receiver = body["receiver_id"].as_str().unwrap_or_default();
    if !state.agents.contains_key(receiver) {
        return failure(404, "ERR_AGENT_NOT_FOUND", "Receiver agent not found");
    }
    let id = state.messages.len() + 1;
    let trace_id = format!("00000000-0000-4000-8000-{id:012x}");
    let sender = &body["envelope"]["sender_id"];
    let timestamp = now_text(id);
    let event = json!({"trace_id": trace_id, "sender_id": sender, "envelope": body["envelope"], "timestamp": timestamp});
    let delivered = state
        .inboxes
        .get(receiver)
        .is_some_and(|mut socket| write!(socket, "event: message\ndata: {event}\n\n").is_ok());
    let (status, delivery, via) = match delivered {
        true => (200, "delivered_sse", "sse"),
        false => (202, "queued", "queued"),
    };
    state.messages.push(
        json!({"id": id, "trace_id": trace_id, "sender_id": sender, "receiver_id": receiver,
        "envelope": body["envelope"], "delivered_via": via, "timestamp": timestamp}),
    );
    success(status, json!({"delivery": delivery, "trace_id": trace_id}))
}
