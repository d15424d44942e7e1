//! How things reach those who must hear of them: streams and outgoing HTTP.

pub mod outgoing;

use crate::{Hub, Principal, Result};
use chorus_wire::cursor::Cursor;

/// One open stream: what its reader is still owed, in order.
pub struct Feed {}

/// `GET /agent/inbox`
pub async fn inbox(_who: &Principal, _hub: &Hub, _since: Option<Cursor>) -> Result<Feed> {
    todo!()
}
