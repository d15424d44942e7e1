//! Resolving a scope: which principals it names, and whether the sender may address them (FRM-53…60, R-46).

use super::Frames;
use super::addressing_cache::CachedOrganisation;
use crate::Result;
use crate::identity::{Agent, find_agent};
use crate::store::{AgentId, orgs};
use chorus_wire::frame::organisation::AccordReach;
use chorus_wire::frame::{FrameCode, FrameError, FrameScope, RoleName};
use chorus_wire::identity::{AgentName, Handle};

/// The principals whose sessions a scope names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResolvedScope {
    pub targets: Vec<FrameTarget>,
    /// The sender's own handle or organisation: the reply has the exact count.
    pub is_own: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FrameTarget {
    pub id: AgentId,
    pub handle: Handle,
}

/// Authorises a scope and expands it to principals. An unknown handle and one that has not granted the sender get the same error,
/// so that it reveals nothing.
pub(crate) async fn resolve_scope(
    frames: &Frames,
    sender: &Agent,
    scope: &FrameScope,
) -> std::result::Result<ResolvedScope, FrameError> {
    let resolved = match scope {
        FrameScope::Handle(handle)
        | FrameScope::Prefix(handle, _)
        | FrameScope::Session(handle, ..) => resolve_handle(frames, sender, handle).await?,
        FrameScope::OrgMembers(org) => resolve_org(frames, sender, org, None).await?,
        FrameScope::OrgRole(org, role) => resolve_org(frames, sender, org, Some(role)).await?,
        FrameScope::Accord(peer, grant) => resolve_accord(frames, sender, peer, grant).await?,
    };
    let code = FrameCode::ScopeUnauthorised;
    resolved.ok_or_else(|| FrameError::at_field(code, "scope", code.sentence()))
}

async fn resolve_handle(
    frames: &Frames,
    sender: &Agent,
    handle: &Handle,
) -> Result<Option<ResolvedScope>> {
    // The common case, without a look-up.
    if sender.handle.as_deref() == Some(handle.as_str()) {
        return Ok(Some(ResolvedScope {
            targets: vec![FrameTarget {
                id: sender.id,
                handle: handle.clone(),
            }],
            is_own: true,
        }));
    }
    let Some(agent) = find_agent(
        frames.context().identity(),
        &AgentName::Handle(handle.clone()),
    )
    .await?
    else {
        return Ok(None);
    };
    let resolved = || ResolvedScope {
        targets: vec![FrameTarget {
            id: agent.id,
            handle: handle.clone(),
        }],
        is_own: false,
    };
    if !frames
        .addressing_cache()
        .is_granted(frames.context(), agent.id, sender.id)
        .await?
    {
        return Ok(None);
    }
    frames
        .context()
        .identity()
        .check_contact(agent.id, agent.contact_limits, sender)
        .await?;
    Ok(Some(resolved()))
}

/// Leaves out the members that do not let the sender contact them. A frame to many is not refused for the sake of one.
async fn drop_refusing_members(
    frames: &Frames,
    sender: &Agent,
    org: &CachedOrganisation,
    mut resolved: ResolvedScope,
) -> Result<ResolvedScope> {
    for (member, limits) in &org.limited_members {
        let checked = frames
            .context()
            .identity()
            .check_contact(*member, *limits, sender)
            .await;
        match checked {
            Ok(()) => {}
            Err(error) if error.code.status() == 403 => {
                resolved.targets.retain(|target| target.id != *member);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(resolved)
}

/// FRM-53, FRM-54, FRM-58
async fn resolve_org(
    frames: &Frames,
    sender: &Agent,
    org: &Handle,
    role: Option<&RoleName>,
) -> Result<Option<ResolvedScope>> {
    let cached_org = frames
        .addressing_cache()
        .find_org(frames.context(), org)
        .await?
        .filter(|cached_org| cached_org.has_member(sender.id));
    let is_included =
        |member: &orgs::OrgMemberRecord| role.is_none_or(|role| member.has_role(role.as_str()));
    let Some(cached_org) = cached_org else {
        return Ok(None);
    };
    let resolved = ResolvedScope {
        targets: cached_org.select_targets(is_included),
        is_own: true,
    };
    drop_refusing_members(frames, sender, &cached_org, resolved)
        .await
        .map(Some)
}

/// FRM-55, FRM-59: the members that all accords of that name together reach, of those in force with an organisation of the
/// sender.
async fn resolve_accord(
    frames: &Frames,
    sender: &Agent,
    peer: &Handle,
    grant: &RoleName,
) -> Result<Option<ResolvedScope>> {
    let addressing_cache = frames.addressing_cache();
    let Some(grantor) = addressing_cache.find_org(frames.context(), peer).await? else {
        return Ok(None);
    };
    let now = frames.context().clock().now();
    let mut reaches = Vec::new();
    for accord in grantor
        .accords
        .iter()
        .filter(|accord| accord.grant == *grant)
    {
        let in_force = accord.expires_at.is_none_or(|at| now < at);
        if in_force
            && addressing_cache
                .find_org(frames.context(), &accord.grantee)
                .await?
                .is_some_and(|org| org.has_member(sender.id))
        {
            reaches.push(&accord.reaches);
        }
    }
    let is_included = |member: &orgs::OrgMemberRecord| {
        reaches.iter().any(|resolved| match resolved {
            AccordReach::Everyone => true,
            AccordReach::Role(role) => member.has_role(role.as_str()),
        })
    };
    if reaches.is_empty() {
        return Ok(None);
    }
    let resolved = ResolvedScope {
        targets: grantor.select_targets(is_included),
        is_own: false,
    };
    drop_refusing_members(frames, sender, &grantor, resolved)
        .await
        .map(Some)
}
