//! The frame protocol: who may announce what to whom, and how a frame reaches live sessions. A frame is kept for minutes, in the
//! rings of the handles that it was sent to. Only authorisation reads the store, and only locks, decisions and handovers are
//! written to it, where they stay until they end.

pub mod accords;
mod addressing_cache;
mod cluster_handler;
mod frame_label;
mod frame_ring;
pub mod grants;
mod handle_sessions;
mod item_change;
mod open_items;
mod open_stream;
pub mod organisations;
mod recent_submissions;
mod replicate;
mod resolve_scope;
mod ring_memory;
mod roster;
mod session;
mod session_registry;
mod shared_frame;
mod stream_position;
mod submit;
mod subscription;

use crate::store::AgentId;
pub use frame_ring::{RING_RETENTION, RingRetention};
pub use open_items::{list_open_items, take_handover, withdraw_item};
pub use open_stream::{FrameStreamRequest, open_stream};
pub use roster::list_roster;
pub use submit::{FrameSubmitter, find_owner_handle, submit_frame};

use crate::cluster::FrameStream;
use crate::context::HubContext;
use crate::stream_end::StreamEnd;
use addressing_cache::{AddressingCache, AddressingChange};
use chorus_wire::identity::Handle;
use recent_submissions::RecentSubmissions;
use session_registry::SessionRegistry;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The state of the frame protocol on this hub. Cheap to clone; every clone is the same.
#[derive(Clone)]
pub struct Frames(Arc<FramesInner>);

struct FramesInner {
    context: HubContext,
    registry: SessionRegistry,
    recent_submissions: RecentSubmissions,
    addressing_cache: AddressingCache,
}

/// A reference that does not keep the hub open.
#[derive(Clone)]
pub(crate) struct WeakFrames(Weak<FramesInner>);

impl WeakFrames {
    /// `None` when the hub is gone.
    pub fn upgrade(&self) -> Option<Frames> {
        self.0.upgrade().map(Frames)
    }
}

impl Frames {
    pub(crate) fn new(context: HubContext) -> Self {
        let registry = SessionRegistry::with_memory(context.options().memory.frame_rings);
        Self(Arc::new(FramesInner {
            context,
            registry,
            recent_submissions: RecentSubmissions::default(),
            addressing_cache: AddressingCache::default(),
        }))
    }

    pub(crate) fn downgrade(&self) -> WeakFrames {
        WeakFrames(Arc::downgrade(&self.0))
    }

    pub(crate) fn context(&self) -> &HubContext {
        &self.0.context
    }

    /// The time by which rings and submissions expire.
    fn monotonic_now(&self) -> Duration {
        self.context().clock().monotonic_now()
    }

    /// The frame stream of the cluster; `None` on a hub without peers, which emits frames to its own sessions only.
    fn frame_stream(&self) -> Option<&FrameStream> {
        self.context()
            .cluster()
            .map(|cluster| cluster.frame_stream())
    }

    fn registry(&self) -> &SessionRegistry {
        &self.0.registry
    }

    fn recent_submissions(&self) -> &RecentSubmissions {
        &self.0.recent_submissions
    }

    fn addressing_cache(&self) -> &AddressingCache {
        &self.0.addressing_cache
    }

    /// Ends every session of the principal. The frames of an unregistered one are dropped; after a rotation they stay.
    pub(crate) fn end_streams(&self, principal: AgentId, reason: StreamEnd) {
        self.registry()
            .end_sessions(principal, reason, self.monotonic_now());
    }

    /// Ends the sessions of this principal on this hub that a key opened.
    pub(crate) fn end_key_streams(
        &self,
        principal: AgentId,
        key_hash: &[u8; 32],
        reason: StreamEnd,
    ) {
        self.registry()
            .end_key_sessions(principal, key_hash, reason, self.monotonic_now());
    }

    /// These organisations were changed or deleted; called after the commit.
    pub(crate) fn invalidate_orgs(&self, orgs: impl IntoIterator<Item = Handle>) {
        self.addressing_cache()
            .invalidate(orgs.into_iter().map(AddressingChange::Org));
    }

    /// How many live sessions a principal has on this hub.
    fn session_count(&self, principal: AgentId) -> usize {
        self.registry().session_count(principal)
    }

    /// Ends every session.
    pub(crate) fn drain_streams(&self) {
        self.registry().drain_sessions(self.monotonic_now());
    }

    /// Drops rings and submissions that are past their retention.
    pub(crate) fn sweep_expired(&self) {
        let now = self.monotonic_now();
        self.registry().sweep_expired(now);
        self.recent_submissions().sweep_expired(now);
    }
}
