//! Why a tool did nothing, in words that a model can act on: which argument to mend, or that it may try again.

use chorus_wire::frame::FrameError;
use chorus_wire::{Code, Error};
use rmcp::model::{CallToolResult, ContentBlock};

/// A tool's refusal. It is a result and no protocol error: hosts show the former to the model and keep the latter to themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    code: &'static str,
    /// The argument at fault.
    field: Option<String>,
    message: String,
    again: bool,
}

impl Refusal {
    /// One argument is wrong.
    pub fn argument(field: impl Into<String>, message: impl Into<String>) -> Self {
        let code = Code::Validation.as_str();
        Self {
            code,
            field: Some(field.into()),
            message: message.into(),
            again: false,
        }
    }

    /// The same, where the hub did not say which argument its answer is about. What is our own fault is about none.
    pub fn about(self, field: &str) -> Self {
        if self.again || self.code == Code::Internal.as_str() {
            return self;
        }
        Self {
            field: self.field.or_else(|| Some(field.to_owned())),
            ..self
        }
    }

    /// What was done all the same.
    pub fn but(self, done: &str) -> Self {
        Self {
            message: format!("{}; {done}", self.message),
            ..self
        }
    }

    /// Two of them in one sentence.
    pub fn and(self, other: Self) -> Self {
        Self {
            message: format!("{}; {}", self.worded(), other.worded()),
            field: None,
            ..self
        }
    }

    fn worded(&self) -> String {
        match &self.field {
            Some(field) if !names(&self.message, field) => format!("{field}: {}", self.message),
            Some(_) | None => self.message.clone(),
        }
    }

    /// A refusal of the hub, with the argument that each of its codes speaks of here.
    pub fn told(error: Error, fields: &[(Code, &str)]) -> Self {
        let field = fields
            .iter()
            .find(|(code, _)| *code == error.code)
            .map(|(_, field)| *field);
        let refusal = Self::from(error);
        field.map_or(refusal.clone(), |field| refusal.about(field))
    }

    pub fn into_result(self) -> CallToolResult {
        CallToolResult::error(vec![ContentBlock::text(self.to_string())])
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} [{}]", self.worded(), self.code)?;
        if self.again {
            f.write_str(" The same call may succeed later.")
        } else {
            Ok(())
        }
    }
}

/// `text` is not named by `the context`.
fn names(message: &str, field: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    message.match_indices(field).any(|(at, _)| {
        let (before, after) = (&message[..at], &message[at + field.len()..]);
        !before.ends_with(inside) && !after.starts_with(inside)
    })
}

/// The cause is for the log, as it is when the same failure leaves by HTTP.
fn logged(code: &str, cause: Option<&str>) {
    if let Some(cause) = cause {
        tracing::error!(code, cause, "a tool failed");
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        logged(error.code.as_str(), error.cause.as_deref());
        Self {
            code: error.code.as_str(),
            field: None,
            message: error.message,
            again: error.code.retryable(),
        }
    }
}

impl From<Code> for Refusal {
    fn from(code: Code) -> Self {
        Error::from(code).into()
    }
}

impl From<FrameError> for Refusal {
    fn from(error: FrameError) -> Self {
        logged(error.code.as_str(), error.cause.as_deref());
        // What a tool calls `query_text` stands in the frame as `payload.query_text`.
        let plain = |text: &str| text.replace("payload.", "");
        let field = error.field.as_deref().map(plain);
        Self {
            code: error.code.as_str(),
            field,
            message: plain(&error.message),
            again: error.code.retryable(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    ///
    #[test]
    fn a_refusal_names_the_argument_once() {
        let said = |refusal: Refusal| refusal.to_string();
        assert_eq!(
            said(Refusal::argument("limit", "it is too large")),
            "limit: it is too large [ERR_VALIDATION]"
        );
        let two = Refusal::argument("a", "no").and(Refusal::argument("b", "it is required"));
        assert_eq!(said(two), "a: no; b: it is required [ERR_VALIDATION]");
        let named = Refusal::from(Error::validation("receiver_id must be an address"));
        assert_eq!(
            said(named.about("receiver_id")),
            "receiver_id must be an address [ERR_VALIDATION]"
        );
        let near = Refusal::argument("text", "the context is too long");
        assert_eq!(said(near), "text: the context is too long [ERR_VALIDATION]");
        let frame = FrameError::invalid("payload.query_text", "shorter");
        assert_eq!(
            said(frame.into()),
            "query_text must be shorter [field-invalid]"
        );
    }

    #[test]
    fn what_may_succeed_later_says_so_and_causes_stay_here() {
        let said = Refusal::from(Error::unavailable("the disk is full")).to_string();
        assert!(
            said.ends_with("may succeed later.") && !said.contains("disk"),
            "{said}"
        );
        let ours = Refusal::from(Error::internal("x"))
            .about("job_id")
            .to_string();
        assert!(
            !ours.contains("job_id"),
            "no argument mends our own fault: {ours}"
        );
    }
}
