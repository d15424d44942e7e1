//! The rules of frames: who may announce what to whom, and how it reaches their live sessions. Nothing here touches the store
//! but the question who may; a frame lives in the rings of the handles it went to, for minutes, and nowhere else.

pub mod accords;
mod addressing_cache;
mod frame_label;
mod frame_ring;
pub mod grants;
mod handle_sessions;
mod open_stream;
pub mod organisations;
mod recent_submissions;
mod replicate;
mod resolve_scope;
mod roster;
mod session;
mod session_registry;
mod stream_position;
mod submit;
mod subscription;

pub use frame_ring::{RING_RETENTION, RingRetention};
pub use open_stream::{FrameStreamRequest, open_stream};
pub(crate) use recent_submissions::RecentSubmissions;
pub(crate) use replicate::{answer_frame_query, apply_frame_message};
pub use roster::list_roster;
pub(crate) use session_registry::SessionRegistry;
pub use submit::{FrameSubmitter, submit_frame};

use crate::store::CacheInvalidation;
use crate::stream_end::StreamEnd;
use chorus_wire::identity::Handle;
use std::time::Duration;

/// What the hub keeps of frames.
#[derive(Default)]
pub(crate) struct FrameService {
    registry: SessionRegistry,
    recent_submissions: RecentSubmissions,
    addressing_cache: addressing_cache::AddressingCache,
}

impl FrameService {
    /// Ends every stream of the principal. A gone one's frames go with it; a new key finds what the old one was sent.
    pub fn end_streams(&self, principal: i64, reason: StreamEnd, now: Duration) {
        self.registry.end_sessions(principal, reason, now);
    }

    /// These organisations have changed, or are no more; to be called after the commit.
    pub fn invalidate_orgs(&self, orgs: impl IntoIterator<Item = Handle>) {
        self.addressing_cache.invalidate(
            orgs.into_iter()
                .map(addressing_cache::AddressingChange::Org),
        );
    }

    /// Forgets what a notice of another hub's write speaks of.
    pub fn apply_invalidation(&self, invalidation: &CacheInvalidation) {
        self.invalidate_orgs(
            invalidation
                .orgs
                .iter()
                .filter_map(|handle| Handle::parse(handle)),
        );
        let grants = invalidation
            .grants
            .iter()
            .map(|(grantor, grantee)| (*grantor, *grantee));
        self.addressing_cache
            .invalidate(grants.map(|(grantor, grantee)| {
                addressing_cache::AddressingChange::Grant { grantor, grantee }
            }));
    }

    /// The memory that all hubs share begins at this place, or was lost and begins anew.
    pub fn reset_frame_stream(&self, epoch: u64, floor: u64) {
        self.registry.reset_frame_stream(epoch, floor);
    }

    /// Forgets everything that was looked up.
    pub fn clear_caches(&self) {
        self.addressing_cache.clear_all();
    }

    /// How many live sessions a principal has here.
    pub fn session_count(&self, principal: i64) -> usize {
        self.registry.session_count(principal)
    }

    /// Ends every stream.
    pub fn drain_streams(&self, now: Duration) {
        self.registry.drain_sessions(now);
    }

    /// Lets go of what is past its time.
    pub fn sweep_expired(&self, now: Duration) {
        self.registry.sweep_expired(now);
        self.recent_submissions.sweep_expired(now);
    }
}
