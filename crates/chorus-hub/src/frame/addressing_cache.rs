//! The addressing cache: which handle may address which, cached until a commit changes it.

use super::Frames;
use super::resolve_scope::FrameTarget;
use crate::Result;
use crate::context::HubContext;
use crate::store::request_scope::RequestScope;
use crate::store::{AgentId, CacheInvalidation, ContactLimits, WriteTxn, accords, grants, orgs};
use chorus_wire::frame::organisation::AccordReach;
use chorus_wire::frame::{FrameError, RoleName};
use chorus_wire::identity::Handle;
use chorus_wire::{Error, time::UnixMicros};
use quick_cache::{Weighter, sync::Cache};
use std::sync::Arc;

/// Max cached pairs of handles, each with whether one granted the other: a few words per pair.
const GRANT_CACHE_CAPACITY: usize = 100_000;
/// Max weight of the cached organisations, in members and accords of all of them: tens of megabytes at most.
const ORG_CACHE_WEIGHT: u64 = 200_000;
/// How many organisations that is expected to be; the cache sizes its tables by it.
const ORGS_EXPECTED: usize = 1_000;

/// An organisation as the rules of addressing see it.
pub(crate) struct CachedOrganisation {
    /// Accepted members only (R-51), in the order of their ids.
    members: Vec<orgs::OrgMemberRecord>,
    /// Those of them that limit from whom they take frames (R-93).
    pub limited_members: Vec<(AgentId, ContactLimits)>,
    /// The accords that it granted and the other side accepted.
    pub accords: Vec<AcceptedAccord>,
}

pub(crate) struct AcceptedAccord {
    pub grantee: Handle,
    pub grant: RoleName,
    pub reaches: AccordReach,
    pub expires_at: Option<UnixMicros>,
}

/// Grants and organisations from the store. An entry is removed after the commit that changes it. A look-up that started before
/// loses its placeholder then and is not cached, so that no stale entry stays.
pub(crate) struct AddressingCache {
    grants: Cache<(AgentId, AgentId), bool>,
    orgs: Cache<Handle, Arc<CachedOrganisation>, OrganisationWeighter>,
}

/// The weight of an organisation is its size.
#[derive(Clone)]
struct OrganisationWeighter;

impl Weighter<Handle, Arc<CachedOrganisation>> for OrganisationWeighter {
    fn weight(&self, _: &Handle, org: &Arc<CachedOrganisation>) -> u64 {
        1 + (org.members.len() + org.accords.len()) as u64
    }
}

impl Default for AddressingCache {
    fn default() -> Self {
        let orgs = Cache::with_weighter(ORGS_EXPECTED, ORG_CACHE_WEIGHT, OrganisationWeighter);
        Self {
            grants: Cache::new(GRANT_CACHE_CAPACITY),
            orgs,
        }
    }
}

/// What a write changed.
#[derive(Clone, Debug)]
pub(crate) enum AddressingChange {
    Grant { grantor: AgentId, grantee: AgentId },
    Org(Handle),
}

impl AddressingCache {
    /// Called after the commit. Ids are never reused, so grants of an unregistered agent need no invalidation.
    pub fn invalidate(&self, changes: impl IntoIterator<Item = AddressingChange>) {
        for change in changes {
            match change {
                AddressingChange::Grant { grantor, grantee } => {
                    let _ = self.grants.remove(&(grantor, grantee));
                }
                AddressingChange::Org(handle) => drop(self.orgs.remove(&handle)),
            }
        }
    }

    /// Applies the cache invalidation of a committed change.
    pub fn apply_invalidation(&self, invalidation: &CacheInvalidation) {
        let orgs = invalidation.orgs.iter();
        let handles = orgs.filter_map(|handle| Handle::parse(handle));
        self.invalidate(handles.map(AddressingChange::Org));
        let grants = invalidation.grants.iter();
        self.invalidate(grants.map(|(grantor, grantee)| AddressingChange::Grant {
            grantor: *grantor,
            grantee: *grantee,
        }));
    }

    pub fn clear_all(&self) {
        self.grants.clear();
        self.orgs.clear();
    }

    /// D-81: a hub that has not read the log for too long may have missed invalidations.
    fn clear_if_stale(&self, hub: &HubContext) {
        if !hub.store().is_caught_up() {
            self.clear_all();
        }
    }

    /// Whether the grantor lets the grantee address it.
    pub async fn is_granted(
        &self,
        hub: &HubContext,
        grantor: AgentId,
        grantee: AgentId,
    ) -> Result<bool> {
        self.clear_if_stale(hub);
        let guard = match self
            .grants
            .get_value_or_guard_async(&(grantor, grantee))
            .await
        {
            Ok(granted) => return Ok(granted),
            Err(guard) => guard,
        };
        let granted = hub
            .store()
            .read(async move |tx| Ok(grants::has_grant(tx, grantor, grantee).await?))
            .await?;
        let _ = guard.insert(granted);
        Ok(granted)
    }

