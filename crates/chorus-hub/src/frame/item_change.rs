//! What a frame changes about open items: three kinds open one, and their releases, extensions, answers and takes change it.
//! The change is committed before the frame is emitted, so that a session that hears the frame reads the new state.

use super::Frames;
use super::open_items::may_take_part;
use super::resolve_scope::ResolvedScope;
use crate::clock_watch::ExpiryClock;
use crate::identity::Agent;
use crate::store::open_items::{self as table, ItemEnd, NewOpenItem, OpenItemRecord};
use crate::store::{AgentId, DbConnection, OpenItemId, RowId, SubjectId, WriteTxn, orgs};
use chorus_wire::frame::payload::AgentHandover;
use chorus_wire::frame::{
    Frame, FrameError, FramePayload, FrameScope, OpenItemKind, ScopeIdent, SubmissionReply,
};
use chorus_wire::time::UnixMicros;
use chorus_wire::{ErrorCode, limits};
use std::time::Duration;
use uuid::Uuid;

/// How a handover that takes work up names the frame that offered it.
const FRAME_REF_PREFIX: &str = "frame:";

/// What a frame changes.
#[derive(Clone, Debug)]
enum ItemChange {
    Open {
        item: OpenItemKind,
        lease_id: Option<Uuid>,
        keep_for: Duration,
    },
    ExtendLease {
        lease_id: Uuid,
        by: Duration,
    },
    ReleaseLease {
        lease_id: Uuid,
    },
    /// The ids that the answer repeats: one of them may be that of a decision.
    AnswerDecision {
        ids: [Option<Uuid>; 2],
    },
    TakeHandover(AgentHandover),
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct ItemOutcome {
    kept: Option<bool>,
    kept_until: Option<UnixMicros>,
    undo: Vec<ItemUndo>,
}

/// Takes a change back when the frame could not be emitted.
#[derive(Clone, Copy, Debug)]
enum ItemUndo {
    Close(OpenItemId),
    Reopen(OpenItemId, UnixMicros),
}

impl ItemOutcome {
    fn kept_until(until: UnixMicros) -> Self {
        Self {
            kept: Some(true),
            kept_until: Some(until),
            undo: Vec::new(),
        }
    }

    fn not_kept() -> Self {
        Self {
            kept: Some(false),
            ..Self::default()
        }
    }

