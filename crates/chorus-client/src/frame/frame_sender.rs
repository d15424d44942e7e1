//! The identity of a sending session, and the fields that it puts in each of its frames (FRM-06…19, R-04).

use chorus_wire::frame::{
    ComputeLocation, ContextCheck, Frame, FrameDraft, FramePayload, FrameProvenance, FrameScope,
    ScopeIdent,
};
use chorus_wire::{identity::Handle, time::UnixMicros};
use uuid::Uuid;

/// The prefix of a session in a frame's `provenance_basis`.
const SESSION_PREFIX: &str = "session:";
/// The `provenance_basis` towards other handles, which must not learn the session (FRM-111).
const COMMAND_BASIS: &str = "command";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameSender {
    pub handle: Handle,
    pub instrument: ScopeIdent,
    pub session: ScopeIdent,
    /// Without it the hub derives it from the instrument.
    pub tool: Option<ScopeIdent>,
    pub acted_by: Handle,
    pub drafted_with: String,
    pub ttl_ms: Option<u64>,
    pub compute_location: ComputeLocation,
    pub method: Vec<String>,
    pub return_ref: Option<String>,
    pub context_check: ContextCheck,
    /// Default: the session towards the sender's own sessions, `command` towards other handles.
    pub basis: Option<String>,
}

impl FrameSender {
    /// A session of `handle` with true default provenance: no context check, and computed on a server, because where a
    /// model runs is not known and a frame must not claim that nothing left the device (FRM-15, R-104).
    pub fn new(handle: Handle, instrument: ScopeIdent, session: ScopeIdent) -> Self {
        Self {
            acted_by: handle.clone(),
            drafted_with: drafter_handle(&instrument),
            handle,
            instrument,
            session,
            tool: None,
            ttl_ms: None,
            compute_location: ComputeLocation::ServerActive,
            method: vec!["command-line".into()],
            return_ref: None,
            context_check: ContextCheck::Skipped,
            basis: None,
        }
    }

    /// The scope of this session only (FRM-52).
    pub fn session_scope(&self) -> FrameScope {
        FrameScope::Session(
            self.handle.clone(),
            self.instrument.clone(),
            self.session.clone(),
        )
    }

    /// The scope of all sessions of the sender's handle: the default for advisories (FRM-22).
    pub fn handle_scope(&self) -> FrameScope {
        FrameScope::Handle(self.handle.clone())
    }

    pub fn draft_frame(
        &self,
        scope: &FrameScope,
        payload: FramePayload,
        now: UnixMicros,
    ) -> FrameDraft {
        let default_basis = || match scope.addressed_handle() == &self.handle {
            true => format!("{SESSION_PREFIX}{}@{}", self.instrument, self.session),
            false => COMMAND_BASIS.to_owned(),
        };
        FrameDraft {
            frame_id: random_uuid(),
            sender_handle: self.handle.clone(),
            recipient_handle: scope.addressed_handle().clone(),
            created_at: now,
            ttl_ms: self.ttl_ms,
            payload,
            acted_by: self.acted_by.clone(),
            drafted_with: self.drafted_with.clone(),
            provenance: FrameProvenance {
                compute_location: self.compute_location,
                method: self.method.clone(),
                return_ref: self.return_ref.clone(),
                context_check: self.context_check,
                basis: self.basis.clone().unwrap_or_else(default_basis),
            },
        }
    }

    /// Whether this session sent the frame, according to its provenance.
    pub fn is_sender_of(&self, frame: &Frame) -> bool {
        let session = Some((self.instrument.as_str(), self.session.as_str()));
        frame.sender_handle == self.handle && frame_session(frame) == session
    }
}

/// The instrument and session in a frame's provenance. Frames have no other field for it. The hub checks only the
/// handle; the sessions of one handle trust each other.
pub fn frame_session(frame: &Frame) -> Option<(&str, &str)> {
    frame
        .provenance
        .basis
        .strip_prefix(SESSION_PREFIX)?
        .split_once('@')
}

/// `~cc-editor` for the instruments `editor` and `cc-editor`.
fn drafter_handle(instrument: &ScopeIdent) -> String {
    let name = instrument.as_str().to_ascii_lowercase();
    let name = name.strip_prefix("cc-").unwrap_or(&name);
    let mut drafter = format!("~cc-{name}");
    drafter.truncate(65);
    drafter
}

/// A new UUIDv4 for a frame, a lease or a question.
pub fn random_uuid() -> Uuid {
    uuid::Builder::from_random_bytes(rand::random()).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_wire::frame::payload::AgentAdvisory;

    fn sender_of(instrument: &str) -> FrameSender {
        let ident = |text| ScopeIdent::parse(text).unwrap();
        FrameSender::new(
            Handle::parse("~alice").unwrap(),
            ident(instrument),
            ident("s1"),
        )
    }

    fn advisory() -> FramePayload {
        AgentAdvisory {
            advisory_text: "hi".into(),
            file_refs: None,
            worktree: None,
            branch: None,
        }
        .into()
    }

    // the hub accepts the drafter handle of every instrument.
    #[test]
    fn frames_of_any_instrument_pass_validation() {
        let long = "A".repeat(128);
        for instrument in ["cli", "cc-editor", "Cursor.1_x-", "-", ".", long.as_str()] {
            let sender = sender_of(instrument);
            let frame = sender
                .draft_frame(&sender.handle_scope(), advisory(), UnixMicros(0))
                .to_frame()
                .unwrap();
            assert!(sender.is_sender_of(&frame), "{instrument}");
        }
        assert_eq!(sender_of("cc-editor").drafted_with, "~cc-editor");
    }

    // FRM-15, R-104
    #[test]
    fn nothing_is_said_to_stay_on_the_device_unless_the_program_says_so() {
        let mut sender = sender_of("cli");
        let compute_location = |sender: &FrameSender| {
            let draft = sender.draft_frame(&sender.handle_scope(), advisory(), UnixMicros(0));
            draft.to_frame().unwrap().provenance.compute_location
        };
        assert_eq!(compute_location(&sender), ComputeLocation::ServerActive);
        sender.compute_location = ComputeLocation::LocalOnly;
        assert_eq!(compute_location(&sender), ComputeLocation::LocalOnly);
    }

    // FRM-111
    #[test]
    fn other_handles_do_not_learn_the_session() {
        let sender = sender_of("cli");
        let org = FrameScope::parse("org:~acme/members/*").unwrap();
        let frame = sender
            .draft_frame(&org, advisory(), UnixMicros(0))
            .to_frame()
            .unwrap();
        assert_eq!(frame_session(&frame), None);
        assert!(
            !frame.submitted_json().contains("s1"),
            "{}",
            frame.submitted_json()
        );
    }
}
