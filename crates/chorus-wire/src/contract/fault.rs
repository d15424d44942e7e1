//! Why a value breaks its contract: the kind of fault, the field, and a sentence for the client.

use crate::limits;
use crate::{Error, ErrorCode};
use std::fmt;

/// The kinds of faults. Frames answer each with a code of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// It is no JSON, or no object, or a key is given twice.
    InvalidJson,
    UnknownField,
    MissingField,
    InvalidField,
    /// It is larger than the hub takes.
    TooLarge,
}

/// The first fault of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractFault {
    pub kind: FaultKind,
    /// The path of the field, such as `envelope.sender_id` or `skills[1].skill_name`; empty for the whole body.
    pub field: String,
    problem: Problem,
}

/// The sentence about the field, without its name: the path is not complete before the fault has left every object.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Problem {
    /// “the body is not valid JSON: …”
    NotJson(String),
    /// A sentence of its own, which does not begin with the field.
    Sentence(String),
    /// What follows the name of the field: “must be …”, “is required”.
    OfField(String),
}

impl ContractFault {
    fn of_field(kind: FaultKind, field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            kind,
            field: field.into(),
            problem: Problem::OfField(problem.into()),
        }
    }

    pub fn invalid_json(reason: impl Into<String>) -> Self {
        Self {
            kind: FaultKind::InvalidJson,
            field: String::new(),
            problem: Problem::NotJson(reason.into()),
        }
    }

    pub fn duplicate_key(key: &str) -> Self {
        Self::of_field(FaultKind::InvalidJson, clip_key(key), "is given twice")
    }

    pub fn missing(field: impl Into<String>) -> Self {
        Self::of_field(FaultKind::MissingField, field, "is required")
    }

    pub fn unknown(field: &str) -> Self {
        // An empty key is shown as one: an empty path would mean the whole body.
        let name = if field.is_empty() {
            "\"\""
        } else {
            clip_key(field)
        };
        Self::of_field(
            FaultKind::UnknownField,
            name,
            "is not a field of this object",
        )
    }

    /// `requirement` completes the sentence “it must be …”.
    pub fn invalid(field: impl Into<String>, requirement: impl fmt::Display) -> Self {
        Self::of_field(
            FaultKind::InvalidField,
            field,
            format!("must be {requirement}"),
        )
    }

    /// A fault of the field that `problem` tells after its name: “is larger than …”.
    pub fn problem(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::of_field(FaultKind::InvalidField, field, problem)
    }

    /// The body is JSON, but no object.
    pub fn not_an_object() -> Self {
        Self::of_field(FaultKind::InvalidJson, "", "must be a JSON object")
    }

    /// A fault of the field that `sentence` explains as a whole.
    pub fn explain(field: impl Into<String>, sentence: impl Into<String>) -> Self {
        Self {
            kind: FaultKind::InvalidField,
            field: field.into(),
            problem: Problem::Sentence(sentence.into()),
        }
    }

    pub fn too_large(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::of_field(FaultKind::TooLarge, field, problem)
    }

    /// The same fault under another name of its field.
    pub fn with_field(self, field: &str) -> Self {
        Self {
            field: field.to_owned(),
            ..self
        }
    }

    /// The same fault, seen from the object that holds it in the field `name`.
    pub fn inside(mut self, name: &str) -> Self {
        let is_syntax = matches!(self.problem, Problem::NotJson(_));
        if !is_syntax {
            self.field = match self.field.chars().next() {
                None => clip_key(name).to_owned(),
                Some('[') => format!("{}{}", clip_key(name), self.field),
                Some(_) => format!("{}.{}", clip_key(name), self.field),
            };
        }
        self
    }

    /// The same fault, seen from the array that holds it at `index`.
    pub fn inside_item(self, index: usize) -> Self {
        self.inside(&format!("[{index}]"))
    }

    /// The sentence for the client; it begins with the field where the fault is about one.
    pub fn message(&self) -> String {
        match &self.problem {
            Problem::NotJson(reason) => format!("the body is not valid JSON: {reason}"),
            Problem::Sentence(sentence) => sentence.clone(),
            Problem::OfField(problem) if self.field.is_empty() => format!("the body {problem}"),
            Problem::OfField(problem) => format!("{} {problem}", self.field),
        }
    }
}

impl From<ContractFault> for Error {
    fn from(fault: ContractFault) -> Self {
        let code = match fault.kind {
            FaultKind::TooLarge => ErrorCode::TooLarge,
            FaultKind::InvalidJson
            | FaultKind::UnknownField
            | FaultKind::MissingField
            | FaultKind::InvalidField => ErrorCode::Validation,
        };
        Error {
            field: (!fault.field.is_empty()).then(|| fault.field.clone()),
            ..Error::new(code, fault.message())
        }
    }
}

/// Shortens a field name that an error repeats.
pub fn clip_key(name: &str) -> &str {
    &name[..name.floor_char_boundary(limits::FIELD_NAME_OCTETS)]
}
