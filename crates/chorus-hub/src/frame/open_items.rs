//! `/handles/{handle}/open`: the locks, decisions and handovers that stand under a handle.

use super::Frames;
use super::frame_label::{FrameLabel, SessionSelector};
use super::open_stream::parse_handle;
use super::resolve_scope::resolve_scope;
use super::roster::hide_scope_refusal;
use super::session::FrameSession;
use crate::Principal;
use crate::clock_watch::ExpiryClock;
use crate::identity::{Agent, find_agent};
use crate::store::open_items::{self as table, ItemEnd, OpenItemRecord};
use crate::store::orgs::{self, OrgMemberRecord};
use crate::store::{AgentId, DbConnection, OpenItemId, RowId, SubjectId, accords};
use chorus_wire::frame::organisation::AccordReach;
use chorus_wire::frame::{
    EndedItem, FrameCode, FrameError, FrameScope, OpenItem, OpenItemKind, OpenItemOutcome,
    OpenItems, ScopeIdent,
};
use chorus_wire::identity::{AgentName, Handle};
use chorus_wire::time::UnixMicros;
use chorus_wire::{Error, ErrorCode, limits, list_page};
use serde_json::value::RawValue;
use uuid::Uuid;

/// Room for the fields around the items of one page.
const PAGE_FRAME_BYTES: usize = 512;

/// Whose items a caller reads.
#[derive(Clone, Copy)]
struct ItemPlace {
    subject: SubjectId,
    /// The caller itself, which also sees the items of its organisations.
    member: Option<AgentId>,
}

impl ItemPlace {
    fn own(agent: &Agent) -> Self {
        Self {
            subject: agent.id.into(),
            member: Some(agent.id),
        }
    }
}

/// Lists the open items of the caller's handle with those of its organisations, of one of its organisations, or of a handle that
/// granted it access; newest first.
pub async fn list_open_items(
    principal: &Principal,
    frames: &Frames,
    handle: &str,
    after: Option<&str>,
) -> Result<OpenItems, FrameError> {
    let agent = principal.require_agent()?;
    let handle = parse_handle(handle)?;
    let before = match after {
        None => OpenItemId::AFTER_ALL,
        Some(text) => list_page::parse_cursor(text)
            .map(OpenItemId::from_number)
            .ok_or_else(|| FrameError::invalid_field("after", "the `next` of the page before"))?,
    };
    let place = find_readable_place(frames, agent, &handle).await?;
    let (items, next) = collect_items(frames, agent, place, before, |_| true).await?;
    Ok(OpenItems {
        handle: handle.to_string(),
        items,
        more: next.is_some(),
        next: next.map(|id| list_page::format_cursor(id.to_number())),
    })
}

/// What a session finds open when its stream begins: what its filter and the scopes of the items let it hear.
pub(super) async fn collect_snapshot(
    frames: &Frames,
    agent: &Agent,
    handle: &Handle,
    session: &FrameSession,
) -> Result<OpenItems, FrameError> {
    let admits = |record: &OpenItemRecord| {
        let label = FrameLabel {
            kind: record.item.frame_kind(),
            sender: record.sender_handle.clone(),
            tool: record.tool.as_deref().and_then(ScopeIdent::parse),
            org: record.scope.addressed_org().cloned(),
            selector: SessionSelector::from_scope(&record.scope),
            excluded: None,
        };
        label.admits_session(session)
    };
    let place = ItemPlace::own(agent);
    let (items, next) = collect_items(frames, agent, place, OpenItemId::AFTER_ALL, admits).await?;
    Ok(OpenItems {
        handle: handle.to_string(),
        items,
        more: next.is_some(),
        next: None,
    })
}

