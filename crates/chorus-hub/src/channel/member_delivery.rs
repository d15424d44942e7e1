//! Delivers channel messages to members: through their inbox, or by an outbox post to their
//! connection string or endpoint.

use super::append::{ChannelSender, RoutedMessage};
use super::common_part::CommonPart;
use super::untaken_delivery::{UntakenReason, record_overflow};
use super::{routing, tokens};
use crate::Result;
use crate::delivery::outbox::{self, OutboxPost, PostPurpose};
use crate::delivery::sealed_delivery::CutBody;
use crate::store::channels::{self, ChannelMemberRecord, ChannelRecord};
use crate::store::outbox::RetryClass;
use crate::store::{
    EntryKind, MemberId, NewLogEntry, SubjectId, WriteTxn, channel_deliveries, member_state,
    outbox as outbox_table,
};
use chorus_wire::channel::channels::MemberRoute;
use chorus_wire::channel::delivery::{ChannelDelivery, ChannelInfo, ChannelMessage};
use chorus_wire::channel::history_row::ChannelRow;
use chorus_wire::{Error, limits};
use std::sync::Arc;

/// Enqueues a message for every member it is routed to, in the transaction that appends it.
pub(crate) async fn enqueue_deliveries(
    txn: &mut WriteTxn<'_>,
    channel: &ChannelRecord,
    message: &RoutedMessage<'_>,
    sender: &ChannelSender,
) -> Result<()> {
    let max_turns = txn.hub_settings().agent_turns;
    let is_routed = |member: &ChannelMemberRecord| {
        let is_mentioned = message.mentioned.contains(&member.id);
        routing::is_routed_to(member, sender, is_mentioned, max_turns)
    };
    let mut common_part = CommonPart::for_receivers(message, is_routed);
    let mut delivery = InboxDelivery::new(message.row, sender.turn, sender.actor_id, &sender.name);
    for member in message.roster {
        if !is_routed(member) {
            continue;
        }
        if member.turn != i64::from(sender.turn) {
            member_state::set_turn(&txn.tx, member.id, i64::from(sender.turn)).await?;
        }
        match member.via {
            MemberRoute::Owner => {}
            // What was given up waits for the next attempt, which puts it on the inbox before this message.
            MemberRoute::Inbox
                if member.unreachable_at.is_none() && !is_reached_by_endpoint(txn, member) =>
            {
                if let Some(entry) = delivery.build_entry(txn, channel, member)? {
                    common_part.append_delivery(txn, message.seq, entry).await?;
                }
            }
            MemberRoute::Inbox | MemberRoute::Connection => {
                enqueue_post(txn, channel, member, message).await?;
            }
        }
    }
    Ok(())
}

/// Enqueues a delivery that is posted.
async fn enqueue_post(
    txn: &mut WriteTxn<'_>,
    channel: &ChannelRecord,
    member: &ChannelMemberRecord,
    message: &RoutedMessage<'_>,
) -> Result<()> {
    channel_deliveries::enqueue_delivery(&txn.tx, member.id, message.seq).await?;
    // A reachable member without an outbox row has only this delivery pending. All others may
    // exceed their limit.
    let is_unreachable = member.unreachable_at.is_some();
    if !enqueue_member_post(txn, member.id, is_unreachable).await? || is_unreachable {
        let max_kept = if is_unreachable {
            limits::BACKLOG_MESSAGES + 1
        } else {
            limits::PENDING_DELIVERIES_PER_MEMBER
        };
        let dropped = channel_deliveries::drop_all_but_newest(&txn.tx, member.id, max_kept).await?;
        // What an unreachable member misses beyond its backlog was told when it became unreachable.
        if let Some(dropped) = dropped.filter(|_| !is_unreachable) {
            UntakenReason::Overflowed.count(dropped.count);
            record_overflow(txn, channel, member, dropped.last_seq).await?;
        }
    }
    Ok(())
}

/// Whether deliveries to an agent of this hub are posted: it has an endpoint, and no open stream
/// takes what is put on its inbox.
pub(super) fn is_reached_by_endpoint(txn: &WriteTxn<'_>, member: &ChannelMemberRecord) -> bool {
    member.has_endpoint
        && member
            .principal
            .is_some_and(|agent| !txn.has_draining_stream(agent.into()))
}

