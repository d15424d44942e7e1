//! What is known of who may address whom: looked up once, remembered until a commit changes it.

use super::reach::Target;
use crate::store::{Notice, Txn, accords, grants, orgs};
use crate::{Hub, Result};
use chorus_wire::frame::org::Reaches;
use chorus_wire::frame::{FrameError, Role};
use chorus_wire::identity::Handle;
use chorus_wire::{Error, time::Micros};
use quick_cache::{Weighter, sync::Cache};
use std::sync::Arc;

/// Pairs of handles of which it is remembered whether one granted the other. An entry is a few words.
const GRANTS_REMEMBERED: usize = 100_000;
/// Organisations kept in memory, in members and accords of all of them together: tens of megabytes at most.
const MEMBERS_REMEMBERED: u64 = 200_000;
/// How many organisations that is likely to be.
const ORGS_EXPECTED: usize = 1_000;

/// An organisation as the rules of addressing see it.
pub(crate) struct Circle {
    /// Accepted ones only (R-51), in the order of their ids.
    members: Vec<orgs::Member>,
    /// What it granted others and they accepted.
    pub granted: Vec<Granted>,
}

pub(crate) struct Granted {
    pub to: Handle,
    pub scope: Role,
    pub reaches: Reaches,
    pub expires_at: Option<Micros>,
}

/// What has been looked up. An entry is removed after the commit that changes it; a look-up that was under way meanwhile finds
/// its place taken away and is not remembered, so that nothing stale stays.
pub(crate) struct Circles {
    grants: Cache<(i64, i64), bool>,
    orgs: Cache<Handle, Arc<Circle>, Sizes>,
}

/// An organisation takes as much of the memory as its members are many.
#[derive(Clone)]
struct Sizes;

impl Weighter<Handle, Arc<Circle>> for Sizes {
    fn weight(&self, _: &Handle, circle: &Arc<Circle>) -> u64 {
        1 + (circle.members.len() + circle.granted.len()) as u64
    }
}

impl Default for Circles {
    fn default() -> Self {
        let orgs = Cache::with_weighter(ORGS_EXPECTED, MEMBERS_REMEMBERED, Sizes);
        Self {
            grants: Cache::new(GRANTS_REMEMBERED),
            orgs,
        }
    }
}

/// What a write changed of that.
#[derive(Clone, Debug)]
pub(crate) enum Touched {
    Grant { grantor: i64, grantee: i64 },
    Org(Handle),
}

impl Circles {
    /// To be called after the commit. Ids are never given twice, so a gone agent's grants need no forgetting.
    pub fn forget(&self, touched: impl IntoIterator<Item = Touched>) {
        for touched in touched {
            match touched {
                Touched::Grant { grantor, grantee } => {
                    drop(self.grants.remove(&(grantor, grantee)))
                }
                Touched::Org(handle) => drop(self.orgs.remove(&handle)),
            }
        }
    }

    pub fn forget_all(&self) {
        self.grants.clear();
        self.orgs.clear();
    }

    /// A hub that has not heard for too long what others changed remembers nothing.
    fn look_again(&self, hub: &Hub) {
        if !hub.bus().is_current() {
            self.forget_all();
        }
    }

    /// Whether the grantor lets the grantee address it.
    pub async fn grant(&self, hub: &Hub, grantor: i64, grantee: i64) -> Result<bool> {
        self.look_again(hub);
        let place = match self
            .grants
            .get_value_or_guard_async(&(grantor, grantee))
            .await
        {
            Ok(granted) => return Ok(granted),
            Err(place) => place,
        };
        let granted = hub
            .store()
            .read(async move |tx| Ok(grants::is(tx, grantor, grantee).await?))
            .await?;
        let _ = place.insert(granted);
        Ok(granted)
    }

    /// `None` for a handle that is no organisation's; that is not remembered, or strangers could fill the memory with names.
    pub async fn org(&self, hub: &Hub, handle: &Handle) -> Result<Option<Arc<Circle>>> {
        self.look_again(hub);
        let place = match self.orgs.get_value_or_guard_async(handle).await {
            Ok(circle) => return Ok(Some(circle)),
            Err(place) => place,
        };
        let (handle, now) = (handle.clone(), hub.clock().now());
        let read = async move |tx: &crate::store::Tx<'_>| {
            let Some(org) = orgs::by_handle(tx, &handle).await? else {
                return Ok(None);
            };
            let members = orgs::members(tx, org.id).await?;
            let granted = accords::granted(tx, org.id, now).await?;
            let granted = granted.into_iter().map(|accord| Granted {
                to: accord.grantee,
                scope: accord.grant,
                reaches: accord.reaches,
                expires_at: accord.expires_at,
            });
            Ok(Some(Circle {
                members,
                granted: granted.collect(),
            }))
        };
        let circle = hub.store().read(read).await?.map(Arc::new);
        if let Some(circle) = &circle {
            let _ = place.insert(circle.clone());
        }
        Ok(circle)
    }
}

