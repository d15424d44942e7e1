//! The error of a command: a message and its exit code.

use crate::refusal_steps::{self, RefusalStep, RefusedCommand};
use chorus_client::Error;
use std::process::ExitCode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitKind {
    /// The arguments are invalid, or there is a problem with a local file.
    Usage = 1,
    /// There are no credentials, or the hub no longer accepts them.
    NotRegistered = 2,
    /// The peer could not be reached, or asks to retry later.
    Transport = 3,
    /// The hub or the receiver refused.
    Refused = 4,
    /// What the command waited for did not happen in time.
    TimedOut = 5,
    /// What the command waited for may have happened while its connection was away.
    Missed = 6,
}

const OWN_CODES: [&str; 7] = [
    "USAGE",
    "FILE",
    "NOT_REGISTERED",
    "TRANSPORT",
    "NOT_UNDERSTOOD",
    "TIMED_OUT",
    "ANSWER_MISSED",
];

#[derive(Clone, Debug)]
pub struct Fail {
    exit: ExitKind,
    code: String,
    message: String,
}

/// Where an operator finds the key.
pub const OPERATOR_KEY_PLACE: &str =
    "it is in operator.key of the hub's data directory, or what the hub was started with";

impl Fail {
    pub fn new(exit: ExitKind, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            exit,
            code: code.into(),
            message: message.into(),
        }
    }

    pub fn usage_error(message: impl Into<String>) -> Self {
        Self::new(ExitKind::Usage, "USAGE", message)
    }

    /// There is no identity in the file where this command looks for one.
    pub fn not_registered(file: &std::path::Path) -> Self {
        let file = file.display();
        let message = format!(
            "no credentials found in {file}; run: chorus register NAME@HOST --hub URL --culture TAG"
        );
        Self::new(ExitKind::NotRegistered, "NOT_REGISTERED", message)
    }

    /// Whether the hub refused the saved key.
    pub fn is_refused_key(&self) -> bool {
        self.exit == ExitKind::NotRegistered && self.code != "NOT_REGISTERED"
    }

    /// Whether this hub could not be reached.
    pub fn is_unreachable(&self, hub: &str) -> bool {
        self.is_connection_lost() && self.message.contains(&format!("cannot reach {hub}:"))
    }

    /// Whether this hub was reached, and its certificate was not accepted.
    pub fn is_certificate_refused(&self, hub: &str) -> bool {
        self.exit == ExitKind::Transport
            && self.message.contains(&format!("cannot reach {hub}:"))
            && self.message.contains("invalid peer certificate")
    }

    /// Whether a later attempt may succeed: no server answered. One whose certificate is not accepted did.
    pub fn is_connection_lost(&self) -> bool {
        self.exit == ExitKind::Transport
            && self.code != "NOT_UNDERSTOOD"
            && !self.message.contains("certificate")
    }

    pub fn with_message(self, message: String) -> Self {
        Self { message, ..self }
    }

    /// What the user can do about a refusal of the hub.
    pub fn find_refusal_step(&self, command: &RefusedCommand<'_>) -> RefusalStep {
        refusal_steps::find_step(command, &self.code, &self.message)
    }

    /// Adds what the user can do about it.
    pub fn with_next_step(self, step: &str) -> Self {
        Self {
            message: format!("{}; {step}", self.message.trim_end_matches('.')),
            ..self
        }
    }

    /// Prefixes the message with the step that failed.
    pub fn with_context(self, step: &str) -> Self {
        Self {
            message: format!("{step}: {}", self.message),
            ..self
        }
    }

    /// The same error for a call with an operator's key: registering does not help, so it is a refusal.
    pub fn for_operator(self) -> Self {
        match self.exit {
            ExitKind::NotRegistered => Self {
                exit: ExitKind::Refused,
                message: format!("the hub does not accept this operator key; {OPERATOR_KEY_PLACE}"),
                ..self
            },
            ExitKind::Usage
            | ExitKind::Transport
            | ExitKind::Refused
            | ExitKind::TimedOut
            | ExitKind::Missed => self,
        }
    }

    /// The error of a command that has already printed its message.
    pub fn already_reported(exit: ExitKind) -> Self {
        Self::new(exit, "TOLD", "")
    }

    pub fn exit_kind(&self) -> ExitKind {
        self.exit
    }

    /// The message for people, with a hub's or a receiver's code; our own codes add nothing.
    fn full_message(&self) -> String {
        match OWN_CODES.contains(&self.code.as_str()) {
            true => self.message.clone(),
            false => format!("{} ({})", self.message, self.code),
        }
    }

    pub fn report(&self, json: bool) -> ExitCode {
        if self.message.is_empty() {
            return ExitCode::from(self.exit as u8);
        }
        if json {
            let error = serde_json::json!({ "code": self.code, "message": self.message });
            let line = serde_json::json!({ "error": error, "exit": self.exit as u8 });
            anstream::eprintln!("{}", crate::hidden_text::escape_json(&line.to_string()));
        } else {
            anstream::eprintln!(
                "chorus: {}",
                crate::output::escape_controls(&self.full_message())
            );
        }
        ExitCode::from(self.exit as u8)
    }
}

impl std::fmt::Display for Fail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.full_message())
    }
}

impl From<Error> for Fail {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Transport(_) => Self::new(ExitKind::Transport, "TRANSPORT", message),
            Error::Answer(_) => Self::new(ExitKind::Transport, "NOT_UNDERSTOOD", message),
            Error::Input(_) => Self::usage_error(message),
            Error::File { .. } => Self::new(ExitKind::Usage, "FILE", message),
            Error::Refused(refusal) => {
                let exit = match refusal.status {
                    401 => ExitKind::NotRegistered,
                    _ if refusal.is_transient() => ExitKind::Transport,
                    _ => ExitKind::Refused,
                };
                Self::new(exit, refusal.code, refusal.message)
            }
        }
    }
}
