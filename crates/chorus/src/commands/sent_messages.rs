//! Files in the local history what was sent with this agent's key, here or elsewhere (SKL-26, SKL-35).

use super::history::peer_side;
use crate::{command_client::CommandClient, fail::Fail};
use chorus_client::envelope::trace_time;
use chorus_client::files::{HistoryLine, history::MessageDirection};
use chorus_client::inbox_store::InboxStore;
use chorus_wire::cursor::Cursor;

/// Files what was sent since the last time: the inbox has only what is received. Without an answer of the hub it is done the
/// next time. Only for hubs that replay: another one gives a message another time in its history than in the answer to the
/// sender, so each message would be filed twice.
pub async fn file_sent_messages(
    command: &CommandClient,
    store: &mut InboxStore,
) -> Result<(), Fail> {
    loop {
        let since = store.sent_cursor().unwrap_or(Cursor::START);
        let from = since.to_string();
        let rows = match command.client.fetch_history(Some(&from)).await {
            Ok(rows) => rows,
            Err(error) => {
                tracing::debug!("sent messages are not filed yet: {error}");
                return Ok(());
            }
        };
        let last = rows.last().map(|row| Cursor::from_log_seq(row.id));
        let Some(last) = last.filter(|last| *last > since) else {
            return Ok(());
        };
        for row in rows {
            let (dir, peer) = peer_side(&command.credentials.agent_id, &row);
            if dir == MessageDirection::Received {
                continue;
            }
            let line = HistoryLine {
                ts: trace_time(&row.trace_id).unwrap_or_else(|| row.timestamp.to_string()),
                dir,
                peer: peer.to_owned(),
                envelope: row.envelope,
            };
            store.history().append_once(&line)?;
        }
        store.save_sent_cursor(last)?;
    }
}
