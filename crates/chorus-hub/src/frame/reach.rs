//! Whom a scope names and whether the sender may address them, looked up once and remembered until it changes (FRM-53…60, R-46).

use crate::identity::{Agent, find};
use crate::store::{Txn, accords, grants, orgs};
use crate::{Hub, Result};
use chorus_wire::Error;
use chorus_wire::frame::org::Reaches;
use chorus_wire::frame::{FrameCode, FrameError, Role, Scope};
use chorus_wire::identity::{Handle, Name};
use chorus_wire::time::Micros;
use quick_cache::{Weighter, sync::Cache};
use std::sync::Arc;

/// Pairs of handles of which it is remembered whether one granted the other. An entry is a few words.
const GRANTS_REMEMBERED: usize = 100_000;
/// Organisations kept in memory, in members and accords of all of them together: tens of megabytes at most.
const MEMBERS_REMEMBERED: u64 = 200_000;
/// How many organisations that is likely to be.
const ORGS_EXPECTED: usize = 1_000;

/// The principals whose sessions a scope names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    pub targets: Vec<Target>,
    /// The sender's own handle or organisation: the count is told exactly.
    pub own: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub id: i64,
    pub handle: Handle,
}

/// An organisation as the rules of addressing see it.
struct Circle {
    /// Accepted ones only, in the order of their ids.
    members: Vec<orgs::Member>,
    /// What it granted others and they accepted.
    granted: Vec<Granted>,
}

struct Granted {
    to: Handle,
    scope: Role,
    reaches: Reaches,
    expires_at: Option<Micros>,
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
        Self { grants: Cache::new(GRANTS_REMEMBERED), orgs }
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
                Touched::Grant { grantor, grantee } => drop(self.grants.remove(&(grantor, grantee))),
                Touched::Org(handle) => drop(self.orgs.remove(&handle)),
            }
        }
    }

    fn forget_all(&self) {
        self.grants.clear();
        self.orgs.clear();
    }

    async fn grant(&self, hub: &Hub, grantor: i64, grantee: i64) -> Result<bool> {
        let place = match self.grants.get_value_or_guard_async(&(grantor, grantee)).await {
            Ok(granted) => return Ok(granted),
            Err(place) => place,
        };
        let granted = hub.store().read(async move |tx| Ok(grants::is(tx, grantor, grantee).await?)).await?;
        let _ = place.insert(granted);
        Ok(granted)
    }

    /// `None` for a handle that is no organisation's; that is not remembered, or strangers could fill the memory with names.
    async fn org(&self, hub: &Hub, handle: &Handle) -> Result<Option<Arc<Circle>>> {
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
            Ok(Some(Circle { members, granted: granted.collect() }))
        };
        let circle = hub.store().read(read).await?.map(Arc::new);
        if let Some(circle) = &circle {
            let _ = place.insert(circle.clone());
        }
        Ok(circle)
    }
}

impl Circle {
    fn recognises(&self, agent: i64) -> bool {
        self.members.binary_search_by_key(&agent, |member| member.id).is_ok()
    }

    fn targets(&self, among: impl Fn(&orgs::Member) -> bool) -> Vec<Target> {
        let target = |member: &orgs::Member| Target { id: member.id, handle: member.handle.clone() };
        self.members.iter().filter(|member| among(member)).map(target).collect()
    }
}

/// Authorises a scope and expands it to principals. What is not there and what does not know the sender is refused alike, so
/// that a refusal tells nothing.
pub(crate) async fn resolve(hub: &Hub, sender: &Agent, scope: &Scope) -> std::result::Result<Reach, FrameError> {
    let reach = match scope {
        Scope::Handle(handle) | Scope::Prefix(handle, _) | Scope::Session(handle, ..) => {
            handle_reach(hub, sender, handle).await?
        }
        Scope::OrgMembers(org) => org_reach(hub, sender, org, None).await?,
        Scope::OrgRole(org, role) => org_reach(hub, sender, org, Some(role)).await?,
        Scope::Accord(peer, grant) => accord_reach(hub, sender, peer, grant).await?,
    };
    let code = FrameCode::ScopeUnauthorised;
    reach.ok_or_else(|| FrameError::at(code, "scope", code.sentence()))
}

async fn handle_reach(hub: &Hub, sender: &Agent, handle: &Handle) -> Result<Option<Reach>> {
    // The common case, and it needs no look-up.
    if sender.handle.as_deref() == Some(handle.as_str()) {
        return Ok(Some(Reach { targets: vec![Target { id: sender.id, handle: handle.clone() }], own: true }));
    }
    let Some(agent) = find(hub, &Name::Handle(handle.clone())).await? else {
        return Ok(None);
    };
    let reach = || Reach { targets: vec![Target { id: agent.id, handle: handle.clone() }], own: false };
    Ok(hub.frames().circles.grant(hub, agent.id, sender.id).await?.then(reach))
}

/// FRM-53, FRM-54, FRM-58
async fn org_reach(hub: &Hub, sender: &Agent, org: &Handle, role: Option<&Role>) -> Result<Option<Reach>> {
    let circle = hub.frames().circles.org(hub, org).await?.filter(|circle| circle.recognises(sender.id));
    let among = |member: &orgs::Member| role.is_none_or(|role| member.is(role.as_str()));
    Ok(circle.map(|circle| Reach { targets: circle.targets(among), own: true }))
}

/// FRM-55, FRM-59: every accord of that name that is in force towards an organisation of the sender's; what they reach together.
async fn accord_reach(hub: &Hub, sender: &Agent, peer: &Handle, grant: &Role) -> Result<Option<Reach>> {
    let circles = &hub.frames().circles;
    let Some(grantor) = circles.org(hub, peer).await? else {
        return Ok(None);
    };
    let now = hub.clock().now();
    let mut reaches = Vec::new();
    for granted in grantor.granted.iter().filter(|granted| granted.scope == *grant) {
        let in_force = granted.expires_at.is_none_or(|at| now < at);
        if in_force && circles.org(hub, &granted.to).await?.is_some_and(|org| org.recognises(sender.id)) {
            reaches.push(&granted.reaches);
        }
    }
    let among = |member: &orgs::Member| {
        reaches.iter().any(|reach| match reach {
            Reaches::Everyone => true,
            Reaches::Role(role) => member.is(role.as_str()),
        })
    };
    Ok((!reaches.is_empty()).then(|| Reach { targets: grantor.targets(among), own: false }))
}

/// Writes, then forgets what the write touched. In a task of its own: a caller that hangs up between the commit and the
/// forgetting must not keep alive what it has just ended.
pub(super) async fn change<T, F>(hub: &Hub, work: F) -> std::result::Result<T, FrameError>
where
    T: Send + 'static,
    F: AsyncFnOnce(&mut Txn<'_>) -> Result<(T, Vec<Touched>)> + Send + 'static,
{
    let changing = hub.clone();
    let task = tokio::spawn(async move {
        let circles = &changing.frames().circles;
        match changing.store().write(work).await {
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
