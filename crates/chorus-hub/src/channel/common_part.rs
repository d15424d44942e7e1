//! The part of a channel delivery that is the same for every inbox: it is stored once for each message (D-108).

use super::append::RoutedMessage;
use crate::Result;
use crate::store::channels::ChannelMemberRecord;
use crate::store::{LogSeq, NewLogEntry, SharedPart, WriteTxn, log};
use chorus_wire::channel::channels::MemberRoute;
use std::ops::Range;

/// Whether the deliveries of one message share a part, and whether that part is stored.
pub(super) enum CommonPart {
    /// At most one inbox receives the message: its entry is stored whole.
    Unused,
    /// Several inboxes receive it, and no entry has been appended yet.
    Unsaved,
    Saved,
}

impl CommonPart {
    pub fn for_receivers(
        message: &RoutedMessage<'_>,
        is_routed: impl Fn(&ChannelMemberRecord) -> bool,
    ) -> Self {
        let receivers = message
            .roster
            .iter()
            .filter(|member| member.via == MemberRoute::Inbox && is_routed(member));
        if receivers.count() > 1 {
            Self::Unsaved
        } else {
            Self::Unused
        }
    }

    /// Appends the delivery of the message `seq` to an inbox.
    pub async fn append_delivery(
        &mut self,
        txn: &mut WriteTxn<'_>,
        seq: LogSeq,
        entry: NewLogEntry,
    ) -> Result<()> {
        let range = find_common_range(&entry.body);
        match self {
            Self::Unused => {
                txn.append_entry(entry);
                return Ok(());
            }
            Self::Unsaved => {
                log::insert_shared_part(&txn.tx, seq, &entry.body[range.clone()]).await?;
                *self = Self::Saved;
            }
            Self::Saved => {}
        }
        txn.append_sharing_entry(entry, SharedPart { id: seq, range });
        Ok(())
    }
}

/// All after the sealed credentials (D-105). They are base64, so the first space ends them.
fn find_common_range(body: &str) -> Range<usize> {
    body.find(' ').map_or(0, |end| end + 1)..body.len()
}
