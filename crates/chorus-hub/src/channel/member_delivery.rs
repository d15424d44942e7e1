//! Delivers channel messages to members: through their inbox, or by an outbox post to their
//! connection string.

use super::append::{ChannelSender, RoutedMessage};
use super::common_part::CommonPart;
use super::{routing, tokens};
use crate::Result;
use crate::context::{HubContext, WeakContext};
use crate::delivery::outbox::{self, OutboxHandler, OutboxPost, PostOutcome, PostPurpose};
use crate::delivery::outgoing::webhook_signature::{SignatureHeaders, sign_body};
use crate::delivery::sealed_delivery::seal_credentials;
use crate::store::channels::{self, ChannelMemberRecord, ChannelRecord};
use crate::store::outbox::{OutboxRow, RetryClass};
use crate::store::{
    EntryKind, LogEntry, LogSeq, MemberId, NewLogEntry, WriteTxn, channel_deliveries,
    channel_entries, outbox as outbox_table,
};
use chorus_wire::channel::channels::MemberRoute;
use chorus_wire::channel::delivery::{ChannelDelivery, ChannelInfo, ChannelMessage};
use chorus_wire::channel::history_row::{ChannelRow, MemberChange};
use chorus_wire::{Error, limits, secret::Secret, time::UnixMicros};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

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
    for member in message.roster {
        if !is_routed(member) {
            continue;
        }
        if member.turn != i64::from(sender.turn) {
            channels::set_turn(&txn.tx, member.id, i64::from(sender.turn)).await?;
        }
        match member.via {
            MemberRoute::Owner => {}
            MemberRoute::Inbox => {
                append_to_inbox(txn, channel, message, member, sender, &mut common_part).await?
            }
            MemberRoute::Connection => {
                channel_deliveries::enqueue_delivery(&txn.tx, member.id, message.seq).await?;
                // A reachable member without an outbox row has only this delivery pending. All
                // others may exceed their limit.
                let is_unreachable = member.unreachable_at.is_some();
                if !enqueue_member_post(txn, member.id, is_unreachable).await? || is_unreachable {
                    let max_kept = if is_unreachable {
                        limits::BACKLOG_MESSAGES + 1
                    } else {
                        limits::PENDING_DELIVERIES_PER_MEMBER
                    };
                    channel_deliveries::drop_all_but_newest(&txn.tx, member.id, max_kept).await?;
                }
            }
        }
    }
    Ok(())
}

/// Puts the delivery on the inbox of an agent of this hub, in the same transaction as the message
/// and without HTTP.
async fn append_to_inbox(
    txn: &mut WriteTxn<'_>,
    channel: &ChannelRecord,
    message: &RoutedMessage<'_>,
    member: &ChannelMemberRecord,
    sender: &ChannelSender,
    common_part: &mut CommonPart,
) -> Result<()> {
    let Some(agent) = member.principal else {
        return Ok(());
    };
    let credentials = tokens::mint_delivery_tokens(txn, channel, member, sender.turn).await?;
    let body = render_delivery(
        channel,
        to_delivery_message(message.row),
        Vec::new(),
        credentials,
    )?;
    let seal_key = txn
        .hub_settings()
        .seal_key
        .as_deref()
        .ok_or_else(|| Error::internal("the store has no seal key"))?;
    let body = seal_credentials(seal_key, &body)?;
    let entry = NewLogEntry {
        subject: agent.into(),
        subject_name: member.agent_id.clone().unwrap_or_default(),
        kind: EntryKind::Channel,
        actor: sender.actor_id,
        actor_name: sender.name.clone(),
        body: body.into(),
        fallback: None,
    };
    common_part.append_delivery(txn, message.seq, entry).await
}

fn render_delivery(
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
    };
    serde_json::to_string(&delivery).map_err(Error::internal)
}

