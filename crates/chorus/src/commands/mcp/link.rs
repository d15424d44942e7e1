//! The way to the hub: who we are, which session calls, and one call.

use super::Args;
use crate::commands::{frame::voice, register};
use crate::fail::{Exit, Fail};
use crate::{cli::Common, session::Session};
use chorus_client::mcp::Outcome;
use chorus_wire::frame::Ident;
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, ErrorCode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use tokio::sync::OnceCell;

pub struct Link {
    common: Common,
    args: Args,
    session: OnceCell<Session>,
    /// What the host calls itself, once it has said so.
    host: Mutex<Option<String>>,
    /// Whether mail may wait that the model has not been told of: then the hub is asked before it is said.
    pub mail: AtomicBool,
    /// Whether this process hears the inbox itself; otherwise it cannot know without asking.
    pub hears: AtomicBool,
}

/// How a call failed before any tool ran.
pub enum Missed {
    /// For the model: what its user can do.
    Away(String),
    /// For the host: the message itself was wrong.
    Fault(ErrorData),
}

impl Link {
    pub fn new(common: Common, args: Args) -> Self {
        let (mail, hears) = (AtomicBool::new(true), AtomicBool::new(false));
        Self {
            common,
            args,
            session: OnceCell::new(),
            host: Mutex::new(None),
            mail,
            hears,
        }
    }

    /// The saved identity, or the first registration if that was asked for; tried again until it works.
    pub async fn session(&self) -> Result<&Session, Fail> {
        let open = || async {
            match (Session::open(&self.common), &self.args.register) {
                (Err(fail), Some(name)) if fail.exit() == Exit::NotRegistered => {
                    register::quietly(&self.common, name, &self.args.culture).await?;
                    Session::open(&self.common)
                }
                (opened, _) => opened,
            }
        };
        self.session.get_or_try_init(open).await
    }

    pub fn named(&self, host: &str) {
        if let Ok(mut known) = self.host.lock() {
            *known = Some(host.to_owned());
        }
    }

    /// hooks and tools of one session call it by the same name, so that a claim is known as its own.
    fn from(&self) -> Vec<(&'static str, String)> {
        let host = self.host.lock().ok().and_then(|known| known.clone());
        let said = host
            .map(|host| instrument(&host))
            .and_then(|name| voice::ident(&name).ok());
        let id = |name| {
            std::env::var(name)
                .ok()
                .and_then(|text| voice::ident(&text).ok())
        };
        let own = || voice::ident(&format!("p{}", std::os::unix::process::parent_id())).ok();
        let session = self
            .args
            .session
            .clone()
            .or_else(|| id("CLAUDE_CODE_SESSION_ID"))
            .or_else(own);
        let instrument = self.args.instrument.clone().or(said);
        let header = |name, value: Option<Ident>| value.map(|value| (name, value.to_string()));
        [
            header("X-Chorus-Instrument", instrument),
            header("X-Chorus-Session", session),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// One call of the hub's tool server.
    pub async fn ask<T: DeserializeOwned>(&self, method: &str, params: Value) -> Result<T, Missed> {
        let away = |fail: &Fail| Missed::Away(sorry(fail));
        let session = self.session().await.map_err(|fail| away(&fail))?;
        match session.client.tools(method, params, &self.from()).await {
            Ok(Outcome::Result(mut result)) => {
                // We ask in an older revision than the host may; to an older host it is not passed on.
                if let Value::Object(fields) = &mut result {
                    fields
                        .entry("resultType")
                        .or_insert_with(|| json!("complete"));
                }
                serde_json::from_value(result)
                    .map_err(|e| Missed::Away(format!("The hub's answer was not understood: {e}")))
            }
            Ok(Outcome::Fault { code, message }) => {
                let code = ErrorCode(i32::try_from(code).unwrap_or(ErrorCode::INTERNAL_ERROR.0));
                Err(Missed::Fault(ErrorData::new(code, message, None)))
            }
            Err(error) => Err(away(&error.into())),
        }
    }

    /// One tool.
    pub async fn call(&self, name: &str, arguments: Value) -> Result<CallToolResult, Missed> {
        self.ask(
            "tools/call",
            json!({ "name": name, "arguments": arguments }),
        )
        .await
    }
}

/// The names of the two hosts that have hooks of ours, as those hooks say them; others as they call themselves.
fn instrument(host: &str) -> String {
    match host {
        "claude-code" => "cc-claude".to_owned(),
        name if name.starts_with("codex") => "codex".to_owned(),
        name => name.to_ascii_lowercase().replace(' ', "-"),
    }
}

/// What a model reads when no tool ran, with what its user can do about it.
fn sorry(fail: &Fail) -> String {
    let what = match fail.exit() {
        // An answer that got lost may be that of a message that was sent.
        Exit::Transport => {
            "Tell your user that the Chorus hub is away, and try again later; if the call was to change something, look \
             first whether it did."
        }
        Exit::NotRegistered => "Nothing was done. Your user has to run: chorus register",
        Exit::Usage | Exit::Refused => "Nothing was done.",
    };
    format!("{fail}. {what}")
}

impl Missed {
    /// a hub that is away is said in the result, where the model reads it.
    pub fn told(self) -> Result<CallToolResult, ErrorData> {
        match self {
            Missed::Away(text) => Ok(CallToolResult::error(vec![ContentBlock::text(text)])),
            Missed::Fault(fault) => Err(fault),
        }
    }

    pub fn fault(self) -> ErrorData {
        match self {
            Missed::Away(text) => ErrorData::internal_error(text, None),
            Missed::Fault(fault) => fault,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_called_among_frames_what_its_hooks_call_it() {
        for (host, name) in [
            ("claude-code", "cc-claude"),
            ("codex-mcp-client", "codex"),
            ("Cursor VSCode", "cursor-vscode"),
        ] {
            assert_eq!(instrument(host), name);
        }
    }
}