/// A message for the inboxes of agents of this hub.
pub(super) struct InboxDelivery<'a> {
    row: &'a ChannelRow,
    turn: u32,
    actor: SubjectId,
    actor_name: Arc<str>,
    /// The body for the receiver before, of which the next one's differs in the credentials alone.
    cut_body: Option<CutBody>,
}

impl<'a> InboxDelivery<'a> {
    pub fn new(row: &'a ChannelRow, turn: u32, actor: SubjectId, actor_name: &Arc<str>) -> Self {
        Self {
            row,
            turn,
            actor,
            actor_name: actor_name.clone(),
            cut_body: None,
        }
    }

    /// The entry that puts the message on the inbox of a member of the channel, without HTTP.
    pub fn build_entry(
        &mut self,
        txn: &WriteTxn<'_>,
        channel: &ChannelRecord,
        member: &ChannelMemberRecord,
    ) -> Result<Option<NewLogEntry>> {
        let Some(agent) = member.principal else {
            return Ok(None);
        };
        let credentials = tokens::mint_delivery_tokens(txn, channel, member, self.turn)?;
        let cut_body = match &mut self.cut_body {
            Some(cut_body) => {
                let callback = serde_json::to_string(&credentials.callback);
                let mcp = serde_json::to_string(&credentials.mcp);
                cut_body.replace_values([
                    callback.map_err(Error::internal)?,
                    mcp.map_err(Error::internal)?,
                ]);
                cut_body
            }
            unused @ None => {
                let message = to_delivery_message(self.row);
                let body = render_delivery(channel, message, Vec::new(), credentials)?;
                unused.insert(CutBody::cut_credentials(&body)?)
            }
        };
        let body = cut_body.seal(tokens::require_seal_key(txn)?)?;
        Ok(Some(NewLogEntry {
            subject: agent.into(),
            subject_name: member.agent_id.clone().unwrap_or_default(),
            kind: EntryKind::Channel,
            actor: self.actor,
            actor_name: self.actor_name.clone(),
            body: body.into(),
            fallback: None,
        }))
    }
}

pub(super) fn render_delivery(
    channel: &ChannelRecord,
    message: ChannelMessage,
    backlog: Vec<ChannelMessage>,
    credentials: tokens::DeliveryCredentials,
) -> Result<String> {
    let channel = ChannelInfo {
        id: channel.public_id.to_string(),
        name: Some(channel.name.clone()),
        service: channel.service.clone(),
        context: channel.context.clone(),
    };
    let delivery = ChannelDelivery {
        channel,
        message,
        callback: credentials.callback,
        mcp: Some(credentials.mcp),
        backlog,
        origin: None,
        webhook_headers: None,
        signed_body: None,
    };
    serde_json::to_string(&delivery).map_err(Error::internal)
}

pub(super) fn to_delivery_message(row: &ChannelRow) -> ChannelMessage {
    ChannelMessage {
        id: row.id.clone().unwrap_or_default(),
        sender: row.sender.clone(),
        content: row.content.clone().unwrap_or_default(),
        parts: row.parts.clone(),
    }
}

fn member_lane(member: MemberId) -> String {
    format!("member {member}")
}

/// Enqueues the outbox row of a member's pending deliveries. A member has one row however many are
/// pending, so that a member that is offline for a day does not slow the outbox. The row of an
/// unreachable member is of the class `Failed`, so that it does not delay members that have not
/// failed (D-41). False when the member has a row already.
pub(super) async fn enqueue_member_post(
    txn: &WriteTxn<'_>,
    member: MemberId,
    is_unreachable: bool,
) -> Result<bool> {
    let lane = member_lane(member);
    let body = member.to_string();
    let was_idle = !outbox_table::has_lane_rows(&txn.tx, &lane).await?;
    if was_idle {
        let retry_class = if is_unreachable {
            RetryClass::Failed
        } else {
            RetryClass::New
        };
        outbox::enqueue_post(
            txn,
            PostPurpose::ChannelDelivery,
            OutboxPost {
                retry_class,
                lane: &lane,
                owner: channels::find_owner_of_member_channel(&txn.tx, member).await?,
                url: "",
                body: &body,
            },
        )
        .await?;
    }
    Ok(was_idle)
}