    /// `None` for a handle that is not an organisation's. That is not cached, or unknown names could fill the cache.
    pub async fn find_org(
        &self,
        hub: &HubContext,
        handle: &Handle,
    ) -> Result<Option<Arc<CachedOrganisation>>> {
        self.clear_if_stale(hub);
        let guard = match self.orgs.get_value_or_guard_async(handle).await {
            Ok(org) => return Ok(Some(org)),
            Err(guard) => guard,
        };
        let handle = handle.clone();
        let now = hub.clock().now();
        let read = async move |tx: &crate::store::DbConnection<'_>| {
            let Some(org) = orgs::find_org(tx, &handle).await? else {
                return Ok(None);
            };
            let members = orgs::list_members(tx, org.id).await?;
            let accords = accords::list_granted_accords(tx, org.id, now).await?;
            let accords = accords.into_iter().map(|accord| AcceptedAccord {
                grantee: accord.grantee,
                grant: accord.grant,
                reaches: accord.reaches,
                expires_at: accord.expires_at,
            });
            let limited_members = members
                .iter()
                .filter(|member| !member.contact_limits.is_open())
                .map(|member| (member.id, member.contact_limits))
                .collect();
            Ok(Some(CachedOrganisation {
                members,
                limited_members,
                accords: accords.collect(),
            }))
        };
        let org = hub.store().read(read).await?.map(Arc::new);
        if let Some(org) = &org {
            let _ = guard.insert(org.clone());
        }
        Ok(org)
    }
}

impl CachedOrganisation {
    /// The accepted member with this id.
    pub fn find_member(&self, agent: AgentId) -> Option<&orgs::OrgMemberRecord> {
        let index = self
            .members
            .binary_search_by_key(&agent, |member| member.id);
        self.members.get(index.ok()?)
    }

    pub fn has_member(&self, agent: AgentId) -> bool {
        self.find_member(agent).is_some()
    }

    pub fn select_targets(
        &self,
        is_included: impl Fn(&orgs::OrgMemberRecord) -> bool,
    ) -> Vec<FrameTarget> {
        let target = |member: &orgs::OrgMemberRecord| FrameTarget {
            id: member.id,
            handle: member.handle.clone(),
        };
        self.members
            .iter()
            .filter(|member| is_included(member))
            .map(target)
            .collect()
    }
}

/// The same changes as a log entry for peers.
fn build_invalidation(changes: &[AddressingChange]) -> CacheInvalidation {
    let mut invalidation = CacheInvalidation::default();
    for change in changes {
        match change {
            AddressingChange::Grant { grantor, grantee } => {
                invalidation.grants.push((*grantor, *grantee))
            }
            AddressingChange::Org(handle) => invalidation.orgs.push(handle.to_string()),
        }
    }
    invalidation
}

/// Writes, then invalidates what the write changed. It runs in a task of its own: when the caller disconnects between the commit
/// and the invalidation, a revoked grant must not stay cached.
pub(super) async fn write_and_invalidate<T, F>(
    frames: &Frames,
    work: F,
) -> std::result::Result<T, FrameError>
where
    T: Send + 'static,
    F: AsyncFn(&mut WriteTxn<'_>) -> Result<(T, Vec<AddressingChange>)> + Send + 'static,
{
    let task_frames = frames.clone();
    let scope = RequestScope::current();
    let task = tokio::spawn(RequestScope::run_optional(scope, async move {
        let addressing_cache = task_frames.addressing_cache();
        let writing = task_frames.context().store().write(async move |txn| {
            let (answer, changes) = work(txn).await?;
            txn.invalidate_caches(&build_invalidation(&changes));
            Ok((answer, changes))
        });
        match writing.await {
            Ok((answer, changes)) => {
                addressing_cache.invalidate(changes);
                Ok(answer)
            }
            Err(error) => {
                // A commit that failed may have taken effect all the same.
                if error.code.status() >= 500 {
                    addressing_cache.clear_all();
                }
                Err(error)
            }
        }
    }));
    Ok(task.await.map_err(Error::internal)??)
}

#[cfg(test)]
mod tests {
    use crate::frame::{grants, resolve_scope::resolve_scope};
    use crate::identity::{Principal, authenticate};
    use crate::lifecycle::register_agent;
    use crate::{Hub, HubOptions};
    use chorus_wire::frame::{FrameCode, FrameScope};
    use chorus_wire::registration::RegistrationRequest;
    use futures_util::FutureExt;

    async fn agent(hub: &Hub, name: &str) -> Principal {
        let body = format!(
            r#"{{"agent_id":"{name}@chorus","agent_card":{{"card_version":"0.3","user_culture":"en"}}}}"#
        );
        let request = RegistrationRequest::parse(body.as_bytes()).unwrap();
        let (_, registered) =
            register_agent(&Principal::Anonymous, hub, hub.frames(), request, None)
                .await
                .unwrap();
        authenticate(
            hub.identity(),
            registered
                .api_key
                .as_ref()
                .map(chorus_wire::secret::Secret::expose),
            None,
        )
        .await
        .unwrap()
    }

    /// R-46
    #[tokio::test]
    async fn what_a_caller_ends_is_dead_even_when_it_hangs_up_before_the_answer() {
        let dir = tempfile::tempdir().unwrap();
        let hub = Hub::open(HubOptions::for_data_dir(dir.path()))
            .await
            .unwrap();
        let (alice, bob) = (agent(&hub, "alice").await, agent(&hub, "bob").await);
        agent(&hub, "carol").await;
        grants::put_grant(&alice, hub.frames(), "~alice", "~bob")
            .await
            .unwrap();
        let scope = FrameScope::parse("~alice").unwrap();
        let bob = bob.require_agent().unwrap();
        assert!(
            !resolve_scope(hub.frames(), bob, &scope)
                .await
                .unwrap()
                .is_own
        );
        assert!(
            grants::withdraw_grant(&alice, hub.frames(), "~alice", "~bob")
                .now_or_never()
                .is_none()
        );
        // Writes run in order: when the next one returns, the one that was not awaited is done too.
        grants::put_grant(&alice, hub.frames(), "~alice", "~carol")
            .await
            .unwrap();
        let refused = resolve_scope(hub.frames(), bob, &scope).await.unwrap_err();
        assert_eq!(refused.code, FrameCode::ScopeUnauthorised);
        hub.close().await;
    }
}
