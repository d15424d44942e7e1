//! The error of a tool call, worded for a model: which argument to correct, or that a retry may succeed.

use chorus_wire::contract::{ContractFault, FaultKind};
use chorus_wire::frame::FrameError;
use chorus_wire::{Error, ErrorCode};
use rmcp::model::{CallToolResult, ContentBlock};

/// The error of a tool call. It is sent as a result, not as a protocol error, because hosts show only results to the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError {
    code: &'static str,
    /// The argument at fault.
    field: Option<String>,
    message: String,
    is_retryable: bool,
}

impl ToolError {
    /// An error about one argument.
    pub fn invalid_argument(field: impl Into<String>, message: impl Into<String>) -> Self {
        let code = ErrorCode::Validation.as_str();
        Self {
            code,
            field: Some(field.into()),
            message: message.into(),
            is_retryable: false,
        }
    }

    /// Adds the argument when the hub's error names none. An internal or retryable error concerns no argument.
    pub fn about_field(self, field: &str) -> Self {
        if self.is_retryable || self.code == ErrorCode::Internal.as_str() {
            return self;
        }
        Self {
            field: self.field.or_else(|| Some(field.to_owned())),
            ..self
        }
    }

    /// Appends a note, such as what was done before the error.
    pub fn with_note(self, note: &str) -> Self {
        Self {
            message: format!("{}; {note}", self.message),
            ..self
        }
    }

    /// Joins two errors in one message.
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

    /// Converts a hub error; `fields` maps error codes to the arguments they concern.
    pub fn from_hub_error(error: Error, fields: &[(ErrorCode, &str)]) -> Self {
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

/// Whether the message contains the field as a whole word: `context` does not mention `text`.
fn mentions_field(message: &str, field: &str) -> bool {
    let is_word_char = |c: char| c.is_alphanumeric() || c == '_';
    message.match_indices(field).any(|(at, _)| {
        let before = &message[..at];
        let after = &message[at + field.len()..];
        !before.ends_with(is_word_char) && !after.starts_with(is_word_char)
    })
}

/// Logs the cause, which the client must not see.
fn log_cause(code: &str, cause: Option<&str>) {
    if let Some(cause) = cause {
        tracing::error!(code, cause, "tool call failed");
    }
}

impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        log_cause(error.code.as_str(), error.cause.as_deref());
        Self {
            code: error.code.as_str(),
            field: error.field,
            message: error.message,
            is_retryable: error.code.retryable(),
        }
    }
}

impl From<ContractFault> for ToolError {
    fn from(fault: ContractFault) -> Self {
        match fault.kind {
            FaultKind::UnknownField => {
                Self::invalid_argument(fault.field, "this tool has no such argument")
            }
            FaultKind::InvalidJson
            | FaultKind::MissingField
            | FaultKind::InvalidField
            | FaultKind::TooLarge => Error::from(fault).into(),
        }
    }
}

impl From<ErrorCode> for ToolError {
    fn from(code: ErrorCode) -> Self {
        Error::from(code).into()
    }
}

impl From<FrameError> for ToolError {
    fn from(error: FrameError) -> Self {
        log_cause(error.code.as_str(), error.cause.as_deref());
        // The argument `query_text` is the field `payload.query_text` of the frame.
        let path = error.field.unwrap_or_default();
        let argument = path.strip_prefix("payload.").unwrap_or(&path);
        Self {
            code: error.code.as_str(),
            message: if path.is_empty() {
                error.message
            } else {
                error.message.replace(&path, argument)
            },
            field: Some(argument.to_owned()).filter(|argument| !argument.is_empty()),
            is_retryable: error.code.retryable(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    ///
    #[test]
    fn an_error_names_the_argument_once() {
        let print = |error: ToolError| error.to_string();
        assert_eq!(
            print(ToolError::invalid_argument("limit", "it is too large")),
            "limit: it is too large [ERR_VALIDATION]"
        );
        let two = ToolError::invalid_argument("a", "no")
            .merge_with(ToolError::invalid_argument("b", "it is required"));
        assert_eq!(print(two), "a: no; b: it is required [ERR_VALIDATION]");
        let named = ToolError::from(Error::validation("receiver_id must be an address"));
        assert_eq!(
            print(named.about_field("receiver_id")),
            "receiver_id must be an address [ERR_VALIDATION]"
        );
        let near = ToolError::invalid_argument("text", "the context is too long");
        assert_eq!(
            print(near),
            "text: the context is too long [ERR_VALIDATION]"
        );
        let frame = FrameError::invalid_field("payload.query_text", "shorter");
        assert_eq!(
            print(frame.into()),
            "query_text must be shorter [field-invalid]"
        );
    }

    #[test]
    fn a_retryable_error_says_so_and_hides_its_cause() {
        let text = ToolError::from(Error::unavailable("the disk is full")).to_string();
        assert!(
            text.ends_with("may succeed later.") && !text.contains("disk"),
            "{text}"
        );
        let internal = ToolError::from(Error::internal("x"))
            .about_field("job_id")
            .to_string();
        assert!(
            !internal.contains("job_id"),
            "an internal error concerns no argument: {internal}"
        );
    }
}
