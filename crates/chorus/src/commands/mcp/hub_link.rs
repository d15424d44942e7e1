//! Calls the hub's MCP endpoint with the saved credentials and the host's session.

use super::{Args, catalogue};
use crate::command_client::{self, CommandClient};
use crate::commands::hook::{ReportProgress, find_host_session};
use crate::commands::init::entry_source::{EntrySource, has_init_tools};
use crate::commands::{frame::frame_context, register};
use crate::fail::{ExitKind, Fail};
use crate::{cli::CommonArgs, hidden_text::remove_hidden};
use chorus_client::mcp::RpcOutcome;
use chorus_wire::frame::ScopeIdent;
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, ErrorCode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex};
use tokio::sync::{OnceCell, watch};

pub struct HubLink {
    pub common: CommonArgs,
    args: Args,
    command_client: OnceCell<CommandClient>,
    /// Why the hub refused to register the name: it would refuse it again, so it is asked once.
    refused_registration: Mutex<Option<Fail>>,
    /// The host's name, once it is known.
    host: Mutex<Option<String>>,
    /// Whether there may be unread mail; if so, the hub is asked before a notice is shown.
    pub may_have_mail: AtomicBool,
    /// Whether this process reads the inbox stream; otherwise only the hub knows about mail.
    pub is_listening: AtomicBool,
    /// The Codex thread that called last.
    pub threads: watch::Sender<Option<String>>,
    /// Calls of the host that are under way.
    pub open_calls: Arc<AtomicUsize>,
}

/// Why a call failed before any tool ran.
pub enum CallFailure {
    /// A text for the model: what its user can do.
    Unavailable(String),
    /// A JSON-RPC error for the host.
    Protocol(ErrorData),
}

impl HubLink {
    pub fn new(common: CommonArgs, args: Args) -> Self {
        let may_have_mail = AtomicBool::new(true);
        let is_listening = AtomicBool::new(false);
        Self {
            common,
            args,
            command_client: OnceCell::new(),
            refused_registration: Mutex::new(None),
            host: Mutex::new(None),
            may_have_mail,
            is_listening,
            threads: watch::Sender::new(None),
            open_calls: Arc::default(),
        }
    }

    /// The saved identity, or a first registration with `--register`; retried on each call until it succeeds, or until the hub
    /// refuses the name. An identity that the user registers meanwhile is used.
    pub async fn open_command_client(&self) -> Result<&CommandClient, Fail> {
        let open = || async {
            match (CommandClient::open(&self.common), &self.args.register) {
                (Err(fail), Some(name)) if fail.exit_kind() == ExitKind::NotRegistered => {
                    self.register_once(name).await?;
                    CommandClient::open(&self.common)
                }
                (opened, _) => opened,
            }
        };
        self.command_client.get_or_try_init(open).await
    }

    async fn register_once(&self, name: &str) -> Result<(), Fail> {
        let refused = self.refused_registration.lock().ok();
        if let Some(fail) = refused.and_then(|refused| refused.clone()) {
            return Err(fail);
        }
        let culture = &self.args.culture;
        let registered = register::register_quietly(&self.common, name, culture).await;
        let Err(fail) = registered else {
            return Ok(());
        };
        if fail.exit_kind() != ExitKind::Refused {
            return Err(fail);
        }
        let hub = self.common.hub.as_deref().unwrap_or("URL");
        let fail = fail
            .with_context(&format!("the hub {hub} does not register {name}"))
            .with_next_step(&format!(
                "it is not asked again. Your user has to run: chorus register OTHER-NAME --hub {hub} --culture {culture}; or \
                 to give another name in the settings of the plugin, and start the host again"
            ));
        if let Ok(mut refused) = self.refused_registration.lock() {
            *refused = Some(fail.clone());
        }
        Err(fail)
    }

    pub fn set_host(&self, host: &str) {
        if let Ok(mut host_name) = self.host.lock() {
            *host_name = Some(host.to_owned());
        }
    }

    /// Whether the plugin has started this process beside the tools that `init` has installed for the same host (PLG-05).
    pub fn is_superseded(&self) -> bool {
        let host = self.host.lock().ok().and_then(|name| name.clone());
        self.args.from == Some(EntrySource::Plugin)
            && host.is_some_and(|host| has_init_tools(&instrument_for(&host)))
    }

    pub fn set_thread(&self, thread: &str) {
        self.threads.send_if_modified(|known| {
            let is_new = known.as_deref() != Some(thread);
            if is_new {
                *known = Some(thread.to_owned());
            }
            is_new
        });
    }