    pub fn describe(&self, reply: SubmissionReply) -> SubmissionReply {
        SubmissionReply {
            kept: self.kept,
            kept_until: self.kept_until,
            ..reply
        }
    }
}

/// The change of a frame; `None` for frames that never touch the store.
fn find_change(frame: &Frame) -> Option<ItemChange> {
    let open = |item, lease_id, keep_for: Duration| {
        Some(ItemChange::Open {
            item,
            lease_id,
            keep_for: keep_for.min(limits::OPEN_ITEM_RETENTION_MAX),
        })
    };
    let frame_ttl = frame.ttl_ms.map(Duration::from_millis);
    match &frame.payload {
        FramePayload::AgentLockRequest(request) => open(
            OpenItemKind::Lock,
            Some(request.lease_id),
            Duration::from_millis(request.ttl_ms),
        ),
        FramePayload::AgentBindingMoment(_) => open(
            OpenItemKind::Decision,
            None,
            frame_ttl.unwrap_or(limits::DECISION_RETENTION),
        ),
        FramePayload::AgentHandover(handover) => match &handover.next_session_id {
            Some(next) if !next.is_empty() => Some(ItemChange::TakeHandover(handover.clone())),
            Some(_) | None => open(
                OpenItemKind::Handover,
                None,
                frame_ttl.map_or(limits::HANDOVER_RETENTION, |ttl| {
                    ttl.min(limits::HANDOVER_RETENTION)
                }),
            ),
        },
        FramePayload::AgentLeaseExtend(extend) => Some(ItemChange::ExtendLease {
            lease_id: extend.lease_id,
            by: Duration::from_millis(extend.ttl_ms),
        }),
        FramePayload::AgentLockRelease(release) => Some(ItemChange::ReleaseLease {
            lease_id: release.lease_id,
        }),
        FramePayload::AgentResponse(response) => Some(ItemChange::AnswerDecision {
            ids: [Some(response.query_id), response.responded_to_frame_id],
        }),
        FramePayload::AgentAdvisory(_)
        | FramePayload::AgentBroadcast(_)
        | FramePayload::AgentQuery(_)
        | FramePayload::AgentReturnEvent(_)
        | FramePayload::PeerDiagnosticRequest(_)
        | FramePayload::PeerDiagnosticResponse(_)
        | FramePayload::IntentDeclare(_)
        | FramePayload::IntentWithdraw(_)
        | FramePayload::FlushExecuted(_) => None,
    }
}

/// Commits what an authorised frame changes about open items.
pub(super) async fn apply_change(
    frames: &Frames,
    agent: &Agent,
    frame: &Frame,
    scope: &FrameScope,
    resolved: &ResolvedScope,
    tool: Option<&ScopeIdent>,
) -> Result<ItemOutcome, FrameError> {
    match find_change(frame) {
        None => Ok(ItemOutcome::default()),
        Some(ItemChange::Open {
            item,
            lease_id,
            keep_for,
        }) => {
            let new = NewOpenItem {
                frame_id: frame.frame_id,
                item,
                sender: agent.id,
                sender_handle: frame.sender_handle.clone(),
                scope: scope.clone(),
                tool: tool.map(ScopeIdent::to_string),
                lease_id,
                frame: frame.submitted_json().to_owned(),
            };
            let own_subject = match scope.addressed_org() {
                Some(_) => None,
                None => resolved.targets.first().map(|target| target.id.into()),
            };
            open_item(frames, agent, own_subject, new, keep_for).await
        }
        Some(ItemChange::ExtendLease { lease_id, by }) => {
            extend_lease(frames, agent.id, lease_id, by, frame.frame_id).await
        }
        Some(ItemChange::ReleaseLease { lease_id }) => release_lease(frames, agent, lease_id).await,
        Some(ItemChange::AnswerDecision { ids }) => {
            let found = find_answered(frames, agent, ids).await?;
            end_items(frames, found, ItemEnd::Answered, frame).await
        }
        Some(ItemChange::TakeHandover(handover)) => {
            let found = find_taken(frames, agent, handover).await?;
            end_items(frames, found, ItemEnd::Taken, frame).await
        }
    }
}

/// Opens an item under an agent, or under the organisation that its scope names. A full list, and an owner without room, keep
/// the frame from being kept and not from being delivered.
async fn open_item(
    frames: &Frames,
    agent: &Agent,
    own_subject: Option<SubjectId>,
    new: NewOpenItem,
    keep_for: Duration,
) -> Result<ItemOutcome, FrameError> {
    let charged = frames
        .context()
        .identity()
        .charge_stored_bytes(agent.owner, new.frame.len())
        .await;
    match charged {
        Ok(()) => {}
        Err(error) if error.code == ErrorCode::Quota => return Ok(ItemOutcome::not_kept()),
        Err(error) => return Err(error.into()),
    }
    let outcome = frames.context().store().write(async move |txn| {
        let subject = match own_subject {
            Some(subject) => Some(subject),
            None => orgs::find_org(&txn.tx, new.scope.addressed_handle())
                .await?
                .map(|org| org.id.into()),
        };
        match subject {
            Some(subject) => write_item(txn, subject, &new, keep_for).await,
            None => Ok(ItemOutcome::not_kept()),
        }
    });
    Ok(outcome.await?)
}

async fn write_item(
    txn: &WriteTxn<'_>,
    subject: SubjectId,
    new: &NewOpenItem,
    keep_for: Duration,
) -> crate::Result<ItemOutcome> {
    let now = txn.now();
    let clock = txn.expiry_clock();
    let expires_at = now.saturating_add(keep_for);
    table::trim_subject_items(&txn.tx, subject, clock).await?;
    if let Some(known) = table::find_item(&txn.tx, subject, new.frame_id).await? {
        // a repeated frame gets the first answer and opens nothing again.
        return Ok(match known.sender == new.sender {
            true if known.is_open(clock) => ItemOutcome::kept_until(known.expires_at),
            true => ItemOutcome {
                kept: Some(true),
                ..ItemOutcome::default()
            },
            false => ItemOutcome::not_kept(),
        });
    }
    if let Some(lease_id) = new.lease_id {
        let held = table::find_leases(&txn.tx, new.sender, lease_id, clock).await?;
        if let Some(held) = held.iter().find(|held| held.subject == subject) {
            if locked_resource(&held.frame) == locked_resource(&new.frame) {
                table::renew_lock(&txn.tx, held.id, new, expires_at).await?;
                return Ok(ItemOutcome::kept_until(expires_at));
            }
            table::delete_item(&txn.tx, held.id).await?;
        }
    }
    if table::count_open_items(&txn.tx, subject).await? >= limits::OPEN_ITEMS_PER_HANDLE {
        return Ok(ItemOutcome::not_kept());
    }
    let id = table::insert_item(&txn.tx, subject, new, now, expires_at).await?;
    Ok(ItemOutcome {
        undo: vec![ItemUndo::Close(id)],
        ..ItemOutcome::kept_until(expires_at)
    })
}

fn locked_resource(frame: &str) -> Option<String> {
    let frame = Frame::parse(frame).ok()?;
    if let FramePayload::AgentLockRequest(request) = &frame.payload {
        return Some(request.resource.clone());
    }
    None
}

/// FRM-26: only the holder extends a claim, wherever it stands; a lease that is not kept stays so.
async fn extend_lease(
    frames: &Frames,
    sender: AgentId,
    lease_id: Uuid,
    by: Duration,
    extended_by: Uuid,
) -> Result<ItemOutcome, FrameError> {
    let outcome = frames.context().store().write(async move |txn| {
        let now = txn.now();
        let latest = now.saturating_add(limits::OPEN_ITEM_RETENTION_MAX);
        let mut outcome = ItemOutcome::not_kept();
        for held in table::find_leases(&txn.tx, sender, lease_id, txn.expiry_clock()).await? {
            // A repeated frame extends once.
            let is_repeated = held.extended_by.as_deref() == Some(&*extended_by.to_string());
            let expires_at = match is_repeated {
                true => held.expires_at,
                false => held.expires_at.saturating_add(by).min(latest),
            };
            table::extend_lock(&txn.tx, held.id, expires_at, extended_by).await?;
            outcome = ItemOutcome::kept_until(expires_at);
        }
        Ok(outcome)
    });
    Ok(outcome.await?)
}

/// The holder lets go of a claim wherever it stands. A release is true even if no session hears it, so it is not taken back.
async fn release_lease(
    frames: &Frames,
    agent: &Agent,
    lease_id: Uuid,
) -> Result<ItemOutcome, FrameError> {
    let sender = agent.id;
    let ended_by = agent.handle.as_deref().unwrap_or_default().to_owned();
    frames
        .context()
        .store()
        .write(async move |txn| {
            let now = txn.now();
            let clock = txn.expiry_clock();
            for held in table::find_leases(&txn.tx, sender, lease_id, clock).await? {
                table::end_item(&txn.tx, held.id, ItemEnd::Released, &ended_by, now).await?;
            }
            Ok(())
        })
        .await?;
    Ok(ItemOutcome::default())
}

/// The open decisions that an answer is about and that were said to the agent. Most answers are to plain questions, so they are
/// looked up before anything is written.
async fn find_answered(
    frames: &Frames,
    agent: &Agent,
    ids: [Option<Uuid>; 2],
) -> Result<Vec<OpenItemRecord>, FrameError> {
    let [first, second] = ids;
    let second = second.filter(|id| Some(*id) != first);
    let agent_id = agent.id;
    let clock = frames.context().expiry_clock();
    let found = frames.context().store().read(async move |tx| {
        let mut found = Vec::new();
        for id in [first, second].into_iter().flatten() {
            found.extend(table::find_items_of_frame(tx, OpenItemKind::Decision, id, clock).await?);
        }
        retain_addressed(tx, agent_id, found, clock.now()).await
    });
    Ok(found.await?)
}

/// The open handover that a frame takes up: the one that it refers to, or the one whose text it repeats (FRM-32).
async fn find_taken(
    frames: &Frames,
    agent: &Agent,
    handover: AgentHandover,
) -> Result<Vec<OpenItemRecord>, FrameError> {
    let agent_id = agent.id;
    let clock = frames.context().expiry_clock();
    let found = frames.context().store().read(async move |tx| {
        let refs = handover.pointer_refs.iter().flatten();
        let named: Vec<&str> = refs
            .filter_map(|reference| reference.strip_prefix(FRAME_REF_PREFIX))
            .collect();
        if named.is_empty() {
            let repeated = find_repeated_handover(tx, agent_id, &handover, clock).await?;
            return retain_addressed(tx, agent_id, repeated.into_iter().collect(), clock.now())
                .await;
        }
        let mut found = Vec::new();
        for id in named.into_iter().filter_map(|id| id.parse().ok()) {
            found.extend(table::find_items_of_frame(tx, OpenItemKind::Handover, id, clock).await?);
        }
        retain_addressed(tx, agent_id, found, clock.now()).await
    });
    Ok(found.await?)
}

async fn find_repeated_handover(
    tx: &DbConnection<'_>,
    agent: AgentId,
    taken: &AgentHandover,
    clock: ExpiryClock,
) -> crate::Result<Option<OpenItemRecord>> {
    let is_repeated = |record: &OpenItemRecord| {
        record.item == OpenItemKind::Handover
            && Frame::parse(&record.frame).is_ok_and(|offer| {
                matches!(&offer.payload, FramePayload::AgentHandover(offer)
                    if offer.previous_session_id == taken.previous_session_id
                        && offer.handover_body == taken.handover_body)
            })
    };
    let mut before = OpenItemId::AFTER_ALL;
    loop {
        let (page, is_complete) =
            table::list_items(tx, agent.into(), Some(agent), before, clock).await?;
        let last = page.last().map(|record| record.id);
        if let Some(found) = page.into_iter().find(is_repeated) {
            return Ok(Some(found));
        }
        match last {
            Some(last) if !is_complete => before = last,
            Some(_) | None => return Ok(None),
        }
    }
}

/// The items that were said to the agent, or to an organisation of which it is a member.
async fn retain_addressed(
    tx: &DbConnection<'_>,
    agent: AgentId,
    found: Vec<OpenItemRecord>,
    now: UnixMicros,
) -> crate::Result<Vec<OpenItemRecord>> {
    let mut addressed = Vec::new();
    for record in found {
        if may_take_part(tx, agent, &record, now).await? {
            addressed.push(record);
        }
    }
    Ok(addressed)
}

async fn end_items(
    frames: &Frames,
    found: Vec<OpenItemRecord>,
    end: ItemEnd,
    frame: &Frame,
) -> Result<ItemOutcome, FrameError> {
    if found.is_empty() {
        return Ok(ItemOutcome::default());
    }
    let mut ended_by = frame.sender_handle.to_string();
    if let FramePayload::AgentHandover(taken) = &frame.payload
        && let Some(session) = &taken.next_session_id
    {
        ended_by = format!("{ended_by} {session}");
    }
    let undo = frames.context().store().write(async move |txn| {
        let now = txn.now();
        let mut undo = Vec::new();
        for record in &found {
            if table::end_item(&txn.tx, record.id, end, &ended_by, now).await? {
                undo.push(ItemUndo::Reopen(record.id, record.expires_at));
            }
        }
        Ok(undo)
    });
    Ok(ItemOutcome {
        undo: undo.await?,
        ..ItemOutcome::default()
    })
}

/// The frame could not be emitted, so no session knows of the change: the sender was refused and may not try again.
pub(super) async fn undo_change(frames: &Frames, outcome: ItemOutcome) {
    if outcome.undo.is_empty() {
        return;
    }
    let undone = frames.context().store().write(async move |txn| {
        for step in &outcome.undo {
            match step {
                ItemUndo::Close(id) => table::delete_item(&txn.tx, *id).await?,
                ItemUndo::Reopen(id, until) => table::reopen_item(&txn.tx, *id, *until).await?,
            }
        }
        Ok(())
    });
    if let Err(error) = undone.await {
        tracing::warn!(%error, cause = error.cause, "an open item was not taken back; it ends by itself");
    }
}
