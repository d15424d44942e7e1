//! How a command ends badly: one sentence and one of four exit codes.

use chorus_client::Error;
use std::process::ExitCode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The command makes no sense as it was given, or a local file is in the way.
    Usage = 1,
    /// There are no credentials, or the hub no longer takes them.
    NotRegistered = 2,
    /// The other side could not be reached, or asks to come back later.
    Transport = 3,
    /// The other side said no.
    Refused = 4,
}

const OURS: [&str; 5] = [
    "USAGE",
    "FILE",
    "NOT_REGISTERED",
    "TRANSPORT",
    "NOT_UNDERSTOOD",
];

#[derive(Debug)]
pub struct Fail {
    exit: Exit,
    code: String,
    message: String,
}

impl Fail {
    pub fn new(exit: Exit, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            exit,
            code: code.into(),
            message: message.into(),
        }
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, "USAGE", message)
    }

    pub fn not_registered() -> Self {
        let message =
            "no credentials found; run: chorus register NAME@HOST --hub URL --culture TAG";
        Self::new(Exit::NotRegistered, "NOT_REGISTERED", message)
    }

    /// The same error, and where in a longer undertaking it happened.
    pub fn within(self, place: &str) -> Self {
        Self {
            message: format!("{place}: {}", self.message),
            ..self
        }
    }

    /// The same error from a call with an operator's key: nobody has to register because of it.
    pub fn of_operator(self) -> Self {
        match self.exit {
            Exit::NotRegistered => Self {
                exit: Exit::Refused,
                ..self
            },
            Exit::Usage | Exit::Transport | Exit::Refused => self,
        }
    }

    /// How a command ends that has said itself what is wrong.
    pub fn told(exit: Exit) -> Self {
        Self::new(exit, "TOLD", "")
    }

    pub fn exit(&self) -> Exit {
        self.exit
    }

    /// What a person reads: a hub's or a receiver's code belongs to it, ours say nothing new.
    fn sentence(&self) -> String {
        match OURS.contains(&self.code.as_str()) {
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
            anstream::eprintln!(
                "{}",
                serde_json::json!({ "error": error, "exit": self.exit as u8 })
            );
        } else {
            anstream::eprintln!("chorus: {}", crate::out::harmless(&self.sentence()));
        }
        ExitCode::from(self.exit as u8)
    }
}

impl std::fmt::Display for Fail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.sentence())
    }
}

impl From<Error> for Fail {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Transport(_) => Self::new(Exit::Transport, "TRANSPORT", message),
            Error::Answer(_) => Self::new(Exit::Transport, "NOT_UNDERSTOOD", message),
            Error::Input(_) => Self::usage(message),
            Error::File { .. } => Self::new(Exit::Usage, "FILE", message),
            Error::Refused(refusal) => {
                let exit = match refusal.status {
                    401 => Exit::NotRegistered,
                    _ if refusal.passes() => Exit::Transport,
                    _ => Exit::Refused,
                };
                Self::new(exit, refusal.code, refusal.message)
            }
        }
    }
}
