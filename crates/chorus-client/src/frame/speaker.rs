//! A session that speaks: who it is, and what stands in every frame of its (FRM-06…19, R-04).

use chorus_wire::frame::{
    ComputeLocation, ContextCheck, Frame, FrameDraft, Ident, Payload, Provenance, Scope,
};
use chorus_wire::{identity::Handle, time::Micros};
use uuid::Uuid;

/// In front of a session in `provenance_basis`.
const SESSION: &str = "session:";
/// What a frame rests on towards others, who need not know which of our sessions it was (FRM-111).
const COMMAND: &str = "command";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Speaker {
    pub handle: Handle,
    pub instrument: Ident,
    pub session: Ident,
    /// Absent, the hub takes it from the instrument.
    pub tool: Option<Ident>,
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

impl Speaker {
    /// A session of `handle` with honest words about itself: nothing was checked, everything was made here.
    pub fn new(handle: Handle, instrument: Ident, session: Ident) -> Self {
        Self {
            acted_by: handle.clone(),
            drafted_with: drafter(&instrument),
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
    pub fn here(&self) -> Scope {
        Scope::Session(
            self.handle.clone(),
            self.instrument.clone(),
            self.session.clone(),
        )
    }

    /// All sessions of the speaker: where advisories go unless told otherwise (FRM-22).
    pub fn own(&self) -> Scope {
        Scope::Handle(self.handle.clone())
    }

    pub fn draft(&self, scope: &Scope, payload: Payload, now: Micros) -> FrameDraft {
        let named = || match scope.names() == &self.handle {
            true => format!("{SESSION}{}@{}", self.instrument, self.session),
            false => COMMAND.to_owned(),
        };
        FrameDraft {
            frame_id: new_id(),
            sender_handle: self.handle.clone(),
            recipient_handle: scope.names().clone(),
            created_at: now,
            ttl_ms: self.ttl_ms,
            payload,
            acted_by: self.acted_by.clone(),
            drafted_with: self.drafted_with.clone(),
            provenance: Provenance {
                compute_location: self.compute_location,
                method: self.method.clone(),
                return_ref: self.return_ref.clone(),
                context_check: self.context_check,
                basis: self.basis.clone().unwrap_or_else(named),
            },
        }
    }

    /// Whether this session said it, as far as a frame tells.
    pub fn said(&self, frame: &Frame) -> bool {
        let here = Some((self.instrument.as_str(), self.session.as_str()));
        frame.sender_handle == self.handle && session_of(frame) == here
    }
}

/// The instrument and session that a frame says it comes from. Frames have no field of their own for it; the hub has
/// checked the handle, and between the sessions of one handle a word is enough.
pub fn session_of(frame: &Frame) -> Option<(&str, &str)> {
    frame
        .provenance
        .basis
        .strip_prefix(SESSION)?
        .split_once('@')
}

/// `~cc-editor` for the instruments `editor` and `cc-editor`.
fn drafter(instrument: &Ident) -> String {
    let name = instrument.as_str().to_ascii_lowercase();
    let name = name.strip_prefix("cc-").unwrap_or(&name);
    let mut drafter = format!("~cc-{name}");
    drafter.truncate(65);
    drafter
}

/// A new UUIDv4 for a frame, a lease, a question.
pub fn new_id() -> Uuid {
    uuid::Builder::from_random_bytes(rand::random()).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_wire::frame::payload::AgentAdvisory;

    fn speaker(instrument: &str) -> Speaker {
        let ident = |text| Ident::parse(text).unwrap();
        Speaker::new(
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
                .draft(&speaker.own(), advisory(), Micros(0))
                .check()
                .unwrap();
            assert!(speaker.said(&frame), "{instrument}");
        }
        assert_eq!(speaker("cc-editor").drafted_with, "~cc-editor");
    }

    // FRM-111
    #[test]
    fn others_do_not_learn_which_session_it_was() {
        let speaker = speaker("cli");
        let org = Scope::parse("org:~acme/members/*").unwrap();
        let frame = speaker.draft(&org, advisory(), Micros(0)).check().unwrap();
        assert_eq!(session_of(&frame), None);
        assert!(!frame.text().contains("s1"), "{}", frame.text());
    }
}