impl Circle {
    pub fn recognises(&self, agent: i64) -> bool {
        self.members
            .binary_search_by_key(&agent, |member| member.id)
            .is_ok()
    }

    pub fn targets(&self, among: impl Fn(&orgs::Member) -> bool) -> Vec<Target> {
        let target = |member: &orgs::Member| Target {
            id: member.id,
            handle: member.handle.clone(),
        };
        self.members
            .iter()
            .filter(|member| among(member))
            .map(target)
            .collect()
    }
}

/// The same for the other hubs of this database.
fn notice(touched: &[Touched]) -> Notice {
    let mut notice = Notice::default();
    for touched in touched {
        match touched {
            Touched::Grant { grantor, grantee } => notice.grants.push((*grantor, *grantee)),
            Touched::Org(handle) => notice.orgs.push(handle.to_string()),
        }
    }
    notice
}

/// Writes, then forgets what the write touched. In a task of its own: a caller that hangs up between the commit and the
/// forgetting must not keep alive what it has just ended.
pub(super) async fn change<T, F>(hub: &Hub, work: F) -> std::result::Result<T, FrameError>
where
    T: Send + 'static,
    F: AsyncFn(&mut Txn<'_>) -> Result<(T, Vec<Touched>)> + Send + 'static,
{
    let changing = hub.clone();
    let task = tokio::spawn(async move {
        let circles = &changing.frames().circles;
        let writing = changing.store().write(async move |txn| {
            let (answer, touched) = work(txn).await?;
            txn.notice(&notice(&touched));
            Ok((answer, touched))
        });
        match writing.await {
            Ok((answer, touched)) => {
                circles.forget(touched);
                Ok(answer)
            }
            Err(error) => {
                // A commit that failed may have taken effect all the same.
                if error.code.status() >= 500 {
                    circles.forget_all();
                }
                Err(error)
            }
        }
    });
    Ok(task.await.map_err(Error::internal)??)
}

#[cfg(test)]
mod tests {
    use crate::frame::{grants, reach::resolve};
    use crate::identity::{Principal, authenticate, register};
    use crate::{Hub, Options};
    use chorus_wire::frame::{FrameCode, Scope};
    use chorus_wire::register::Registration;
    use futures_util::FutureExt;

    async fn agent(hub: &Hub, name: &str) -> Principal {
        let body = format!(
            r#"{{"agent_id":"{name}@chorus","agent_card":{{"card_version":"0.3","user_culture":"en"}}}}"#
        );
        let request = Registration::parse(body.as_bytes()).unwrap();
        let (_, registered) = register(&Principal::Anyone, hub, request).await.unwrap();
        authenticate(
            hub,
            registered
                .api_key
                .as_ref()
                .map(chorus_wire::secret::Secret::expose),
        )
        .await
        .unwrap()
    }

    /// R-46
    #[tokio::test]
    async fn what_a_caller_ends_is_dead_even_when_it_hangs_up_before_the_answer() {
        let dir = tempfile::tempdir().unwrap();
        let hub = Hub::open(Options::at(dir.path())).await.unwrap();
        let (alice, bob) = (agent(&hub, "alice").await, agent(&hub, "bob").await);
        agent(&hub, "carol").await;
        grants::grant(&alice, &hub, "~alice", "~bob").await.unwrap();
        let scope = Scope::parse("~alice").unwrap();
        let bob = bob.agent().unwrap();
        assert!(!resolve(&hub, bob, &scope).await.unwrap().own);
        assert!(
            grants::withdraw(&alice, &hub, "~alice", "~bob")
                .now_or_never()
                .is_none()
        );
        // Writes are done in their order: after the next one, the one that nobody waits for is over too.
        grants::grant(&alice, &hub, "~alice", "~carol")
            .await
            .unwrap();
        let refused = resolve(&hub, bob, &scope).await.unwrap_err();
        assert_eq!(refused.code, FrameCode::ScopeUnauthorised);
        hub.close().await;
    }
}
