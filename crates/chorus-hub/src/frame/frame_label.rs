//! What is known of a frame besides its text: enough to say, now or when somebody resumes, which sessions it is for.

use super::session::FrameSession;
use chorus_wire::frame::{FrameKind, FrameScope, ScopeIdent};
use chorus_wire::identity::Handle;

/// Made once for a frame and shared by the rings of all it goes to.
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

/// The session that submitted the frame and does not want to hear it.
#[derive(Debug)]
pub(super) struct ExcludedSession {
    pub principal: i64,
    /// Without one, the session's id alone tells it apart.
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
    /// Whether the session is to have it: the scope names it, it is not the sender's own, and its filter lets it through.
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
