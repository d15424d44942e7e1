//! The live streams of a hub in a cluster: entries are published to local streams, and streams of peers count as well.

use super::frame_stream::RegisteredFrames;
use super::log_follower::LogFollower;
use super::membership::Membership;
use crate::delivery::{LiveStreams, LocalStreams, StreamQueue, StreamTopic, end_streams_of_key};
use crate::identity::KeyCache;
use crate::store::{
    CacheInvalidation, ClusterPeers, EntryKind, EntryPublisher, LogEntry, LogSeq, SubjectId,
};
use crate::stream_end::StreamEnd;
use chorus_wire::{limits, reach::StreamReach};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::Arc;

pub(super) struct ClusterStreams {
    pub local_streams: Arc<LocalStreams>,
    pub membership: Arc<Membership>,
    pub log_follower: Arc<LogFollower>,
    pub key_cache: Arc<KeyCache>,
    pub registered_frames: RegisteredFrames,
}

impl ClusterStreams {
    /// Applies a cache invalidation, committed here or at a peer (D-81).
    fn invalidate_caches(&self, invalidation_json: &str) {
        let invalidation = CacheInvalidation::parse(invalidation_json);
        match &invalidation {
            Some(invalidation) => self.key_cache.invalidate(invalidation),
            // Only a newer hub knows this form: any cached entry may be invalid.
            None => self.key_cache.clear(),
        }
        if let Some(handler) = self.registered_frames.handler() {
            handler.apply_invalidation(invalidation.as_ref());
        }
        for (subject, reason) in invalidation
            .iter()
            .flat_map(CacheInvalidation::ended_streams)
        {
            self.local_streams.end_streams(subject, reason);
        }
        for ended in invalidation.iter().flat_map(|known| &known.ended_keys) {
            end_streams_of_key(self, ended);
        }
    }
}

impl EntryPublisher for ClusterStreams {
    fn has_draining_stream(&self, subject: SubjectId) -> bool {
        self.local_streams.has_draining_stream(subject)
            || self.membership.peers().is_online(subject)
    }

    fn publish_entry(&self, entry: &LogEntry) -> bool {
        if entry.kind == EntryKind::CacheInvalidation {
            self.invalidate_caches(&entry.body);
        }
        self.local_streams.publish_entry(entry)
    }

    fn resync_streams(&self) {
        self.local_streams.resync_streams();
    }

    fn cluster_peers(&self) -> Option<&dyn ClusterPeers> {
        Some(&*self.log_follower)
    }
}

impl LiveStreams for ClusterStreams {
    fn subscribe(&self, topic: StreamTopic, queue: Arc<StreamQueue>) -> Option<LogSeq> {
        match topic {
            StreamTopic::Subject(subject) => {
                let open_streams = self.membership.inbox_count(subject) as usize
                    + self.membership.peers().subject_stream_count(subject);
                if open_streams >= limits::STREAMS_PER_SUBJECT {
                    return None;
                }
                let reach = queue.reach();
                let newest_seq = self.local_streams.subscribe(topic, queue)?;
                self.membership.add_inbox(subject, reach);
                Some(newest_seq)
            }
            // Their presence is not exchanged: no rule depends on it.
            StreamTopic::Channel(_) | StreamTopic::Activity => {
                self.local_streams.subscribe(topic, queue)
            }
        }
    }

    fn unsubscribe(&self, topic: StreamTopic, queue: &Arc<StreamQueue>) {
        self.local_streams.unsubscribe(topic, queue);
        match topic {
            StreamTopic::Subject(subject) => self.membership.remove_inbox(subject, queue.reach()),
            StreamTopic::Channel(_) | StreamTopic::Activity => {}
        }
    }

    fn is_online(&self, subject: SubjectId) -> bool {
        self.local_streams.is_online(subject) || self.membership.peers().is_online(subject)
    }

    fn find_reach(&self, subject: SubjectId) -> Option<StreamReach> {
        let remote_reach = self.membership.peers().find_reach(subject);
        self.local_streams.find_reach(subject).max(remote_reach)
    }

    fn stream_count(&self) -> usize {
        let remote_count = self.membership.peers().total_stream_count() as usize;
        self.local_streams.stream_count() + remote_count
    }

    fn end_streams(&self, subject: SubjectId, reason: StreamEnd) {
        self.local_streams.end_streams(subject, reason);
    }

    fn end_key_streams(&self, subject: SubjectId, key_hash: &[u8; 32], reason: StreamEnd) {
        self.local_streams
            .end_key_streams(subject, key_hash, reason);
    }

    fn end_operator_streams(&self, session_hash: &[u8; 32], reason: StreamEnd) {
        self.local_streams
            .end_operator_streams(session_hash, reason);
    }

    fn drain_streams(&self) {
        self.local_streams.drain_streams();
    }

    fn is_draining(&self) -> bool {
        self.local_streams.is_draining()
    }

    fn mark_presence_changed(&self, subject: SubjectId) {
        self.membership.mark_changed(subject);
    }

    fn wait_presence_synced(&self) -> BoxFuture<'_, ()> {
        self.membership.wait_synced().boxed()
    }
}
