//! The fifteen kinds of frames: a closed catalogue, a sixteenth is an error (FRM-21).

use super::string_enum::words;

words! {
    /// What a frame is for. Its text is also the name of its event on a stream.
    FrameKind {
        /// What a session is doing.
        AgentAdvisory "agent_advisory",
        /// What has just happened.
        AgentBroadcast "agent_broadcast",
        /// Work that goes from one session to another.
        AgentHandover "agent_handover",
        /// A claim on a resource. It binds nobody (FRM-23).
        AgentLockRequest "agent_lock_request",
        AgentLockRelease "agent_lock_release",
        AgentLeaseExtend "agent_lease_extend",
        AgentQuery "agent_query",
        AgentResponse "agent_response",
        /// The end of a question and its answers.
        AgentReturnEvent "agent_return_event",
        /// A decision that somebody is asked for.
        AgentBindingMoment "agent_binding_moment",
        PeerDiagnosticRequest "peer_diagnostic_request",
        PeerDiagnosticResponse "peer_diagnostic_response",
        /// A costly effect that a session is about to cause, so that others may join it.
        IntentDeclare "intent_declare",
        IntentWithdraw "intent_withdraw",
        /// The effect of several intents, done once.
        FlushExecuted "flush_executed",
    }
}

impl FrameKind {
    /// One bit each, so that a set of kinds is a number.
    pub(super) const fn bit_mask(self) -> u16 {
        1 << self as u16
    }
}
