//! The frame label: what decides, now or when a session resumes, which sessions a frame is for.

use super::session::FrameSession;
use crate::store::AgentId;
use chorus_wire::frame::{FrameKind, FrameScope, ScopeIdent};
use chorus_wire::identity::Handle;

/// Built once per frame and shared by the rings of all its targets.
#[derive(Debug)]
pub(super) struct FrameLabel {
    pub kind: FrameKind,
    pub sender: Handle,
    pub tool: Option<ScopeIdent>,
    pub org: Option<Handle>,
    pub selector: SessionSelector,
    pub excluded: Option<ExcludedSession>,
}

/// Which sessions of a handle the scope names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SessionSelector {
    All,
    Prefix(ScopeIdent),
    Session(ScopeIdent, ScopeIdent),
}

impl SessionSelector {
    pub fn from_scope(scope: &FrameScope) -> Self {
        match scope {
            FrameScope::Handle(_)
            | FrameScope::OrgMembers(_)
            | FrameScope::OrgRole(..)
            | FrameScope::Accord(..) => Self::All,
            FrameScope::Prefix(_, prefix) => Self::Prefix(prefix.clone()),
            FrameScope::Session(_, instrument, session) => {
                Self::Session(instrument.clone(), session.clone())
            }
        }
    }

    fn matches_session(&self, session: &FrameSession) -> bool {
        match self {
            Self::All => true,
            Self::Prefix(prefix) => session.instrument.as_str().starts_with(prefix.as_str()),
            Self::Session(instrument, id) => {
                session.instrument == *instrument && session.session_id == *id
            }
        }
    }
}

/// The submitting session, when it does not want to receive its own frame.
#[derive(Debug)]
pub(super) struct ExcludedSession {
    pub principal: AgentId,
    /// Without one, the session id alone identifies it.
    pub instrument: Option<ScopeIdent>,
    pub session: ScopeIdent,
}

impl ExcludedSession {
    fn is_session(&self, session: &FrameSession) -> bool {
        session.principal == self.principal
            && session.session_id == self.session
            && self
                .instrument
                .as_ref()
                .is_none_or(|instrument| *instrument == session.instrument)
    }
}

impl FrameLabel {
    /// Whether the session receives the frame: the scope names it, it is not excluded, and its filter matches.
    pub fn admits_session(&self, session: &FrameSession) -> bool {
        self.selector.matches_session(session)
            && !self
                .excluded
                .as_ref()
                .is_some_and(|excluded| excluded.is_session(session))
            && session.filter.matches(
                self.kind,
                &self.sender,
                self.tool.as_ref().map(ScopeIdent::as_str),
                self.org.as_ref(),
            )
    }
}
