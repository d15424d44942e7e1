//! The session that speaks through a tool, and what stands in every frame of its (FRM-06…19, R-04, R-43).

use crate::mcp::call::{self, Call};
use crate::mcp::refusal::Refusal;
use chorus_hub::clock;
use chorus_hub::frame::{self, Submitter};
use chorus_wire::frame::{ENVELOPE_VERSION, FrameError, Ident, Kind, Scope, Submitted};
use chorus_wire::{identity::Handle, limits};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Whose session speaks, and to whom. Where an argument is left out the request's headers say it (R-43).
#[derive(Clone, Default, Deserialize, JsonSchema)]
pub struct Voice {
    /// The sessions it is for, such as ~me, ~me/cc-*, ~me/cc-editor@s1, org:~acme/members/*; all of your own without it.
    #[schemars(length(min = 1, max = limits::FRAME_PATH_OCTETS))]
    pub scope: Option<String>,
    /// The program you run in, such as cc-editor.
    #[schemars(length(min = 1, max = limits::SESSION_OCTETS), regex(pattern = r"^[A-Za-z0-9._-]+$"))]
    pub instrument: Option<String>,
    /// The id of your session, the same in every call.
    #[schemars(length(min = 1, max = limits::SESSION_OCTETS), regex(pattern = r"^[A-Za-z0-9._-]+$"))]
    pub session: Option<String>,
}

/// A session that is about to speak.
pub struct Speaker {
    pub handle: Handle,
    pub scope: Scope,
    pub instrument: Ident,
    pub session: Option<Ident>,
    tool: Option<Ident>,
}

/// What a session is called that says nothing of itself.
const UNNAMED: &str = "mcp";

impl Speaker {
    pub fn of(call: &Call, voice: &Voice) -> Result<Self, Refusal> {
        let handle = own_handle(call)?;
        let call::From {
            instrument,
            session,
            tool,
        } = &call.from;
        let named = |field: &str, said: Option<&String>| match said {
            Some(text) => Ident::parse(text)
                .map(Some)
                .ok_or_else(|| Refusal::from(FrameError::invalid(field, Ident::MUST))),
            None => Ok(None),
        };
        let instrument = named(
            "instrument",
            voice.instrument.as_ref().or(instrument.as_ref()),
        )?;
        let unnamed = || {
            Ident::parse(UNNAMED).ok_or_else(|| Refusal::argument("instrument", "it is required"))
        };
        let scope = match &voice.scope {
            Some(text) => text
                .parse()
                .map_err(|error: FrameError| Refusal::from(error).about("scope"))?,
            None => Scope::Handle(handle.clone()),
        };
        Ok(Self {
            scope,
            instrument: instrument.map_or_else(unnamed, Ok)?,
            session: named("session", voice.session.as_ref().or(session.as_ref()))?,
            tool: named("X-Chorus-Tool", tool.as_ref())?,
            handle,
        })
    }

    /// This session and no other, where it has said which it is.
    pub fn here(&self) -> Scope {
        match &self.session {
            Some(session) => Scope::Session(
                self.handle.clone(),
                self.instrument.clone(),
                session.clone(),
            ),
            None => Scope::Handle(self.handle.clone()),
        }
    }

    /// The session's id, for frames that must name one.
    pub fn session_id(&self) -> String {
        self.session
            .as_ref()
            .map_or_else(|| UNNAMED.to_owned(), Ident::to_string)
    }

    /// Which session it is, for those who may know: others need not (FRM-111).
    pub fn basis(&self) -> Option<String> {
        let own = self.scope.names() == &self.handle;
        self.session
            .as_ref()
            .filter(|_| own)
            .map(|session| format!("session:{}@{session}", self.instrument))
    }

    /// Submits a frame with honest words about itself: a model made it with a tool, and nothing was checked (FRM-14…19).
    pub async fn submit(
        &self,
        call: &Call,
        kind: Kind,
        payload: Value,
        ttl_ms: Option<u64>,
    ) -> Result<Submitted, Refusal> {
        let basis = self.basis().unwrap_or_else(|| "tool-call".to_owned());
        let mut frame = json!({
            "envelope_version": ENVELOPE_VERSION,
            "frame_id": clock::new_id(),
            "kind": kind,
            "sender_handle": self.handle,
            "recipient_handle": self.scope.names(),
            "created_at": call.doors.hub.clock().now(),
            "payload": payload,
            "acted_by": self.handle,
            "drafted_with": drafter(&self.instrument),
            "provenance_compute_location": "local-only",
            "provenance_method": ["mcp-tool"],
            "provenance_context_check": "skipped",
            "provenance_basis": basis,
        });
        if let Some(ttl_ms) = ttl_ms {
            frame["ttl_ms"] = json!(ttl_ms);
        }
        let body = json!({"scope": self.scope.to_string(), "frame": frame}).to_string();
        let from = Submitter {
            instrument: Some(self.instrument.clone()),
            session: self.session.clone(),
            tool: self.tool.clone(),
            exclude_self: false,
        };
        Ok(frame::submit(&call.who, &call.doors.hub, body.as_bytes(), from).await?)
    }
}

/// R-04: `~cc-editor` for the instruments `editor` and `cc-editor`.
fn drafter(instrument: &Ident) -> String {
    let name = instrument.as_str().to_ascii_lowercase();
    let mut drafter = format!("~cc-{}", name.strip_prefix("cc-").unwrap_or(&name));
    drafter.truncate(65);
    drafter
}

pub fn own_handle(call: &Call) -> Result<Handle, Refusal> {
    let handle = call.me()?.handle.as_deref().and_then(Handle::parse);
    handle.ok_or_else(|| {
        let host = &call.doors.hub.options().host_name;
        let why = "this agent has no handle, and frames are for handles: only an address of lower-case letters, digits and dashes";
        Refusal::argument("scope", format!("{why} at {host} has one"))
    })
}

/// How far a frame went, in words.
pub fn reached(count: u64) -> String {
    match count {
        0 => "nobody is listening".to_owned(),
        1 => "1 session has it".to_owned(),
        many => format!("{many} sessions have it"),
    }
}