/// The same rights as for the roster, and the members of an organisation read its items.
async fn find_readable_place(
    frames: &Frames,
    agent: &Agent,
    handle: &Handle,
) -> Result<ItemPlace, FrameError> {
    if agent.handle.as_deref() == Some(handle.as_str()) {
        return Ok(ItemPlace::own(agent));
    }
    if let Some(org) = find_joined_org(frames, agent, handle).await? {
        return Ok(ItemPlace {
            subject: org,
            member: None,
        });
    }
    let resolved = resolve_scope(frames, agent, &FrameScope::Handle(handle.clone())).await;
    let resolved = resolved.map_err(hide_scope_refusal)?;
    let target = resolved.targets.first().ok_or(FrameCode::Forbidden)?;
    Ok(ItemPlace {
        subject: target.id.into(),
        member: None,
    })
}

/// The organisation with this handle, if the agent is a member.
async fn find_joined_org(
    frames: &Frames,
    agent: &Agent,
    handle: &Handle,
) -> Result<Option<SubjectId>, FrameError> {
    let cached_org = frames
        .addressing_cache()
        .find_org(frames.context(), handle)
        .await?;
    if !cached_org.is_some_and(|org| org.has_member(agent.id)) {
        return Ok(None);
    }
    let handle = handle.clone();
    let org = frames
        .context()
        .store()
        .read(async move |tx| Ok(orgs::find_org(tx, &handle).await?))
        .await?;
    Ok(org.map(|org| org.id.into()))
}

/// Reads items, newest first, until a page is full. Returns the last id of a page after which there are more.
async fn collect_items(
    frames: &Frames,
    reader: &Agent,
    place: ItemPlace,
    mut before: OpenItemId,
    admits: impl Fn(&OpenItemRecord) -> bool,
) -> Result<(Vec<OpenItem>, Option<OpenItemId>), FrameError> {
    let clock = frames.context().expiry_clock();
    let mut items = Vec::new();
    let mut page_bytes = PAGE_FRAME_BYTES;
    loop {
        let (records, is_complete) = frames
            .context()
            .store()
            .read(async move |tx| {
                Ok(table::list_items(tx, place.subject, place.member, before, clock).await?)
            })
            .await?;
        for record in &records {
            if admits(record) && is_readable(frames, reader, record).await? {
                let item = to_open_item(record, clock)?;
                page_bytes += serde_json::to_string(&item).map_err(Error::internal)?.len() + 1;
                if page_bytes > limits::LIST_PAGE_BYTES && !items.is_empty() {
                    return Ok((items, Some(before)));
                }
                items.push(item);
            }
            before = record.id;
        }
        if is_complete || records.is_empty() {
            return Ok((items, None));
        }
    }
}

fn to_open_item(record: &OpenItemRecord, clock: ExpiryClock) -> Result<OpenItem, FrameError> {
    let now = clock.now_since(record.opened_at);
    let left_ms = record.expires_at.0.saturating_sub(now.0) / 1_000;
    Ok(OpenItem {
        frame_id: record.frame_id,
        item: record.item.to_string(),
        handle: record.scope.addressed_handle().to_string(),
        scope: record.scope.to_string(),
        opened_at: record.opened_at,
        expires_at: record.expires_at,
        left_ms: u64::try_from(left_ms).unwrap_or_default(),
        frame: parse_stored_frame(record)?,
    })
}

fn parse_stored_frame(record: &OpenItemRecord) -> Result<Box<RawValue>, FrameError> {
    RawValue::from_string(record.frame.clone()).map_err(|error| Error::internal(error).into())
}

