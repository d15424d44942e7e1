//! What is known of a frame besides its text: enough to say, now or when somebody resumes, which sessions it is for.

use super::session::Session;
use chorus_wire::frame::{Ident, Kind, Scope};
use chorus_wire::identity::Handle;

/// Made once for a frame and shared by the rings of all it goes to.
#[derive(Debug)]
pub(super) struct Label {
    pub kind: Kind,
    pub sender: Handle,
    pub tool: Option<Ident>,
    pub org: Option<Handle>,
    pub only: Only,
    pub except: Option<Except>,
}

/// Which sessions of a handle the scope names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Only {
    All,
    Prefix(Ident),
    One(Ident, Ident),
}

impl Only {
    pub fn of(scope: &Scope) -> Self {
        match scope {
            Scope::Handle(_) | Scope::OrgMembers(_) | Scope::OrgRole(..) | Scope::Accord(..) => {
                Self::All
            }
            Scope::Prefix(_, prefix) => Self::Prefix(prefix.clone()),
            Scope::Session(_, instrument, session) => {
                Self::One(instrument.clone(), session.clone())
            }
        }
    }

    fn names(&self, session: &Session) -> bool {
        match self {
            Self::All => true,
            Self::Prefix(prefix) => session.instrument.as_str().starts_with(prefix.as_str()),
            Self::One(instrument, id) => {
                session.instrument == *instrument && session.session == *id
            }
        }
    }
}

/// The session that submitted the frame and does not want to hear it.
#[derive(Debug)]
pub(super) struct Except {
    pub principal: i64,
    /// Without one, the session's id alone tells it apart.
    pub instrument: Option<Ident>,
    pub session: Ident,
}

impl Except {
    fn is(&self, session: &Session) -> bool {
        session.principal == self.principal
            && session.session == self.session
            && self
                .instrument
                .as_ref()
                .is_none_or(|instrument| *instrument == session.instrument)
    }
}

impl Label {
    /// Whether the session is to have it: the scope names it, it is not the sender's own, and its filter lets it through.
    pub fn admits(&self, session: &Session) -> bool {
        self.only.names(session)
            && !self
                .except
                .as_ref()
                .is_some_and(|except| except.is(session))
            && session.filter.matches(
                self.kind,
                &self.sender,
                self.tool.as_ref().map(Ident::as_str),
                self.org.as_ref(),
            )
    }
}
