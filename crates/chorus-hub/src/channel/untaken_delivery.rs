//! Tells the channel, its roster and the operators about a delivery that ended without being taken.

use super::append::append_untaken_delivery;
use crate::Result;
use crate::store::channels::{ChannelMemberRecord, ChannelRecord};
use crate::store::{LogSeq, WriteTxn, channel_entries, member_state, record_activity};
use chorus_wire::channel::history_row::{ChannelRow, MemberChange};
use chorus_wire::{Error, limits};
use serde_json::json;

/// Why a delivery ended without being taken.
#[derive(Clone, Copy, Debug)]
pub(super) enum UntakenReason {
    /// The member answered with a redirect or a 4xx.
    Refused,
    /// The member became unreachable.
    GivenUp,
    /// More deliveries waited for the member than are kept.
    Overflowed,
}

impl UntakenReason {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::GivenUp => "given_up",
            Self::Overflowed => "overflow",
        }
    }

    /// What it is called in the channel and in the activity.
    const fn names_in_channel(self) -> (MemberChange, &'static str) {
        match self {
            Self::Refused => (MemberChange::Refused, "channel_delivery_refused"),
            Self::GivenUp => (MemberChange::Unreachable, "channel_member_unreachable"),
            Self::Overflowed => (MemberChange::Dropped, "channel_deliveries_dropped"),
        }
    }

    pub fn count(self, deliveries: u64) {
        if matches!(self, Self::GivenUp) {
            metrics::counter!("chorus_outbox_given_up_total").increment(deliveries);
        }
        metrics::counter!("chorus_channel_deliveries_untaken_total", "reason" => self.as_str())
            .increment(deliveries);
    }
}

/// Tells that a member did not take a message.
pub(super) async fn record_refusal(
    txn: &mut WriteTxn<'_>,
    channel: &ChannelRecord,
    member: &ChannelMemberRecord,
    seq: LogSeq,
    reason: &str,
) -> Result<()> {
    record_untaken(txn, channel, member, seq, UntakenReason::Refused, reason).await
}

/// Records that the oldest deliveries of a member, up to the sequence `seq`, were dropped, and announces it once: until the
/// member takes a delivery, each further message drops one more.
pub(super) async fn record_overflow(
    txn: &mut WriteTxn<'_>,
    channel: &ChannelRecord,
    member: &ChannelMemberRecord,
    seq: LogSeq,
) -> Result<()> {
    let reason = format!(
        "more than {} messages wait for it; the oldest are only in the history",
        limits::PENDING_DELIVERIES_PER_MEMBER
    );
    let is_announced = matches!(&member.refusal, Some((announced, _)) if *announced == reason);
    if is_announced {
        return Ok(());
    }
    record_untaken(
        txn,
        channel,
        member,
        seq,
        UntakenReason::Overflowed,
        &reason,
    )
    .await
}

async fn record_untaken(
    txn: &mut WriteTxn<'_>,
    channel: &ChannelRecord,
    member: &ChannelMemberRecord,
    seq: LogSeq,
    untaken: UntakenReason,
    reason: &str,
) -> Result<()> {
    let (change, activity_type) = untaken.names_in_channel();
    member_state::set_refusal(&txn.tx, member.id, Some((reason, txn.now()))).await?;
    let message_id = match channel_entries::find_channel_entry(&txn.tx, seq).await? {
        Some(entry) => {
            let row: ChannelRow = serde_json::from_str(&entry.body).map_err(Error::internal)?;
            row.id
        }
        None => None,
    };
    let data = json!({"channel_id": &*channel.public_id, "name": member.name, "message_id": message_id, "reason": reason});
    append_untaken_delivery(txn, channel, member, change, message_id, reason)?;
    record_activity(txn, activity_type, &data);
    Ok(())
}
