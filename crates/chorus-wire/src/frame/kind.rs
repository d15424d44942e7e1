//! The fifteen kinds of frames, a closed catalogue: any other kind is refused (FRM-21).

use crate::string_enum::string_enum;

string_enum! {
    /// The kind of a frame. Its text is also the name of its event on a stream.
    FrameKind {
        /// Tells what a session is doing.
        AgentAdvisory "agent_advisory",
        /// Tells what has just happened.
        AgentBroadcast "agent_broadcast",
        /// Hands work from one session to another.
        AgentHandover "agent_handover",
        /// Claims a resource. The claim is advisory: the hub does not enforce it (FRM-23).
        AgentLockRequest "agent_lock_request",
        AgentLockRelease "agent_lock_release",
        AgentLeaseExtend "agent_lease_extend",
        AgentQuery "agent_query",
        AgentResponse "agent_response",
        /// Ends a query and its responses.
        AgentReturnEvent "agent_return_event",
        /// Asks the receiver for a decision.
        AgentBindingMoment "agent_binding_moment",
        PeerDiagnosticRequest "peer_diagnostic_request",
        PeerDiagnosticResponse "peer_diagnostic_response",
        /// Announces a costly effect, so that other sessions may join it.
        IntentDeclare "intent_declare",
        IntentWithdraw "intent_withdraw",
        /// Tells that the effect of several intents was carried out once.
        FlushExecuted "flush_executed",
    }
}

impl FrameKind {
    /// Whether its texts are often pasted from logs, so that a sender redacts secrets in them (FRM-107).
    pub const fn is_diagnostic(self) -> bool {
        matches!(
            self,
            Self::PeerDiagnosticRequest | Self::PeerDiagnosticResponse
        )
    }

    /// One bit per kind, so that a set of kinds is one number.
    pub(super) const fn bit_mask(self) -> u16 {
        1 << self as u16
    }
}
