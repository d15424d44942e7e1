//! Why a tool did nothing, in words that a model can act on: which argument to mend, or that it may try again.

use chorus_wire::frame::FrameError;
use chorus_wire::{Code, Error};
use rmcp::model::{CallToolResult, ContentBlock};

/// A tool's refusal. It is a result and no protocol error: hosts show the former to the model and keep the latter to themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError {
    code: &'static str,
    /// The argument at fault.
    field: Option<String>,
    message: String,
    is_retryable: bool,
}

impl ToolError {
    /// One argument is wrong.
    pub fn invalid_argument(field: impl Into<String>, message: impl Into<String>) -> Self {
        let code = Code::Validation.as_str();
        Self {
            code,
            field: Some(field.into()),
            message: message.into(),
            is_retryable: false,
        }
    }

    /// The same, where the hub did not say which argument its answer is about. What is our own fault is about none.
    pub fn about_field(self, field: &str) -> Self {
        if self.is_retryable || self.code == Code::Internal.as_str() {
            return self;
        }
        Self {
            field: self.field.or_else(|| Some(field.to_owned())),
            ..self
        }
    }

    /// What was done all the same.
    pub fn with_note(self, done: &str) -> Self {
        Self {
            message: format!("{}; {done}", self.message),
            ..self
        }
    }

    /// Two of them in one sentence.
    pub fn merge_with(self, other: Self) -> Self {
        Self {
            message: format!("{}; {}", self.describe_fault(), other.describe_fault()),
            field: None,
            ..self
        }
    }

    fn describe_fault(&self) -> String {
        match &self.field {
            Some(field) if !mentions_field(&self.message, field) => {
                format!("{field}: {}", self.message)
            }
            Some(_) | None => self.message.clone(),
        }
    }

    /// A refusal of the hub, with the argument that each of its codes speaks of here.
    pub fn from_hub_error(error: Error, fields: &[(Code, &str)]) -> Self {
        let field = fields
            .iter()
            .find(|(code, _)| *code == error.code)
            .map(|(_, field)| *field);
        let tool_error = Self::from(error);
        field.map_or(tool_error.clone(), |field| tool_error.about_field(field))
    }

    pub fn into_result(self) -> CallToolResult {
        CallToolResult::error(vec![ContentBlock::text(self.to_string())])
    }
}

impl std::fmt::Display for ToolError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} [{}]", self.describe_fault(), self.code)?;
        if self.is_retryable {
            f.write_str(" The same call may succeed later.")
        } else {
            Ok(())
        }
    }
}

/// `text` is not named by `the context`.
fn mentions_field(message: &str, field: &str) -> bool {
    let is_word_char = |c: char| c.is_alphanumeric() || c == '_';
    message.match_indices(field).any(|(at, _)| {
        let (before, after) = (&message[..at], &message[at + field.len()..]);
        !before.ends_with(is_word_char) && !after.starts_with(is_word_char)
    })
}

/// The cause is for the log, as it is when the same failure leaves by HTTP.
fn log_cause(code: &str, cause: Option<&str>) {
    if let Some(cause) = cause {
        tracing::error!(code, cause, "a tool failed");
    }
}

impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        log_cause(error.code.as_str(), error.cause.as_deref());
        Self {
            code: error.code.as_str(),
            field: None,
            message: error.message,
            is_retryable: error.code.retryable(),
        }
    }
}

impl From<Code> for ToolError {
    fn from(code: Code) -> Self {
        Error::from(code).into()
    }
}

impl From<FrameError> for ToolError {
    fn from(error: FrameError) -> Self {
        log_cause(error.code.as_str(), error.cause.as_deref());
        // What a tool calls `query_text` stands in the frame as `payload.query_text`.
        let without_prefix = |text: &str| text.replace("payload.", "");
        let field = error.field.as_deref().map(without_prefix);
        Self {
            code: error.code.as_str(),
            field,
            message: without_prefix(&error.message),
            is_retryable: error.code.retryable(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    ///
    #[test]
    fn a_refusal_names_the_argument_once() {
        let said = |refusal: ToolError| refusal.to_string();
        assert_eq!(
            said(ToolError::invalid_argument("limit", "it is too large")),
            "limit: it is too large [ERR_VALIDATION]"
        );
        let two = ToolError::invalid_argument("a", "no")
            .merge_with(ToolError::invalid_argument("b", "it is required"));
        assert_eq!(said(two), "a: no; b: it is required [ERR_VALIDATION]");
        let named = ToolError::from(Error::validation("receiver_id must be an address"));
        assert_eq!(
            said(named.about_field("receiver_id")),
            "receiver_id must be an address [ERR_VALIDATION]"
        );
        let near = ToolError::invalid_argument("text", "the context is too long");
        assert_eq!(said(near), "text: the context is too long [ERR_VALIDATION]");
        let frame = FrameError::invalid_field("payload.query_text", "shorter");
        assert_eq!(
            said(frame.into()),
            "query_text must be shorter [field-invalid]"
        );
    }

    #[test]
    fn what_may_succeed_later_says_so_and_causes_stay_here() {
        let said = ToolError::from(Error::unavailable("the disk is full")).to_string();
        assert!(
            said.ends_with("may succeed later.") && !said.contains("disk"),
            "{said}"
        );
        let ours = ToolError::from(Error::internal("x"))
            .about_field("job_id")
            .to_string();
        assert!(
            !ours.contains("job_id"),
            "no argument mends our own fault: {ours}"
        );
    }
}
