//! Whom a scope names, and whether the sender may address them (FRM-53…60, R-46).

use crate::identity::{Agent, find};
use crate::store::orgs;
use crate::{Hub, Result};
use chorus_wire::frame::org::Reaches;
use chorus_wire::frame::{FrameCode, FrameError, Role, Scope};
use chorus_wire::identity::{Handle, Name};

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

/// Authorises a scope and expands it to principals. What is not there and what does not know the sender is refused alike, so
/// that a refusal tells nothing.
pub(crate) async fn resolve(
    hub: &Hub,
    sender: &Agent,
    scope: &Scope,
) -> std::result::Result<Reach, FrameError> {
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
        return Ok(Some(Reach {
            targets: vec![Target {
                id: sender.id,
                handle: handle.clone(),
            }],
            own: true,
        }));
    }
    let Some(agent) = find(hub, &Name::Handle(handle.clone())).await? else {
        return Ok(None);
    };
    let reach = || Reach {
        targets: vec![Target {
            id: agent.id,
            handle: handle.clone(),
        }],
        own: false,
    };
    Ok(hub
        .frames()
        .circles
        .grant(hub, agent.id, sender.id)
        .await?
        .then(reach))
}

/// FRM-53, FRM-54, FRM-58
async fn org_reach(
    hub: &Hub,
    sender: &Agent,
    org: &Handle,
    role: Option<&Role>,
) -> Result<Option<Reach>> {
    let circle = hub
        .frames()
        .circles
        .org(hub, org)
        .await?
        .filter(|circle| circle.recognises(sender.id));
    let among = |member: &orgs::Member| role.is_none_or(|role| member.is(role.as_str()));
    Ok(circle.map(|circle| Reach {
        targets: circle.targets(among),
        own: true,
    }))
}

/// FRM-55, FRM-59: every accord of that name that is in force towards an organisation of the sender's; what they reach together.
async fn accord_reach(
    hub: &Hub,
    sender: &Agent,
    peer: &Handle,
    grant: &Role,
) -> Result<Option<Reach>> {
    let circles = &hub.frames().circles;
    let Some(grantor) = circles.org(hub, peer).await? else {
        return Ok(None);
    };
    let now = hub.clock().now();
    let mut reaches = Vec::new();
    for granted in grantor
        .granted
        .iter()
        .filter(|granted| granted.scope == *grant)
    {
        let in_force = granted.expires_at.is_none_or(|at| now < at);
        if in_force
            && circles
                .org(hub, &granted.to)
                .await?
                .is_some_and(|org| org.recognises(sender.id))
        {
            reaches.push(&granted.reaches);
        }
    }
    let among = |member: &orgs::Member| {
        reaches.iter().any(|reach| match reach {
            Reaches::Everyone => true,
            Reaches::Role(role) => member.is(role.as_str()),
        })
    };
    Ok((!reaches.is_empty()).then(|| Reach {
        targets: grantor.targets(among),
        own: false,
    }))
}
