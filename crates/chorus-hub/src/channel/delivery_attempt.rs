//! Attempts to post a member's pending channel deliveries, and settles what became of each.

use super::append::{ChannelSender, append_member_change};
use super::member_delivery::{
    InboxDelivery, enqueue_member_post, is_reached_by_endpoint, render_delivery,
    to_delivery_message,
};
use super::tokens;
use super::untaken_delivery::{UntakenReason, record_refusal};
use crate::Result;
use crate::context::{HubContext, WeakContext};
use crate::delivery::outbox::{self, OutboxHandler, PostOutcome};
use crate::delivery::outgoing::webhook_signature::{SignatureHeaders, sign_body};
use crate::identity::Agent;
use crate::store::channels::{self, ChannelMemberRecord, ChannelRecord};
use crate::store::outbox::OutboxRow;
use crate::store::{
    LogEntry, LogSeq, MemberId, WriteTxn, channel_deliveries, channel_entries, member_state,
    outbox as outbox_table, principals, record_activity,
};
use chorus_wire::channel::channels::MemberRoute;
use chorus_wire::channel::delivery::ChannelMessage;
use chorus_wire::channel::history_row::{ChannelRow, MemberChange};
use chorus_wire::{Error, limits, secret::Secret, time::UnixMicros};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;

/// The post of one attempt. Each attempt builds it from ids: the outbox row has no secrets, and
/// every attempt has fresh credentials.
struct PreparedPost {
    url: Secret,
    signer: PostSigner,
    message_id: String,
    /// The sequence of the message. If the post is accepted, all deliveries up to it are completed.
    seq: LogSeq,
    body: String,
}

/// What signs a post.
enum PostSigner {
    Unsigned,
    /// The secret that the member was added with (CHN-34).
    Member(Secret),
    /// The endpoint secret of an agent of this hub, if it has one.
    Agent(Box<Agent>),
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
    let retry_at = outbox::next_attempt_at(&leased_row, hub.expiry_clock());
    let untaken = hub
        .store()
        .write(async move |txn| {
            settle_attempt(txn, &leased_row, member, seq, &outcome, retry_at).await
        })
        .await?;
    if let Some(reason) = untaken {
        reason.count(1);
    }
    Ok(())
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
    if member.via == MemberRoute::Inbox && !is_reached_by_endpoint(txn, &member) {
        move_to_inbox(txn, &channel, &member).await?;
        mark_reachability(txn, &member, MemberChange::Reachable).await?;
        outbox_table::delete_leased_row(&txn.tx, leased_row).await?;
        return Ok(AttemptPlan::NothingDue);
    }
    let Some(pending) = next_pending(txn, &member).await? else {
        outbox_table::delete_leased_row(&txn.tx, leased_row).await?;
        return Ok(AttemptPlan::NothingDue);
    };
    let Some((url, signer)) = find_target(hub, txn, &member).await? else {
        return Ok(AttemptPlan::CannotUnseal(pending.seq));
    };
    let PendingDelivery { seq, row, backlog } = pending;
    let credentials = tokens::mint_delivery_tokens(txn, &channel, &member, row.turn.unwrap_or(0))?;
    let message = to_delivery_message(&row);
    let message_id = message.id.clone();
    let body = render_delivery(&channel, message, backlog, credentials)?;
    Ok(AttemptPlan::Post(PreparedPost {
        url,
        signer,
        message_id,
        seq,
        body,
    }))
}

/// Where a member's deliveries are posted, and what signs them; `None` when a secret of the member cannot be unsealed.
async fn find_target(
    hub: &HubContext,
    txn: &WriteTxn<'_>,
    member: &ChannelMemberRecord,
) -> Result<Option<(Secret, PostSigner)>> {
    if let (MemberRoute::Inbox, Some(agent)) = (member.via, member.principal) {
        let agent = principals::find_agent(&txn.tx, agent).await?;
        return Ok(agent.and_then(|agent| {
            let url = Secret::new(agent.endpoint.clone()?);
            Some((url, PostSigner::Agent(Box::new(agent))))
        }));
    }
    let unseal = |sealed: &[u8]| hub.seal_key().unseal(sealed);
    let url = member.sealed_connection.as_deref().and_then(unseal);
    let signer = match member.sealed_signing_secret.as_deref() {
        None => Some(PostSigner::Unsigned),
        Some(sealed) => unseal(sealed).map(PostSigner::Member),
    };
    Ok(url.zip(signer))
}

