//! What to do about a refusal of the hub: one answer per error code, in commands where HTTP speaks of headers.

use chorus_wire::ErrorCode;
use chorus_wire::frame::FrameCode;

/// Who was refused, and where.
pub struct RefusedCommand<'a> {
    /// The agent of the credential file, or the name that stands for it.
    pub agent: &'a str,
    pub hub: &'a str,
    pub file: &'a str,
}

/// What the user reads beside the hub's message.
#[derive(Debug, PartialEq, Eq)]
pub enum RefusalStep {
    /// The message says all there is to know.
    Enough,
    /// The message is completed with a next step.
    Next(String),
    /// The message is written for HTTP clients and is replaced.
    Instead(String),
}

use RefusalStep::{Enough, Instead, Next};

/// The step for a code; a code that this client does not know has none.
pub fn find_step(command: &RefusedCommand<'_>, code: &str, message: &str) -> RefusalStep {
    let is_code = |known: &&ErrorCode| known.as_str() == code;
    if let Some(known) = ErrorCode::ALL.iter().find(is_code) {
        return hub_step(command, *known, message);
    }
    let is_code = |known: &&FrameCode| known.as_str() == code;
    match FrameCode::ALL.iter().find(is_code) {
        Some(known) => frame_step(command, *known, message),
        None => Enough,
    }
}

const WORKER_STEP: &str =
    "who offers it and is online: chorus skills NAME; with --board the job waits for a worker";

fn hub_step(command: &RefusedCommand<'_>, code: ErrorCode, message: &str) -> RefusalStep {
    let RefusedCommand { agent, hub, file } = command;
    match code {
        // Paths that more than one kind of thing has answer with the sentence alone.
        ErrorCode::NotFound if message == code.sentence() => Instead(format!(
            "the hub {hub} has nothing of that id that {agent} may see; check the id, and who you are: chorus whoami"
        )),
        ErrorCode::Unauthorized if message.contains("Authorization: Bearer") => key_step(hub),
        ErrorCode::AgentIdTaken => Instead(format!(
            "the name is taken at {hub}; choose another one, or, if it is yours, copy its credential file to {file}"
        )),
        ErrorCode::NameConfusable | ErrorCode::NameReserved => Next("choose another name".into()),
        ErrorCode::InviteRequired
        | ErrorCode::InviteRevoked
        | ErrorCode::InviteExhausted
        | ErrorCode::InviteExpired => invite_step(hub),
        ErrorCode::RegistryFull => Next(format!("ask the operator of {hub}")),
        ErrorCode::EndpointBlocked => Next(format!(
            "give a public address, or ask the operator of {hub} to start it with --allow-private-endpoints"
        )),
        ErrorCode::Scope => Next(format!(
            "the registration's key has all scopes; which key {file} has: chorus whoami"
        )),
        ErrorCode::Quota => Next("what you use and may use: chorus usage".into()),
        ErrorCode::TransferFailed if message.starts_with("from_owner ") => Instead(format!(
            "the owner that pays {}; what you have: chorus balance",
            message.trim_start_matches("from_owner ")
        )),
        ErrorCode::TransferFailed | ErrorCode::BudgetInsufficient => {
            Next("what you have: chorus balance".into())
        }
        ErrorCode::SkillMismatch | ErrorCode::AgentOffline => Next(WORKER_STEP.into()),
        ErrorCode::JobClosed => Next("its timeline: chorus jobs ID".into()),
        ErrorCode::Blocked => Next("only the receiver can lift it".into()),
        ErrorCode::NotAContact => contact_step(agent),
        ErrorCode::RateLimited => {
            Instead("too many requests in a short time; wait a minute and run it again".into())
        }
        ErrorCode::TooManyStreams => Next(format!(
            "end another chorus listen, chorus watch or chorus mcp of {agent}"
        )),
        ErrorCode::Internal => Next(format!("the log of {hub} has the reason")),
        ErrorCode::Validation
        | ErrorCode::SenderNotRegistered
        | ErrorCode::Deprecated
        | ErrorCode::Unauthorized
        | ErrorCode::Forbidden
        | ErrorCode::SenderMismatch
        | ErrorCode::OwnerTaken
        | ErrorCode::Origin
        | ErrorCode::AgentNotFound
        | ErrorCode::NotFound
        | ErrorCode::MethodNotAllowed
        | ErrorCode::Gone
        | ErrorCode::IdempotencyConflict
        | ErrorCode::ResponseConflict
        | ErrorCode::Conflict
        | ErrorCode::JobSettled
        | ErrorCode::TransferConflict
        | ErrorCode::JobConflict
        | ErrorCode::TooLarge
        | ErrorCode::UriTooLong
        | ErrorCode::UnsupportedMediaType
        | ErrorCode::HeadersTooLarge
        | ErrorCode::RequestTimeout
        | ErrorCode::ExecutionError
        | ErrorCode::AgentUnreachable
        | ErrorCode::Unavailable
        | ErrorCode::Timeout => Enough,
    }
}

fn frame_step(command: &RefusedCommand<'_>, code: FrameCode, message: &str) -> RefusalStep {
    let RefusedCommand { agent, hub, .. } = command;
    let grant = || {
        format!(
            "another agent allows it with: chorus grant add {agent}. An organisation is addressed by its members: chorus org list"
        )
    };
    match code {
        FrameCode::ScopeUnauthorised => Instead(format!(
            "{agent} may not address these sessions; {}",
            grant()
        )),
        FrameCode::Forbidden if message.contains("granted") => {
            Instead(format!("{agent} may not see these sessions; {}", grant()))
        }
        FrameCode::Blocked => Next("only the receiver can lift it".into()),
        FrameCode::NotAContact => contact_step(agent),
        FrameCode::RateLimited => {
            Instead("too many frames in a short time; wait a minute and run it again".into())
        }
        FrameCode::TooManyStreams => {
            Next(format!("end another chorus watch or chorus mcp of {agent}"))
        }
        FrameCode::Internal => Next(format!("the log of {hub} has the reason")),
        FrameCode::JsonInvalid
        | FrameCode::EnvelopeVersionUnsupported
        | FrameCode::KindUnknown
        | FrameCode::PayloadKindMismatch
        | FrameCode::FieldMissing
        | FrameCode::FieldInvalid
        | FrameCode::FieldUnknown
        | FrameCode::FilterAxisUnknown
        | FrameCode::FilterValueInvalid
        | FrameCode::ExpansionTooLarge
        | FrameCode::Unauthenticated
        | FrameCode::Forbidden
        | FrameCode::SenderIdentityMismatch
        | FrameCode::NotFound
        | FrameCode::MethodNotAllowed
        | FrameCode::RequestTimeout
        | FrameCode::Conflict
        | FrameCode::FrameTooLarge
        | FrameCode::UriTooLong
        | FrameCode::UnsupportedMediaType
        | FrameCode::HeadersTooLarge
        | FrameCode::ScopeUnimplemented
        | FrameCode::Unavailable
        | FrameCode::BusUnavailable => Enough,
    }
}

/// For a command without an identity: a saved key that is refused is named with its file.
fn key_step(hub: &str) -> RefusalStep {
    Instead(format!(
        "the hub {hub} answers this to registered agents only; run: chorus register NAME --hub {hub}"
    ))
}

fn invite_step(hub: &str) -> RefusalStep {
    Next(format!(
        "ask the operator of {hub} for a code, then: chorus register NAME --hub {hub} --invite-code CODE"
    ))
}

fn contact_step(agent: &str) -> RefusalStep {
    Next(format!(
        "the receiver allows it by writing to you first, or with: chorus contacts --add {agent}"
    ))
}
