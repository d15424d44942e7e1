//! The session that sends frames through a tool, and the fields of every frame it sends (FRM-06…19, R-04, R-43).

use crate::mcp::tool_call::ToolCall;
use crate::mcp::tool_error::ToolError;
use chorus_hub::frame::{self, FrameSubmitter};
use chorus_hub::random;
use chorus_wire::frame::{
    ComputeLocation, ENVELOPE_VERSION, FrameError, FrameKind, FrameScope, ScopeIdent,
    SubmissionReply,
};
use chorus_wire::identity::Handle;
use serde::Serialize;
use serde_json::json;

/// Whose session speaks, and to whom. Where an argument is left out the request's headers say it.
#[derive(Clone, Debug, Default)]
pub struct SenderArgs {
    pub scope: Option<FrameScope>,
    pub instrument: Option<ScopeIdent>,
    pub session: Option<ScopeIdent>,
}

/// Defines the arguments of a tool that sends a frame: its own, and those of [`SenderArgs`].
macro_rules! frame_tool_args {
    ($(#[doc = $about:literal])* $name:ident { $($fields:tt)+ }) => {
        chorus_wire::wire_object! {
            $(#[doc = $about])* $name, refuses unknown => {
                $($fields)+
                /// As narrow as will do: ~me/cc@s1, ~me/cc-*; else ~me.
                nullable scope: chorus_wire::frame::FrameScope = chorus_wire::frame::SCOPE_CHECK;
                /// Your program.
                nullable instrument: chorus_wire::frame::ScopeIdent = chorus_wire::frame::IDENT_CHECK;
                /// Your session.
                nullable session: chorus_wire::frame::ScopeIdent = chorus_wire::frame::IDENT_CHECK;
            }
        }

        impl From<&$name> for super::sender::SenderArgs {
            fn from(args: &$name) -> Self {
                Self {
                    scope: args.scope.clone(),
                    instrument: args.instrument.clone(),
                    session: args.session.clone(),
                }
            }
        }
    };
}
pub(super) use frame_tool_args;

/// A session about to send a frame.
pub struct FrameSender {
    pub handle: Handle,
    pub scope: FrameScope,
    pub instrument: ScopeIdent,
    pub session: Option<ScopeIdent>,
    tool: Option<ScopeIdent>,
    /// The own handle, or that of the owner for an instrument.
    acted_by: Handle,
    compute_location: ComputeLocation,
}

/// FRM-15: where the model runs that calls a tool is not known here. Most run on a server, and a frame must not claim that
/// nothing left the device if it did.
const DEFAULT_COMPUTE: ComputeLocation = ComputeLocation::ServerActive;

/// The instrument and session name of a session that names none.
const DEFAULT_NAME: &str = "mcp";

impl FrameSender {
    pub async fn from_call(
        call: &ToolCall,
        args: impl Into<SenderArgs>,
    ) -> Result<Self, ToolError> {
        let handle = own_handle(call)?;
        let args: SenderArgs = args.into();
        let headers = &call.session;
        let instrument = match args.instrument {
            Some(instrument) => Some(instrument),
            None => parse_header("instrument", headers.instrument.as_deref())?,
        };
        let default_instrument = || {
            ScopeIdent::parse(DEFAULT_NAME)
                .ok_or_else(|| ToolError::invalid_argument("instrument", "it is required"))
        };
        let session = match args.session {
            Some(session) => Some(session),
            None => parse_header("session", headers.session.as_deref())?,
        };
        Ok(Self {
            scope: args
                .scope
                .unwrap_or_else(|| FrameScope::Handle(handle.clone())),
            instrument: instrument.map_or_else(default_instrument, Ok)?,
            session,
            tool: parse_header("X-Chorus-Tool", headers.tool.as_deref())?,
            acted_by: find_principal_handle(call, &handle).await?,
            compute_location: parse_compute_header(headers.compute.as_deref())?,
            handle,
        })
    }

    /// The scope of this session, or of all sessions of the handle when it named none.
    pub fn session_scope(&self) -> FrameScope {
        match &self.session {
            Some(session) => FrameScope::Session(
                self.handle.clone(),
                self.instrument.clone(),
                session.clone(),
            ),
            None => FrameScope::Handle(self.handle.clone()),
        }
    }

    /// The session's id, for frames that require one.
    pub fn session_id(&self) -> String {
        self.session
            .as_ref()
            .map_or_else(|| DEFAULT_NAME.to_owned(), ScopeIdent::to_string)
    }

    /// Names the session in frames to the own handle; other handles must not learn it (FRM-111).
    pub fn provenance_basis(&self) -> Option<String> {
        let is_own_scope = self.scope.addressed_handle() == &self.handle;
        self.session
            .as_ref()
            .filter(|_| is_own_scope)
            .map(|session| format!("session:{}@{session}", self.instrument))
    }

    /// Submits a frame whose provenance says that a model made it with a tool and that nothing was checked (FRM-14…19).
    pub async fn submit_frame(
        &self,
        call: &ToolCall,
        kind: FrameKind,
        payload: impl Serialize,
        ttl_ms: Option<u64>,
    ) -> Result<SubmissionReply, ToolError> {
        let provenance_basis = self
            .provenance_basis()
            .unwrap_or_else(|| "tool-call".to_owned());
        let mut frame = json!({
            "envelope_version": ENVELOPE_VERSION,
            "frame_id": random::new_id(),
            "kind": kind,
            "sender_handle": self.handle,
            "recipient_handle": self.scope.addressed_handle(),
            "created_at": call.state.hub.clock().now(),
            "payload": payload,
            "acted_by": self.acted_by,
            "drafted_with": drafter_handle(&self.instrument),
            "provenance_compute_location": self.compute_location,
            "provenance_method": ["mcp-tool"],
            "provenance_context_check": "skipped",
            "provenance_basis": provenance_basis,
        });
        if let Some(ttl_ms) = ttl_ms {
            frame["ttl_ms"] = json!(ttl_ms);
        }
        let body = json!({"scope": self.scope.to_string(), "frame": frame}).to_string();
        let submitter = FrameSubmitter {
            instrument: Some(self.instrument.clone()),
            session: self.session.clone(),
            tool: self.tool.clone(),
            exclude_self: false,
        };
        Ok(frame::submit_frame(
            &call.principal,
            call.state.hub.frames(),
            body.as_bytes(),
            submitter,
        )
        .await?)
    }
}

/// The handle that frames name in `acted_by`: an instrument acts for its owner.
async fn find_principal_handle(call: &ToolCall, own: &Handle) -> Result<Handle, ToolError> {
    if !own.is_instrument() {
        return Ok(own.clone());
    }
    let owner = frame::find_owner_handle(call.state.hub.frames(), call.calling_agent()?).await?;
    owner.ok_or_else(|| {
        let reason = "this agent is an instrument (~cc-…), and its owner has no handle to act for";
        ToolError::invalid_argument("scope", reason)
    })
}

fn parse_compute_header(given: Option<&str>) -> Result<ComputeLocation, ToolError> {
    let Some(text) = given else {
        return Ok(DEFAULT_COMPUTE);
    };
    ComputeLocation::parse(text).ok_or_else(|| {
        let requirement = format!("one of {}", ComputeLocation::TEXTS.join(", "));
        FrameError::invalid_field("X-Chorus-Compute", requirement).into()
    })
}

fn parse_header(name: &str, given: Option<&str>) -> Result<Option<ScopeIdent>, ToolError> {
    let Some(text) = given else { return Ok(None) };
    match ScopeIdent::parse(text) {
        Some(ident) => Ok(Some(ident)),
        None => Err(FrameError::invalid_field(name, ScopeIdent::REQUIREMENT).into()),
    }
}

/// The handle of the instrument: `~cc-editor` for `editor` and `cc-editor`.
fn drafter_handle(instrument: &ScopeIdent) -> String {
    let name = instrument.as_str().to_ascii_lowercase();
    let mut drafter = format!("~cc-{}", name.strip_prefix("cc-").unwrap_or(&name));
    drafter.truncate(65);
    drafter
}

pub fn own_handle(call: &ToolCall) -> Result<Handle, ToolError> {
    let handle = call
        .calling_agent()?
        .handle
        .as_deref()
        .and_then(Handle::parse);
    handle.ok_or_else(|| {
        let host = &call.state.hub.options().host_name;
        let reason = "this agent has no handle, and frames are for handles: only an address of lower-case letters, digits and dashes";
        ToolError::invalid_argument("scope", format!("{reason} at {host} has one"))
    })
}

/// A summary of how many sessions received a frame.
pub fn describe_reach(submitted: &SubmissionReply) -> String {
    match (submitted.recipient_count, submitted.coarse) {
        (0, _) => "no session is listening".to_owned(),
        (1, false) => "1 session has it".to_owned(),
        (_, _) => format!("{} have it", submitted.describe_count()),
    }
}