/// Puts all pending deliveries of an agent of this hub on its inbox: it has no endpoint any more, or it reads its inbox again.
async fn move_to_inbox(
    txn: &mut WriteTxn<'_>,
    channel: &ChannelRecord,
    member: &ChannelMemberRecord,
) -> Result<()> {
    while let Some(seq) = channel_deliveries::find_first_pending_seq(&txn.tx, member.id).await? {
        if let Some(entry) = channel_entries::find_channel_entry(&txn.tx, seq).await? {
            let row = parse_row(&entry)?;
            let turn = row.turn.unwrap_or(0);
            let mut delivery = InboxDelivery::new(&row, turn, entry.actor, &entry.actor_name);
            if let Some(entry) = delivery.build_entry(txn, channel, member)? {
                txn.append_entry(entry);
            }
        }
        channel_deliveries::complete_delivery(&txn.tx, member.id, seq).await?;
    }
    Ok(())
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

/// Posts a delivery, signed if the member has a secret for that. An agent that does not check
/// signatures ignores the headers.
async fn post_delivery(
    hub: &HubContext,
    leased_row: &OutboxRow,
    ready: PreparedPost,
) -> PostOutcome {
    let body = ready.body.as_bytes();
    let signed_headers = match &ready.signer {
        PostSigner::Unsigned => Some(SignatureHeaders::default()),
        PostSigner::Member(secret) => sign_body(secret, &ready.message_id, body, hub.clock().now()),
        PostSigner::Agent(agent) => hub.sign_for_agent(agent, &ready.message_id, body).ok(),
    };
    let Some(headers) = signed_headers else {
        return PostOutcome::Blocked("its signing secret cannot be used".into());
    };
    hub.delivery()
        .post_leased_row(leased_row, ready.url.expose(), &headers.pairs(), ready.body)
        .await
}

/// Applies the outcome of an attempt. `seq` is the sequence of the posted message.
/// `retry_at` is when to try again; `None` when the time for retries is over. Returns why the
/// delivery was not taken, if it ended so.
async fn settle_attempt(
    txn: &mut WriteTxn<'_>,
    leased_row: &OutboxRow,
    member_id: MemberId,
    seq: LogSeq,
    outcome: &PostOutcome,
    retry_at: Option<UnixMicros>,
) -> Result<Option<UntakenReason>> {
    let member = channels::member_by_id(&txn.tx, member_id)
        .await?
        .filter(|member| member.left_at.is_none());
    let Some(member) = member else {
        channel_deliveries::drop_pending_deliveries(&txn.tx, member_id).await?;
        outbox_table::delete_leased_row(&txn.tx, leased_row).await?;
        return Ok(None);
    };
    let was_unreachable = member.unreachable_at.is_some();
    if let (PostOutcome::Retry(_), Some(due), false) = (outcome, retry_at, was_unreachable) {
        outbox_table::reschedule_row(&txn.tx, leased_row, due).await?;
        return Ok(None);
    }
    if !outbox_table::delete_leased_row(&txn.tx, leased_row).await? {
        // The lease has expired: the hub that has the row now settles it.
        return Ok(None);
    }
    let (is_unreachable, untaken) = match outcome {
        PostOutcome::Accepted => {
            channel_deliveries::complete_deliveries_to(&txn.tx, member_id, seq).await?;
            mark_reachability(txn, &member, MemberChange::Reachable).await?;
            if member.refusal.is_some() {
                member_state::set_refusal(&txn.tx, member_id, None).await?;
            }
            (false, None)
        }
        // The member answers but refuses this message; it may accept the next one.
        PostOutcome::Rejected {
            gone: false,
            reason,
        } => {
            channel_deliveries::complete_delivery(&txn.tx, member_id, seq).await?;
            mark_reachability(txn, &member, MemberChange::Reachable).await?;
            if let Some(channel) = channels::find_channel(&txn.tx, member.channel).await? {
                record_refusal(txn, &channel, &member, seq, reason).await?;
            }
            (false, Some(UntakenReason::Refused))
        }
        PostOutcome::Rejected { gone: true, .. }
        | PostOutcome::Retry(_)
        | PostOutcome::Blocked(_) => {
            channel_deliveries::drop_all_but_newest(&txn.tx, member_id, limits::BACKLOG_MESSAGES)
                .await?;
            mark_reachability(txn, &member, MemberChange::Unreachable).await?;
            // An unreachable member gets one attempt per new message. A message that arrived during
            // this attempt has not had its own.
            let newest = channel_deliveries::list_newest_pending_seqs(&txn.tx, member_id, 1)
                .await?
                .into_iter()
                .next();
            let untaken = (!was_unreachable).then_some(UntakenReason::GivenUp);
            if !was_unreachable || newest.is_none_or(|newest| newest <= seq) {
                return Ok(untaken);
            }
            (true, untaken)
        }
    };
    if channel_deliveries::find_first_pending_seq(&txn.tx, member_id)
        .await?
        .is_some()
    {
        // The next delivery is of another message, which is not part of this one's trace.
        txn.leave_trace();
        enqueue_member_post(txn, member_id, is_unreachable).await?;
    }
    Ok(untaken)
}

/// Records whether the member is reachable. If that has changed, appends a row to the channel.
async fn mark_reachability(
    txn: &mut WriteTxn<'_>,
    member: &ChannelMemberRecord,
    change: MemberChange,
) -> Result<()> {
    let since = (change == MemberChange::Unreachable).then(|| txn.now());
    if member_state::set_unreachable(&txn.tx, member.id, since).await?
        && let Some(channel) = channels::find_channel(&txn.tx, member.channel).await?
    {
        append_member_change(txn, &channel, &ChannelSender::as_hub(), member, change)?;
        if change == MemberChange::Unreachable {
            let data = json!({"channel_id": &*channel.public_id, "name": member.name});
            record_activity(txn, "channel_member_unreachable", &data);
        }
    }
    Ok(())
}
