//! A session that speaks: who it is, and what stands in every frame of its (FRM-06…19, R-04).

use chorus_wire::frame::{
    ComputeLocation, ContextCheck, Frame, FrameDraft, FrameProvenance, FrameScope, Payload,
    ScopeIdent,
};
use chorus_wire::{identity::Handle, time::UnixMicros};
use uuid::Uuid;

/// In front of a session in `provenance_basis`.
const SESSION_PREFIX: &str = "session:";
/// What a frame rests on towards others, who need not know which of our sessions it was (FRM-111).
const COMMAND_BASIS: &str = "command";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameSender {
    pub handle: Handle,
    pub instrument: ScopeIdent,
    pub session: ScopeIdent,
    /// Absent, the hub takes it from the instrument.
    pub tool: Option<ScopeIdent>,
    pub acted_by: Handle,
    pub drafted_with: String,
    pub ttl_ms: Option<u64>,
    pub compute_location: ComputeLocation,
    pub method: Vec<String>,
    pub return_ref: Option<String>,
    pub context_check: ContextCheck,
    /// Absent, it names the session towards our own sessions, and only that it was a command towards others.
    pub basis: Option<String>,
}

impl FrameSender {
    /// A session of `handle` with honest words about itself: nothing was checked, everything was made here.
    pub fn new(handle: Handle, instrument: ScopeIdent, session: ScopeIdent) -> Self {
        Self {
            acted_by: handle.clone(),
            drafted_with: drafter_handle(&instrument),
            handle,
            instrument,
            session,
            tool: None,
            ttl_ms: None,
            compute_location: ComputeLocation::LocalOnly,
            method: vec!["command-line".into()],
            return_ref: None,
            context_check: ContextCheck::Skipped,
            basis: None,
        }
    }

    /// This session and no other (FRM-52).
    pub fn session_scope(&self) -> FrameScope {
        FrameScope::Session(
            self.handle.clone(),
            self.instrument.clone(),
            self.session.clone(),
        )
    }

    /// All sessions of the speaker: where advisories go unless told otherwise (FRM-22).
    pub fn handle_scope(&self) -> FrameScope {
        FrameScope::Handle(self.handle.clone())
    }

    pub fn draft_frame(&self, scope: &FrameScope, payload: Payload, now: UnixMicros) -> FrameDraft {
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

    /// Whether this session said it, as far as a frame tells.
    pub fn is_sender_of(&self, frame: &Frame) -> bool {
        let session = Some((self.instrument.as_str(), self.session.as_str()));
        frame.sender_handle == self.handle && frame_session(frame) == session
    }
}

/// The instrument and session that a frame says it comes from. Frames have no field of their own for it; the hub has
/// checked the handle, and between the sessions of one handle a word is enough.
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

/// A new UUIDv4 for a frame, a lease, a question.
pub fn random_uuid() -> Uuid {
    uuid::Builder::from_random_bytes(rand::random()).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_wire::frame::payload::AgentAdvisory;

    fn speaker(instrument: &str) -> FrameSender {
        let ident = |text| ScopeIdent::parse(text).unwrap();
        FrameSender::new(
            Handle::parse("~alice").unwrap(),
            ident(instrument),
            ident("s1"),
        )
    }

    fn advisory() -> Payload {
        AgentAdvisory {
            advisory_text: "hi".into(),
            file_refs: None,
            worktree: None,
            branch: None,
        }
        .into()
    }

    // every instrument has a drafter that a hub takes.
    #[test]
    fn what_any_instrument_says_passes_the_hubs_checks() {
        let long = "A".repeat(128);
        for instrument in ["cli", "cc-editor", "Cursor.1_x-", "-", ".", long.as_str()] {
            let speaker = speaker(instrument);
            let frame = speaker
                .draft_frame(&speaker.handle_scope(), advisory(), UnixMicros(0))
                .to_frame()
                .unwrap();
            assert!(speaker.is_sender_of(&frame), "{instrument}");
        }
        assert_eq!(speaker("cc-editor").drafted_with, "~cc-editor");
    }

    // FRM-111
    #[test]
    fn others_do_not_learn_which_session_it_was() {
        let speaker = speaker("cli");
        let org = FrameScope::parse("org:~acme/members/*").unwrap();
        let frame = speaker
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