    /// The session headers. Hooks and tools of one session use the same name, so that the session recognises its own
    /// claims.
    fn sender_headers(&self) -> Vec<(&'static str, String)> {
        let host = self
            .host
            .lock()
            .ok()
            .and_then(|host_name| host_name.clone());
        let host_instrument = host
            .map(|host| instrument_for(&host))
            .and_then(|name| frame_context::parse_ident(&name).ok());
        let id = |name| {
            std::env::var(name)
                .ok()
                .and_then(|text| frame_context::parse_ident(&text).ok())
        };
        let process_session = || {
            frame_context::parse_ident(&format!("p{}", std::os::unix::process::parent_id())).ok()
        };
        // What a hook was told is newer than the environment, which is that of the host's first session.
        let hook_session =
            || find_host_session(&command_client::identity_files(&self.common).ok()?);
        let session = self
            .args
            .session
            .clone()
            .or_else(hook_session)
            .or_else(|| id("CLAUDE_CODE_SESSION_ID"))
            .or_else(process_session);
        let instrument = self.args.instrument.clone().or(host_instrument);
        let header = |name, value: Option<ScopeIdent>| value.map(|value| (name, value.to_string()));
        [
            header("X-Chorus-Instrument", instrument),
            header("X-Chorus-Session", session),
            self.args
                .compute
                .map(|compute| ("X-Chorus-Compute", compute.to_string())),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Calls a method of the hub's MCP server.
    pub async fn call_hub<T: DeserializeOwned>(
        &self,
        method: &str,
        params: Value,
    ) -> Result<T, CallFailure> {
        self.call_with_headers(method, params, self.sender_headers())
            .await
    }

    async fn call_with_headers<T: DeserializeOwned>(
        &self,
        method: &str,
        params: Value,
        headers: Vec<(&'static str, String)>,
    ) -> Result<T, CallFailure> {
        let unavailable = |fail: &Fail| CallFailure::Unavailable(unavailable_text(fail));
        let command = self
            .open_command_client()
            .await
            .map_err(|fail| unavailable(&fail))?;
        match command.client.call_mcp(method, params, &headers).await {
            Ok(RpcOutcome::Result(mut result)) => {
                // The hub is called in an older MCP revision, whose results lack this field. The server drops it for older
                // hosts.
                if let Value::Object(fields) = &mut result {
                    fields
                        .entry("resultType")
                        .or_insert_with(|| json!("complete"));
                }
                serde_json::from_value(result).map_err(|e| {
                    CallFailure::Unavailable(format!("The hub's answer was not understood: {e}"))
                })
            }
            Ok(RpcOutcome::Fault { code, message }) => {
                let code = ErrorCode(i32::try_from(code).unwrap_or(ErrorCode::INTERNAL_ERROR.0));
                let error = ErrorData::new(code, message, None);
                Err(CallFailure::Protocol(catalogue::clean_error(error)))
            }
            Err(error) => Err(unavailable(&error.into())),
        }
    }

    /// Calls one tool, as part of the trace that the host names.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: Value,
        traceparent: Option<Value>,
    ) -> Result<CallToolResult, CallFailure> {
        let mut params = json!({ "name": name, "arguments": arguments });
        if let Some(traceparent) = traceparent {
            params["_meta"] = json!({ "traceparent": traceparent });
        }
        let result = self.call_hub("tools/call", params).await?;
        Ok(catalogue::clean_result(result))
    }

    /// The unread messages, to count them: the header says that no model sees their text.
    pub async fn peek_unread(&self, limit: usize) -> Result<CallToolResult, CallFailure> {
        let params = json!({ "name": "chorus_inbox", "arguments": { "limit": limit } });
        let mut headers = self.sender_headers();
        headers.push(("X-Chorus-Purpose", "count".to_owned()));
        let result = self
            .call_with_headers("tools/call", params, headers)
            .await?;
        Ok(catalogue::clean_result(result))
    }

    /// Runs a function with the progress file of hooks and wakers, which may wait for the lock of a running hook.
    pub async fn with_progress<T: Send + 'static>(
        &self,
        act: impl FnOnce(ReportProgress) -> T + Send + 'static,
    ) -> Option<T> {
        let command = self.open_command_client().await.ok()?;
        let files = command.files.clone();
        let credentials = command.credentials.clone();
        let opened = tokio::task::spawn_blocking(move || {
            act(ReportProgress::open_locked(&files, &credentials))
        });
        opened.await.ok()
    }
}

/// The instrument of a host: for the two hosts with our hooks the name in those hooks, for others their own name.
fn instrument_for(host: &str) -> String {
    match host {
        "claude-code" => "cc-claude".to_owned(),
        name if name.starts_with("codex") => "codex".to_owned(),
        name => name.to_ascii_lowercase().replace(' ', "-"),
    }
}

/// The text for the model when no tool ran, with what its user can do.
fn unavailable_text(fail: &Fail) -> String {
    let advice = match fail.exit_kind() {
        // The answer may be lost although the message was sent.
        ExitKind::Transport => {
            "Tell your user that the Chorus hub is away, and try again later; if the call was to change something, look \
             first whether it did."
        }
        ExitKind::NotRegistered => {
            "Nothing was done. Your user has to run: chorus register NAME@HOST --hub URL --culture TAG"
        }
        ExitKind::Usage | ExitKind::Refused | ExitKind::TimedOut | ExitKind::Missed => {
            "Nothing was done."
        }
    };
    format!("{}. {advice}", remove_hidden(&fail.to_string()))
}

impl CallFailure {
    /// An unreachable hub becomes a tool result, which the model reads.
    pub fn into_tool_result(self) -> Result<CallToolResult, ErrorData> {
        match self {
            CallFailure::Unavailable(text) => {
                Ok(CallToolResult::error(vec![ContentBlock::text(text)]))
            }
            CallFailure::Protocol(fault) => Err(fault),
        }
    }

    pub fn into_error(self) -> ErrorData {
        match self {
            CallFailure::Unavailable(text) => ErrorData::internal_error(text, None),
            CallFailure::Protocol(fault) => fault,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_the_same_instrument_as_its_hooks() {
        for (host, name) in [
            ("claude-code", "cc-claude"),
            ("codex-mcp-client", "codex"),
            ("Cursor VSCode", "cursor-vscode"),
        ] {
            assert_eq!(instrument_for(host), name);
        }
    }
}