/// Whether the reader is among those that the frame was for. What was said to a role, or through an accord, is not for every
/// member; a member that blocks the sender does not read it either.
async fn is_readable(
    frames: &Frames,
    reader: &Agent,
    record: &OpenItemRecord,
) -> Result<bool, FrameError> {
    let Some(org) = record.scope.addressed_org() else {
        return Ok(true);
    };
    if record.sender == reader.id {
        return Ok(true);
    }
    let cached_org = frames
        .addressing_cache()
        .find_org(frames.context(), org)
        .await?;
    let Some(cached_org) = cached_org else {
        return Ok(false);
    };
    let Some(member) = cached_org.find_member(reader.id) else {
        return Ok(false);
    };
    let now = frames.context().clock().now();
    let is_reached = match &record.scope {
        FrameScope::Handle(_)
        | FrameScope::Prefix(..)
        | FrameScope::Session(..)
        | FrameScope::OrgMembers(_) => true,
        FrameScope::OrgRole(_, role) => member.has_role(role.as_str()),
        FrameScope::Accord(_, grant) => cached_org.accords.iter().any(|accord| {
            accord.grant == *grant
                && accord.expires_at.is_none_or(|at| now < at)
                && is_in_reach(member, &accord.reaches)
        }),
    };
    if !is_reached || member.contact_limits.is_open() {
        return Ok(is_reached);
    }
    let identity = frames.context().identity();
    let sender = find_agent(identity, &AgentName::Handle(record.sender_handle.clone())).await?;
    let Some(sender) = sender else {
        return Ok(false);
    };
    let checked = identity
        .check_contact(reader.id, member.contact_limits, &sender)
        .await;
    match checked {
        Ok(()) => Ok(true),
        Err(error) if error.code.status() == 403 => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Whether an item was said to the agent: to its own handle, or to an organisation of which it is a member, in the role that the
/// scope names.
pub(super) async fn may_take_part(
    tx: &DbConnection<'_>,
    agent: AgentId,
    record: &OpenItemRecord,
    now: UnixMicros,
) -> crate::Result<bool> {
    if record.subject == agent.into() {
        return Ok(true);
    }
    let org = record.subject.as_org();
    let member = orgs::find_member(tx, org, agent).await?;
    let Some(member) = member.filter(|member| member.accepted_at.is_some()) else {
        return Ok(false);
    };
    Ok(match &record.scope {
        FrameScope::Handle(_) | FrameScope::Prefix(..) | FrameScope::Session(..) => false,
        FrameScope::OrgMembers(_) => true,
        FrameScope::OrgRole(_, role) => member.has_role(role.as_str()),
        FrameScope::Accord(_, grant) => accords::list_granted_accords(tx, org, now)
            .await?
            .iter()
            .any(|accord| accord.grant == *grant && is_in_reach(&member, &accord.reaches)),
    })
}

fn is_in_reach(member: &OrgMemberRecord, reach: &AccordReach) -> bool {
    match reach {
        AccordReach::Everyone => true,
        AccordReach::Role(role) => member.has_role(role.as_str()),
    }
}

fn unknown_item(frame_id: &str) -> Error {
    Error::new(
        ErrorCode::NotFound,
        format!("there is no open item {frame_id} under this handle"),
    )
}

/// The id of an item in a path. One that is no id names nothing.
fn parse_frame_id(frame_id: &str) -> Result<Uuid, FrameError> {
    Uuid::parse_str(frame_id).map_err(|_| unknown_item(frame_id).into())
}

/// `POST /handles/{handle}/open/{frame_id}/take`: a session of the handle takes a handover up. Of several the first gets it; the
/// same session gets the same answer again.
pub async fn take_handover(
    principal: &Principal,
    frames: &Frames,
    handle: &str,
    frame_id: &str,
    session: &str,
) -> Result<EndedItem, FrameError> {
    let agent = principal.require_agent()?;
    let handle = parse_handle(handle)?;
    let id = parse_frame_id(frame_id)?;
    let subject = match agent.handle.as_deref() == Some(handle.as_str()) {
        true => Some(agent.id.into()),
        false => find_joined_org(frames, agent, &handle).await?,
    };
    let subject = subject.ok_or_else(|| {
        FrameError::new(
            FrameCode::Forbidden,
            "a handover is taken up by a session of the handle that it was said to",
        )
    })?;
    let agent_id = agent.id;
    let frame_id = frame_id.to_owned();
    let taken_by = format!("{} {session}", agent.handle.as_deref().unwrap_or_default());
    let record = frames.context().store().write(async move |txn| {
        let now = txn.now();
        let clock = txn.expiry_clock();
        let record = table::find_item(&txn.tx, subject, id)
            .await?
            .filter(|record| !record.is_over(clock))
            .ok_or_else(|| unknown_item(&frame_id))?;
        if !may_take_part(&txn.tx, agent_id, &record, now).await? {
            return Err(unknown_item(&frame_id));
        }
        check_takeable(&record, &taken_by)?;
        table::end_item(&txn.tx, record.id, ItemEnd::Taken, &taken_by, now).await?;
        Ok(record)
    });
    to_ended_item(&record.await?, OpenItemOutcome::Taken)
}

fn check_takeable(record: &OpenItemRecord, taken_by: &str) -> crate::Result<()> {
    let conflict = |message: String| Err(Error::new(ErrorCode::Conflict, message));
    match record.item {
        OpenItemKind::Handover => {}
        OpenItemKind::Lock | OpenItemKind::Decision => {
            return conflict(
                "only a handover is taken up; a lock is released, a decision answered".into(),
            );
        }
    }
    let ended_by = record.ended_by.as_deref().unwrap_or_default();
    match record.ended_as {
        None => Ok(()),
        Some(ItemEnd::Taken) if ended_by == taken_by => Ok(()),
        Some(ItemEnd::Taken) => conflict(format!("it was taken up by {ended_by}")),
        Some(ItemEnd::Withdrawn | ItemEnd::Released | ItemEnd::Answered) => {
            conflict("its sender has withdrawn it".into())
        }
    }
}

/// `DELETE /handles/{handle}/open/{frame_id}`: the sender withdraws what it said; doing so again changes nothing.
pub async fn withdraw_item(
    principal: &Principal,
    frames: &Frames,
    handle: &str,
    frame_id: &str,
) -> Result<EndedItem, FrameError> {
    let agent = principal.require_agent()?;
    let handle = parse_handle(handle)?;
    let id = parse_frame_id(frame_id)?;
    let place = find_readable_place(frames, agent, &handle).await;
    let subject = find_subject(frames, &handle)
        .await?
        .ok_or_else(|| unknown_item(frame_id))?;
    let agent_id = agent.id;
    let frame_id = frame_id.to_owned();
    let withdrawn_by = agent.handle.as_deref().unwrap_or_default().to_owned();
    let can_read = place.is_ok();
    let record = frames.context().store().write(async move |txn| {
        let now = txn.now();
        let clock = txn.expiry_clock();
        let record = table::find_item(&txn.tx, subject, id)
            .await?
            .filter(|record| !record.is_over(clock))
            .filter(|record| can_read || record.sender == agent_id)
            .ok_or_else(|| unknown_item(&frame_id))?;
        if record.sender != agent_id {
            return Err(Error::new(
                ErrorCode::Forbidden,
                "an item is withdrawn by its sender",
            ));
        }
        match record.ended_as {
            None => {
                table::end_item(&txn.tx, record.id, ItemEnd::Withdrawn, &withdrawn_by, now).await?;
            }
            Some(ItemEnd::Withdrawn) => {}
            Some(ItemEnd::Taken | ItemEnd::Released | ItemEnd::Answered) => {
                return Err(Error::new(ErrorCode::Conflict, "it has ended already"));
            }
        }
        Ok(record)
    });
    to_ended_item(&record.await?, OpenItemOutcome::Withdrawn)
}

/// The agent or organisation of a handle. A sender may have lost its grant since, and still withdraws what it said.
async fn find_subject(frames: &Frames, handle: &Handle) -> Result<Option<SubjectId>, FrameError> {
    let name = AgentName::Handle(handle.clone());
    if let Some(agent) = find_agent(frames.context().identity(), &name).await? {
        return Ok(Some(agent.id.into()));
    }
    let handle = handle.clone();
    let org = frames
        .context()
        .store()
        .read(async move |tx| Ok(orgs::find_org(tx, &handle).await?))
        .await?;
    Ok(org.map(|org| org.id.into()))
}

fn to_ended_item(
    record: &OpenItemRecord,
    outcome: OpenItemOutcome,
) -> Result<EndedItem, FrameError> {
    Ok(EndedItem {
        frame_id: record.frame_id,
        handle: record.scope.addressed_handle().to_string(),
        outcome: outcome.to_string(),
        frame: parse_stored_frame(record)?,
    })
}