fn to_delivery_message(row: &ChannelRow) -> ChannelMessage {
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
async fn enqueue_member_post(
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

/// The post of one attempt. Each attempt builds it from ids: the outbox row has no secrets, and
/// every attempt has fresh credentials.
struct PreparedPost {
    url: Secret,
    signing_secret: Option<Secret>,
    message_id: String,
    /// The sequence of the message. If the post is accepted, all deliveries up to it are completed.
    seq: LogSeq,
    body: String,
}

enum AttemptPlan {
    /// No delivery is pending, or the lease has expired.
    NothingDue,
    /// The connection string or signing secret was sealed with another key; the message's sequence.
    CannotUnseal(LogSeq),
    Post(PreparedPost),
}

/// Posts the outbox rows of channel deliveries.
pub(crate) struct ChannelDeliveryHandler(pub WeakContext);

impl OutboxHandler for ChannelDeliveryHandler {
    fn attempt(&self, leased_row: OutboxRow) -> BoxFuture<'_, Result<()>> {
        async move {
            match self.0.upgrade() {
                Some(hub) => attempt_delivery(&hub, leased_row).await,
                None => Ok(()),
            }
        }
        .boxed()
    }
}

/// Makes one attempt to post a member's next pending delivery.
async fn attempt_delivery(hub: &HubContext, leased_row: OutboxRow) -> Result<()> {
    let member = leased_row
        .body
        .parse()
        .map(MemberId)
        .map_err(|_| Error::internal("a row of the outbox is for no member"))?;
    let hub_handle = hub.clone();
    let row_to_check = leased_row.clone();
    let prepared = hub
        .store()
        .write(async move |txn| prepare_attempt(&hub_handle, txn, &row_to_check, member).await)
        .await?;
    let (seq, outcome) = match prepared {
        AttemptPlan::NothingDue => return Ok(()),
        AttemptPlan::CannotUnseal(seq) => {
            tracing::error!(
                %member,
                "cannot unseal a connection string: it was sealed with another key"
            );
            (
                seq,
                PostOutcome::Blocked("its connection string cannot be read".into()),
            )
        }
        AttemptPlan::Post(ready) => (ready.seq, post_delivery(hub, &leased_row, ready).await),
    };
    let retry_at = outbox::next_attempt_at(&leased_row, hub.clock().now());
    hub.store()
        .write(async move |txn| {
            settle_attempt(txn, &leased_row, member, seq, &outcome, retry_at).await
        })
        .await
}

async fn prepare_attempt(
    hub: &HubContext,
    txn: &mut WriteTxn<'_>,
    leased_row: &OutboxRow,
    member_id: MemberId,
) -> Result<AttemptPlan> {
    // Checked again inside the transaction: if the lease has expired, another hub may have the row
    // (D-89).
    if !outbox_table::is_still_leased(&txn.tx, leased_row).await? {
        return Ok(AttemptPlan::NothingDue);
    }
    let member = channels::member_by_id(&txn.tx, member_id)
        .await?
        .filter(|member| member.left_at.is_none());
    let channel = match &member {
        Some(member) => channels::find_channel(&txn.tx, member.channel).await?,
        None => None,
    };
    let (Some(member), Some(channel)) = (member, channel) else {
        channel_deliveries::drop_pending_deliveries(&txn.tx, member_id).await?;
        outbox_table::delete_leased_row(&txn.tx, leased_row).await?;
        return Ok(AttemptPlan::NothingDue);
    };
    let Some(pending) = next_pending(txn, &member).await? else {
        outbox_table::delete_leased_row(&txn.tx, leased_row).await?;
        return Ok(AttemptPlan::NothingDue);
    };
    let url = member
        .sealed_connection
        .as_deref()
        .and_then(|sealed| hub.seal_key().unseal(sealed));
    let signing_secret = member
        .sealed_signing_secret
        .as_deref()
        .map(|sealed| hub.seal_key().unseal(sealed));
    let (Some(url), None | Some(Some(_))) = (url, &signing_secret) else {
        return Ok(AttemptPlan::CannotUnseal(pending.seq));
    };
    let PendingDelivery { seq, row, backlog } = pending;
    let credentials =
        tokens::mint_delivery_tokens(txn, &channel, &member, row.turn.unwrap_or(0)).await?;
    let message = to_delivery_message(&row);
    let message_id = message.id.clone();
    let body = render_delivery(&channel, message, backlog, credentials)?;
    Ok(AttemptPlan::Post(PreparedPost {
        url,
        signing_secret: signing_secret.flatten(),
        message_id,
        seq,
        body,
    }))
}

/// The next message to deliver, and the missed messages that go with it.
struct PendingDelivery {
    seq: LogSeq,
    row: ChannelRow,
    backlog: Vec<ChannelMessage>,
}

/// The next pending delivery. A reachable member gets its messages one by one, in order. An
/// unreachable one gets the newest, with those it missed as the backlog. A delivery whose
/// message retention has deleted is dropped.
async fn next_pending(
    txn: &WriteTxn<'_>,
    member: &ChannelMemberRecord,
) -> Result<Option<PendingDelivery>> {
    if member.unreachable_at.is_some() {
        let mut entries = channel_entries::list_undelivered_entries(
            &txn.tx,
            member.id,
            limits::BACKLOG_MESSAGES + 1,
        )
        .await?
        .into_iter();
        let Some(newest) = entries.next() else {
            channel_deliveries::drop_pending_deliveries(&txn.tx, member.id).await?;
            return Ok(None);
        };
        let row = parse_row(&newest)?;
        return Ok(Some(PendingDelivery {
            seq: newest.seq,
            backlog: collect_backlog(&row, entries)?,
            row,
        }));
    }
    while let Some(seq) = channel_deliveries::find_first_pending_seq(&txn.tx, member.id).await? {
        if let Some(entry) = channel_entries::find_channel_entry(&txn.tx, seq).await? {
            return Ok(Some(PendingDelivery {
                seq,
                row: parse_row(&entry)?,
                backlog: Vec::new(),
            }));
        }
        channel_deliveries::complete_delivery(&txn.tx, member.id, seq).await?;
    }
    Ok(None)
}

fn parse_row(line: &LogEntry) -> Result<ChannelRow> {
    serde_json::from_str(&line.body).map_err(Error::internal)
}

/// The messages before the newest, oldest first, as many as fit into one delivery. The rest is in
/// the history.
fn collect_backlog(
    newest: &ChannelRow,
    earlier: impl Iterator<Item = LogEntry>,
) -> Result<Vec<ChannelMessage>> {
    let encoded_len =
        |message: &ChannelMessage| serde_json::to_string(message).map_or(0, |text| text.len());
    let mut bytes_left =
        limits::BACKLOG_BYTES.saturating_sub(encoded_len(&to_delivery_message(newest)));
    let mut backlog = Vec::new();
    for entry in earlier {
        let message = to_delivery_message(&parse_row(&entry)?);
        let Some(remaining) = bytes_left.checked_sub(encoded_len(&message) + 1) else {
            break;
        };
        bytes_left = remaining;
        backlog.push(message);
    }
    backlog.reverse();
    Ok(backlog)
}

/// Posts a delivery, signed if the member was added with a signing secret. An agent that does not
/// check signatures ignores the headers.
async fn post_delivery(
    hub: &HubContext,
    leased_row: &OutboxRow,
    ready: PreparedPost,
) -> PostOutcome {
    let signed_headers = match &ready.signing_secret {
        None => Some(SignatureHeaders::default()),
        Some(secret) => sign_body(
            secret,
            &ready.message_id,
            ready.body.as_bytes(),
            hub.clock().now(),
        ),
    };
    let Some(headers) = signed_headers else {
        return PostOutcome::Blocked("its signing secret cannot be used".into());
    };
    hub.delivery()
        .post_leased_row(leased_row, ready.url.expose(), &headers.pairs(), ready.body)
        .await
}

/// Applies the outcome of an attempt. `seq` is the sequence of the posted message.
/// `retry_at` is when to try again; `None` when the time for retries is over.
async fn settle_attempt(
    txn: &mut WriteTxn<'_>,
    leased_row: &OutboxRow,
    member_id: MemberId,
    seq: LogSeq,
    outcome: &PostOutcome,
    retry_at: Option<UnixMicros>,
) -> Result<()> {
    let member = channels::member_by_id(&txn.tx, member_id)
        .await?
        .filter(|member| member.left_at.is_none());
    let Some(member) = member else {
        channel_deliveries::drop_pending_deliveries(&txn.tx, member_id).await?;
        outbox_table::delete_leased_row(&txn.tx, leased_row).await?;
        return Ok(());
    };
    let was_unreachable = member.unreachable_at.is_some();
    if let (PostOutcome::Retry(_), Some(due), false) = (outcome, retry_at, was_unreachable) {
        return Ok(outbox_table::reschedule_row(&txn.tx, leased_row, due).await?);
    }
    if !outbox_table::delete_leased_row(&txn.tx, leased_row).await? {
        // The lease has expired: the hub that has the row now settles it.
        return Ok(());
    }
    let is_unreachable = match outcome {
        PostOutcome::Accepted => {
            channel_deliveries::complete_deliveries_to(&txn.tx, member_id, seq).await?;
            mark_reachability(txn, &member, MemberChange::Reachable).await?;
            false
        }
        // The member answers but refuses this message; it may accept the next one.
        PostOutcome::Rejected { gone: false } => {
            channel_deliveries::complete_delivery(&txn.tx, member_id, seq).await?;
            mark_reachability(txn, &member, MemberChange::Reachable).await?;
            false
        }
        PostOutcome::Rejected { gone: true } | PostOutcome::Retry(_) | PostOutcome::Blocked(_) => {
            channel_deliveries::drop_all_but_newest(&txn.tx, member_id, limits::BACKLOG_MESSAGES)
                .await?;
            mark_reachability(txn, &member, MemberChange::Unreachable).await?;
            // An unreachable member gets one attempt per new message. A message that arrived during
            // this attempt has not had its own.
            let newest = channel_deliveries::list_newest_pending_seqs(&txn.tx, member_id, 1)
                .await?
                .into_iter()
                .next();
            if !was_unreachable || newest.is_none_or(|newest| newest <= seq) {
                return Ok(());
            }
            true
        }
    };
    if channel_deliveries::find_first_pending_seq(&txn.tx, member_id)
        .await?
        .is_some()
    {
        enqueue_member_post(txn, member_id, is_unreachable).await?;
    }
    Ok(())
}

/// Records whether the member is reachable. If that has changed, appends a row to the channel.
async fn mark_reachability(
    txn: &mut WriteTxn<'_>,
    member: &ChannelMemberRecord,
    change: MemberChange,
) -> Result<()> {
    let since = (change == MemberChange::Unreachable).then(|| txn.now());
    if channels::set_unreachable(&txn.tx, member.id, since).await?
        && let Some(channel) = channels::find_channel(&txn.tx, member.channel).await?
    {
        super::append::append_member_change(
            txn,
            &channel,
            &ChannelSender::as_hub(),
            member,
            change,
        )?;
    }
    Ok(())
}
