//! A hub in its own process whose memory is measured, and agents that send it large frames.

use crate::support_watch::HubWatch;
use chorus_client::HubClient;
use chorus_client::http::ApiCall;
use chorus_client::identity::RegistrationRequest;
use chorus_wire::secret::Secret;
use chorus_wire::time::UnixMicros;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

const OPERATOR: &str = "operator-key-of-the-attacks";

pub struct MeasuredHub {
    pub url: String,
    process: Child,
    _folder: tempfile::TempDir,
}

impl MeasuredHub {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    pub fn start_with(args: &[&str]) -> Self {
        Self::start_command(Command::new(env!("CARGO_BIN_EXE_chorus")), args)
    }

    /// Starts it by a command that runs the program with the arguments that follow.
    pub fn start_command(mut command: Command, args: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        command
            .env_clear()
            .current_dir(folder.path())
            .args(["serve", "--listen", "127.0.0.1:0", "--rate-limit", "0"])
            .args(["--log", "warn", "--operator-key", OPERATOR, "--data-dir"])
            .arg(folder.path())
            .args(args);
        let mut process = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let url = line
            .trim_end()
            .strip_prefix("chorus listening on ")
            .unwrap_or_else(|| panic!("{line}"))
            .to_owned();
        Self {
            url,
            process,
            _folder: folder,
        }
    }

    /// Measures the hub from now on.
    pub fn watch(&self) -> HubWatch {
        let address = self.url.strip_prefix("http://").unwrap();
        HubWatch::start(address.parse().unwrap(), self.process.id())
    }

    /// The processor time that the process has used, in the hundredths of a second that the system counts.
    pub fn processor_ticks(&self) -> u64 {
        let path = format!("/proc/{}/stat", self.process.id());
        let line = std::fs::read_to_string(path).unwrap();
        // The second field is the name in brackets; user and system time are the twelfth and thirteenth after it.
        let (_, fields) = line.rsplit_once(") ").unwrap();
        let times = fields.split(' ').skip(11).take(2);
        times.map(|ticks| ticks.parse::<u64>().unwrap()).sum()
    }

    /// The most that it ever was.
    pub fn peak_mib(&self) -> usize {
        read_status_mib(self.process.id(), "VmHWM:").unwrap()
    }

    /// `{name}@chorus`, registered by the operator, whom no registration limit concerns.
    pub async fn register(&self, name: &str) -> HubClient {
        let operator = HubClient::new(&self.url, Some(Secret::new(OPERATOR))).unwrap();
        let request = RegistrationRequest {
            agent_id: format!("{name}@chorus"),
            culture: "en".into(),
            languages: vec!["en".into()],
            endpoint: None,
            endpoint_secret: None,
            invite_code: None,
            owner_id: None,
            api_endpoint: None,
        };
        let registered = operator.register_agent(&request).await.unwrap();
        HubClient::new(&self.url, registered.api_key).unwrap()
    }
}

/// A line of the status of a process, in MiB; `None` when the process has ended.
pub fn read_status_mib(pid: u32, name: &str) -> Option<usize> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with(name))?;
    let kib: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024)
}

impl Drop for MeasuredHub {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Sends a request that must succeed.
pub async fn call(client: &HubClient, call: ApiCall) -> Value {
    let answer = client.send_call(call).await.unwrap();
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    assert!(answer.status < 300, "{}: {text}", answer.status);
    serde_json::from_str(&text).unwrap_or_default()
}

/// Submits an advisory of this many bytes; blanks are part of a frame.
pub async fn send_frame(
    client: &HubClient,
    from: &str,
    recipient: &str,
    scope: &str,
    bytes: usize,
) {
    let now = chorus_hub::Clock::system().now();
    let frame = build_frame(from, recipient, now).to_string();
    let padding = " ".repeat(bytes - frame.len());
    let frame = format!("{}{padding}}}", frame.strip_suffix('}').unwrap());
    let body = format!(r#"{{"scope":"{scope}","frame":{frame}}}"#);
    call(client, ApiCall::post("/frames", body)).await;
}

/// Claims a resource for an hour.
pub async fn send_lock(client: &HubClient, handle: &str, resource: &str) {
    let now = chorus_hub::Clock::system().now();
    let mut frame = build_frame(handle, handle, now);
    frame["kind"] = json!("agent_lock_request");
    let lease_id = chorus_client::frame::random_uuid().to_string();
    frame["payload"] = json!({"resource": resource, "lease_id": lease_id, "ttl_ms": 3_600_000});
    let body = json!({"scope": handle, "frame": frame});
    call(client, ApiCall::post("/frames", body.to_string())).await;
}

fn build_frame(from: &str, recipient: &str, now: UnixMicros) -> Value {
    json!({
        "envelope_version": "1.0",
        "frame_id": chorus_client::frame::random_uuid().to_string(),
        "kind": "agent_advisory",
        "sender_handle": from,
        "recipient_handle": recipient,
        "created_at": now.to_string(),
        "payload": {"advisory_text": "large"},
        "acted_by": from,
        "drafted_with": "~cc-editor@1.2",
        "provenance_compute_location": "local-only",
        "provenance_method": ["session-context"],
        "provenance_context_check": "passed",
        "provenance_basis": "coordination",
    })
}
