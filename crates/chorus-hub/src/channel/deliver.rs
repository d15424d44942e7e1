//! What is said in a room, owed to those who are to hear it.

use super::say::{Message, Speaker};
use crate::Result;
use crate::store::Txn;
use crate::store::channels::Room;

/// Owes a message to everybody who is to hear it, in the transaction that keeps it.
pub(crate) async fn fan_out(_txn: &mut Txn<'_>, _room: &Room, _message: &Message<'_>, _from: &Speaker) -> Result<()> {
    Ok(())
}
